//! What every mechanism keeps to, whatever happens to it: each is driven through random events
//! with its defaults, its presets and parameters at the ends of their ranges.

use clearlane_congestion::mechanisms::ALL;
use clearlane_congestion::{
    Arrived, Departing, Entry, Feedback, Mechanism, Notifies, Output, OutputQueue, Pair, Parameter,
    Probe, Range, Reactor, Saved, Scope, Sent, Source, Stripes, Value, Values,
};
use clearlane_ib::{Bytes, LinkRate, LinkSpeed, LinkWidth, Picoseconds, VirtualLane};
use proptest::prelude::*;

const PAIRS: u32 = 5;
const LINK: LinkRate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
const SOURCE: Source = Source { link: LINK, packet_max: 2074, paths: 5 };

/// Something that happens to a reactor.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Sent(u32),
    Becn,
    Ack(u64),
    Completion,
    Plan(u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// Since the last one, in picoseconds.
    after: u64,
    pair: Pair,
    happening: Happening,
}

/// Bytes of a message, which may have none.
fn plans() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0u64), 5 => 1u64..1_000_000]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let happening = prop_oneof![
        4 => (64u32..=2074).prop_map(Happening::Sent),
        4 => Just(Happening::Becn),
        3 => (0u64..200_000_000).prop_map(Happening::Ack),
        1 => Just(Happening::Completion),
        2 => (plans(), any::<u64>()).prop_map(|(b, d)| Happening::Plan(b, d)),
    ];
    // Bursts, gaps of microseconds, and silences in which timers expire.
    let after = prop_oneof![Just(0), 0u64..4_000_000, 0u64..400_000_000];
    let event = (after, 0..PAIRS, happening).prop_map(|(after, pair, happening)| Event {
        after,
        pair: Pair(pair),
        happening,
    });
    prop::collection::vec(event, 1..120)
}

/// A mechanism and the values it is built from.
#[derive(Debug)]
struct Built {
    entry: &'static Entry,
    values: Values,
    mechanism: Box<dyn Mechanism>,
}

/// One end of a parameter's range.
fn end(parameter: &Parameter, upper: bool) -> Value {
    let pick = |ends: [Value; 2]| ends.into_iter().nth(usize::from(upper)).unwrap();
    match &parameter.range {
        Range::Integer(a, b) => pick([Value::Integer(*a), Value::Integer(*b)]),
        Range::Number(a, b) => pick([Value::Number(*a), Value::Number(*b)]),
        Range::Time(a, b) => pick([Value::Time(*a), Value::Time(*b)]),
        Range::Size(a, b) => pick([Value::Size(*a), Value::Size(*b)]),
        Range::Rate(a, b) => pick([Value::Rate(*a), Value::Rate(*b)]),
        Range::Word(words) => pick([Value::Word(words[0]), Value::Word(words[words.len() - 1])]),
        Range::Table(most) => pick([Value::Table(vec![]), Value::Table(vec![(3, 16_383); *most])]),
    }
}

/// Builds a mechanism; nothing if the values contradict each other.
fn built(entry: &'static Entry, set: &[(&'static Parameter, Value)]) -> Option<Built> {
    let mut values = Values::default();
    for (parameter, value) in set {
        values.set(parameter, value.clone()).expect("in range");
    }
    (entry.build)(&values).ok().map(|mechanism| Built { entry, values, mechanism })
}

/// Any mechanism with any preset, or with a few parameters at an end of their range.
fn mechanisms() -> impl Strategy<Value = Built> {
    let extremes = prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4);
    let chosen = (0..ALL.len(), any::<prop::sample::Index>(), any::<bool>(), extremes);
    chosen.prop_filter_map("values contradict each other", |(which, preset, plain, extremes)| {
        let entry = ALL[which];
        let mut set: Vec<_> = if plain || entry.presets.is_empty() {
            Vec::new()
        } else {
            preset.get(entry.presets).values.to_vec()
        };
        if !entry.parameters.is_empty() {
            let ends = extremes.iter().map(|(index, upper)| (index.get(entry.parameters), *upper));
            set.extend(ends.map(|(parameter, upper)| (*parameter, end(parameter, upper))));
        }
        built(entry, &set)
    })
}

/// What can be seen of a reactor.
#[derive(PartialEq, Debug)]
struct Seen {
    next_timer: Option<Picoseconds>,
    next_injection: Vec<Picoseconds>,
    probes: Vec<(&'static str, u64)>,
    stripes: Stripes,
}

fn pairs(mechanism: &dyn Mechanism) -> u32 {
    if mechanism.scope() == Scope::QueuePair { 1 } else { PAIRS }
}

/// A reactor and the time it is at.
struct Driven<'a> {
    built: &'a Built,
    reactor: Box<dyn Reactor>,
    now: u64,
    /// Pairs that were unlimited and of which nothing was heard since.
    unlimited: Vec<Pair>,
}

