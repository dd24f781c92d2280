//! What it is: the dragonfly, groups of fully meshed switches, the groups fully meshed in turn.
//!
//! Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA
//! 2008: a switches (routers) in a group, p hosts (terminals) and h global cables on each, g
//! groups; balanced where a = 2p = 2h, largest where g = ah + 1.
//!
//! Global cables are arranged as in that paper's figures, which Camarero, Vallejo, Beivide (ACM
//! TACO 11(4), 2014) call consecutive and Hastings et al. (CLUSTER 2015) absolute: counted over its
//! switches, the cables of a group lead to the other groups in the order of their numbers. With
//! fewer groups that row is repeated while it fits, so that any two groups have equally many
//! cables; what is left of the global ports stays empty.
//!
//! Ports: hosts 1 to p, then the other switches of the group by number, then global cables.

use super::arguments::Arguments;
use super::lattice::place_name;
use super::plan::{Plan, numbered, radix};
use super::{Entry, TopologyError};
use crate::{Fabric, NodeId};

/// `dragonfly:a=4,p=2,h=2`.
pub(super) const ENTRY: Entry = Entry {
    name: "dragonfly",
    summary: "groups of fully meshed switches, any two groups joined by global cables",
    parameters: "a=4 switches in a group, 1 to 254; p=2 hosts and h=2 global cables on each, 1 to \
                 253; g=ah+1 groups, 2 to ah+1; ports: hosts, the group's other switches by \
                 number, global cables to the other groups by number (consecutive arrangement); \
                 speed=4xQDR",
    example: "dragonfly:a=4,p=2,h=2",
    reference: "Kim, Dally, Scott, Abts, \"Technology-driven, highly-scalable dragonfly \
                topology\", ISCA 2008",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["a", "p", "h", "g"])?;
    if !arguments.values.is_empty() {
        return Err(arguments.wrong("value", &arguments.values, "empty; write a=4,p=2,h=2,…"));
    }
    let switches = arguments.option_number("a", 4, 1..=254)?;
    let hosts = arguments.option_number("p", 2, 1..=253)?;
    let globals = arguments.option_number("h", 2, 1..=253)?;
    let groups_max = switches * globals + 1;
    let groups = arguments.option_number("g", groups_max, 2..=groups_max)?;
    Dragonfly { switches, hosts, globals, groups }.build(&arguments)
}

/// `a`, `p`, `h` and `g` of the paper.
struct Dragonfly {
    switches: u32,
    hosts: u32,
    globals: u32,
    groups: u32,
}

impl Dragonfly {
    fn build(&self, arguments: &Arguments<'_>) -> Result<Fabric, TopologyError> {
        let switches = u64::from(self.groups) * u64::from(self.switches);
        let mut plan = Plan::new(ENTRY.name, switches * (1 + u64::from(self.hosts)))?;
        let ports = u64::from(self.hosts + self.switches - 1 + self.globals);
        let ports = radix(ENTRY.name, "group", ports)?;
        for group in 0..self.groups {
            for number in 0..self.switches {
                plan.switch(place_name(&[group, number]), ports)?;
            }
        }
        for group in 0..self.groups {
            self.local_cables(&mut plan, group);
            for other in group + 1..self.groups {
                self.global_cables(&mut plan, group, other);
            }
        }
        let hosts = switches * u64::from(self.hosts);
        for rank in 0..hosts {
            let host = plan.host(numbered("host", rank, hosts, 4), 1)?;
            let switch = NodeId((rank / u64::from(self.hosts)) as u32);
            plan.cable((host, 1), (switch, 1 + (rank % u64::from(self.hosts)) as u32));
        }
        plan.finish(arguments.rate()?)
    }

    fn switch(&self, group: u32, number: u32) -> NodeId {
        NodeId(group * self.switches + number)
    }

    fn local_cables(&self, plan: &mut Plan, group: u32) {
        for low in 0..self.switches {
            for high in low + 1..self.switches {
                // The port counts the other switches, so the own number is left out.
                let ends = (self.hosts + high, self.hosts + 1 + low);
                plan.cable((self.switch(group, low), ends.0), (self.switch(group, high), ends.1));
            }
        }
    }

    /// Draws all cables between two groups, `low` before `high`.
    fn global_cables(&self, plan: &mut Plan, low: u32, high: u32) {
        let others = self.groups - 1;
        let end = |group, index| {
            let first_port = self.hosts + self.switches;
            (self.switch(group, index / self.globals), first_port + index % self.globals)
        };
        for row in 0..self.switches * self.globals / others {
            // Counted among the other groups, the higher one is one place earlier.
            let ends = (row * others + high - 1, row * others + low);
            plan.cable(end(low, ends.0), end(high, ends.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topologies::build;
    use crate::{Fabric, NodeId, NodeKind};
    use std::collections::BTreeMap;

    fn peers(fabric: &Fabric, id: u32) -> Vec<String> {
        let peers = fabric.neighbours(NodeId(id));
        peers.map(|(port, _, peer)| format!("{port}:{}", fabric.describe(peer))).collect()
    }

    #[test]
    fn the_papers_example_of_72_hosts_is_cabled_consecutively() {
        let fabric = build("dragonfly:a=4,p=2,h=2").unwrap();
        assert_eq!(
            peers(&fabric, 0),
            [
                "1:host0000[1]",
                "2:host0001[1]",
                "3:sw-0-1[3]",
                "4:sw-0-2[3]",
                "5:sw-0-3[3]",
                "6:sw-1-0[6]",
                "7:sw-2-0[6]",
            ]
        );
        // Group 4's cables lead to groups 0 1, 2 3, 5 6, 7 8.
        assert_eq!(peers(&fabric, 4 * 4 + 2)[5..], ["6:sw-5-2[6]", "7:sw-6-2[6]"]);
        assert_eq!(peers(&fabric, 4 * 4 + 1)[5..], ["6:sw-2-1[7]", "7:sw-3-1[7]"]);
    }

    #[test]
    fn any_two_groups_have_equally_many_cables() {
        for (spec, each) in
            [("a=4,p=2,h=2", 1), ("a=4,p=1,h=2,g=4", 2), ("a=3,p=1,h=3,g=2", 9), ("a=1,h=5", 1)]
        {
            let fabric = build(&format!("dragonfly:{spec}")).unwrap();
            let group = |id: NodeId| fabric.node(id).name.split('-').nth(1).unwrap().to_owned();
            let mut cables: BTreeMap<(String, String), u32> = BTreeMap::new();
            for link in fabric.links() {
                let ends = [link.a.node, link.b.node];
                if ends.iter().all(|end| fabric.node(*end).is_switch()) {
                    let [a, b] = ends.map(group);
                    *cables.entry((a.clone().min(b.clone()), a.max(b))).or_insert(0) += 1;
                }
            }
            cables.retain(|(a, b), _| a != b);
            let hosts = fabric.ids(NodeKind::ChannelAdapter).count();
            assert!(hosts > 0 && cables.values().all(|count| *count == each), "{spec}: {cables:?}");
            let groups = cables.keys().map(|(_, high)| high).max().unwrap().parse::<usize>();
            let groups = groups.unwrap() + 1;
            assert_eq!(cables.len(), groups * (groups - 1) / 2, "{spec}");
        }
    }
}
