//! Distance from the hosts, and whether that makes a tree.

use super::StructureError;
use crate::{Fabric, NodeId, NodeKind};
use std::collections::VecDeque;

/// Per node: the distance of a switch from the nearest host, 0 where a host is plugged in. Nothing
/// for adapters and for switches that no host reaches.
pub fn levels(fabric: &Fabric) -> Vec<Option<u32>> {
    let mut levels = vec![None; fabric.nodes().len()];
    let mut queue = VecDeque::new();
    for switch in fabric.ids(NodeKind::Switch) {
        let holds_host =
            fabric.neighbours(switch).any(|(_, _, peer)| !fabric.node(peer.node).is_switch());
        if holds_host {
            levels[switch.index()] = Some(0);
            queue.push_back((switch, 0));
        }
    }
    while let Some((switch, level)) = queue.pop_front() {
        for (_, _, peer) in fabric.neighbours(switch) {
            let place = &mut levels[peer.node.index()];
            if fabric.node(peer.node).is_switch() && place.is_none() {
                *place = Some(level + 1);
                queue.push_back((peer.node, level + 1));
            }
        }
    }
    levels
}

/// A fabric whose every switch-to-switch cable joins neighbouring levels: a (fat) tree, whole or
/// damaged, of any arity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    levels: Vec<Option<u32>>,
    switches: Vec<Vec<NodeId>>,
}

impl Tree {
    /// How many levels of switches there are, at least 1.
    pub fn height(&self) -> u32 {
        self.switches.len() as u32
    }

    /// The switches of a level in the fabric's order, level 0 being the leaves; empty above the
    /// top.
    pub fn switches(&self, level: u32) -> &[NodeId] {
        self.switches.get(level as usize).map_or(&[], Vec::as_slice)
    }

    /// The level of a switch; nothing for an adapter.
    pub fn level(&self, node: NodeId) -> Option<u32> {
        self.levels.get(node.index()).copied().flatten()
    }
}

/// The levels of a tree. Fails on a cable within a level or across levels, on a switch that no
/// host reaches and where there is no switch.
pub fn tree(fabric: &Fabric) -> Result<Tree, StructureError> {
    let levels = levels(fabric);
    let mut switches: Vec<Vec<NodeId>> = Vec::new();
    for id in fabric.ids(NodeKind::Switch) {
        let Some(level) = levels[id.index()] else {
            return Err(StructureError::NoHostReaches { switch: fabric.node(id).name.clone() });
        };
        let level = level as usize;
        if switches.len() <= level {
            switches.resize(level + 1, Vec::new());
        }
        switches[level].push(id);
    }
    if switches.is_empty() {
        return Err(StructureError::Empty { what: "switches" });
    }
    for link in fabric.links() {
        let ends = (levels[link.a.node.index()], levels[link.b.node.index()]);
        if let (Some(a), Some(b)) = ends
            && a.abs_diff(b) != 1
        {
            return Err(StructureError::NotBetweenLevels { cable: fabric.cable(link), a, b });
        }
    }
    Ok(Tree { levels, switches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::build;

    #[test]
    fn a_fat_tree_has_its_levels() {
        let fabric = build("xgft:2,2,4;1,2,2").unwrap();
        let tree = tree(&fabric).unwrap();
        assert_eq!(tree.height(), 3);
        assert_eq!([0, 1, 2, 3].map(|level| tree.switches(level).len()), [8, 8, 4, 0]);
        let host = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        assert_eq!(tree.level(host), None);
        assert_eq!(tree.level(NodeId(u32::MAX)), None);
    }

    #[test]
    fn a_ring_is_not_a_tree_and_the_error_names_the_cable() {
        let error = tree(&build("ring:4x1").unwrap()).unwrap_err().to_string();
        assert!(error.contains("cable sw-0[1]-sw-1[2] joins levels 0 and 0"), "{error}");
    }

    #[test]
    fn a_switch_without_hosts_in_reach_has_no_level() {
        let mut fabric = build("star:3").unwrap();
        fabric.unplug(|_, _| true);
        assert_eq!(levels(&fabric), vec![None; 4]);
        assert!(matches!(tree(&fabric), Err(StructureError::NoHostReaches { .. })));
        assert!(matches!(tree(&Fabric::new()), Err(StructureError::Empty { .. })));
    }
}
