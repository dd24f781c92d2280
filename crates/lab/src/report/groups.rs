//! Groups of switches in fabrics that have neither levels nor coordinates, from cables alone: the
//! groups of a dragonfly, the lines of a two-dimensional HyperX.

use super::layout::natural;
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Switches that belong together, and what they are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Group {
    /// What the names of its switches have in common, or its number.
    pub(super) name: String,
    /// In the order of their names.
    pub(super) switches: Vec<NodeId>,
}

/// By switch, the switches it is cabled to.
type Neighbours = BTreeMap<NodeId, BTreeSet<NodeId>>;

/// The groups of a fabric, in the order of their names; none if it does not fall into several.
pub(super) fn groups(fabric: &Fabric) -> Vec<Group> {
    let near: Neighbours = fabric
        .ids(NodeKind::Switch)
        .map(|id| {
            let peers = fabric.neighbours(id).map(|(_, _, peer)| peer.node);
            (id, peers.filter(|peer| *peer != id && fabric.node(*peer).is_switch()).collect())
        })
        .collect();
    let sets = lines(&near).into_iter();
    let named = sets.min_by_key(|set| names(fabric, set).is_none());
    let mut found = named.unwrap_or_else(|| dense(&near));
    // Groups of one are no groups: then its cables say nothing about the fabric's parts.
    if found.len() < 2 || found.len() * 2 > near.len() {
        return Vec::new();
    }
    let key = |id: &NodeId| natural(&fabric.node(*id).name);
    for group in &mut found {
        group.sort_by_cached_key(key);
    }
    found.sort_by_cached_key(|group| group.first().map(key));
    let number = |index| format!("group {}", index + 1);
    let names = names(fabric, &found).unwrap_or_else(|| (0..found.len()).map(number).collect());
    names.into_iter().zip(found).map(|(name, switches)| Group { name, switches }).collect()
}

/// Cabled switches belong together if more than half of what the one with fewer cables sees, itself
/// included, the other sees too: mates of a group see the group, ends of a global cable little.
fn dense(near: &Neighbours) -> Vec<Vec<NodeId>> {
    let together = |a: NodeId, b: NodeId| {
        let (of_a, of_b) = (&near[&a], &near[&b]);
        // Each sees itself and the other.
        let common = of_a.intersection(of_b).count() + 2;
        2 * common > 1 + of_a.len().min(of_b.len())
    };
    let mut left: BTreeSet<NodeId> = near.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(first) = left.pop_first() {
        let mut group = vec![first];
        let mut next = 0;
        while let Some(at) = group.get(next).copied() {
            for peer in near[&at].iter().filter(|peer| together(at, **peer)) {
                if left.remove(peer) {
                    group.push(*peer);
                }
            }
            next += 1;
        }
        found.push(group);
    }
    found
}

/// Where every switch is in two lines of fully meshed switches and no cable is in none: the lines
/// of each direction, which together hold every switch once. Empty if the cables are not of that
/// kind.
fn lines(near: &Neighbours) -> Vec<Vec<Vec<NodeId>>> {
    let mut lines: BTreeSet<Vec<NodeId>> = BTreeSet::new();
    for (a, peers) in near {
        for b in peers {
            let mut line: Vec<NodeId> = near[b].intersection(peers).copied().collect();
            line.extend([*a, *b]);
            line.sort_unstable();
            lines.insert(line);
        }
    }
    let mut of: BTreeMap<NodeId, usize> = BTreeMap::new();
    lines.iter().flatten().for_each(|id| *of.entry(*id).or_insert(0) += 1);
    let Some(first) = near.keys().next() else { return Vec::new() };
    if of.len() < near.len() || of.values().any(|count| *count != 2) {
        return Vec::new();
    }
    let crossing = |p: &Vec<NodeId>, q: &Vec<NodeId>| p.iter().any(|id| q.contains(id));
    let direction = |start: &Vec<NodeId>| {
        let others = lines.iter().filter(|line| *line != start && !crossing(start, line));
        [start].into_iter().chain(others).cloned().collect::<Vec<Vec<NodeId>>>()
    };
    let starts = lines.iter().filter(|line| line.contains(first));
    let whole = |set: &Vec<Vec<NodeId>>| set.iter().map(Vec::len).sum::<usize>() == near.len();
    starts.map(direction).filter(whole).collect()
}

