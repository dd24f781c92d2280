//! What an application did, recorded: of each rank a graph of messages sent, messages received and
//! work, and what of it waits for what. One file format a file; [`Replay`] is a program made of it.
//!
//! The model is that of GOAL: Hoefler, Siebert and Lumsdaine, "Group Operation Assembly Language",
//! ICPP 2009. Nothing is in order but by a dependency.

use crate::Rank;
use clearlane_ib::visible;
use std::fmt;
use std::sync::Arc;

pub mod chakra;
mod goal_binary;
pub mod goal_text;
mod matched;
mod replay;
mod schedule;

pub use replay::Replay;
pub use schedule::Draft;
use schedule::Schedule;

/// The longest message of a trace, in bytes: as that of all programs.
pub const BYTES_MAX: u64 = crate::programs::SIZE_MAX.0;

/// The longest work of a node, in ns: what a run may last.
pub const NS_MAX: u64 = clearlane_ib::Picoseconds::MAX_RUN.0 / 1000;

/// The highest CPU of a node, counted from 0: stream 0 of a rank posts, the others are CPUs.
pub const CPU_MAX: u8 = u8::MAX - 1;

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Sends a message.
    Send {
        /// To whom.
        to: Rank,
        /// Payload, at most [`BYTES_MAX`].
        bytes: u64,
        /// Matched against the receive's tag; not `u32::MAX`.
        tag: u32,
    },
    /// Receives a message.
    Receive {
        /// From whom; nothing is anybody.
        from: Option<Rank>,
        /// Payload expected, at most [`BYTES_MAX`]; the message says how much it is.
        bytes: u64,
        /// With which tag, not `u32::MAX`; nothing is any.
        tag: Option<u32>,
    },
    /// Keeps its CPU busy.
    Calc {
        /// For how long, in ns, at most [`NS_MAX`].
        ns: u64,
    },
}

/// A node of a rank's graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// What it does.
    pub work: Work,
    /// The CPU that is busy with it, counted from 0, at most [`CPU_MAX`].
    pub cpu: u8,
    /// The port of the adapter that a message sent goes by, counted from 0. Of a receive it says
    /// nothing, because a message comes where it comes.
    pub nic: u8,
}

/// What one node waits for of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Until {
    /// That it has begun: `irequires` of GOAL.
    Started,
    /// That it is over: `requires` of GOAL.
    Finished,
}

/// What all ranks of an application did. A copy shares the nodes, some 30 bytes each.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    schedules: Arc<[Schedule]>,
    /// The highest port that a message goes by.
    nic_max: u8,
    /// The longest message that is sent, in bytes.
    bytes_max: u64,
}

impl Trace {
    /// Reads a trace of one file, whose format its content tells: GOAL as text or as LogGOPSim's
    /// binary. `name` is what errors call it by. Of several files is [`chakra::read`].
    ///
    /// # Errors
    /// Where the file departs from its format, and where what it says cannot be a trace: a rank
    /// that is not there, nodes that wait for each other, a message that nobody receives.
    pub fn read(bytes: &[u8], name: &str) -> Result<Self, TraceError> {
        if goal_binary::is_one(bytes) {
            return goal_binary::read(bytes, name);
        }
        if chakra::is_one(bytes) {
            let problem = "a Chakra trace, which is a file a rank; give those of all ranks";
            return Err(TraceError::new(name, Place::Whole, problem.to_owned()));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => goal_text::read(text, name),
            Err(error) => {
                let place = Place::Byte(error.valid_up_to() as u64);
                let problem = "neither the text of a GOAL schedule nor a binary one that txt2bin \
                               writes; give a file of either kind";
                Err(TraceError::new(name, place, problem.to_owned()))
            }
        }
    }

    /// A trace of these ranks, in their order.
    ///
    /// # Errors
    /// What [`Trace::read`] says of what cannot be a trace. `name` is what the error calls it by.
    pub fn new(drafts: Vec<Draft>, name: &str) -> Result<Self, TraceError> {
        Self::checked(drafts).map_err(|fault| fault.of_file(name))
    }

    fn checked(drafts: Vec<Draft>) -> Result<Self, Fault> {
        let of = |(rank, draft): (usize, Draft)| draft.schedule(rank as u32);
        let schedules: Arc<[Schedule]> =
            drafts.into_iter().enumerate().map(of).collect::<Result<_, _>>()?;
        if schedules.is_empty() {
            let problem = "no ranks; a trace has one or more".to_owned();
            return Err(Fault { place: Place::Whole, problem });
        }
        let nic_max = schedules.iter().map(Schedule::nic_max).max().unwrap_or_default();
        let bytes_max = schedules.iter().map(Schedule::bytes_max).max().unwrap_or_default();
        let trace = Trace { schedules, nic_max, bytes_max };
        matched::check(&trace)?;
        Ok(trace)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.schedules.len() as u32
    }

