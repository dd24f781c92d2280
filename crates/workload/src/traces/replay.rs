//! One rank of a trace, run again.
//!
//! All nodes that wait for nobody are posted; each that is over lets others go. CPU c of a trace is
//! the rank's CPU stream c + 1. The rank itself is in its library all the time, so that long
//! messages go on whatever its CPUs do. A node that is posted has begun, unless others wait for its
//! beginning that go to another CPU: its stream may have more to do first, and a mark in the stream
//! says when it has come to it. A send is over when whatever carries it says that it has left: a
//! packet engine with the last acknowledgement, LogGOPS with the overhead.

use super::{Node, Trace, Until, Work};
use crate::{Event, Filter, Gap, Handle, Hints, Op, Rank, RankProgram};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What its states are known by.
pub(crate) const NAME: &str = "trace";

/// Version of the layout of `Moving`.
const VERSION: u16 = 1;

/// A rank of a trace.
pub struct Replay {
    trace: Trace,
    rank: Rank,
    group: u16,
    /// Of its messages.
    gap: Gap,
    /// By node: how many it still waits for.
    waits_for: Box<[u32]>,
    moving: Moving,
}

/// What is saved of it. What nodes wait for follows from those that have begun and are over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Moving {
    /// Nodes that wait for nobody and are not posted, in the order of posting.
    free: VecDeque<Post>,
    /// What is being posted: its handle is not known yet.
    posting: Option<Post>,
    /// By handle: what is under way.
    under_way: BTreeMap<u32, Post>,
    /// Nodes that others see as begun.
    begun: Nodes,
    over: Nodes,
}

/// What is posted for a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Post {
    /// A mark in its CPU stream before it.
    Mark(u32),
    /// The node.
    Node(u32),
}

/// A set of a rank's nodes, a bit each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Nodes(Vec<u64>);

impl Nodes {
    fn none(count: u32) -> Self {
        Nodes(vec![0; count.div_ceil(64) as usize])
    }

    fn has(&self, node: u32) -> bool {
        self.0[(node / 64) as usize] >> (node % 64) & 1 > 0
    }

    fn add(&mut self, node: u32) {
        self.0[(node / 64) as usize] |= 1 << (node % 64);
    }

    /// Whether it is a set of nodes less than this.
    fn is_of(&self, count: u32) -> bool {
        let beyond = count % 64;
        self.0.len() == count.div_ceil(64) as usize
            && (beyond == 0 || self.0.last().is_none_or(|last| last >> beyond == 0))
    }
}

impl Replay {
    /// A rank of a trace, which is one of its ranks; its messages are of this flow group.
    pub fn new(trace: &Trace, rank: Rank, group: u16) -> Self {
        let (waits_for, count) = (trace.waits_for(rank), trace.count(rank));
        let (begun, over) = (Nodes::none(count), Nodes::none(count));
        let (free, under_way) = (VecDeque::new(), BTreeMap::new());
        let moving = Moving { free, posting: None, under_way, begun, over };
        let (trace, waits_for) = (trace.clone(), waits_for.into());
        let mut replay = Replay { trace, rank, group, gap: Gap(0), waits_for, moving };
        for node in (0..count).filter(|node| replay.waits_for[*node as usize] == 0) {
            let post = first(&replay.trace, rank, node);
            replay.moving.free.push_back(post);
        }
        replay
    }

    /// The same with packets of its messages so far apart.
    #[must_use]
    pub fn paced(self, gap: Gap) -> Self {
        Replay { gap, ..self }
    }

    /// A node has begun, or is over: others wait for one less.
    fn reached(&mut self, node: u32, reached: Until) {
        let Replay { trace, rank, waits_for, moving, .. } = self;
        let set = match reached {
            Until::Started => &mut moving.begun,
            Until::Finished => &mut moving.over,
        };
        if set.has(node) {
            return;
        }
        set.add(node);
        for (other, _) in trace.dependents(*rank, node).filter(|(_, until)| *until == reached) {
            let waits = &mut waits_for[other as usize];
            *waits -= 1;
            if *waits == 0 {
                moving.free.push_back(first(trace, *rank, other));
            }
        }
    }

    /// What has been posted is under way.
    fn posted(&mut self, handle: Handle) {
        let Some(post) = self.moving.posting.take() else { return };
        match post {
            // At once, so that nothing gets between it and its mark.
            Post::Mark(node) => self.moving.free.push_front(Post::Node(node)),
            Post::Node(node) if first(&self.trace, self.rank, node) == post => {
                self.reached(node, Until::Started);
            }
            Post::Node(_) => {}
        }
        self.moving.under_way.insert(handle.0, post);
    }

    fn completed(&mut self, handle: Handle) {
        match self.moving.under_way.remove(&handle.0) {
            Some(Post::Mark(node)) => self.reached(node, Until::Started),
            Some(Post::Node(node)) => {
                self.reached(node, Until::Started);
                self.reached(node, Until::Finished);
            }
            None => {}
        }
    }

