//! VL arbitration (IBA vol. 1, 7.6.9): two weighted round-robin tables and a limit on how much the
//! high one may send while the low one waits.

use crate::port::PortIndex;
use crate::records::{Records, blank};
use clearlane_ib::wire::CREDIT_UNIT;
use clearlane_subnet::VlArbitration;
use serde::{Deserialize, Serialize};

/// The tables of a run, shared by all ports.
#[derive(Clone, Debug)]
pub(crate) struct ArbiterTables {
    high: Vec<(u8, i16)>,
    low: Vec<(u8, i16)>,
    /// Bytes; nothing means no limit.
    high_limit: Option<u32>,
    low_lanes: u16,
}

impl ArbiterTables {
    /// Weights become bytes; entries of weight 0 are skipped, as the specification says.
    pub(crate) fn new(tables: &VlArbitration) -> Self {
        let bytes = |entries: &[clearlane_subnet::VlWeight]| -> Vec<(u8, i16)> {
            let used = entries.iter().filter(|entry| entry.weight > 0);
            // At most 255 · 64 B.
            used.map(|e| (e.vl.value(), i16::from(e.weight) * CREDIT_UNIT as i16)).collect()
        };
        let (high, low) = (bytes(&tables.high), bytes(&tables.low));
        let low_lanes = low.iter().fold(0, |mask, (vl, _)| mask | 1u16 << vl);
        let high_limit = match tables.high_limit {
            255 => None,
            limit => Some(u32::from(limit) * 4096),
        };
        ArbiterTables { high, low, high_limit, low_lanes }
    }
}

/// Where one port stands in the tables.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Arbiter {
    high: Turn,
    low: Turn,
    /// Bytes the high table has sent since the low one had its opportunity.
    high_sent: u32,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Turn {
    entry: u8,
    /// Bytes the entry may still send; 0 is a turn not begun. One packet may overdraw it.
    left: i16,
}

/// The table a lane won its turn in, to be charged for the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    High,
    Low,
    /// No table names the lane.
    Neither,
}

impl Turn {
    /// The lane whose turn it is among the eligible; nothing if the table names none of them.
    fn choose(&mut self, table: &[(u8, i16)], eligible: u16) -> Option<u8> {
        for step in 0..table.len() {
            let entry = (usize::from(self.entry) + step) % table.len();
            let (vl, weight) = table[entry];
            if eligible >> vl & 1 == 1 {
                if step > 0 || self.left <= 0 {
                    *self = Turn { entry: entry as u8, left: weight };
                }
                return Some(vl);
            }
        }
        None
    }

    /// Charges the entry; its last packet may overdraw it, then the next entry is due.
    fn charge(&mut self, table: &[(u8, i16)], bytes: u32) {
        self.left -= (bytes.div_ceil(CREDIT_UNIT) * CREDIT_UNIT) as i16;
        if self.left <= 0 {
            *self = Turn { entry: ((usize::from(self.entry) + 1) % table.len()) as u8, left: 0 };
        }
    }
}

impl Arbiter {
    /// The lane that sends next among `eligible` (at least one bit set), all of which have a packet
    /// and the credits for it. A lane no table names goes last, lowest first, rather than never.
    pub(crate) fn choose(&mut self, tables: &ArbiterTables, eligible: u16) -> (u8, Table) {
        let low_waits = tables.low_lanes & eligible != 0;
        if !low_waits {
            self.high_sent = 0;
        }
        // A limit of 0 allows one packet.
        let spent = tables.high_limit.is_some_and(|limit| self.high_sent >= limit.max(1));
        if !(low_waits && spent)
            && let Some(vl) = self.high.choose(&tables.high, eligible)
        {
            return (vl, Table::High);
        }
        match self.low.choose(&tables.low, eligible) {
            Some(vl) => (vl, Table::Low),
            None => (eligible.trailing_zeros() as u8, Table::Neither),
        }
    }

    /// Notes that the chosen lane sends a packet of `bytes`.
    #[inline(always)]
    pub(crate) fn charge(&mut self, tables: &ArbiterTables, table: Table, bytes: u32) {
        match table {
            Table::High => {
                self.high.charge(&tables.high, bytes);
                self.high_sent = self.high_sent.saturating_add(bytes);
            }
            Table::Low => {
                self.low.charge(&tables.low, bytes);
                self.high_sent = 0;
            }
            Table::Neither => {}
        }
    }
}

/// VL arbitration of all ports of a partition.
pub(crate) struct Arbitration {
    tables: ArbiterTables,
    /// None where there is one lane.
    arbiters: Records<PortIndex, Arbiter>,
}

impl Arbitration {
    /// Of so many ports with so many lanes each.
    pub(crate) fn new(tables: &VlArbitration, ports: usize, lanes: usize) -> Self {
        let arbiters = if lanes > 1 { ports } else { 0 };
        let arbiters = blank(arbiters, Arbiter::default());
        Arbitration { tables: ArbiterTables::new(tables), arbiters }
    }

    /// Where a port stands; nothing where there is one lane.
    pub(crate) fn save(&self, port: PortIndex) -> Option<Arbiter> {
        self.arbiters.iter().nth(port.0 as usize).copied()
    }

