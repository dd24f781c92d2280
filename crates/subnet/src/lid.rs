//! Which port answers to which LID.

use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Lid, Lmc, PortNumber};

/// The port that owns a LID and which of its 2^LMC LIDs it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LidOwner {
    /// The port; port 0 for a switch.
    pub end: Endpoint,
    /// LID − base LID: the path's number in the port's path set, 0..2^LMC.
    pub offset: u16,
}

/// LIDs of a subnet, both ways.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LidMap {
    /// Indexed by LID.
    owners: Vec<Option<LidOwner>>,
    /// Base LID by node and port.
    bases: Vec<Vec<Option<(Lid, Lmc)>>>,
}

/// Why LIDs could not be assigned.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LidError {
    /// More ports × 2^LMC than unicast LIDs.
    #[error(
        "this fabric needs {needed} LIDs at lmc {lmc}, and a subnet has 49151; {}",
        remedy(*lmc, *least)
    )]
    TooMany {
        /// LMC asked for.
        lmc: u8,
        /// LIDs that would be needed.
        needed: usize,
        /// LIDs that would be needed without LMC.
        least: usize,
    },
    /// A file gives one LID to two ports.
    #[error("lid {lid} belongs to both {first} and {second}; correct the file or drop its LIDs")]
    Twice {
        /// The LID.
        lid: u16,
        /// First port.
        first: String,
        /// Second port.
        second: String,
    },
    /// A file gives a port LIDs beyond the unicast ones.
    #[error(
        "{port} has lid {base} and lmc {lmc}, which reaches lid {last}, and unicast LIDs end at \
         49151; correct the file or drop its LIDs"
    )]
    Beyond {
        /// The port.
        port: String,
        /// Its base LID.
        base: usize,
        /// Its LMC.
        lmc: u8,
        /// The last of its 2^LMC LIDs.
        last: usize,
    },
}

/// What helps where LIDs do not suffice.
fn remedy(lmc: u8, least: usize) -> &'static str {
    match lmc > 0 && least <= usize::from(Lid::MAX.value()) {
        true => "lower the lmc",
        false => "take one of fewer hosts and switches",
    }
}

impl LidMap {
    /// Fails if the subnet's 49,151 unicast LIDs do not suffice for every switch and 2^LMC for
    /// every cabled adapter port.
    pub fn suffice(fabric: &Fabric, lmc: Lmc) -> Result<(), LidError> {
        let step = usize::from(lmc.lids());
        let adapters = fabric.ids(NodeKind::ChannelAdapter);
        let ports: usize = adapters.map(|node| fabric.neighbours(node).count()).sum();
        let switches = fabric.ids(NodeKind::Switch).count();
        let (needed, least) = (ports * step + switches, ports + switches);
        // The LIDs below the first aligned one stay unused.
        match needed + step - 1 > usize::from(Lid::MAX.value()) {
            true => Err(LidError::TooMany { lmc: lmc.value(), needed, least }),
            false => Ok(()),
        }
    }

