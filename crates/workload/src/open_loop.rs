//! Open-loop traffic: messages are posted at times that do not depend on what the fabric does.

use crate::{Arrivals, Event, FlowGroup, Offered, Op, Rank, RankProgram};
use clearlane_ib::random::Stream;
use clearlane_ib::{LinkRate, Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One rank's share of all open-loop flow groups.
pub struct OpenLoop {
    rank: Rank,
    sources: Sources,
}

enum Sources {
    /// Most ranks have one: it stands in the program itself.
    One(Source),
    /// Several, or none, and their turns.
    Several(Vec<Source>, Vec<Turn>),
}

/// When a source that has not ended has its turn, and its place among the sources: kept in this
/// order.
type Turn = (u64, u16);

#[derive(Clone)]
struct Source {
    offered: Arc<Offered>,
    index: u16,
    stream: Stream,
    /// Picoseconds per wire byte at the group's load.
    pace: f64,
    /// A payload, and how long its bytes on the wire take at that load, ps: that of the message
    /// drawn last, which the next one often has.
    share: (u64, f64),
    next: u64,
    /// Payload of a full packet, and what it has besides.
    payload: u32,
    header: u32,
    drawn: Drawn,
}

/// A message drawn before it is posted, so that its destination is known.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Drawn {
    /// Nothing if it is drawn to be none.
    destination: Option<Rank>,
    bytes: u64,
    /// From its being posted to the next one.
    gap: u64,
}

/// What is saved of a source: its next message is drawn again.
#[derive(Serialize, Deserialize)]
struct Moving {
    /// The stream's, before that message was drawn; of a source that has ended, where it stands.
    counter: u64,
    next: u64,
}

/// Whose state it is, and the version of its layout.
const OF: &str = "open loop";
const VERSION: u16 = 1;

/// A message takes no more draws than this: a pattern 32 at most, sizes and gaps one each.
const DRAWS_MAX: u64 = 64;

impl OpenLoop {
    /// The program of `rank` in these groups, whose position in `groups` is the index messages are
    /// accounted to; give them as `Arc` where there are many ranks. `rate` is the rank's link,
    /// `packet(group)` the payload of a full packet and the bytes it has besides. A rank that sends
    /// in no group is done at once.
    pub fn new<G: Clone + Into<Arc<FlowGroup>>>(
        rank: Rank,
        groups: &[G],
        rate: LinkRate,
        packet: impl Fn(&FlowGroup) -> (u32, u32),
        seed: u64,
    ) -> Self {
        let mut sources = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let group: Arc<FlowGroup> = group.clone().into();
            let Some(offered) = group.offered() else { continue };
            let weight = offered.destinations.weight(rank);
            if weight <= 0.0 || group.senders.binary_search(&rank).is_err() {
                continue;
            }
            let entity = (index as u64) << 32 | u64::from(rank.0);
            let pace = f64::from(rate.femtoseconds_per_byte()) / 1000.0 / (offered.load * weight);
            let (payload, header) = packet(&group);
            let mut source = Source {
                offered: Arc::clone(offered),
                index: index as u16,
                stream: Stream::new(seed, "open loop", entity),
                pace,
                share: (0, 0.0),
                next: offered.start.0,
                payload,
                header,
                drawn: Drawn { destination: None, bytes: 0, gap: 0 },
            };
            source.next = source.next.saturating_add(source.first_gap());
            source.draw(rank);
            sources.push(source);
        }
        let sources = match sources.pop() {
            Some(only) if sources.is_empty() => Sources::One(only),
            last => {
                sources.extend(last);
                let turns = turns(&sources);
                Sources::Several(sources, turns)
            }
        };
        OpenLoop { rank, sources }
    }
}

impl Source {
    fn wire(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(u64::from(self.payload)) * u64::from(self.header)
    }

    /// Hosts of a periodic group start at different phases; one that is asked to load its link
    /// fully starts at once.
    fn first_gap(&mut self) -> u64 {
        match self.offered.arrivals {
            Arrivals::Poisson => self.gap_after(self.payload.into()),
            Arrivals::Periodic if self.offered.load >= 1.0 => 0,
            Arrivals::Periodic => {
                let period = self.wire(self.payload.into()) as f64 * self.pace;
                self.stream.below((period as u64).saturating_add(1))
            }
            Arrivals::Ramp(_) => self.gap_after(self.payload.into()),
        }
    }

