//! Collectives as messages from rank to rank: of each kind one algorithm.

use super::super::{Draft, Node, Work};
use crate::Rank;

/// A collective that can be expanded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// A ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.
    AllReduce,
    /// A ring.
    AllGather,
    /// A ring.
    ReduceScatter,
    /// One partner a step: rank r sends to r + k and receives from r − k.
    AllToAll,
    /// From the root down a binomial tree.
    Broadcast,
    /// Dissemination: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization",
    /// IJPP 17(1), 1988.
    Barrier,
}

impl Kind {
    /// How many nodes it becomes at one of so many ranks, at most.
    pub(super) fn nodes(self, ranks: usize) -> u64 {
        let ranks = ranks as u64;
        let steps = match self {
            Kind::AllReduce => 2 * ranks,
            Kind::AllGather | Kind::ReduceScatter | Kind::AllToAll => ranks,
            Kind::Broadcast | Kind::Barrier => ranks.max(1).ilog2().into(),
        };
        2 * (steps + 1)
    }
}

/// One collective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collective<'a> {
    pub(super) kind: Kind,
    /// What each rank puts in, in bytes; of a broadcast what each gets out.
    pub(super) bytes: u64,
    /// Of its messages, and of no others.
    pub(super) tag: u32,
    /// Its ranks.
    pub(super) members: &'a [u32],
    /// The place of the root among them.
    pub(super) root: usize,
    /// The CPU that is busy with its messages.
    pub(super) cpu: u8,
}

/// A message of a step: the place of the other rank, and bytes.
type Part = (usize, u64);

impl Collective<'_> {
    /// Adds the part of the rank at a place, which begins when `begin` has finished. Returns what
    /// is over last.
    pub(super) fn expand(&self, draft: &mut Draft, own: usize, begin: u32) -> Vec<u32> {
        let ranks = self.members.len();
        if ranks < 2 {
            return Vec::new();
        }
        let mut steps = Steps { of: self, draft, after: vec![begin], before: Vec::new() };
        let (next, last) = ((own + 1) % ranks, (own + ranks - 1) % ranks);
        match self.kind {
            Kind::AllReduce => {
                // First as partial sums, once more as sums.
                for step in 0..2 * (ranks - 1) {
                    let ahead = usize::from(step >= ranks - 1);
                    let share = |rank: usize| {
                        self.share((rank + ahead + 2 * ranks - step % (ranks - 1)) % ranks)
                    };
                    steps.step(Some((next, share(own))), Some((last, share(last))), false);
                }
            }
            Kind::ReduceScatter => {
                // So that rank r has share r in the end.
                for step in 1..ranks {
                    let share = |rank: usize| self.share((rank + ranks - step) % ranks);
                    steps.step(Some((next, share(own))), Some((last, share(last))), false);
                }
            }
            Kind::AllGather => {
                for _ in 1..ranks {
                    steps.step(Some((next, self.bytes)), Some((last, self.bytes)), false);
                }
            }
            Kind::AllToAll => {
                for distance in 1..ranks {
                    let (to, from) = ((own + distance) % ranks, (own + ranks - distance) % ranks);
                    steps.step(Some((to, self.share(to))), Some((from, self.share(own))), true);
                }
            }
            Kind::Barrier => {
                let rounds = (0..).map(|round| 1 << round).take_while(|distance| *distance < ranks);
                for distance in rounds {
                    let (to, from) = ((own + distance) % ranks, (own + ranks - distance) % ranks);
                    steps.step(Some((to, 0)), Some((from, 0)), false);
                }
            }
            Kind::Broadcast => self.broadcast(&mut steps, own),
        }
        let Steps { after, before, .. } = steps;
        after.into_iter().chain(before).collect()
    }

    /// Down a tree: who is at place p behind the root hears from p without its lowest bit.
    fn broadcast(&self, steps: &mut Steps<'_>, own: usize) {
        let ranks = self.members.len();
        let at = (own + ranks - self.root) % ranks;
        let place = |at: usize| (at + self.root) % ranks;
        let lowest = match at {
            0 => ranks.next_power_of_two(),
            _ => 1 << at.trailing_zeros(),
        };
        if at > 0 {
            steps.step(None, Some((place(at - lowest), self.bytes)), false);
        }
        let mut distance = lowest / 2;
        while distance > 0 {
            if at + distance < ranks {
                steps.sends(place(at + distance), self.bytes);
            }
            distance /= 2;
        }
    }

    /// Bytes of a share: the first ones have one more where they do not divide.
    fn share(&self, number: usize) -> u64 {
        let (ranks, number) = (self.members.len() as u64, number as u64);
        self.bytes / ranks + u64::from(number < self.bytes % ranks)
    }
}

/// The steps of one rank.
struct Steps<'a> {
    of: &'a Collective<'a>,
    draft: &'a mut Draft,
    /// What the next step waits for.
    after: Vec<u32>,
    /// What no step waits for, and the end does.
    before: Vec<u32>,
}

impl Steps<'_> {
    fn add(&mut self, work: Work) -> u32 {
        let node = self.draft.add(Node { work, cpu: self.of.cpu, nic: 0 });
        self.after.iter().for_each(|other| self.draft.starts_after(node, *other));
        node
    }

    /// Sends without the next step waiting for it.
    fn sends(&mut self, to: usize, bytes: u64) {
        let to = Rank(self.of.members[to]);
        let send = self.add(Work::Send { to, bytes, tag: self.of.tag });
        self.before.push(send);
    }

    /// Receives before it sends; the next step waits for what is received, and for what is sent if
    /// `both`.
    fn step(&mut self, to: Option<Part>, from: Option<Part>, both: bool) {
        let receive = from.map(|(from, bytes)| {
            let from = Some(Rank(self.of.members[from]));
            self.add(Work::Receive { from, bytes, tag: Some(self.of.tag) })
        });
        if let Some((to, bytes)) = to {
            self.sends(to, bytes);
        }
        self.after = receive.into_iter().collect();
        if both {
            self.after.append(&mut self.before);
        }
    }
}
