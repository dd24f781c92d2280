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
    #[error("lmc {lmc} needs {needed} LIDs for this fabric and a subnet has 49151; lower the lmc")]
    TooMany {
        /// LMC asked for.
        lmc: u8,
        /// LIDs that would be needed.
        needed: usize,
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
}

impl LidMap {
    /// LIDs for every switch and every cabled adapter port, in node order: adapters first, aligned
    /// to 2^LMC, then switches, which have one LID each (base port 0).
    ///
    /// Fails when the subnet's 49,151 unicast LIDs do not suffice.
    pub fn assign(fabric: &Fabric, lmc: Lmc) -> Result<Self, LidError> {
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
        if next > usize::from(Lid::MAX.value()) + 1 {
            return Err(LidError::TooMany { lmc: lmc.value(), needed: next - step });
        }
        Ok(map)
    }

    /// The LIDs the fabric's file carries. Nothing if no port has one; an error if two ports share
    /// one. Ports without a LID stay without.
    pub fn from_fabric(fabric: &Fabric) -> Result<Option<Self>, LidError> {
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