    /// LIDs for every switch and every cabled adapter port, in node order: adapters first, aligned
    /// to 2^LMC, then switches, which have one LID each (base port 0).
    ///
    /// Fails when the subnet's 49,151 unicast LIDs do not suffice.
    pub fn assign(fabric: &Fabric, lmc: Lmc) -> Result<Self, LidError> {
        Self::suffice(fabric, lmc)?;
        let step = usize::from(lmc.lids());
        let mut map = Self::empty(fabric);
        let mut next = step;
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            for (port, _, _) in fabric.neighbours(node) {
                map.insert(fabric, Endpoint { node, port }, next, lmc)?;
                next += step;
            }
        }
        for node in fabric.ids(NodeKind::Switch) {
            let end = Endpoint { node, port: PortNumber::MANAGEMENT };
            map.insert(fabric, end, next, Lmc::default())?;
            next += 1;
        }
        Ok(map)
    }

    /// The LIDs the fabric's file carries. Nothing if no port has one; an error if two ports share
    /// one, if one has LIDs beyond the unicast ones, or if there are more switches than LIDs: a
    /// table for each would not fit into memory. Ports without a LID stay without.
    pub fn from_fabric(fabric: &Fabric) -> Result<Option<Self>, LidError> {
        let needed = fabric.ids(NodeKind::Switch).count();
        if needed > usize::from(Lid::MAX.value()) {
            return Err(LidError::TooMany { lmc: 0, needed, least: needed });
        }
        let mut map = Self::empty(fabric);
        let mut any = false;
        for (index, node) in fabric.nodes().iter().enumerate() {
            for (number, port) in node.ports.iter().enumerate() {
                let (Some(lid), Some(port_number)) = (port.lid, PortNumber::new(number as u8))
                else {
                    continue;
                };
                let end = Endpoint { node: NodeId(index as u32), port: port_number };
                map.insert(fabric, end, usize::from(lid.value()), port.lmc)?;
                any = true;
            }
        }
        Ok(any.then_some(map))
    }

    /// The LIDs of a list, such as the one a dump of forwarding tables carries. An error if two
    /// ports share one or one has LIDs beyond the unicast ones.
    pub fn from_list(
        fabric: &Fabric,
        list: impl IntoIterator<Item = (Endpoint, Lid, Lmc)>,
    ) -> Result<Self, LidError> {
        let mut map = Self::empty(fabric);
        for (end, base, lmc) in list {
            map.insert(fabric, end, usize::from(base.value()), lmc)?;
        }
        Ok(map)
    }

    fn empty(fabric: &Fabric) -> Self {
        let bases = fabric.nodes().iter().map(|node| vec![None; node.ports.len()]).collect();
        LidMap { owners: Vec::new(), bases }
    }

    fn insert(
        &mut self,
        fabric: &Fabric,
        end: Endpoint,
        base: usize,
        lmc: Lmc,
    ) -> Result<(), LidError> {
        let last = base + usize::from(lmc.lids()) - 1;
        if last > usize::from(Lid::MAX.value()) {
            let port = fabric.describe(end);
            return Err(LidError::Beyond { port, base, lmc: lmc.value(), last });
        }
        for offset in 0..lmc.lids() {
            let lid = base + usize::from(offset);
            if lid >= self.owners.len() {
                self.owners.resize(lid + 1, None);
            }
            if let Some(first) = self.owners[lid] {
                let (first, second) = (fabric.describe(first.end), fabric.describe(end));
                return Err(LidError::Twice { lid: lid as u16, first, second });
            }
            self.owners[lid] = Some(LidOwner { end, offset });
        }
        if let Some(lid) = u16::try_from(base).ok().and_then(Lid::new) {
            self.bases[end.node.index()][usize::from(end.port.value())] = Some((lid, lmc));
        }
        Ok(())
    }

    /// Who answers to `lid`.
    pub fn owner(&self, lid: Lid) -> Option<LidOwner> {
        self.owners.get(usize::from(lid.value())).copied().flatten()
    }

    /// Base LID and LMC of a port; ask for port 0 of a switch.
    pub fn base(&self, end: Endpoint) -> Option<(Lid, Lmc)> {
        *self.bases.get(end.node.index())?.get(usize::from(end.port.value()))?
    }

    /// Every port with the LID at this offset alone, LMC 0; ports with fewer LIDs with that at the
    /// offset modulo their number.
    pub fn at_offset(&self, offset: u16) -> Self {
        let one = |(base, lmc): (Lid, Lmc)| {
            Some((Lid::new(base.value().checked_add(offset % lmc.lids())?)?, Lmc::default()))
        };
        let bases: Vec<Vec<_>> = self
            .bases
            .iter()
            .map(|ports| ports.iter().map(|base| one((*base)?)).collect())
            .collect();
        let stays = |owner: LidOwner| {
            let lids = self.base(owner.end).map_or(1, |(_, lmc)| lmc.lids());
            (owner.offset == offset % lids).then_some(LidOwner { offset: 0, ..owner })
        };
        let owners = self.owners.iter().map(|owner| owner.and_then(stays)).collect();
        LidMap { owners, bases }
    }

    /// The largest LMC of a port.
    pub fn lmc_max(&self) -> Lmc {
        let of_ports = self.bases.iter().flatten().flatten().map(|(_, lmc)| *lmc);
        of_ports.max().unwrap_or_default()
    }

    /// One more than the largest LID in use: the length of a forwarding table.
    pub fn table_len(&self) -> usize {
        self.owners.len()
    }

    /// Every LID in use with its owner, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Lid, LidOwner)> + '_ {
        self.owners
            .iter()
            .enumerate()
            .filter_map(|(lid, owner)| Some((Lid::new(lid as u16)?, (*owner)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    #[test]
    fn bases_are_aligned_and_owners_answer() {
        let fabric = build("leaf-spine:leaves=2,hosts=2,spines=1").unwrap();
        let map = LidMap::assign(&fabric, Lmc::new(2).unwrap()).unwrap();
        assert_eq!(map.table_len(), 4 + 4 * 4 + 3);
        for (lid, owner) in map.iter() {
            let (base, lmc) = map.base(owner.end).unwrap();
            assert_eq!(base.value() + owner.offset, lid.value());
            assert!(owner.end.port.value() == 0 || base.value() % lmc.lids() == 0);
        }
    }

    #[test]
    fn one_offset_of_each_port_stays_at_its_lid() {
        let fabric = build("star:2").unwrap();
        let map = LidMap::assign(&fabric, Lmc::new(1).unwrap()).unwrap();
        let lids = |map: &LidMap| map.iter().map(|(lid, o)| (lid.value(), o.offset)).collect();
        let [all, one]: [Vec<_>; 2] = [lids(&map), lids(&map.at_offset(1))];
        // Two hosts with two LIDs each, then the switch with one.
        assert_eq!(all, [(2, 0), (3, 1), (4, 0), (5, 1), (6, 0)]);
        assert_eq!(one, [(3, 0), (5, 0), (6, 0)]);
        for (lid, owner) in map.at_offset(1).iter() {
            assert_eq!(map.at_offset(1).base(owner.end), Some((lid, Lmc::default())));
        }
        assert_eq!((map.lmc_max().value(), map.at_offset(1).lmc_max().value()), (1, 0));
    }

    #[test]
    fn too_many_lids_are_refused_before_they_are_made() {
        let fabric = build("torus:64x64,hosts=3").unwrap();
        assert!(LidMap::assign(&fabric, Lmc::new(1).unwrap()).is_ok());
        let error = LidMap::assign(&fabric, Lmc::new(2).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this fabric needs 53248 LIDs at lmc 2, and a subnet has 49151; lower the lmc"
        );
        // 49,101 LIDs from 64 on.
        let fabric = build("chain:13x59").unwrap();
        assert!(LidMap::suffice(&fabric, Lmc::new(5).unwrap()).is_ok());
        let error = LidMap::suffice(&fabric, Lmc::new(6).unwrap()).unwrap_err();
        assert_eq!(error, LidError::TooMany { lmc: 6, needed: 49_101, least: 780 });
        // No LMC is low enough.
        let fabric = build("torus:160x160").unwrap();
        for (lmc, needed) in [(0, 51_200), (1, 76_800)] {
            let error = LidMap::suffice(&fabric, Lmc::new(lmc).unwrap()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "this fabric needs {needed} LIDs at lmc {lmc}, and a subnet has 49151; take \
                     one of fewer hosts and switches"
                )
            );
        }
    }

    #[test]
    fn more_switches_than_lids_are_refused_before_they_get_tables() {
        let mut fabric = build("torus:256x192").unwrap();
        fabric.node_mut(NodeId(0)).ports[0].lid = Some(Lid::MAX);
        let error = LidMap::from_fabric(&fabric).unwrap_err();
        assert_eq!(error, LidError::TooMany { lmc: 0, needed: 49_152, least: 49_152 });
    }

    #[test]
    fn one_lid_on_two_ports_is_refused() {
        let mut fabric = build("star:2").unwrap();
        for node in [NodeId(1), NodeId(2)] {
            fabric.node_mut(node).ports[1].lid = Lid::new(7);
        }
        let error = LidMap::from_fabric(&fabric).unwrap_err().to_string();
        assert!(error.contains("lid 7 belongs to both host0000[1] and host0001[1]"), "{error}");
    }

    #[test]
    fn lids_beyond_the_unicast_ones_are_refused() {
        let mut fabric = build("star:2").unwrap();
        fabric.node_mut(NodeId(1)).ports[1].lid = Some(Lid::MAX);
        let map = LidMap::from_fabric(&fabric).unwrap().unwrap();
        assert_eq!(map.table_len(), 49_152);
        fabric.node_mut(NodeId(1)).ports[1].lmc = Lmc::new(1).unwrap();
        let error = LidMap::from_fabric(&fabric).unwrap_err().to_string();
        assert_eq!(
            error,
            "host0000[1] has lid 49151 and lmc 1, which reaches lid 49152, and unicast LIDs end \
             at 49151; correct the file or drop its LIDs"
        );
        let end = Endpoint { node: NodeId(1), port: PortNumber::new(1).unwrap() };
        let list = [(end, Lid::new(49_151 - 126).unwrap(), Lmc::new(7).unwrap())];
        assert!(matches!(LidMap::from_list(&fabric, list), Err(LidError::Beyond { .. })));
    }
}
