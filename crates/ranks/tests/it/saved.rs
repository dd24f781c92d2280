//! Ranks that are saved and go on elsewhere do what they would have done.

use crate::support::random::random;
use crate::support::*;
use clearlane_ib::{Picoseconds, Saved, StateError};
use clearlane_ranks::{
    Envelope, Kind, Outgoing, Process, Progress, Ranks, SavedRank, Settings, Stuck, Transport,
};
use clearlane_workload::programs::SIZE_MAX;
use clearlane_workload::{Event, Hints, Op, Rank, RankProgram};
use proptest::prelude::*;

const RANKS: u32 = 4;

fn progress() -> impl Strategy<Value = Progress> {
    prop_oneof![Just(Progress::Call), Just(Progress::Async)]
}

fn delays() -> impl Strategy<Value = Vec<(usize, u64)>> {
    prop::collection::vec((0..200usize, 0..20 * LATENCY), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_run_that_is_saved_goes_on_as_it_would_have(
        seed: u64,
        messages in 0..60u32,
        progress in progress(),
        delays in delays(),
        every in 1..40usize,
    ) {
        let scripts = || random(seed, RANKS, messages);
        let once = run_with(progress, &delays, scripts());
        prop_assert_eq!(&once.stuck, &[] as &[Stuck]);
        prop_assert_eq!((once.job.unfinished, once.job.under_way), (0, 0));
        let mut run = Run::new(progress, &delays, scripts(), 0);
        let mut events = 0;
        while run.go_on() {
            events += 1;
            if events % every == 0 {
                run.begin_anew(events);
            }
        }
        prop_assert_eq!(run.ran(), once);
    }

    /// Where every message is sent at once, ranks do some operations before their time. Nobody is
    /// told anything else, nor at another time.
    #[test]
    fn what_is_done_early_shows_in_nothing(
        seed: u64,
        messages in 0..60u32,
        progress in progress(),
    ) {
        let ran = |eager_max| {
            let settings = Settings { eager_max, ..settings(progress) };
            let mut run = Run::with(settings, &[], random(seed, RANKS, messages), 1);
            while run.go_on() {}
            run.ran()
        };
        let (in_time, early) = (ran(SIZE_MAX.0 - 1), ran(SIZE_MAX.0));
        // This fabric hands on what comes at one instant in the order it was posted in.
        if in_time.meets() {
            return Ok(());
        }
        prop_assert_eq!(in_time.job, early.job);
        for rank in 0..RANKS {
            prop_assert_eq!(in_time.told(rank), early.told(rank));
        }
    }

    /// Of states that were saved and then damaged anywhere, and of any bytes at all.
    #[test]
    fn damaged_states_are_refused_or_lead_on(
        seed: u64,
        progress in progress(),
        delays in delays(),
        events in 0..400usize,
        rank in 0..RANKS,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        told in prop::collection::vec(any::<(u8, u8, u8)>(), 0..20),
    ) {
        let mut run = Run::new(progress, &delays, random(seed, RANKS, 40), 0);
        (0..events).take_while(|_| run.go_on()).for_each(drop);
        let scripts = random(seed, RANKS, 40);
        let whole = Saved::new("test", 1, &run.save()[rank as usize]);
        let mut damaged = whole.clone();
        for (at, byte) in damage {
            let at = at.index(damaged.bytes.len());
            damaged.bytes[at] = byte;
        }
        for state in [damaged, Saved { bytes, ..whole }] {
            let Ok(state) = state.state::<SavedRank>("test", 1) else { continue };
            let program = script(rank, scripts[rank as usize].clone(), &Log::default());
            let process = Process { number: rank, base: 0, job: Some(0), program };
            let mut ranks = Ranks::new(vec![process], 1, settings(progress));
            if ranks.load(0, &state).is_ok() {
                ranks.load_jobs(None);
                lead_on(&mut ranks, rank, &told);
            }
        }
    }
}

/// A fabric of which nobody hears.
struct Deaf(u64);

impl Transport for Deaf {
    fn now(&self) -> u64 {
        self.0
    }

    fn offer(&mut self, _: u32, _: u64, _: u64, _: u16) {}

    fn post(&mut self, _: &Outgoing) -> u32 {
        2
    }

    fn wake(&mut self, _: u64) {}
}

/// Steps a rank and tells it this and that.
fn lead_on(ranks: &mut Ranks, rank: u32, told: &[(u8, u8, u8)]) {
    let mut fabric = Deaf(0);
    _ = (ranks.named(0), ranks.stuck().iter().map(Stuck::to_string).collect::<Vec<_>>());
    for (what, one, other) in told {
        fabric.0 += u64::from(*one) * LATENCY;
        let token = u32::from(other % 32);
        let number = u32::from(*other);
        let from = u32::from(one % 4);
        let kind = [
            Kind::Eager,
            Kind::RequestToSend { token, hints: Hints::default() },
            Kind::Finished { token },
        ][usize::from(what / 8) % 3];
        let (source, tag, context, group) = (Rank(from), number % 3, number as u16 % 5, 0);
        let bytes = 10;
        let envelope =
            Envelope { from, to: rank, source, tag, context, group, bytes, number, kind };
        match what % 8 {
            0 => ranks.head(&mut fabric, 0, &envelope),
            1 => ranks.arrived(&mut fabric, 0, &envelope),
            2 => ranks.read(&mut fabric, 0, token),
            3 => ranks.sent(&mut fabric, 0, token),
            _ => ranks.step(&mut fabric, 0),
        }
        assert!(ranks.save(0).is_some());
    }
    fabric.0 = fabric.0.max(Picoseconds::MAX_RUN.0);
    (0..50).for_each(|_| {
        fabric.0 += 1;
        ranks.step(&mut fabric, 0);
    });
}

/// One that says nothing of its state.
struct Silent;

impl RankProgram for Silent {
    fn step(&mut self, _: Picoseconds, _: Event) -> Op {
        Op::Done
    }
}

fn alone(number: u32, program: Box<dyn RankProgram>) -> Ranks {
    let process = Process { number, base: 0, job: Some(0), program };
    Ranks::new(vec![process], 1, settings(Progress::Call))
}

#[test]
fn a_rank_whose_program_cannot_be_saved_is_not_and_takes_up_none() {
    let mut ranks = alone(0, Box::new(Silent));
    assert_eq!(ranks.save(0), None);
    let state = alone(0, script(0, Vec::new(), &Log::default())).save(0).unwrap();
    let said = ranks.load(0, &state).unwrap_err();
    assert_eq!(said, StateError::Unwanted("script".into()));
    assert!(!said.to_string().contains('\n'));
}

#[test]
fn a_rank_takes_up_its_own_state_only() {
    let of = |number| alone(number, script(number, Vec::new(), &Log::default()));
    let state = of(3).save(0).unwrap();
    assert_eq!(state.number(), 3);
    assert_eq!(of(3).load(0, &state), Ok(()));
    assert_eq!(of(2).load(0, &state), Err(StateError::Damaged("rank")));
}

#[test]
fn what_is_waited_for_is_known_after_a_load_too() {
    let scripts = || {
        vec![
            vec![Do::Receive(from(1, 6)), Do::Receive(anything()), Do::WaitAll(vec![0, 1])],
            vec![Do::Probe(from(0, 7), true)],
        ]
    };
    let once = run(scripts());
    assert_eq!(once.stuck.len(), 2);
    let mut run = Run::new(Progress::Call, &[], scripts(), 0);
    while run.go_on() {}
    run.begin_anew(5);
    assert_eq!(run.ran(), once);
}