    fn operation(&self, post: Post) -> Op {
        let (Post::Mark(number) | Post::Node(number)) = post;
        let Node { work, cpu, nic } = self.trace.node(self.rank, number);
        let stream = cpu + 1;
        if let Post::Mark(_) = post {
            return Op::Start { span: Picoseconds(0), stream };
        }
        match work {
            Work::Send { to, bytes, tag } => {
                // A trace that knows one port says nothing of which.
                let engine = (self.trace.nic_max() > 0).then_some(nic);
                let hints = Hints { stream, engine, gap: self.gap, ..Hints::default() };
                let (context, group, tracked) = (0, self.group, true);
                Op::Send { dst: to, bytes, tag, context, group, tracked, hints }
            }
            Work::Receive { from, tag, .. } => {
                Op::Recv { filter: Filter { source: from, tag, context: 0 }, stream }
            }
            Work::Calc { ns } => Op::Start { span: Picoseconds(1000 * ns), stream },
        }
    }

    /// Whether this can be a state: each node is somewhere, and only once.
    fn is_sound(&self, moving: &Moving, waits_for: &[u32]) -> bool {
        let count = self.trace.count(self.rank);
        let all =
            || moving.free.iter().chain(&moving.posting).chain(moving.under_way.values()).copied();
        let node = |post| match post {
            Post::Mark(node) | Post::Node(node) => node,
        };
        if !all().all(|post| node(post) < count) {
            return false;
        }
        let mut known = BTreeSet::new();
        for post in all() {
            let number = node(post);
            let fits = match post {
                Post::Mark(_) => {
                    first(&self.trace, self.rank, number) == post && !moving.begun.has(number)
                }
                Post::Node(_) => true,
            };
            let is_first = known.insert((number, matches!(post, Post::Mark(_))));
            if !fits || !is_first || waits_for[number as usize] > 0 || moving.over.has(number) {
                return false;
            }
        }
        // Whatever waits for nobody is over or to be found; what waits has not begun.
        (0..count).all(|number| {
            let somewhere = known.contains(&(number, false)) || known.contains(&(number, true));
            let begins = moving.begun.has(number) || !moving.over.has(number);
            begins
                && match waits_for[number as usize] {
                    0 => moving.over.has(number) != somewhere,
                    _ => !moving.over.has(number) && !moving.begun.has(number),
                }
        })
    }
}

/// What is posted first for a node.
fn first(trace: &Trace, rank: Rank, node: u32) -> Post {
    let own = trace.node(rank, node);
    let is_elsewhere = |other| trace.node(rank, other).cpu != own.cpu;
    let marks = |(other, until)| until == Until::Started && is_elsewhere(other);
    let occupies = !matches!(own.work, Work::Receive { .. });
    match occupies && trace.dependents(rank, node).any(marks) {
        true => Post::Mark(node),
        false => Post::Node(node),
    }
}

impl RankProgram for Replay {
    fn step(&mut self, _: Picoseconds, event: Event) -> Op {
        match event {
            Event::Posted(handle) => self.posted(handle),
            Event::Completed(completion) => self.completed(completion.handle),
            _ => {}
        }
        if let Some(post) = self.moving.free.pop_front() {
            self.moving.posting = Some(post);
            return self.operation(post);
        }
        if self.moving.under_way.is_empty() { Op::Done } else { Op::WaitNext }
    }

    fn upcoming(&self) -> Option<(Rank, u16)> {
        let (Post::Mark(node) | Post::Node(node)) = *self.moving.free.front()?;
        match self.trace.node(self.rank, node).work {
            Work::Send { to, .. } => Some((to, self.group)),
            Work::Receive { .. } | Work::Calc { .. } => None,
        }
    }

