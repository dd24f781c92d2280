//! What the ranks of a program do. One kind a file; adding one is its file and its line in
//! `programs!`.

use crate::{Pacing, RankProgram};
use clearlane_ib::Bytes;
use serde::{Deserialize, Deserializer, de};

mod exchange;
mod fold;
mod schedule;
mod sized;

pub use ping_pong::PingPong;
pub use schedule::{Planned, Schedule};
pub use trace::TraceFile;

/// Why a program does not fit the ranks it was given.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("program `{program}` {problem}")]
pub struct ProgramError {
    /// Its kind.
    pub program: &'static str,
    /// What is wrong and what would do.
    pub problem: String,
}

/// The entry of a kind of program in the registry.
#[derive(Debug)]
pub struct Entry {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Parameters with unit and range.
    pub parameters: &'static str,
    /// A program of that kind as an experiment file writes it, of 2 to 9 ranks.
    pub example: &'static str,
    /// Where the definition comes from.
    pub reference: &'static str,
}

/// The ranks of a program.
#[derive(Clone, Default, Debug)]
pub struct Group {
    /// How many.
    pub ranks: u32,
    /// Index of the flow group that their messages are accounted to.
    pub group: u16,
    /// How far apart the packets of their messages are.
    pub pacing: Pacing,
}

/// The parameters of a kind of program: what a file writes behind `kind`, and what its ranks are
/// built from.
trait Program {
    /// The programs of so many ranks, in their order.
    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String>;

    /// How many operations it does one after another.
    fn operations(&self) -> u64;

    /// The longest message among so many ranks, bytes, or a bound of it.
    fn longest(&self, ranks: u32) -> u64;

    /// What so many ranks send, step by step, if that is known before they run.
    fn schedule(&self, _ranks: u32) -> Result<Option<Box<dyn Schedule>>, String> {
        Ok(None)
    }

    /// Whether what it sends is known step by step before it runs.
    fn has_steps(&self) -> bool {
        false
    }

    /// Whether its ranks can keep a timetable.
    fn keeps_timetable(&self) -> bool {
        false
    }

    /// How many ranks it has, if that is for it to say.
    fn ranks(&self) -> Option<u32> {
        None
    }

    /// The trace it needs read.
    fn trace_file(&mut self) -> Option<&mut TraceFile> {
        None
    }
}

macro_rules! programs {
    ($($module:ident)*) => {
        $(mod $module;)*

        /// A kind of program with its parameters, as an experiment file writes it:
        /// `{ kind = "ping-pong", size = "8 B", rounds = 100 }`. Variants are called as their
        /// modules.
        #[derive(Clone, PartialEq, Debug, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[allow(non_camel_case_types, missing_docs)]
        pub enum ProgramSpec {
            $($module($module::Params),)*
        }

        /// All kinds of programs.
        pub static ALL: &[&Entry] = &[$(&$module::ENTRY),*];

        impl ProgramSpec {
            fn program(&self) -> (&dyn Program, &'static Entry) {
                match self {
                    $(ProgramSpec::$module(params) => (params, &$module::ENTRY),)*
                }
            }

            fn program_mut(&mut self) -> &mut dyn Program {
                match self {
                    $(ProgramSpec::$module(params) => params,)*
                }
            }
        }
    };
}

programs! {
    ping_pong
    pairwise_alltoall
    ring_alltoall
    spread_alltoall
    bruck_alltoall
    butterfly_alltoall
    a2at_alltoall
    ring_allreduce
    recursive_doubling_allreduce
    rabenseifner_allreduce
    ring_allgather
    bruck_allgather
    ring_reduce_scatter
    halving_reduce_scatter
    binomial_broadcast
    scatter_allgather_broadcast
    dissemination_barrier
    ring_exchange
    halo_exchange
    trace
}

impl ProgramSpec {
    /// The programs of so many ranks, in their order. Fails if they are too few or too many, or a
    /// parameter is out of range.
    pub fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, ProgramError> {
        let (program, entry) = self.program();
        let fault = |problem| ProgramError { program: entry.name, problem };
        let built = program.build(group).map_err(fault)?;
        match Bytes(program.longest(group.ranks)) {
            longest if longest <= SIZE_MAX => Ok(built),
            longest => {
                let problem = format!("sends messages of {longest}, more than {SIZE_MAX}");
                Err(fault(format!("{problem}; lower size")))
            }
        }
    }

    /// The longest message among so many ranks, bytes, or a bound of it.
    pub fn longest(&self, ranks: u32) -> Bytes {
        Bytes(self.program().0.longest(ranks))
    }