    fn gap_after(&mut self, payload: u64) -> u64 {
        if self.share.0 != payload {
            self.share = (payload, self.wire(payload) as f64 * self.pace);
        }
        let mean = self.share.1;
        match self.offered.arrivals {
            Arrivals::Poisson => self.stream.exponential(mean),
            Arrivals::Periodic => (mean.round() as u64).max(1),
            Arrivals::Ramp(ramp) => {
                let since = self.next.saturating_sub(self.offered.start.0);
                (up_to_speed(since as f64, ramp.0 as f64, mean).round() as u64).max(1)
            }
        }
    }
}

/// The gap behind a message that is posted `since` the beginning of a ramp, where one of `mean` is
/// the rule behind it: what is offered up to t is t²/2 over the ramp's length, in times of the full
/// load.
fn up_to_speed(since: f64, ramp: f64, mean: f64) -> f64 {
    if since >= ramp {
        return mean;
    }
    let next = (since * since + 2.0 * ramp * mean).sqrt();
    match next <= ramp {
        true => next - since,
        // The rest of it is offered at the full load.
        false => ramp - since + mean - (ramp * ramp - since * since) / (2.0 * ramp),
    }
}

impl Source {
    fn has_ended(&self) -> bool {
        self.next >= self.offered.stop.0
    }

    /// A message posted now, if its destination was drawn to be one. Draws the next.
    fn take(&mut self, rank: Rank) -> Option<(Rank, u64)> {
        let Drawn { destination, bytes, gap } = self.drawn;
        self.next = self.next.saturating_add(gap);
        if !self.has_ended() {
            self.draw(rank);
        }
        Some((destination?, bytes))
    }

    fn draw(&mut self, rank: Rank) {
        let bytes = self.offered.sizes.draw(&mut self.stream);
        let gap = self.gap_after(bytes);
        let destination = self.offered.destinations.draw(rank, &mut self.stream);
        self.drawn = Drawn { destination, bytes, gap };
    }

    /// What is saved of it. Where its stream was is found by drawing again, because noting it down
    /// would cost every message.
    fn save(&self, rank: Rank) -> Option<Moving> {
        let (counter, next) = (self.stream.counter(), self.next);
        if self.has_ended() {
            return Some(Moving { counter, next });
        }
        let mut again = self.clone();
        let begins = |before: &u64| {
            again.stream.set_counter(*before);
            again.draw(rank);
            again.drawn == self.drawn && again.stream == self.stream
        };
        let counter = (0..=DRAWS_MAX).map(|draws| counter.wrapping_sub(draws)).find(begins)?;
        Some(Moving { counter, next })
    }

    fn load(&mut self, rank: Rank, moving: &Moving) {
        self.stream.set_counter(moving.counter);
        self.next = moving.next;
        if !self.has_ended() {
            self.draw(rank);
        }
    }

    fn upcoming(&self) -> Option<(Rank, u16)> {
        Some((self.drawn.destination?, self.index))
    }
}

/// The turns of sources that have not ended.
fn turns(sources: &[Source]) -> Vec<Turn> {
    let turn = |(place, source): (usize, &Source)| {
        (!source.has_ended()).then_some((source.next, place as u16))
    };
    let mut turns: Vec<Turn> = sources.iter().enumerate().filter_map(turn).collect();
    turns.sort_unstable();
    turns
}

/// A rank with one source.
fn step_one(source: &mut Source, rank: Rank, now: u64) -> Op {
    loop {
        if source.has_ended() {
            return Op::Done;
        }
        if source.next > now {
            return Op::WaitUntil(Picoseconds(source.next));
        }
        if let Some((dst, bytes)) = source.take(rank) {
            let next = (!source.has_ended()).then_some(Picoseconds(source.next));
            return Op::Offer { dst, bytes, group: source.index, next };
        }
    }
}

/// A rank with several.
fn step_several(sources: &mut [Source], turns: &mut Vec<Turn>, rank: Rank, now: u64) -> Op {
    loop {
        let Some((time, place)) = turns.first().copied() else { return Op::Done };
        if time > now {
            return Op::WaitUntil(Picoseconds(time));
        }
        let source = &mut sources[usize::from(place)];
        let drawn = source.take(rank);
        if source.has_ended() {
            turns.remove(0);
        } else {
            let turn = (source.next, place);
            let later = turns[1..].iter().take_while(|other| **other < turn).count();
            turns.copy_within(1..=later, 0);
            turns[later] = turn;
        }
        if let Some((dst, bytes)) = drawn {
            let next = turns.first().map(|(time, _)| Picoseconds(*time));
            return Op::Offer { dst, bytes, group: source.index, next };
        }
    }
}