    fn save(&self) -> Option<Saved> {
        Some(Saved::new(NAME, VERSION, &self.moving))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let moving: Moving = saved.state(NAME, VERSION)?;
        let count = self.trace.count(self.rank);
        if !moving.begun.is_of(count) || !moving.over.is_of(count) {
            return Err(StateError::Damaged(NAME));
        }
        let mut waits_for = self.trace.waits_for(self.rank);
        for node in 0..count {
            for (other, until) in self.trace.dependents(self.rank, node) {
                let reached = match until {
                    Until::Started => moving.begun.has(node),
                    Until::Finished => moving.over.has(node),
                };
                waits_for[other as usize] -= u32::from(reached);
            }
        }
        if !self.is_sound(&moving, &waits_for) {
            return Err(StateError::Damaged(NAME));
        }
        (self.moving, self.waits_for) = (moving, waits_for.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calc, traces};
    use super::super::{Draft, Node};
    use super::*;
    use crate::Completion;
    use proptest::prelude::*;

    /// Runs a rank whose operations are complete in an order of these draws. Returns the operations
    /// and how often it has waited.
    fn run(program: &mut Replay, draws: &[u8]) -> (Vec<Op>, usize) {
        let (mut ops, mut under_way, mut waits) = (Vec::new(), Vec::new(), 0);
        let mut event = Event::Start;
        loop {
            let op = program.step(Picoseconds(0), event);
            match op {
                Op::Done => return (ops, waits),
                Op::WaitNext => {
                    assert!(!under_way.is_empty(), "it waits for nothing");
                    let draw = usize::from(draws[waits % draws.len()]);
                    let handle = under_way.swap_remove(draw % under_way.len());
                    waits += 1;
                    event = Event::Completed(Completion { handle, received: None });
                }
                op => {
                    let handle = Handle(ops.len() as u32);
                    under_way.push(handle);
                    ops.push(op);
                    event = Event::Posted(handle);
                }
            }
        }
    }

    fn one(nodes: &[Node], links: impl FnOnce(&mut Draft)) -> Replay {
        let mut draft = Draft::default();
        nodes.iter().for_each(|node| _ = draft.add(*node));
        links(&mut draft);
        Replay::new(&Trace::new(vec![draft], "test").unwrap(), Rank(0), 7)
    }

    fn start(ns: u64, stream: u8) -> Op {
        Op::Start { span: Picoseconds(1000 * ns), stream }
    }

    #[test]
    fn nodes_that_wait_for_nobody_are_posted_at_once_and_others_when_they_may() {
        let mut program = one(&[calc(1, 0), calc(2, 0), calc(3, 1)], |draft| {
            draft.starts_after(1, 0);
        });
        assert_eq!(program.step(Picoseconds(0), Event::Start), start(1, 1));
        assert_eq!(program.step(Picoseconds(0), Event::Posted(Handle(4))), start(3, 2));
        assert_eq!(program.step(Picoseconds(0), Event::Posted(Handle(2))), Op::WaitNext);
        let done = |handle| Event::Completed(Completion { handle: Handle(handle), received: None });
        assert_eq!(program.step(Picoseconds(0), done(2)), Op::WaitNext);
        assert_eq!(program.step(Picoseconds(0), done(4)), start(2, 1));
        assert_eq!(program.step(Picoseconds(0), Event::Posted(Handle(2))), Op::WaitNext);
        assert_eq!(program.step(Picoseconds(0), done(2)), Op::Done);
    }

    #[test]
    fn a_node_has_begun_when_it_is_posted_or_its_mark_in_the_stream_is_reached() {
        // On one CPU what is posted later comes later.
        let mut same = one(&[calc(1, 0), calc(2, 0)], |draft| draft.starts_after_start(1, 0));
        assert_eq!(run(&mut same, &[0]), (vec![start(1, 1), start(2, 1)], 2));
        let mut other = one(&[calc(1, 0), calc(2, 1)], |draft| draft.starts_after_start(1, 0));
        assert_eq!(other.step(Picoseconds(0), Event::Start), start(0, 1));
        assert_eq!(other.step(Picoseconds(0), Event::Posted(Handle(0))), start(1, 1));
        assert_eq!(other.step(Picoseconds(0), Event::Posted(Handle(1))), Op::WaitNext);
        let begun = Event::Completed(Completion { handle: Handle(0), received: None });
        assert_eq!(other.step(Picoseconds(0), begun), start(2, 2));
        // Nothing gets between a mark and its node.
        let nodes = [calc(1, 0), calc(9, 0), calc(2, 1)];
        let mut busy = one(&nodes, |draft| draft.starts_after_start(2, 0));
        let (ops, _) = run(&mut busy, &[0]);
        assert_eq!(ops, [start(0, 1), start(1, 1), start(9, 1), start(2, 2)]);
    }

    #[test]
    fn messages_are_of_the_group_and_go_by_the_port_and_stream_of_the_node() {
        let (to, tag) = (Rank(0), 3);
        let send = Node { work: Work::Send { to, bytes: 9, tag }, cpu: 4, nic: 2 };
        let receive = Work::Receive { from: None, bytes: 9, tag: None };
        let mut program = one(&[send, Node { work: receive, cpu: 1, nic: 0 }], |_| {});
        program = program.paced(Gap(1500));
        assert_eq!(program.upcoming(), Some((to, 7)));
        let (ops, _) = run(&mut program, &[0]);
        let hints = Hints { engine: Some(2), stream: 5, gap: Gap(1500), ..Hints::default() };
        let (context, group, tracked) = (0, 7, true);
        assert_eq!(ops[0], Op::Send { dst: to, bytes: 9, tag, context, group, tracked, hints });
        let filter = Filter { source: None, tag: None, context: 0 };
        assert_eq!(ops[1], Op::Recv { filter, stream: 2 });
    }

    proptest! {
        /// Whatever is complete first.
        #[test]
        fn all_nodes_are_done_once(
            trace in traces(),
            draws in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            for rank in (0..trace.ranks()).map(Rank) {
                let mut program = Replay::new(&trace, rank, 0);
                let (ops, waits) = run(&mut program, &draws);
                prop_assert_eq!(ops.len(), waits);
                let marks = |op: &&Op| matches!(op, Op::Start { span: Picoseconds(0), .. });
                let idle = trace.nodes(rank).filter(|node| node.work == Work::Calc { ns: 0 });
                let marks = ops.iter().filter(marks).count() - idle.count();
                prop_assert_eq!(ops.len() - marks, trace.count(rank) as usize);
                prop_assert_eq!(program.step(Picoseconds(0), Event::Elapsed), Op::Done);
            }
        }
    }
}