    /// How many operations it does one after another, of the kind whose time MPI benchmarks report:
    /// half rounds of a ping-pong, whole collectives.
    pub fn operations(&self) -> u64 {
        self.program().0.operations()
    }

    /// What so many ranks send in each step of a round, if that is known before they run. Fails as
    /// [`ProgramSpec::build`] does.
    pub fn schedule(&self, ranks: u32) -> Result<Option<Box<dyn Schedule>>, ProgramError> {
        let (program, entry) = self.program();
        let schedule = program.schedule(ranks);
        schedule.map_err(|problem| ProgramError { program: entry.name, problem })
    }

    /// Whether what it sends is known step by step before it runs.
    pub fn has_steps(&self) -> bool {
        self.program().0.has_steps()
    }

    /// Whether its ranks can keep a timetable.
    pub fn keeps_timetable(&self) -> bool {
        self.program().0.keeps_timetable()
    }

    /// How many ranks it has, whatever the number of hosts: a trace that was read says so.
    pub fn ranks(&self) -> Option<u32> {
        self.program().0.ranks()
    }

    /// The trace that has to be read before it is built.
    pub fn trace_file(&mut self) -> Option<&mut TraceFile> {
        self.program_mut().trace_file()
    }

    /// The name of its entry.
    pub fn name(&self) -> &'static str {
        self.program().1.name
    }
}

/// The longest message of a program.
pub const SIZE_MAX: Bytes = Bytes(1 << 30);

/// A size with its unit.
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)?;
    let size: Bytes = text.parse().map_err(de::Error::custom)?;
    match size <= SIZE_MAX {
        true => Ok(size),
        false => Err(de::Error::custom(format!("{size} is more than {SIZE_MAX}"))),
    }
}

/// How often something is done.
fn rounds(rounds: u32) -> Result<u32, String> {
    match (1..=1_000_000).contains(&rounds) {
        true => Ok(rounds),
        false => Err(format!("has rounds = {rounds}, outside 1 to 1000000")),
    }
}

/// Fewer than two ranks have nobody to exchange anything with.
fn several(ranks: u32) -> Result<u32, String> {
    match ranks {
        0 | 1 => Err(format!("takes 2 ranks or more, not {ranks}")),
        several => Ok(several),
    }
}

const fn once() -> u32 {
    1
}

fn power_of_two(ranks: u32) -> Result<(), String> {
    match ranks.is_power_of_two() {
        true => Ok(()),
        false => Err(format!("takes a power of two of ranks, not {ranks}")),
    }
}

/// Fails unless ranks fill a grid of 1 to 6 dimensions.
fn on_grid(grid: &[u32], ranks: u32) -> Result<(), String> {
    let product = grid.iter().try_fold(1u32, |product, k| product.checked_mul(*k));
    if product == Some(ranks) && (1..=6).contains(&grid.len()) {
        return Ok(());
    }
    let sides: Vec<String> = grid.iter().map(u32::to_string).collect();
    match (grid.len(), product) {
        (1..=6, Some(product)) => {
            Err(format!("has a grid of {} = {product} ranks, not {ranks}", sides.join("×")))
        }
        (1..=6, None) => Err(format!("has a grid of {}, not of {ranks} ranks", sides.join("×"))),
        (dimensions, _) => Err(format!("has a grid of {dimensions} dimensions, outside 1 to 6")),
    }
}

/// Steps in which a distance doubles until it covers so many ranks.
const fn log2_ceil(ranks: u32) -> u32 {
    ranks.next_power_of_two().trailing_zeros()
}