impl RankProgram for OpenLoop {
    fn takes_one_way(&self) -> bool {
        true
    }

    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        match &mut self.sources {
            Sources::One(source) => step_one(source, self.rank, now.0),
            Sources::Several(sources, turns) => step_several(sources, turns, self.rank, now.0),
        }
    }

    fn upcoming(&self) -> Option<(Rank, u16)> {
        match &self.sources {
            Sources::One(source) => source.upcoming(),
            Sources::Several(sources, turns) => {
                turns.first().and_then(|(_, place)| sources[usize::from(*place)].upcoming())
            }
        }
    }

    fn save(&self) -> Option<Saved> {
        let sources = match &self.sources {
            Sources::One(source) => std::slice::from_ref(source),
            Sources::Several(sources, _) => sources,
        };
        let moving: Option<Vec<Moving>> =
            sources.iter().map(|source| source.save(self.rank)).collect();
        Some(Saved::new(OF, VERSION, &moving?))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let moving: Vec<Moving> = saved.state(OF, VERSION)?;
        let sources = match &mut self.sources {
            Sources::One(source) => std::slice::from_mut(source),
            Sources::Several(sources, _) => sources,
        };
        let fits = |(source, moving): (&Source, &Moving)| source.offered.start.0 <= moving.next;
        if moving.len() != sources.len() || !sources.iter().zip(&moving).all(fits) {
            return Err(StateError::Damaged(OF));
        }
        for (source, moving) in sources.iter_mut().zip(&moving) {
            source.load(self.rank, moving);
        }
        if let Sources::Several(sources, waiting) = &mut self.sources {
            *waiting = turns(sources);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Demand, PatternSpec, Ranks, SizeDistribution, Transport};
    use clearlane_ib::{Bytes, LinkSpeed, LinkWidth};
    use proptest::prelude::*;

    fn group(name: &str, load: f64) -> FlowGroup {
        let ranks = Ranks::named((0..9).map(|rank| format!("host{rank}")));
        FlowGroup {
            name: name.into(),
            class: Class::Background,
            senders: (0..9).map(Rank).collect(),
            transport: Transport::Ud,
            demand: Demand::OpenLoop(Arc::new(Offered {
                destinations: PatternSpec::to_anybody().build(&ranks, None).unwrap(),
                sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(5000) },
                load,
                arrivals: Arrivals::Poisson,
                start: Picoseconds(0),
                stop: Picoseconds(400_000_000),
            })),
            sl: None,
        }
    }

    #[test]
    fn a_ramp_offers_half_of_its_time_at_the_full_load() {
        let (ramp, mean) = (1_000.0, 7.0);
        let (mut at, mut offered) = (0.0, 0.0);
        while at < 5_000.0 {
            at += up_to_speed(at, ramp, mean);
            offered += mean;
            let expected = if at < ramp { at * at / 2.0 / ramp } else { at - ramp / 2.0 };
            assert!((offered - expected).abs() < 1e-6, "{at}: {offered} {expected}");
        }
        assert_eq!(up_to_speed(1_000.0, ramp, mean), mean);
    }

    /// What a program says it will post next is what it posts next.
    #[test]
    fn the_next_message_is_known_before_it_is_posted() {
        let rate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        for groups in [vec![group("one", 0.4)], vec![group("one", 0.2), group("two", 0.3)]] {
            let mut program = OpenLoop::new(Rank(3), &groups, rate, |_| (2048, 26), 1);
            let (mut now, mut posted) = (Picoseconds(0), 0);
            loop {
                let upcoming = program.upcoming();
                match program.step(now, Event::Elapsed) {
                    Op::Offer { dst, group, next, .. } => {
                        assert_eq!(upcoming, Some((dst, group)));
                        posted += 1;
                        let Some(next) = next else { break };
                        now = next;
                    }
                    Op::WaitUntil(time) => now = time,
                    Op::Done => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(posted > 50, "{posted} messages");
        }
    }

    /// A program of none, one and several sources, of which some end before others.
    fn programs() -> Vec<OpenLoop> {
        let rate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        let short = |mut group: FlowGroup| {
            if let Demand::OpenLoop(offered) = &mut group.demand {
                let (stop, sizes) = (Picoseconds(60_000_000), SizeDistribution::Fixed(Bytes(64)));
                let arrivals = Arrivals::Periodic;
                *offered = Arc::new(Offered { stop, sizes, arrivals, ..(**offered).clone() });
            }
            group
        };
        let all = [
            vec![],
            vec![group("one", 0.4)],
            vec![group("one", 0.2), short(group("two", 0.3)), group("three", 0.1)],
        ];
        all.iter().map(|groups| OpenLoop::new(Rank(3), groups, rate, |_| (2048, 26), 1)).collect()
    }

    /// Its next operation, and the time of the one after it.
    fn next(program: &mut OpenLoop, now: Picoseconds) -> (Op, Option<Picoseconds>) {
        let op = program.step(now, Event::Elapsed);
        let next = match &op {
            Op::Offer { next, .. } => *next,
            Op::WaitUntil(time) => Some(*time),
            Op::Done => None,
            other => panic!("{other:?}"),
        };
        (op, next)
    }

    #[test]
    fn it_goes_on_from_each_of_its_states() {
        for (case, mut program) in programs().into_iter().enumerate() {
            let (mut now, mut steps) = (Picoseconds(0), 0);
            loop {
                let state = program.save().expect("open-loop traffic is saved");
                // One from the beginning, one from the state, saved anew in every step.
                let mut other = programs().swap_remove(case);
                other.load(&state).unwrap();
                assert_eq!(other.save(), Some(state), "the same state, the same bytes");
                let (op, later) = next(&mut program, now);
                assert_eq!(next(&mut other, now), (op, later));
                let Some(later) = later else { break };
                assert_eq!(program.upcoming(), other.upcoming());
                program = other;
                (now, steps) = (later, steps + 1);
            }
            assert!(case == 0 || steps > 50, "{steps} steps");
        }
    }

    /// A pattern that draws as often as one may.
    #[derive(Debug)]
    struct Greedy;

    impl crate::Destinations for Greedy {
        fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank> {
            let draws = stream.below(32);
            let to = (0..draws).map(|_| stream.below(9)).last()? as u32;
            (to != source.0).then_some(Rank(to))
        }

        fn weight(&self, _: Rank) -> f64 {
            1.0
        }
    }

    #[test]
    fn where_a_message_was_drawn_is_found_however_many_draws_it_took() {
        let mut group = group("one", 0.4);
        if let Demand::OpenLoop(offered) = &mut group.demand {
            let sizes = SizeDistribution::Mix(vec![(Bytes(1), 0.5), (Bytes(9000), 0.5)]);
            let destinations = Arc::new(Greedy);
            *offered = Arc::new(Offered { destinations, sizes, ..(**offered).clone() });
        }
        let rate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        let build = || OpenLoop::new(Rank(3), &[group.clone()], rate, |_| (2048, 26), 1);
        let (mut program, mut now) = (build(), Some(Picoseconds(0)));
        while let Some(time) = now {
            let mut other = build();
            other.load(&program.save().expect("32 draws are allowed")).unwrap();
            let (op, later) = next(&mut program, time);
            assert_eq!(next(&mut other, time), (op, later));
            now = later;
        }
    }

    #[test]
    fn states_of_other_groups_or_versions_are_refused() {
        let all = programs();
        for (case, mut program) in programs().into_iter().enumerate() {
            for (other, state) in all.iter().enumerate().map(|(it, other)| (it, other.save())) {
                let (state, damaged) = (state.unwrap(), Err(StateError::Damaged(OF)));
                assert_eq!(program.load(&state), if case == other { Ok(()) } else { damaged });
                let later = Saved { version: VERSION + 1, ..state };
                assert!(matches!(program.load(&later), Err(StateError::Foreign { .. })));
            }
        }
    }

    proptest! {
        /// Whom it sends to and how much are drawn, so they are what its groups allow.
        #[test]
        fn damaged_states_are_refused_or_lead_on(
            bytes in prop::collection::vec(any::<u8>(), 0..70),
            mutated in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            for mut program in programs() {
                let own = program.save().unwrap();
                let mut near = own.bytes.clone();
                for (at, byte) in &mutated {
                    let at = at.index(near.len());
                    near[at] ^= byte;
                }
                for bytes in [near, bytes.clone()] {
                    if program.load(&Saved { bytes, ..own.clone() }).is_ok() {
                        for _ in 0..50 {
                            match next(&mut program, Picoseconds(300_000_000)).0 {
                                Op::Offer { dst, bytes, group, .. } => {
                                    prop_assert!(dst.0 < 9 && dst.0 != 3 && group < 3);
                                    prop_assert!((1..=5000).contains(&bytes));
                                }
                                _ => break,
                            }
                        }
                    }
                }
            }
        }
    }
}
