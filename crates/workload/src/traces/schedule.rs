//! One rank's graph, packed, and how it is put together.

use super::{BYTES_MAX, CPU_MAX, Fault, NS_MAX, Node, Until, Work};
use crate::Rank;

/// A peer or a tag that stands for any.
const ANY: u32 = u32::MAX;

/// Nodes of a rank, at most: a link has a bit besides.
const NODES_MAX: usize = 1 << 31;

/// A node in 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packed {
    /// Bytes, or ns of work.
    size: u64,
    peer: u32,
    tag: u32,
    kind: Kind,
    cpu: u8,
    nic: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Send,
    Receive,
    Calc,
}

impl Packed {
    fn of(node: &Node) -> Self {
        let (kind, size, peer, tag) = match node.work {
            Work::Send { to, bytes, tag } => (Kind::Send, bytes, to.0, tag),
            Work::Receive { from, bytes, tag } => {
                (Kind::Receive, bytes, from.map_or(ANY, |from| from.0), tag.unwrap_or(ANY))
            }
            Work::Calc { ns } => (Kind::Calc, ns, 0, 0),
        };
        // What sends nothing goes by no port.
        let nic = if kind == Kind::Send { node.nic } else { 0 };
        Packed { size, peer, tag, kind, cpu: node.cpu, nic }
    }

    fn node(&self) -> Node {
        let known = |value: u32| (value != ANY).then_some(value);
        let (bytes, tag) = (self.size, self.tag);
        let work = match self.kind {
            Kind::Send => Work::Send { to: Rank(self.peer), bytes, tag },
            Kind::Receive => {
                Work::Receive { from: known(self.peer).map(Rank), bytes, tag: known(tag) }
            }
            Kind::Calc => Work::Calc { ns: self.size },
        };
        Node { work, cpu: self.cpu, nic: self.nic }
    }
}

/// A node that waits, and until what: the lowest bit.
type Link = u32;

fn link(node: u32, until: Until) -> Link {
    node << 1 | u32::from(until == Until::Finished)
}

const fn linked(link: Link) -> (u32, Until) {
    (link >> 1, if link & 1 == 0 { Until::Started } else { Until::Finished })
}

/// One rank's graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    nodes: Box<[Packed]>,
    /// By node: where its dependents begin. One more than nodes.
    first: Box<[u32]>,
    /// By node, ascending, each once.
    dependents: Box<[Link]>,
}

impl Schedule {
    pub(super) fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn nic_max(&self) -> u8 {
        self.nodes.iter().map(|node| node.nic).max().unwrap_or_default()
    }

    pub(super) fn bytes_max(&self) -> u64 {
        let sends = self.nodes.iter().filter(|node| node.kind == Kind::Send);
        sends.map(|node| node.size).max().unwrap_or_default()
    }

    pub(super) fn node(&self, number: u32) -> Node {
        self.nodes[number as usize].node()
    }

    pub(super) fn dependents(
        &self,
        number: u32,
    ) -> impl Iterator<Item = (u32, Until)> + '_ + use<'_> {
        let range = self.first[number as usize] as usize..self.first[number as usize + 1] as usize;
        self.dependents[range].iter().map(|link| linked(*link))
    }

    pub(super) fn waits_for(&self) -> Vec<u32> {
        let mut waits = vec![0; self.nodes.len()];
        self.dependents.iter().for_each(|link| waits[linked(*link).0 as usize] += 1);
        waits
    }