impl Driven<'_> {
    /// Runs the timers due on the way to an event, then the event, and checks what must hold.
    fn happen(&mut self, event: &Event) -> Seen {
        self.now += event.after;
        while let Some(due) = self.reactor.next_timer().filter(|due| due.0 <= self.now) {
            self.reactor.on_timer(due);
            assert!(self.reactor.next_timer().is_none_or(|next| next > due), "a timer stands");
        }
        let now = Picoseconds(self.now);
        let pair = Pair(event.pair.0 % pairs(&*self.built.mechanism));
        let mut stripes = Stripes::default();
        match event.happening {
            Happening::Sent(bytes) => self.send(pair, bytes),
            Happening::Becn => self.reactor.on_feedback(now, pair, Feedback::Becn),
            Happening::Ack(latency) => {
                let latency = Picoseconds(latency);
                let ack = Feedback::Ack { latency, bytes: 2074, acknowledged: 4148 };
                self.reactor.on_feedback(now, pair, ack);
            }
            Happening::Completion => {
                let completion = Feedback::Completion { bytes: Bytes(9_000), posted_at: now };
                self.reactor.on_feedback(now, pair, completion);
            }
            Happening::Plan(bytes, draw) => {
                self.reactor.plan(now, Bytes(bytes), draw, &mut stripes);
                let sum: u64 = stripes.parts().iter().map(|part| part.bytes.0).sum();
                assert_eq!(sum, bytes, "parts do not add up");
                let parts = stripes.parts();
                let alone = parts.len() == 1;
                assert!(alone || parts.len() > 1 && parts.iter().all(|part| part.bytes.0 > 0));
                assert!(stripes.parts().iter().all(|part| part.path.0 < SOURCE.paths));
            }
        }
        assert!(self.reactor.next_timer().is_none_or(|next| next > now), "a timer in the past");
        let feedback = !matches!(event.happening, Happening::Sent(_) | Happening::Plan(..));
        self.unlimited.retain(|known| !feedback || *known != pair);
        self.check_unlimited();
        self.see(stripes)
    }

    /// A packet leaves if it may.
    fn send(&mut self, pair: Pair, bytes: u32) {
        if self.reactor.next_injection(pair).0 > self.now {
            return;
        }
        let busy = Picoseconds(LINK.serialisation(u64::from(bytes)));
        let untouched =
            self.reactor.is_unlimited(Picoseconds(self.now), pair).then(|| self.reactor.save());
        self.reactor.on_sent(Picoseconds(self.now), &Sent { pair, bytes, busy });
        let next = self.reactor.next_injection(pair).0;
        assert!(next <= self.now || next >= self.now + busy.0, "overtakes its predecessor");
        assert!(untouched.is_none_or(|before| before == self.reactor.save()), "was unlimited");
    }

    /// A pair that is unlimited stays so until something is heard of it, and need not be asked.
    fn check_unlimited(&mut self) {
        let now = Picoseconds(self.now);
        for pair in &self.unlimited {
            assert!(self.reactor.is_unlimited(now, *pair), "{pair:?} is limited without feedback");
        }
        let all = (0..pairs(&*self.built.mechanism)).map(Pair);
        self.unlimited = all.filter(|pair| self.reactor.is_unlimited(now, *pair)).collect();
        for pair in &self.unlimited {
            assert!(self.reactor.next_injection(*pair) <= now, "{pair:?} has to wait");
        }
    }

    fn see(&self, stripes: Stripes) -> Seen {
        let mut probes = Vec::new();
        let mut next_injection = Vec::new();
        for pair in (0..pairs(&*self.built.mechanism)).map(Pair) {
            self.reactor.probe(pair, &mut |probe| {
                self.check(probe);
                probes.push((probe.name, probe.value));
            });
            next_injection.push(self.reactor.next_injection(pair));
        }
        Seen { next_timer: self.reactor.next_timer(), next_injection, probes, stripes }
    }

    /// A count among the values of this run.
    fn integer(&self, name: &str) -> u64 {
        let mut parameters = self.built.entry.parameters.iter();
        let parameter = parameters.find(|parameter| parameter.name == name).expect("its own");
        self.built.values.integer(parameter)
    }

    fn check(&self, probe: Probe) {
        let range = match probe.name {
            "CCTI" => self.integer("ccti_min")..=self.integer("ccti_limit"),
            // No cut goes below 1 Mb/s, the least that rate_min may be.
            "rate (Mb/s)" => 1..=LINK.bits_per_second().0 / 1_000_000,
            "alpha (1/1000)" => 0..=1_000,
            "open paths" => 1..=self.integer("max_paths").min(u64::from(SOURCE.paths)),
            _ => return,
        };
        assert!(range.contains(&probe.value), "{} is {}", probe.name, probe.value);
    }
}

