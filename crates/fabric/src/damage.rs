//! What it is: cables cut or degraded and nodes taken out, by name or at random.
//!
//! A cable is named by one end, `leaf00[19]`, or by both in either order,
//! `leaf00[19]-spine03[1]`; a node by its name; both also by GUID, `0x0ac1ea5100000000[19]`.

use crate::wording::nearest;
use crate::{Endpoint, Fabric, FabricError, Link, LinkId, NodeId};
use clearlane_ib::random::draw;
use clearlane_ib::{LinkSpeed, LinkWidth, quoted};
use std::collections::BTreeMap;

/// Why something cannot be damaged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DamageError {
    /// No cable has this name.
    #[error("no cable is named {name}{nearest}; write node[port] of a port that holds one")]
    UnknownCable {
        /// The name, quoted.
        name: String,
        /// The nearest name, as the end of the sentence.
        nearest: String,
    },
    /// No node has this name.
    #[error("no node is named {name}{nearest}")]
    UnknownNode {
        /// The name, quoted.
        name: String,
        /// The nearest name, as the end of the sentence.
        nearest: String,
    },
    /// Several things have this name.
    #[error("{count} {what} are named {name}; use the GUID instead, as in {example}")]
    Ambiguous {
        /// Cables or nodes.
        what: &'static str,
        /// The name, quoted.
        name: String,
        /// How many have it.
        count: usize,
        /// The name by GUID of the first of them.
        example: String,
    },
    /// Fewer cables than wanted may be cut.
    #[error(
        "{wanted} cables were to be chosen, but only {possible} of the {cables} between switches \
         can be while {uplinks_min} uplinks stay at each leaf; choose fewer"
    )]
    TooFew {
        /// How many were wanted.
        wanted: usize,
        /// How many there are.
        possible: usize,
        /// Cables between switches.
        cables: usize,
        /// Uplinks each leaf keeps.
        uplinks_min: u32,
    },
    /// The rest does not make a fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// The links of these names, in the order of the names. Fails on an unknown or ambiguous name.
pub fn cables(fabric: &Fabric, names: &[&str]) -> Result<Vec<LinkId>, DamageError> {
    // The names of all cables take longer, and more memory, than the fabric itself.
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut index: BTreeMap<String, Vec<LinkId>> = BTreeMap::new();
    let by_guid = |end: Endpoint| format!("{}[{}]", fabric.node(end.node).guid, end.port);
    for (number, link) in fabric.links().iter().enumerate() {
        let id = LinkId(number as u32);
        for name in [&|end| fabric.describe(end), &by_guid as &dyn Fn(Endpoint) -> String] {
            let (a, b) = (name(link.a), name(link.b));
            for key in [format!("{a}-{b}"), format!("{b}-{a}"), a, b] {
                let found = index.entry(key).or_default();
                if found.last() != Some(&id) {
                    found.push(id);
                }
            }
        }
    }
    let find = |name: &&str| match index.get(*name).map(Vec::as_slice) {
        Some([id]) => Ok(*id),
        Some(found) => Err(DamageError::Ambiguous {
            what: "cables",
            name: quoted(name),
            count: found.len(),
            example: by_guid(fabric.link(found[0]).a),
        }),
        None => {
            let known = index.keys().map(String::as_str);
            Err(DamageError::UnknownCable { name: quoted(name), nearest: nearest(name, known) })
        }
    };
    names.iter().map(find).collect()
}

/// Cables to be chosen at random among those between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// How many.
    pub links: usize,
    /// Decides which. More links of one seed contain fewer links of it.
    pub seed: u64,
    /// How many uplinks, cables to other switches, each switch with hosts keeps; 0 for any.
    pub uplinks_min: u32,
}

