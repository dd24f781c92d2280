//! What it is: extended generalised fat trees XGFT(h; m1..mh; w1..wh), with p1..ph parallel cables
//! as in PGFT.
//!
//! Source: Öhring, Ibel, Das, Kumar, "On generalized fat trees", IPPS 1995 (XGFT); Zahavi,
//! "Fat-tree routing and node ordering providing contention free traffic for MPI global
//! collectives", JPDC 2012 (PGFT).
//!
//! A node of level l is (b1..bl, a(l+1)..ah): b says which of the copies it is, a in which subtree
//! it sits. It and a node one level up are joined where all digits but digit l + 1 agree.
//!
//! Hosts do not forward, so w1 > 1 makes w1 planes that only hosts have in common: as many subnets.

use super::arguments::{Arguments, Rate};
use super::plan::{Plan, numbered, radix};
use super::{Entry, TopologyError};
use crate::{Fabric, NodeId};

/// `xgft:18,36;1,18`.
pub(super) const ENTRY: Entry = Entry {
    name: "xgft",
    summary: "fat tree of any height, XGFT(h; m1..mh; w1..wh)",
    parameters: "xgft:m1,…,mh;w1,…,wh or xgft:m…;w…;p1,…,ph, 1 to 8 levels; m children and \
                 w parents of a node, p parallel cables to each, 1 to 254; w1 > 1 makes w1 \
                 planes joined by hosts alone; speed=4xQDR",
    example: "xgft:4,6;1,3",
    reference: "Öhring, Ibel, Das, Kumar, \"On generalized fat trees\", IPPS 1995; Zahavi, \
                JPDC 2012 (parallel cables)",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &[])?;
    let mut lists = Vec::new();
    for text in arguments.values.split(';').take(4) {
        let list: Result<Vec<u32>, TopologyError> = text
            .split(',')
            .take(10)
            .map(|number| arguments.number("m, w or p", number, 1..=1024))
            .collect();
        lists.push(list?);
    }
    let height = lists[0].len();
    if height > 8 {
        return Err(arguments.wrong("height", &arguments.values, "1 to 8 levels"));
    }
    let shape_known = (2..=3).contains(&lists.len());
    if !shape_known || lists.iter().any(|list| list.len() != height) {
        let expected = "one w for each m, such as 18,36;1,18 (and one p for each, if given)";
        return Err(arguments.wrong("shape", &arguments.values, expected));
    }
    let parallel = lists.get(2).cloned().unwrap_or(vec![1; height]);
    let (children, parents) = (lists[0].clone(), lists[1].clone());
    Tree { topology: ENTRY.name, children, parents, parallel, radix: 0 }.build(arguments.rate()?)
}

/// A fat tree to build; index 0 of each list is what lies between hosts and leaves.
pub(super) struct Tree {
    pub(super) topology: &'static str,
    pub(super) children: Vec<u32>,
    pub(super) parents: Vec<u32>,
    pub(super) parallel: Vec<u32>,
    /// Ports of every switch; raised to what it needs.
    pub(super) radix: u32,
}

/// The digits of one level, lowest first: sizes in the order of counting.
struct Level {
    first: u32,
    count: u64,
    /// Stride of copy digit b at index i, and of subtree digit a at index i.
    copy_stride: Vec<u64>,
    subtree_stride: Vec<u64>,
}

impl Tree {
    /// Nodes of level `level`, 0 being the hosts.
    fn count(&self, level: usize) -> u64 {
        let numbers = self.parents[..level].iter().chain(&self.children[level..]);
        numbers.fold(1, |n, factor| n.saturating_mul(u64::from(*factor)))
    }

    fn level(&self, level: usize, first: u32) -> Level {
        let mut stride = 1;
        let mut copy_stride = vec![0; level];
        // The highest copy digit counts fastest, so that copies of one plane stand together.
        for digit in (0..level).rev() {
            copy_stride[digit] = stride;
            stride *= u64::from(self.parents[digit]);
        }
        let mut subtree_stride = vec![0; self.children.len()];
        for (digit, place) in subtree_stride.iter_mut().enumerate().skip(level) {
            *place = stride;
            stride *= u64::from(self.children[digit]);
        }
        Level { first, count: stride, copy_stride, subtree_stride }
    }

    /// Cables of a node of this level towards the hosts.
    fn ports_down(&self, level: usize) -> u64 {
        level
            .checked_sub(1)
            .map_or(0, |below| u64::from(self.children[below]) * u64::from(self.parallel[below]))
    }

    /// Cables of a node of this level away from the hosts.
    fn ports_up(&self, level: usize) -> u64 {
        let factors = self.parents.get(level).zip(self.parallel.get(level));
        factors.map_or(0, |(parents, parallel)| u64::from(*parents) * u64::from(*parallel))
    }

    fn name(&self, level: usize) -> String {
        match (level, self.children.len()) {
            (1, _) => "leaf".into(),
            (2, 2) => "spine".into(),
            (_, top) if level == top => "core".into(),
            (_, 3) => "mid".into(),
            _ => format!("mid{level}-"),
        }
    }