fn driven(built: &Built) -> Option<Driven<'_>> {
    built.mechanism.reactor(&SOURCE).map(|reactor| Driven {
        built,
        reactor,
        now: 0,
        unlimited: Vec::new(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_reactor_keeps_its_bounds_and_goes_on_from_any_saved_state(
        built in mechanisms(),
        events in events(),
        cut in any::<prop::sample::Index>(),
    ) {
        let Some(mut it) = driven(&built) else {
            return Ok(());
        };
        let (before, after) = events.split_at(cut.index(events.len()));
        before.iter().for_each(|event| _ = it.happen(event));
        let mut other = driven(&built).expect("the same mechanism");
        other.reactor.load(&it.reactor.save()).expect("its own state");
        other.now = it.now;
        for event in after {
            prop_assert_eq!(it.happen(event), other.happen(event));
        }
        prop_assert_eq!(it.reactor.save(), other.reactor.save());
    }

    #[test]
    fn markers_and_notifiers_go_on_from_any_saved_state(
        built in mechanisms(),
        steps in prop::collection::vec(
            (0u64..200_000, any::<bool>(), 64u32..=2074, any::<u64>(), any::<bool>()),
            1..60,
        ),
        cut in any::<prop::sample::Index>(),
        faces_adapter in any::<bool>(),
    ) {
        let output = Output {
            node: 0,
            port: 1,
            lane: VirtualLane::new(0).expect("a lane"),
            faces_adapter,
            buffer: Bytes(65_536),
            packet_max: 2074,
        };
        let parts = || (built.mechanism.marker(&output), built.mechanism.notifier());
        let mut its = parts();
        let mut others = parts();
        let cut = cut.index(steps.len());
        for (step, (queued, starved, bytes, draw, reliable)) in steps.into_iter().enumerate() {
            let now = Picoseconds(step as u64 * 9_000_000);
            let queue = OutputQueue { queued: Bytes(queued), starved };
            if let (Some(it), Some(other)) = (&mut its.0, &mut others.0) {
                if step == cut {
                    other.load(&it.save()).expect("its own state");
                }
                let idle = it.idle_up_to().is_some_and(|upto| queue.queued <= upto);
                let before = it.save();
                it.on_changed(now, &queue);
                let marked = it.mark(now, &queue, &Departing { bytes }, draw);
                prop_assert!(!idle || !marked && it.save() == before, "it was idle");
                if step >= cut {
                    other.on_changed(now, &queue);
                    prop_assert_eq!(marked, other.mark(now, &queue, &Departing { bytes }, draw));
                }
            }
            if let (Some(it), Some(other)) = (&mut its.1, &mut others.1) {
                if step == cut {
                    other.load(&it.save()).expect("its own state");
                }
                let packet = Arrived { fecn: starved, reliable };
                let before = it.save();
                let sent = it.on_arrived(now, &packet);
                let stateless = built.mechanism.notifies() == Notifies::Everything;
                prop_assert!(!stateless || it.save() == before);
                if step >= cut {
                    prop_assert_eq!(sent, other.on_arrived(now, &packet));
                }
            }
        }
    }

    #[test]
    fn damaged_states_are_refused_or_led_on_without_a_panic(
        built in mechanisms(),
        events in events(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let Some(mut it) = driven(&built) else {
            return Ok(());
        };
        let damaged = Saved { bytes, ..it.reactor.save() };
        if it.reactor.load(&damaged).is_ok() {
            it.reactor.on_timer(Picoseconds(0));
            it.reactor.on_feedback(Picoseconds(1), Pair(0), Feedback::Becn);
            it.see(Stripes::default());
        } else {
            events.iter().for_each(|event| _ = it.happen(event));
        }
    }
}

#[test]
fn no_part_takes_up_the_state_of_another() {
    let mut states: Vec<Saved> = Vec::new();
    let mechanisms: Vec<_> = ALL.iter().filter_map(|entry| built(entry, &[])).collect();
    for built in &mechanisms {
        states.extend(built.mechanism.notifier().map(|it| it.save()));
        states.extend(built.mechanism.reactor(&SOURCE).map(|it| it.save()));
    }
    for built in &mechanisms {
        if let Some(mut it) = built.mechanism.reactor(&SOURCE) {
            let own = it.save().of;
            assert!(own.starts_with(built.entry.name), "{own}");
            for state in &states {
                assert_eq!(it.load(state).is_ok(), state.of == own, "{own} from {}", state.of);
            }
            let later = Saved { version: u16::MAX, ..it.save() };
            assert!(it.load(&later).is_err(), "{own}");
        }
    }
}