    /// A node that is in a circle of nodes that wait for each other, and the one it waits for.
    fn circle(&self) -> Option<(u32, u32)> {
        let mut waits = self.waits_for();
        let mut free: Vec<u32> =
            (0..self.count()).filter(|node| waits[*node as usize] == 0).collect();
        let mut left = self.count() - free.len() as u32;
        while let Some(node) = free.pop() {
            for (next, _) in self.dependents(node) {
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    free.push(next);
                    left -= 1;
                }
            }
        }
        if left == 0 {
            return None;
        }
        // Whatever waits still, waits for one that does, so going back ends in a circle.
        let waits = |node: &u32| waits[*node as usize] > 0;
        let mut before = vec![0; self.nodes.len()];
        for node in (0..self.count()).filter(waits) {
            self.dependents(node).for_each(|(next, _)| before[next as usize] = node);
        }
        let mut node = (0..self.count()).find(waits)?;
        for _ in 0..self.count() {
            node = before[node as usize];
        }
        Some((node, before[node as usize]))
    }
}

/// One rank's graph while it is put together.
#[derive(Clone, Default, Debug)]
pub struct Draft {
    nodes: Vec<Packed>,
    /// A node that is waited for, and who waits.
    links: Vec<(u32, Link)>,
}

impl Draft {
    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Adds a node. Returns its number: they count from 0.
    pub fn add(&mut self, node: Node) -> u32 {
        self.nodes.push(Packed::of(&node));
        self.count() - 1
    }

    /// Has a node begin when another has finished: `requires` of GOAL.
    pub fn starts_after(&mut self, node: u32, other: u32) {
        self.links.push((other, link(node, Until::Finished)));
    }

    /// Has a node begin when another has begun: `irequires` of GOAL.
    pub fn starts_after_start(&mut self, node: u32, other: u32) {
        self.links.push((other, link(node, Until::Started)));
    }

    /// The graph, of this rank.
    pub(super) fn schedule(mut self, rank: u32) -> Result<Schedule, Fault> {
        if self.nodes.len() >= NODES_MAX || self.links.len() > ANY as usize {
            let problem = format!("{} nodes or more; the most are less", NODES_MAX);
            return Err(Fault::of(rank, problem));
        }
        for (number, node) in (0..).zip(&self.nodes) {
            in_range(&node.node()).map_err(|problem| Fault::at(rank, number, problem))?;
        }
        self.links.sort_unstable();
        self.links.dedup();
        let count = self.count();
        for (other, link) in &self.links {
            let (node, _) = linked(*link);
            if *other.max(&node) >= count {
                let problem =
                    format!("waits for node {other}; nodes are 0 to {}", count.max(1) - 1);
                return Err(Fault::at(rank, node, problem));
            }
        }
        let mut first = vec![0; self.nodes.len() + 1];
        self.links.iter().for_each(|(other, _)| first[*other as usize + 1] += 1);
        for node in 1..first.len() {
            first[node] += first[node - 1];
        }
        let dependents = self.links.into_iter().map(|(_, link)| link).collect();
        let (nodes, first) = (self.nodes.into(), first.into());
        let schedule = Schedule { nodes, first, dependents };
        match schedule.circle() {
            None => Ok(schedule),
            Some((node, other)) if node == other => {
                let problem = "waits for itself; take the dependency out".to_owned();
                Err(Fault::at(rank, node, problem))
            }
            Some((node, _)) => {
                let problem = "waits for itself, through others; take a dependency of this circle \
                               out";
                Err(Fault::at(rank, node, problem.to_owned()))
            }
        }
    }
}

/// What is wrong with a node by itself.
fn in_range(node: &Node) -> Result<(), String> {
    let tag_is_any = || format!("tag {ANY}, which stands for any; tags are less");
    match node.work {
        Work::Send { bytes, .. } | Work::Receive { bytes, .. } if bytes > BYTES_MAX => {
            Err(format!("a message of {bytes} bytes; the longest is {BYTES_MAX}"))
        }
        Work::Send { tag: ANY, .. } => Err(tag_is_any()),
        Work::Calc { ns } if ns > NS_MAX => {
            Err(format!("work of {ns} ns, longer than a run may last; the most is {NS_MAX} ns"))
        }
        _ if node.cpu > CPU_MAX => Err(format!("CPU {}; CPUs are 0 to {CPU_MAX}", node.cpu)),
        _ => Ok(()),
    }
}