    /// The highest port that a message goes by, counted from 0.
    pub const fn nic_max(&self) -> u8 {
        self.nic_max
    }

    /// The longest message that is sent, in bytes.
    pub const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How many nodes a rank has; none if it is not there.
    pub fn count(&self, rank: Rank) -> u32 {
        self.schedules.get(rank.0 as usize).map_or(0, Schedule::count)
    }

    /// All nodes of a rank, in their order; none if it is not there.
    pub fn nodes(&self, rank: Rank) -> impl Iterator<Item = Node> + '_ {
        let schedule = self.schedules.get(rank.0 as usize);
        schedule.into_iter().flat_map(|schedule| (0..schedule.count()).map(|at| schedule.node(at)))
    }

    /// A node of a rank.
    ///
    /// # Panics
    /// If there is none: numbers are less than [`Trace::count`].
    pub fn node(&self, rank: Rank, number: u32) -> Node {
        self.schedules[rank.0 as usize].node(number)
    }

    /// Nodes of the same rank that wait for this one, each once, in ascending order.
    ///
    /// # Panics
    /// If there is no such node: numbers are less than [`Trace::count`].
    pub fn dependents(
        &self,
        rank: Rank,
        number: u32,
    ) -> impl Iterator<Item = (u32, Until)> + '_ + use<'_> {
        self.schedules[rank.0 as usize].dependents(number)
    }

    /// By node: how many others of the same rank it waits for.
    pub fn waits_for(&self, rank: Rank) -> Vec<u32> {
        self.schedules.get(rank.0 as usize).map_or_else(Vec::new, Schedule::waits_for)
    }
}

impl fmt::Debug for Trace {
    /// How much there is: all of it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: usize = self.schedules.iter().map(|schedule| schedule.count() as usize).sum();
        write!(f, "Trace({} ranks, {nodes} nodes)", self.schedules.len())
    }
}

/// Why a file gives no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{place}: {problem}", visible(.file))]
pub struct TraceError {
    /// The file, as the caller names it.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// What is wrong there, and a remedy.
    pub problem: String,
}

impl TraceError {
    fn new(file: &str, place: Place, problem: String) -> Self {
        TraceError { file: file.to_owned(), place, problem }
    }
}

/// A place in a trace or in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All of it.
    Whole,
    /// A line of a text, from 1.
    Line(u32),
    /// A byte of a binary, from 0.
    Byte(u64),
    /// A rank.
    Rank(u32),
    /// A node of a rank, from 0.
    Node(u32, u32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(at) => write!(f, ": byte {at:#x}"),
            Place::Rank(rank) => write!(f, ": rank {rank}"),
            Place::Node(rank, node) => write!(f, ": rank {rank}, node {node}"),
        }
    }
}

/// What is wrong with a trace, whatever file it is from.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault {
    place: Place,
    problem: String,
}

impl Fault {
    const fn at(rank: u32, node: u32, problem: String) -> Self {
        Fault { place: Place::Node(rank, node), problem }
    }

    const fn of(rank: u32, problem: String) -> Self {
        Fault { place: Place::Rank(rank), problem }
    }