    /// Builds it: leaves, then upper levels, then hosts. Ports towards the hosts come first.
    pub(super) fn build(&self, rate: Rate) -> Result<Fabric, TopologyError> {
        let height = self.children.len();
        let total = (0..=height).fold(0u64, |n, level| n.saturating_add(self.count(level)));
        let mut plan = Plan::new(self.topology, total)?;
        let mut levels = Vec::with_capacity(height + 1);
        let mut first = 0;
        for level in (1..=height).chain([0]) {
            levels.push(self.level(level, first));
            first += self.count(level) as u32;
        }
        levels.rotate_right(1);
        for (level, Level { count, .. }) in levels.iter().enumerate().skip(1) {
            let name = self.name(level);
            let needed = self.ports_down(level) + self.ports_up(level);
            let ports =
                radix(self.topology, name.trim_end_matches('-'), needed.max(self.radix.into()))?;
            for index in 0..*count {
                plan.switch(numbered(&name, index, *count, 2), ports)?;
            }
        }
        let ports = radix(self.topology, "host", self.ports_up(0))?;
        for rank in 0..levels[0].count {
            plan.host(numbered("host", rank, levels[0].count, 4), ports)?;
        }
        for level in 0..height {
            self.cable(&mut plan, level, &levels[level], &levels[level + 1]);
        }
        plan.finish(rate)
    }

    /// Draws all cables between a level and the one above it.
    fn cable(&self, plan: &mut Plan, level: usize, lower: &Level, upper: &Level) {
        let (children, parents) = (self.children[level], self.parents[level]);
        for index in 0..lower.count {
            let digit = |stride: u64, size: u32| (index / stride % u64::from(size)) as u32;
            // The parent's index, its own copy digit `level` still 0.
            let mut base = 0;
            for (i, stride) in lower.copy_stride.iter().enumerate() {
                base += u64::from(digit(*stride, self.parents[i])) * upper.copy_stride[i];
            }
            for i in level + 1..self.children.len() {
                let value = digit(lower.subtree_stride[i], self.children[i]);
                base += u64::from(value) * upper.subtree_stride[i];
            }
            let child = digit(lower.subtree_stride[level], children);
            let node = NodeId(lower.first + index as u32);
            for copy in 0..parents {
                let parent = base + u64::from(copy) * upper.copy_stride[level];
                let parent = NodeId(upper.first + parent as u32);
                for cable in 0..self.parallel[level] {
                    let up = self.ports_down(level) as u32 + 1 + cable * parents + copy;
                    plan.cable((node, up), (parent, 1 + cable * children + child));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topologies::build;
    use crate::{Fabric, NodeId, NodeKind};
    use std::collections::BTreeSet;

    fn peers(fabric: &Fabric, name: &str) -> Vec<String> {
        let at = fabric.nodes().iter().position(|node| node.name == name).unwrap();
        let peers = fabric.neighbours(NodeId(at as u32));
        peers.map(|(port, _, peer)| format!("{port}:{}", fabric.describe(peer))).collect()
    }

    #[test]
    fn cables_go_where_the_definition_says() {
        let fabric = build("xgft:2,2,2;1,2,2").unwrap();
        assert_eq!(
            peers(&fabric, "leaf01"),
            ["1:host0002[1]", "2:host0003[1]", "3:mid00[2]", "4:mid01[2]"]
        );
        assert_eq!(
            peers(&fabric, "mid01"),
            ["1:leaf00[4]", "2:leaf01[4]", "3:core02[1]", "4:core03[1]"]
        );
        assert_eq!(peers(&fabric, "core02"), ["1:mid01[3]", "2:mid03[3]"]);
    }

    #[test]
    fn parallel_cables_are_numbered_round_robin() {
        let fabric = build("xgft:2,2;1,2;1,2").unwrap();
        assert_eq!(
            peers(&fabric, "leaf01")[2..],
            ["3:spine00[2]", "4:spine01[2]", "5:spine00[4]", "6:spine01[4]"]
        );
    }

    #[test]
    fn every_port_of_a_whole_fat_tree_is_used() {
        for spec in ["fat-tree:648", "fat-tree:3456", "xgft:3,2,2,2;1,3,2,1", "xgft:4,3;2,2"] {
            let fabric = build(spec).unwrap();
            for node in fabric.nodes() {
                assert!(node.ports[1..].iter().all(|port| port.link.is_some()), "{spec}");
            }
        }
    }

    #[test]
    fn any_two_leaves_of_a_pod_share_all_its_mids() {
        let fabric = build("fat-tree:3456").unwrap();
        let above = |leaf: u32| -> BTreeSet<NodeId> {
            let peers = fabric.neighbours(NodeId(leaf)).map(|(_, _, peer)| peer.node);
            peers.filter(|id| fabric.node(*id).kind == NodeKind::Switch).collect()
        };
        assert_eq!(above(0), above(11));
        assert_eq!(above(0).intersection(&above(12)).count(), 0);
    }
}
