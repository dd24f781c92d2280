//! What it is: leaves and spines where the adapters of one host go to as many leaves, its rails.
//!
//! Source: NVIDIA, "DGX SuperPOD reference architecture" (H100, B200), compute fabric: a scalable
//! unit of 32 hosts with 8 adapters each has 8 leaves; adapter r of every host of the unit is on
//! leaf r, so that the same accelerators of different hosts are one switch apart. Every leaf is
//! joined to every spine.
//!
//! A host is as many single-port adapters as it has rails, of one system image GUID: its first
//! adapter's. The ranks go through the rails of the first host, then through those of the next, as
//! a launcher with one process per accelerator numbers them.
//!
//! Ports: of a leaf, hosts by number, then spines by number, with parallel cables that row again;
//! of a spine, leaves by number, with parallel cables that row again.

use super::arguments::Arguments;
use super::plan::{Plan, numbered, radix};
use super::{Entry, TopologyError};
use crate::{Fabric, NodeId};

/// `rail-optimised:units=4,hosts=32,rails=8,spines=16,parallel=2`.
pub(super) const ENTRY: Entry = Entry {
    name: "rail-optimised",
    summary: "leaf and spine with rails: adapter r of every host of a unit on the unit's leaf r",
    parameters: "units=4, 1 to 254; hosts=32 in a unit, 1 to 253; rails=8 adapters of a host and \
                 leaves of a unit, 1 to 254; spines=16, 1 to 253; parallel=2 cables between a \
                 leaf and a spine, 1 to 253; ports: of a leaf hosts then spines, of a spine \
                 leaves; speed=4xQDR",
    example: "rail-optimised:units=2,hosts=4,rails=4,spines=2",
    reference: "NVIDIA, \"DGX SuperPOD reference architecture\", compute fabric of 2 to 8 \
                scalable units",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let keys = ["units", "hosts", "rails", "spines", "parallel"];
    let arguments = Arguments::parse(ENTRY.name, text, &keys)?;
    if !arguments.values.is_empty() {
        return Err(arguments.wrong("value", &arguments.values, "empty; write units=4,hosts=32,…"));
    }
    let rails = Rails {
        units: arguments.option_number("units", 4, 1..=254)?,
        hosts: arguments.option_number("hosts", 32, 1..=253)?,
        rails: arguments.option_number("rails", 8, 1..=254)?,
        spines: arguments.option_number("spines", 16, 1..=253)?,
        parallel: arguments.option_number("parallel", 2, 1..=253)?,
    };
    rails.build(&arguments)
}

struct Rails {
    units: u32,
    hosts: u32,
    rails: u32,
    spines: u32,
    parallel: u32,
}

impl Rails {
    fn build(&self, arguments: &Arguments<'_>) -> Result<Fabric, TopologyError> {
        let leaves = self.units * self.rails;
        let (hosts, uplinks) = (self.units * self.hosts, self.spines * self.parallel);
        let adapters = u64::from(hosts) * u64::from(self.rails);
        let mut plan =
            Plan::new(ENTRY.name, adapters + u64::from(leaves) + u64::from(self.spines))?;
        let ports = radix(ENTRY.name, "leaf", u64::from(self.hosts + uplinks))?;
        for unit in 0..self.units {
            let unit = numbered("unit", unit.into(), self.units.into(), 2);
            for rail in 0..self.rails {
                let rail = numbered("rail", rail.into(), self.rails.into(), 1);
                plan.switch(format!("leaf-{unit}-{rail}"), ports)?;
            }
        }
        let ports = radix(ENTRY.name, "spine", u64::from(leaves) * u64::from(self.parallel))?;
        for spine in 0..self.spines {
            plan.switch(numbered("spine", spine.into(), self.spines.into(), 2), ports)?;
        }
        for leaf in 0..leaves {
            for spine in 0..self.spines {
                for cable in 0..self.parallel {
                    let up = self.hosts + 1 + cable * self.spines + spine;
                    let down = 1 + cable * leaves + leaf;
                    plan.cable((NodeId(leaf), up), (NodeId(leaves + spine), down));
                }
            }
        }
        for host in 0..hosts {
            self.host(&mut plan, host)?;
        }
        plan.finish(arguments.rate()?)
    }

    /// Adds the adapters of a host and their cables.
    fn host(&self, plan: &mut Plan, host: u32) -> Result<(), TopologyError> {
        let name = numbered("host", host.into(), u64::from(self.units * self.hosts), 4);
        let (unit, place) = (host / self.hosts, host % self.hosts);
        let mut first = None;
        for rail in 0..self.rails {
            let suffix = numbered("rail", rail.into(), self.rails.into(), 1);
            let adapter = plan.host(format!("{name}-{suffix}"), 1)?;
            plan.part_of(adapter, *first.get_or_insert(adapter));
            plan.cable((adapter, 1), (NodeId(unit * self.rails + rail), 1 + place));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::topologies::build;
    use crate::{NodeKind, structure};
    use std::collections::BTreeMap;

    /// Scalable units, leaves, spines, cables to hosts and between switches as NVIDIA's table of
    /// component counts has them for the DGX B200 SuperPOD; the parallel cables follow from 64-port
    /// switches.
    #[test]
    fn sizes_are_those_of_the_superpod() {
        for (units, leaves, spines, parallel, cables) in
            [(2, 16, 8, 4, 512), (4, 32, 16, 2, 1024), (8, 64, 32, 1, 2048)]
        {
            let spec = format!("rail-optimised:units={units},spines={spines},parallel={parallel}");
            let fabric = build(&spec).unwrap();
            let summary = fabric.summary();
            assert_eq!((summary.switches, summary.adapters), (leaves + spines, units * 32 * 8));
            assert_eq!(summary.links, 2 * cables);
            let full = |id| fabric.neighbours(id).count() == 64;
            assert!(fabric.ids(NodeKind::Switch).all(full), "{spec}");
            let tree = structure::tree(&fabric).unwrap();
            assert_eq!([0, 1].map(|level| tree.switches(level).len()), [leaves, spines]);
        }
    }

    #[test]
    fn a_host_is_one_system_on_as_many_leaves_as_rails() {
        let fabric = build("rail-optimised:units=2,hosts=3,rails=4,spines=2").unwrap();
        let mut systems: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for id in fabric.ids(NodeKind::ChannelAdapter) {
            let (_, _, peer) = fabric.neighbours(id).next().unwrap();
            let place = format!("{} on {}", fabric.node(id).name, fabric.describe(peer));
            systems.entry(fabric.node(id).system_guid).or_default().push(place);
        }
        let systems: Vec<_> = systems.into_values().collect();
        assert_eq!((systems.len(), systems.iter().all(|host| host.len() == 4)), (6, true));
        assert_eq!(
            systems[4],
            [
                "host0004-rail0 on leaf-unit01-rail0[2]",
                "host0004-rail1 on leaf-unit01-rail1[2]",
                "host0004-rail2 on leaf-unit01-rail2[2]",
                "host0004-rail3 on leaf-unit01-rail3[2]",
            ]
        );
    }
}