    /// Has a port stand where it stood. Nothing if it cannot have stood there.
    pub(crate) fn load(&mut self, port: PortIndex, saved: Option<Arbiter>) -> Option<()> {
        match (self.arbiters.iter_mut().nth(port.0 as usize), saved) {
            (Some(arbiter), Some(saved)) => *arbiter = saved,
            (None, None) => {}
            _ => return None,
        }
        Some(())
    }

    /// The lane that sends next among `eligible`, of a port with several lanes.
    #[inline(always)]
    pub(crate) fn choose(&mut self, port: PortIndex, eligible: u16) -> (u8, Table) {
        // A lane that is alone needs no turn and is not charged for one.
        if eligible.is_power_of_two() {
            return (eligible.trailing_zeros() as u8, Table::Neither);
        }
        self.arbiters[port].choose(&self.tables, eligible)
    }

    /// Whose turn it is at a port with several lanes.
    pub(crate) fn turns(&self, port: PortIndex) -> Arbiter {
        self.arbiters[port]
    }

    /// Has it be whose turn it was before a choice that came to nothing.
    pub(crate) fn set_turns(&mut self, port: PortIndex, turns: Arbiter) {
        self.arbiters[port] = turns;
    }

    /// The lane that was chosen sends a packet of `bytes`.
    #[inline(always)]
    pub(crate) fn charge(&mut self, port: PortIndex, table: Table, bytes: u16) {
        if table != Table::Neither {
            self.arbiters[port].charge(&self.tables, table, bytes.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::VirtualLane;
    use clearlane_subnet::VlWeight;

    fn tables(high: &[(u8, u8)], low: &[(u8, u8)], high_limit: u8) -> ArbiterTables {
        let entries = |list: &[(u8, u8)]| -> Vec<VlWeight> {
            let entry = |(vl, weight): &(u8, u8)| VlWeight {
                vl: VirtualLane::new(*vl).unwrap(),
                weight: *weight,
            };
            list.iter().map(entry).collect()
        };
        ArbiterTables::new(&VlArbitration { high: entries(high), low: entries(low), high_limit })
    }

    /// Bytes each lane sends in `turns` turns of packets of `bytes` with all `eligible` waiting.
    fn shares(tables: &ArbiterTables, eligible: u16, bytes: u32, turns: u32) -> [u32; 4] {
        let (mut arbiter, mut sent) = (Arbiter::default(), [0; 4]);
        for _ in 0..turns {
            let (vl, table) = arbiter.choose(tables, eligible);
            arbiter.charge(tables, table, bytes);
            sent[usize::from(vl)] += bytes;
        }
        sent
    }

    #[test]
    fn low_lanes_share_by_weight() {
        let tables = tables(&[], &[(0, 128), (1, 64)], 0);
        let sent = shares(&tables, 0b11, 2048, 3000);
        assert_eq!(sent, [2000 * 2048, 1000 * 2048, 0, 0]);
        assert_eq!(shares(&tables, 0b10, 2048, 10), [0, 10 * 2048, 0, 0]);
    }

    #[test]
    fn the_high_limit_lets_the_low_table_have_its_turn() {
        let one_packet = tables(&[(1, 64)], &[(0, 64)], 0);
        assert_eq!(shares(&one_packet, 0b11, 1024, 1000), [500 * 1024, 500 * 1024, 0, 0]);
        let four = tables(&[(1, 64)], &[(0, 64)], 1);
        assert_eq!(shares(&four, 0b11, 1024, 1000), [200 * 1024, 800 * 1024, 0, 0]);
        let unlimited = tables(&[(1, 64)], &[(0, 64)], 255);
        assert_eq!(shares(&unlimited, 0b11, 4096, 1000), [0, 1000 * 4096, 0, 0]);
    }

    #[test]
    fn a_lane_no_table_names_is_served_when_nobody_else_is() {
        let tables = tables(&[], &[(0, 64), (3, 0)], 0);
        assert_eq!(shares(&tables, 0b1000, 64, 5), [0, 0, 0, 5 * 64]);
        assert_eq!(shares(&tables, 0b1001, 64, 5), [5 * 64, 0, 0, 0]);
    }

    /// The lanes that send in turn, packets of `bytes` each, while 0 and 1 both wait.
    fn turns(tables: &ArbiterTables, bytes: u32) -> [u8; 12] {
        let mut arbiter = Arbiter::default();
        std::array::from_fn(|_| {
            let (vl, table) = arbiter.choose(tables, 0b11);
            arbiter.charge(tables, table, bytes);
            vl
        })
    }

    #[test]
    fn a_weight_is_units_of_64_bytes_of_which_a_packet_takes_whole_ones() {
        let tables = tables(&[], &[(0, 4), (1, 2)], 0);
        assert_eq!(turns(&tables, 64), [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1]);
        assert_eq!(turns(&tables, 65), [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
        // The last packet of a turn may overdraw it.
        assert_eq!(turns(&tables, 129), [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
        assert_eq!(turns(&tables, 257), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    }
}