/// Chooses cables between switches. Fails if so many cannot be had while leaves keep their uplinks.
pub fn choose(fabric: &Fabric, choice: &Choice) -> Result<Vec<LinkId>, DamageError> {
    let is_switch = |id: NodeId| fabric.node(id).is_switch();
    let between = |link: &Link| {
        is_switch(link.a.node) && is_switch(link.b.node) && link.a.node != link.b.node
    };
    let links = fabric.links().iter().enumerate();
    let mut order: Vec<(u64, LinkId)> = links
        .filter(|(_, link)| between(link))
        .map(|(id, _)| (draw(choice.seed, "damage", id as u64, 0), LinkId(id as u32)))
        .collect();
    order.sort_unstable();
    // How many more uplinks each node may lose; a switch without hosts is no leaf and may lose all.
    let mut spare = vec![u32::MAX; fabric.nodes().len()];
    for link in fabric.links() {
        for (leaf, host) in [(link.a.node, link.b.node), (link.b.node, link.a.node)] {
            if is_switch(leaf) && !is_switch(host) {
                spare[leaf.index()] = 0;
            }
        }
    }
    for (_, id) in &order {
        let link = fabric.link(*id);
        for end in [link.a, link.b] {
            let spare = &mut spare[end.node.index()];
            *spare = spare.saturating_add(1);
        }
    }
    for spare in &mut spare {
        *spare = spare.saturating_sub(choice.uplinks_min);
    }
    let mut chosen = Vec::new();
    for (_, id) in &order {
        let ends = [fabric.link(*id).a.node, fabric.link(*id).b.node];
        if chosen.len() == choice.links || ends.iter().any(|end| spare[end.index()] == 0) {
            continue;
        }
        ends.iter().for_each(|end| spare[end.index()] -= 1);
        chosen.push(*id);
    }
    if chosen.len() < choice.links {
        return Err(DamageError::TooFew {
            wanted: choice.links,
            possible: chosen.len(),
            cables: order.len(),
            uplinks_min: choice.uplinks_min,
        });
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// Cuts cables. The other links keep their order, not their ids.
pub fn cut(fabric: &mut Fabric, cables: &[LinkId]) {
    let mut dead = vec![false; fabric.links().len()];
    cables.iter().for_each(|id| dead[id.index()] = true);
    fabric.unplug(|id, _| dead[id.index()]);
}

/// Lets cables run at another width and speed, as a bad connector does.
pub fn degrade(fabric: &mut Fabric, cables: &[LinkId], width: LinkWidth, speed: LinkSpeed) {
    cables.iter().for_each(|id| fabric.set_speed(*id, width, speed));
}

/// The node of this name or GUID. Fails on an unknown or ambiguous name.
pub fn node(fabric: &Fabric, name: &str) -> Result<NodeId, DamageError> {
    let fits = |(index, node): (usize, &crate::Node)| {
        (node.name == name || node.guid.to_string() == name).then_some(NodeId(index as u32))
    };
    let found: Vec<NodeId> = fabric.nodes().iter().enumerate().filter_map(fits).collect();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => {
            let known = fabric.nodes().iter().map(|node| node.name.as_str());
            Err(DamageError::UnknownNode { name: quoted(name), nearest: nearest(name, known) })
        }
        [first, ..] => Err(DamageError::Ambiguous {
            what: "nodes",
            name: quoted(name),
            count: found.len(),
            example: fabric.node(*first).guid.to_string(),
        }),
    }
}

/// The fabric without these nodes and the cables in them; the rest keeps its order.
pub fn without(fabric: &Fabric, nodes: &[NodeId]) -> Result<Fabric, DamageError> {
    let mut gone = vec![false; fabric.nodes().len()];
    nodes.iter().for_each(|id| gone[id.index()] = true);
    let mut rest = Fabric::new();
    let mut ids = vec![None; gone.len()];
    for (index, node) in fabric.nodes().iter().enumerate().filter(|(index, _)| !gone[*index]) {
        let mut node = node.clone();
        node.ports.iter_mut().for_each(|port| port.link = None);
        ids[index] = Some(rest.add_node(node)?);
    }
    for link in fabric.links() {
        let ends = (ids[link.a.node.index()], ids[link.b.node.index()]);
        if let (Some(a), Some(b)) = ends {
            let (a, b) = (Endpoint { node: a, ..link.a }, Endpoint { node: b, ..link.b });
            rest.join(a, b, link.width, link.speed)?;
        }
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::build;
    use clearlane_ib::Guid;

    #[test]
    fn a_cable_has_four_names_and_a_guid() {
        let fabric = build("fat-tree:648").unwrap();
        let names = [
            "leaf00[19]",
            "spine00[1]",
            "leaf00[19]-spine00[1]",
            "spine00[1]-leaf00[19]",
            "0x0ac1ea5100000000[19]",
        ];
        let found = cables(&fabric, &names).unwrap();
        assert!(found.iter().all(|id| *id == found[0]));
        assert_eq!(fabric.cable(fabric.link(found[0])), "leaf00[19]-spine00[1]");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let mut fabric = build("star:8").unwrap();
        let error = |fabric: &Fabric, name| cables(fabric, &[name]).unwrap_err().to_string();
        let text = error(&fabric, "leaf00[9]");
        assert!(text.contains("no cable is named \"leaf00[9]\"; did you mean \"leaf00["), "{text}");
        let text = node(&fabric, "leaf0").unwrap_err().to_string();
        assert!(text.contains("did you mean \"leaf00\"?"), "{text}");
        for id in [1, 2] {
            fabric.node_mut(NodeId(id)).name = "twin".into();
        }
        let text = error(&fabric, "twin[1]");
        assert!(text.contains("2 cables are named \"twin[1]\"; use the GUID"), "{text}");
        assert!(node(&fabric, "twin").unwrap_err().to_string().contains("2 nodes are named"));
        assert_eq!(node(&fabric, &Guid(0x0ac1_eaca_0000_0100).to_string()), Ok(NodeId(2)));
    }

    #[test]
    fn random_cuts_are_of_switches_nested_and_repeatable() {
        let fabric = build("fat-tree:648").unwrap();
        let pick = |links, seed| choose(&fabric, &Choice { links, seed, uplinks_min: 0 }).unwrap();
        let (few, many) = (pick(13, 1), pick(100, 1));
        assert_eq!(few, pick(13, 1));
        assert_ne!(few, pick(13, 2));
        assert_eq!((few.len(), many.len()), (13, 100));
        assert!(few.iter().all(|id| many.contains(id)));
        for id in &many {
            let link = fabric.link(*id);
            assert!(fabric.node(link.a.node).is_switch() && fabric.node(link.b.node).is_switch());
        }
        let mut damaged = fabric.clone();
        cut(&mut damaged, &few);
        assert_eq!(damaged.links().len(), 1296 - 13);
    }

    #[test]
    fn leaves_keep_the_uplinks_asked_for() {
        let fabric = build("leaf-spine:leaves=6,hosts=2,spines=4").unwrap();
        let choice = Choice { links: 12, seed: 5, uplinks_min: 2 };
        let mut damaged = fabric.clone();
        cut(&mut damaged, &choose(&fabric, &choice).unwrap());
        for leaf in (0..6).map(NodeId) {
            assert_eq!(damaged.neighbours(leaf).filter(|(port, _, _)| port.value() > 2).count(), 2);
        }
        let error = choose(&fabric, &Choice { links: 13, ..choice }).unwrap_err().to_string();
        assert!(error.contains("only 12 of the 24"), "{error}");
        assert!(choose(&fabric, &Choice { links: 24, uplinks_min: 0, ..choice }).is_ok());
    }

    #[test]
    fn a_degraded_cable_stays_where_it_is() {
        let mut fabric = build("star:2").unwrap();
        let found = cables(&fabric, &["host0001[1]"]).unwrap();
        degrade(&mut fabric, &found, LinkWidth::X1, LinkSpeed::Sdr);
        assert_eq!(
            fabric.summary().to_string(),
            "2 hosts, 1 switches, 2 cables: 1 × 1x SDR, 1 × 4x QDR"
        );
    }

    #[test]
    fn a_node_goes_with_its_cables() {
        let fabric = build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
        let rest = without(&fabric, &[node(&fabric, "spine00").unwrap()]).unwrap();
        assert_eq!(rest.summary().to_string(), "6 hosts, 4 switches, 9 cables: 9 × 4x QDR");
        assert!(node(&rest, "spine00").is_err());
        assert_eq!(rest.cable(rest.link(LinkId(2))), "leaf00[4]-spine01[1]");
    }
}
