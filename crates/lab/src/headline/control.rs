//! What congestion mechanisms did: totals of runs, and a table of the variants that have some.

use super::cell_text;
use crate::measure::Estimate;
use crate::result::{RunResult, SeedResult, VariantResult};
use crate::table::{Align, Table};
use clearlane_ib::wire;
use serde::Serialize;

/// What the mechanisms of a run did, warm-up included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ControlTotals {
    /// Data packets that switches marked with FECN; one marked at two switches counts twice.
    pub packets_marked: u64,
    /// CNPs that entered the network.
    pub cnps_injected: u64,
    /// CNPs that arrived.
    pub cnps_delivered: u64,
    /// Grants at switch outputs of CNPs.
    pub cnp_hops: u64,
    /// BECNs that reached a source, on ACKs and in CNPs.
    pub becns: u64,
    /// Bytes of CNPs over all bytes that switches sent; nothing if they sent none.
    pub cnp_byte_share: Option<f64>,
}

impl ControlTotals {
    /// Those of a run; nothing without mechanisms.
    pub(crate) fn of(variant: &VariantResult, run: &SeedResult) -> Option<Self> {
        let totals = &run.totals;
        // Counted as PortXmitData counts: in units of 4 bytes, without the VCRC.
        let sent: u64 = variant.switch_channels(run).map(|channel| channel.port_xmit_data).sum();
        let of_cnps = totals.cnp_hops as f64 * f64::from(wire::CNP - 2) / 4.0;
        variant.prepared.control.is_on().then_some(ControlTotals {
            packets_marked: totals.packets_marked,
            cnps_injected: totals.cnps_injected,
            cnps_delivered: totals.cnps_delivered,
            cnp_hops: totals.cnp_hops,
            becns: totals.becns,
            cnp_byte_share: (sent > 0).then(|| of_cnps / sent as f64),
        })
    }
}

/// The columns of the table: key in files, label, unit, and what of a run it shows.
pub(crate) const CONTROL_COLUMNS: [ControlColumn; 4] = [
    ControlColumn {
        key: "packets_marked",
        label: "packets marked",
        unit: "",
        of: |totals| Some(totals.packets_marked as f64),
    },
    ControlColumn {
        key: "cnps_injected",
        label: "CNPs",
        unit: "",
        of: |totals| Some(totals.cnps_injected as f64),
    },
    ControlColumn {
        key: "becns",
        label: "BECNs",
        unit: "",
        of: |totals| Some(totals.becns as f64),
    },
    ControlColumn {
        key: "cnp_bytes_percent",
        label: "CNP bytes",
        unit: "%",
        of: |totals| Some(totals.cnp_byte_share? * 100.0),
    },
];

/// A column of the table of what mechanisms did.
pub(crate) struct ControlColumn {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    of: fn(&ControlTotals) -> Option<f64>,
}

/// By column, over the seeds of a variant; nothing without mechanisms.
pub(crate) fn control_row(variant: &VariantResult) -> Option<Vec<Option<Estimate>>> {
    let of = |column: &ControlColumn| {
        let runs = variant.runs.iter();
        Estimate::over(runs.map(|run| (column.of)(&ControlTotals::of(variant, run)?)))
    };
    variant.prepared.control.is_on().then(|| CONTROL_COLUMNS.iter().map(of).collect())
}

impl RunResult {
    /// What mechanisms did, a row per variant that has some, warm-up included; nothing without any.
    pub fn control_table(&self) -> Option<Table> {
        let columns = CONTROL_COLUMNS.iter().map(|c| (c.label, c.unit, Align::Right));
        let mut table = Table::new([("variant", "", Align::Left)].into_iter().chain(columns));
        for variant in &self.variants {
            let Some(cells) = control_row(variant) else { continue };
            let cells = cells.iter().map(|cell| cell_text(cell.as_ref()));
            table.row([variant.name.clone()].into_iter().chain(cells));
        }
        (!table.is_empty()).then_some(table)
    }
}