    fn of_file(self, file: &str) -> TraceError {
        TraceError::new(file, self.place, self.problem)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Work that is no message.
    pub(crate) fn calc(ns: u64, cpu: u8) -> Node {
        Node { work: Work::Calc { ns }, cpu, nic: 0 }
    }

    pub(crate) fn send(to: u32, bytes: u64, tag: u32) -> Node {
        Node { work: Work::Send { to: Rank(to), bytes, tag }, cpu: 0, nic: 0 }
    }

    pub(crate) fn receive(from: u32, bytes: u64, tag: u32) -> Node {
        let (from, tag) = (Some(Rank(from)), Some(tag));
        Node { work: Work::Receive { from, bytes, tag }, cpu: 0, nic: 0 }
    }

    /// Any nodes at all, in pairs that match, with dependencies on nodes before.
    pub(crate) fn traces() -> impl Strategy<Value = Trace> {
        let ranks = 1..5u32;
        let item = (any::<[u32; 4]>(), 0..3u8, 0..3u8, 0..4u8);
        let edge = any::<(u32, u32, u32, bool)>();
        let (items, edges) =
            (prop::collection::vec(item, 0..40), prop::collection::vec(edge, 0..60));
        (ranks, items, edges).prop_map(|(ranks, items, edges)| {
            let mut drafts = vec![Draft::default(); ranks as usize];
            for ([one, other, size, tag], cpu, nic, kind) in items {
                let (from, to) = (one % ranks, other % ranks);
                let (bytes, tag) = (u64::from(size) % (BYTES_MAX + 1), tag % 5);
                let mut add = |rank: u32, work| drafts[rank as usize].add(Node { work, cpu, nic });
                if kind == 0 {
                    add(from, Work::Calc { ns: u64::from(size) });
                    continue;
                }
                add(from, Work::Send { to: Rank(to), bytes, tag });
                let from = (kind != 2).then_some(Rank(from));
                let tag = (kind != 3).then_some(tag);
                add(to, Work::Receive { from, bytes, tag });
            }
            for (rank, one, other, starts) in edges {
                let draft = &mut drafts[(rank % ranks) as usize];
                let count = draft.count();
                if count < 2 {
                    continue;
                }
                let node = 1 + one % (count - 1);
                let earlier = other % node;
                match starts {
                    true => draft.starts_after_start(node, earlier),
                    false => draft.starts_after(node, earlier),
                }
            }
            Trace::new(drafts, "test").expect("it is made to fit")
        })
    }

    fn said(drafts: Vec<Draft>) -> String {
        Trace::new(drafts, "x.goal").expect_err("it is refused").to_string()
    }

    fn draft(nodes: &[Node]) -> Draft {
        let mut draft = Draft::default();
        nodes.iter().for_each(|node| _ = draft.add(*node));
        draft
    }

    #[test]
    fn a_node_is_some_thirty_bytes() {
        assert_eq!(size_of::<schedule::Packed>(), 24);
    }

    #[test]
    fn values_out_of_their_range_are_named_with_their_node() {
        let one = |node: Node| said(vec![draft(&[calc(1, 0), node]), Draft::default()]);
        assert_eq!(
            one(send(1, BYTES_MAX + 1, 0)),
            "x.goal: rank 0, node 1: a message of 1073741825 bytes; the longest is 1073741824"
        );
        assert_eq!(one(send(2, 1, 0)), "x.goal: rank 0, node 1: no rank 2; ranks are 0 to 1");
        assert_eq!(one(receive(9, 1, 0)), "x.goal: rank 0, node 1: no rank 9; ranks are 0 to 1");
        assert_eq!(
            one(calc(NS_MAX + 1, 0)),
            "x.goal: rank 0, node 1: work of 281474976711 ns, longer than a run may last; the most \
             is 281474976710 ns"
        );
        assert_eq!(one(calc(1, 255)), "x.goal: rank 0, node 1: CPU 255; CPUs are 0 to 254");
        assert_eq!(
            one(send(1, 1, u32::MAX)),
            "x.goal: rank 0, node 1: tag 4294967295, which stands for any; tags are less"
        );
    }

    #[test]
    fn nodes_that_wait_for_each_other_are_refused() {
        let with = |edges: &[(u32, u32)]| {
            let mut draft = draft(&[calc(1, 0), calc(1, 0), calc(1, 0), calc(1, 0)]);
            edges.iter().for_each(|(node, earlier)| draft.starts_after(*node, *earlier));
            Trace::new(vec![draft], "x.goal").map_err(|error| error.to_string())
        };
        assert!(with(&[(1, 0), (2, 1), (3, 0), (3, 2)]).is_ok());
        assert_eq!(
            with(&[(1, 2), (2, 1), (3, 2)]),
            Err("x.goal: rank 0, node 1: waits for itself, through others; take a dependency of \
                 this circle out"
                .into())
        );
        assert_eq!(
            with(&[(3, 3)]),
            Err("x.goal: rank 0, node 3: waits for itself; take the dependency out".into())
        );
        assert_eq!(
            with(&[(1, 7)]),
            Err("x.goal: rank 0, node 1: waits for node 7; nodes are 0 to 3".into())
        );
    }

    #[test]
    fn dependencies_are_found_from_the_node_that_is_waited_for() {
        let mut draft = draft(&[calc(1, 0), calc(1, 0), calc(1, 0)]);
        draft.starts_after(2, 0);
        draft.starts_after_start(1, 0);
        draft.starts_after(2, 0);
        draft.starts_after_start(2, 1);
        let trace = Trace::new(vec![draft], "test").unwrap();
        let of = |node| trace.dependents(Rank(0), node).collect::<Vec<_>>();
        assert_eq!(of(0), [(1, Until::Started), (2, Until::Finished)], "each once");
        assert_eq!(of(1), [(2, Until::Started)]);
        assert_eq!(of(2), []);
        assert_eq!(trace.waits_for(Rank(0)), [0, 1, 2]);
    }

    proptest! {
        /// Bytes that begin as any of the formats do, or do not.
        #[test]
        fn any_bytes_are_a_trace_or_an_error_of_one_line(
            begin in 0..3usize,
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let binary = 4223u64.to_le_bytes();
            let begins: [&[u8]; 3] = [b"", b"num_ranks 1\nrank 0 {\n", &binary];
            let bytes = [begins[begin], &rest].concat();
            if let Err(error) = Trace::read(&bytes, "a\nb") {
                let error = error.to_string();
                prop_assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
                prop_assert!(error.len() < 400, "{error:?}");
            }
        }
    }
}
