//! The congestion control table: how long a queue pair waits after a packet, for each CCTI.

use clearlane_ib::Picoseconds;

/// Entries of the table: CCTI 0 to 127, the two blocks of 64 that adapters have.
pub(super) const ENTRIES: usize = 128;

/// An injection rate delay for each CCTI, in times of the packet it follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CongestionControlTable {
    /// Shift 0 to 3, multiplier 0 to 16383 (IBA vol. 1, A10.4.3.9); at most [`ENTRIES`].
    entries: Vec<(u8, u16)>,
}

impl CongestionControlTable {
    /// CCTI i waits i packet times, which leaves 1 / (1 + i) of the link: the table of the example
    /// in ibccconfig(8).
    pub(super) fn linear() -> Self {
        CongestionControlTable { entries: (0..ENTRIES as u16).map(|i| (0, i)).collect() }
    }

    /// CCTI i waits i² · 3300 / 6889 ns after the 512 ns of a full packet: the table of Mellanox'
    /// InfiniBand model for OMNeT++. Rounded to eighths of a packet time, the finest a shift gives,
    /// so CCTI 0 to 8 do not wait yet; 127 leaves 1 / 16 of the link.
    pub(super) fn quadratic() -> Self {
        let eighths = |i: u64| (i * i * 3300 * 8 + 6889 * 512 / 2) / (6889 * 512);
        CongestionControlTable {
            entries: (0..ENTRIES as u64).map(|i| (3, eighths(i) as u16)).collect(),
        }
    }

    /// The entries as they are.
    pub(super) fn given(entries: &[(u8, u16)]) -> Self {
        CongestionControlTable { entries: entries.to_vec() }
    }

    /// How many CCTIs it has an entry for.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries of CCTI 0 to `limit`, or all there are.
    pub(super) fn up_to(&self, limit: u8) -> &[(u8, u16)] {
        &self.entries[..self.len().min(usize::from(limit) + 1)]
    }

    /// The injection rate delay after a packet that occupies the link for `busy`.
    pub(super) fn delay(&self, ccti: u8, busy: Picoseconds) -> Picoseconds {
        let (shift, multiplier) = self.entries.get(usize::from(ccti)).copied().unwrap_or_default();
        // IBA vol. 1, A10.4.3.9, and the Linux hfi1 driver: the packet time is shifted first.
        Picoseconds((busy.0 >> shift).saturating_mul(u64::from(multiplier)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the link that a CCTI leaves to packets of 1 us.
    fn rate(table: &CongestionControlTable, ccti: u8) -> f64 {
        1e6 / (1e6 + table.delay(ccti, Picoseconds(1_000_000)).0 as f64)
    }

    #[test]
    fn the_linear_table_leaves_one_over_one_plus_ccti() {
        let table = CongestionControlTable::linear();
        assert_eq!(table.len(), 128);
        assert_eq!([0, 1, 127].map(|ccti| rate(&table, ccti)), [1.0, 0.5, 1.0 / 128.0]);
    }

    #[test]
    fn the_quadratic_table_is_that_of_the_model_rounded_to_eighths() {
        let table = CongestionControlTable::quadratic();
        assert_eq!(table.entries[8], (3, 0));
        assert_eq!(table.entries[9], (3, 1));
        for ccti in 0..128u8 {
            let exact = f64::from(ccti).powi(2) * 3300.0 / 6889.0 / 512.0;
            let delay = table.delay(ccti, Picoseconds(1_000_000)).0 as f64 / 1e6;
            assert!((delay - exact).abs() <= 0.0625, "{ccti}: {delay} instead of {exact}");
        }
    }

    #[test]
    fn a_shift_divides_the_packet_time_before_the_multiplier() {
        let table = CongestionControlTable::given(&[(0, 0), (3, 5)]);
        assert_eq!(table.delay(0, Picoseconds(999)), Picoseconds(0));
        assert_eq!(table.delay(1, Picoseconds(999)), Picoseconds(124 * 5));
    }
}
