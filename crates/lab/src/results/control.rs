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

impl RunResult {
    /// What mechanisms did, a row per variant that has some, warm-up included; nothing without any.
    pub fn control_table(&self) -> Option<Table> {
        let mut table = Table::new([
            ("variant", "", Align::Left),
            ("packets marked", "", Align::Right),
            ("CNPs", "", Align::Right),
            ("BECNs", "", Align::Right),
            ("CNP bytes", "%", Align::Right),
        ]);
        for variant in self.variants.iter().filter(|variant| variant.prepared.control.is_on()) {
            let of = |value: fn(&ControlTotals) -> Option<f64>| {
                let runs = variant.runs.iter();
                let values = runs.map(|run| value(&ControlTotals::of(variant, run)?));
                cell_text(Estimate::over(values).as_ref())
            };
            table.row([
                variant.name.clone(),
                of(|totals| Some(totals.packets_marked as f64)),
                of(|totals| Some(totals.cnps_injected as f64)),
                of(|totals| Some(totals.becns as f64)),
                of(|totals| Some(totals.cnp_byte_share? * 100.0)),
            ]);
        }
        (!table.is_empty()).then_some(table)
    }
}