/// What the switches of each group have in common in their names, without what all groups have in
/// common; nothing if that does not tell them apart.
fn names(fabric: &Fabric, groups: &[Vec<NodeId>]) -> Option<Vec<String>> {
    let prefixes = groups.iter().map(|group| {
        let all: Vec<&str> = group.iter().map(|id| fabric.node(*id).name.as_str()).collect();
        shared(&all).trim_end_matches(|c: char| !c.is_alphanumeric())
    });
    let prefixes: Vec<&str> = prefixes.collect();
    let common = shared(&prefixes).len();
    let own: Vec<&str> = prefixes.iter().map(|prefix| &prefix[common..]).collect();
    let distinct: BTreeSet<&&str> = own.iter().filter(|name| !name.is_empty()).collect();
    let name = |own: &&str| match own.chars().all(|c| c.is_ascii_digit()) {
        true => format!("group {own}"),
        false => (*own).to_owned(),
    };
    (distinct.len() == groups.len()).then(|| own.iter().map(name).collect())
}

/// The beginning that names share, cut before a number that goes on differently.
fn shared<'a>(names: &[&'a str]) -> &'a str {
    let Some(first) = names.first() else { return "" };
    let mut length = first.len();
    for name in names {
        let same = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        length = length.min(same);
    }
    while !first.is_char_boundary(length) {
        length -= 1;
    }
    let goes_on = names.iter().any(|n| n[length..].starts_with(|c: char| c.is_ascii_digit()));
    let cut = first[..length].trim_end_matches(|c: char| c.is_ascii_digit());
    let whole = names.iter().all(|name| name.len() == length);
    if goes_on && !whole { cut } else { &first[..length] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    fn of(spec: &str) -> Vec<(String, usize)> {
        let groups = groups(&build(spec).unwrap());
        groups.into_iter().map(|group| (group.name, group.switches.len())).collect()
    }

    #[test]
    fn a_dragonfly_falls_into_its_groups() {
        let small: Vec<(String, usize)> = (0..9).map(|n| (format!("group {n}"), 4)).collect();
        assert_eq!(of("dragonfly:a=4,p=2,h=2"), small);
        let balanced = of("dragonfly:a=8,p=4,h=4");
        assert_eq!(balanced.len(), 33);
        assert!(balanced.iter().all(|(_, size)| *size == 8));
        assert_eq!(balanced[10].0, "group 10");
        // With fewer groups than it could have, several cables join two of them.
        assert_eq!(of("dragonfly:a=4,p=2,h=2,g=5").len(), 5);
        assert_eq!(of("dragonfly:a=4,p=2,h=1").len(), 5);
    }

    #[test]
    fn a_hyperx_falls_into_lines_that_have_names() {
        let lines: Vec<(String, usize)> = (0..4).map(|n| (format!("group {n}"), 3)).collect();
        assert_eq!(of("hyperx:4x3"), lines);
        assert_eq!(of("hyperx:4x4").len(), 4);
    }

    #[test]
    fn what_has_no_parts_has_no_groups() {
        for spec in ["hyperx:5", "ring:12x1", "hypercube:4", "torus:4x4"] {
            assert_eq!(of(spec), [], "{spec}");
        }
    }

    #[test]
    fn names_are_cut_where_a_number_ends() {
        assert_eq!(shared(&["rack1-10", "rack1-11"]), "rack1-");
        assert_eq!(shared(&["rack1", "rack12"]), "rack");
        assert_eq!(shared(&["same", "same"]), "same");
        assert_eq!(shared(&["ä1", "ö1"]), "");
    }
}