/// Bytes of one of as many shares of a vector as there are ranks: the first ones have one more
/// where they do not divide.
fn share(bytes: u64, ranks: u32, number: u32) -> u64 {
    let (ranks, number) = (u64::from(ranks), u64::from(number));
    bytes / ranks + u64::from(number < bytes % ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completion, Event, Handle, Op};
    use clearlane_ib::{Picoseconds, Saved, StateError};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn every_entry_says_what_it_is() {
        let mut names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|entry| !entry.summary.is_empty() && !entry.reference.is_empty()));
    }

    #[test]
    fn ranks_and_parameters_that_do_not_fit_are_refused() {
        let group = Group { ranks: 3, ..Group::default() };
        let spec = ProgramSpec::ping_pong(ping_pong::Params { size: Bytes(8), rounds: 1 });
        let said = spec.build(&group).err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("program `ping-pong` takes 2 ranks, not 3"));
        let spec = ring_allreduce::Params::new(Bytes(8), 0);
        assert!(ProgramSpec::ring_allreduce(spec).build(&group).is_err());
    }

    #[test]
    fn benchmarks_time_half_a_ping_pong_and_a_whole_collective() {
        let (size, rounds) = (Bytes(8), 5);
        let of = |spec: ProgramSpec| spec.operations();
        assert_eq!(of(ProgramSpec::ping_pong(ping_pong::Params { size, rounds })), 10);
        assert_eq!(of(ProgramSpec::ring_allreduce(ring_allreduce::Params::new(size, rounds))), 5);
        let alltoall = pairwise_alltoall::Params::new(size, rounds);
        assert_eq!(of(ProgramSpec::pairwise_alltoall(alltoall)), 5);
    }

    #[test]
    fn a_collective_of_one_rank_is_refused() {
        let spec = ring_allreduce::Params::new(Bytes(8), 1);
        let spec = ProgramSpec::ring_allreduce(spec);
        let said = spec
            .build(&Group { ranks: 1, ..Group::default() })
            .err()
            .map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("program `ring-allreduce` takes 2 ranks or more, not 1"));
    }

    /// What the example of a trace has in its file: all that a node can be and wait for.
    const TRACE: &[u8] = b"num_ranks 2\nrank 0 {\na: calc 100\nb: send 8b to 1 tag 4 cpu 1\n\
        c: calc 5\nd: calc 7 cpu 2\ne: recv 9b from -1 tag -1\nb requires a\nc irequires b\n\
        d irequires e\nc requires d\n}\nrank 1 {\na: recv 8b from 0 tag 4 cpu 1\n\
        b: send 9b to 0 nic 1\nb requires a\n}\n";

    /// The ranks of each kind's example, as many as it takes of 9.
    fn each_kind() -> Vec<(&'static str, Vec<Box<dyn RankProgram>>)> {
        let build = |entry: &&Entry| {
            #[derive(Deserialize)]
            struct Example {
                program: ProgramSpec,
            }
            let Example { mut program } = toml::from_str(entry.example).unwrap();
            if let Some(file) = program.trace_file() {
                file.fill(TRACE).unwrap();
            }
            assert_eq!(program.name(), entry.name, "the example of another");
            let built =
                |ranks: u32| program.build(&Group { ranks, group: 3, ..Group::default() }).ok();
            let ranks = (2..=9).rev().find_map(built);
            (entry.name, ranks.expect("an example of 2 to 9 ranks"))
        };
        ALL.iter().map(build).collect()
    }

    /// What a program is told of an operation, the `number`th, where others are under way.
    fn answer(op: &Op, number: u32, under_way: &mut VecDeque<Handle>) -> Event {
        let completed = |handle| Event::Completed(Completion { handle, received: None });
        match op {
            Op::Send { .. }
            | Op::Recv { .. }
            | Op::Put { .. }
            | Op::Get { .. }
            | Op::Start { .. } => {
                under_way.push_back(Handle(number));
                Event::Posted(Handle(number))
            }
            Op::Wait(handle) => completed(*handle),
            Op::WaitAll(_) => Event::AllCompleted,
            Op::WaitNext => under_way.pop_front().map_or(Event::Elapsed, completed),
            _ => Event::Elapsed,
        }
    }

    /// What a program is told next, and what is under way.
    type Told = (Event, VecDeque<Handle>);

    /// The operations of a program from an event on, at most so many, and its states before each.
    fn follow(
        program: &mut dyn RankProgram,
        (mut event, mut under_way): Told,
        begin: u32,
        most: u32,
    ) -> (Vec<Op>, Vec<(Told, Saved)>) {
        let (mut ops, mut states) = (Vec::new(), Vec::new());
        for number in begin..begin + most {
            let state = program.save().expect("every kind of program is saved");
            states.push(((event, under_way.clone()), state));
            let op = program.step(Picoseconds(0), event);
            event = answer(&op, number, &mut under_way);
            ops.push(op);
            if ops.last() == Some(&Op::Done) {
                break;
            }
        }
        (ops, states)
    }

    /// Where nothing is under way.
    fn told(event: Event) -> Told {
        (event, VecDeque::new())
    }

    #[test]
    fn every_kind_goes_on_from_each_of_its_states() {
        for (kind, (name, ranks)) in each_kind().into_iter().enumerate() {
            for (rank, mut program) in ranks.into_iter().enumerate() {
                let (ops, states) = follow(&mut *program, told(Event::Start), 0, 1000);
                assert_eq!(ops.last(), Some(&Op::Done), "{name}");
                for (number, (told, state)) in states.into_iter().enumerate() {
                    let mut other = each_kind().swap_remove(kind).1.swap_remove(rank);
                    other.load(&state).unwrap();
                    assert_eq!(other.save(), Some(state), "{name}: the same state, the same bytes");
                    let (rest, _) = follow(&mut *other, told, number as u32, 1000);
                    assert_eq!(rest, ops[number..], "{name}, rank {rank}, step {number}");
                }
            }
        }
    }

    #[test]
    fn no_kind_takes_up_the_state_of_another_or_of_another_version() {
        for (name, mut ranks) in each_kind() {
            let program = &mut ranks[0];
            for (other, states) in each_kind() {
                let state = states[0].save().unwrap();
                assert_eq!(state.of, other);
                assert_eq!(program.load(&state).is_ok(), name == other, "{name} from {other}");
                let later = Saved { version: state.version + 1, ..state };
                assert!(matches!(program.load(&later), Err(StateError::Foreign { .. })), "{name}");
            }
        }
    }

    #[test]
    fn phases_beyond_their_range_are_refused() {
        let refused = |kind: &'static str, bytes: &[u8]| {
            let ranks = each_kind().into_iter().find(|(name, _)| *name == kind);
            let mut program = ranks.unwrap().1.swap_remove(0);
            let own = program.save().unwrap();
            let said = program.load(&Saved { bytes: bytes.to_vec(), ..own.clone() });
            let kept = if said.is_ok() { bytes } else { &own.bytes };
            assert_eq!(program.save().unwrap().bytes, kept, "one that is refused changes nothing");
            assert!(said.is_ok() || said == Err(StateError::Damaged(kind)));
            said.is_err()
        };
        // Sends and receives left, what is next.
        assert!(!refused("ping-pong", &[100, 1, 2]));
        assert!(
            refused("ping-pong", &[101, 1, 2])
                && refused("ping-pong", &[2, 101, 2])
                && refused("ping-pong", &[2, 1, 3])
        );
        // Free nodes, what is posted, handles, nodes that have begun and that are over.
        assert!(!refused("trace", &[2, 1, 0, 1, 4, 0, 0, 1, 0, 1, 0]));
        // The first one is over, and one whose mark comes first waits for it.
        assert!(!refused("trace", &[2, 0, 1, 1, 4, 0, 0, 1, 1, 1, 1]));
        let bad: [&[u8]; 9] = [
            &[2, 0, 1, 1, 4, 0, 0, 1, 0, 1, 1],
            &[2, 1, 0, 1, 5, 0, 0, 1, 0, 1, 0],
            &[2, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0],
            &[1, 1, 0, 0, 0, 1, 0, 1, 0],
            &[2, 0, 0, 1, 4, 0, 0, 1, 0, 1, 0],
            &[3, 1, 0, 1, 4, 1, 1, 0, 0, 1, 0, 1, 0],
            &[2, 1, 0, 1, 4, 0, 0, 1, 32, 1, 0],
            &[2, 1, 0, 1, 4, 0, 0, 0, 1, 0],
            &[2, 1, 0, 1, 4, 0, 0, 1, 0, 1, 1],
        ];
        assert!(bad.into_iter().all(|bytes| refused("trace", bytes)));
        // Rounds left, step of 16, what is next in it, what is posted.
        assert!(!refused("ring-allreduce", &[2, 15, 2, 1, 9]));
        assert!(refused("ring-allreduce", &[3, 15, 2, 0]));
        assert!(refused("ring-allreduce", &[2, 16, 2, 0]));
        assert!(refused("ring-allreduce", &[2, 15, 3, 0]));
        assert!(
            refused("ring-allreduce", &[0, 1, 0, 0]) && refused("ring-allreduce", &[0, 0, 1, 0])
        );
    }

    #[test]
    fn messages_longer_than_there_can_be_are_refused() {
        let spec = bruck_alltoall::Params::new(SIZE_MAX, 1);
        let group = Group { ranks: 4, ..Group::default() };
        let said = ProgramSpec::bruck_alltoall(spec).build(&group).err().unwrap().to_string();
        assert_eq!(
            said,
            "program `bruck-alltoall` sends messages of 2 GiB, more than 1 GiB; lower size"
        );
    }

    proptest! {
        #[test]
        fn damaged_states_are_refused_or_lead_on(
            bytes in prop::collection::vec(prop_oneof![0..4u8, any::<u8>()], 0..12),
        ) {
            for (_, ranks) in each_kind() {
                for mut program in ranks {
                    let own = program.save().unwrap();
                    if program.load(&Saved { bytes: bytes.clone(), ..own }).is_ok() {
                        follow(&mut *program, told(Event::Elapsed), 0, 100);
                        follow(&mut *program, told(Event::Posted(Handle(7))), 0, 100);
                    }
                }
            }
        }
    }
}
