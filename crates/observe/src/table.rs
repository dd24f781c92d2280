//! Flows as a table for a terminal.

use crate::names::Names;
use crate::words::{ends, percent, queue_pairs, rate};
use clearlane_capture::judge::Standing;
use clearlane_capture::{Analysed, FoundFlow};
use clearlane_lab::{Align, Table, grouped};
use std::cmp::Reverse;

/// What a table shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// The most rows.
    pub rows_max: usize,
    /// Whether the subnet's management traffic is among them.
    pub management: bool,
}

/// A column that is left out where it says nothing.
struct Shown {
    label: &'static str,
    unit: &'static str,
    /// Whether it is there even so.
    always: bool,
    cell: fn(&FoundFlow) -> Option<String>,
}

/// Nothing for 0.
fn some(count: u64) -> Option<String> {
    (count > 0).then(|| grouped(count))
}

const COLUMNS: &[Shown] = &[
    Shown { label: "rate", unit: "", always: true, cell: |flow| flow.rate_bps().map(rate) },
    Shown {
        label: "packets",
        unit: "data",
        always: true,
        cell: |flow| some(flow.counts.data_packets),
    },
    Shown {
        label: "marked",
        unit: "FECN, CE",
        always: true,
        // A flow that is notified was marked, but behind the place of the capture.
        cell: |flow| {
            let unseen = flow.counts.marked == 0 && flow.cnps() + flow.becns() > 0;
            flow.marked_share().filter(|_| !unseen).map(percent)
        },
    },
    Shown { label: "CNPs", unit: "back", always: true, cell: |flow| some(flow.cnps()) },
    Shown { label: "BECN", unit: "on ACKs", always: false, cell: |flow| some(flow.becns()) },
    Shown {
        label: "NAKs",
        unit: "back",
        always: false,
        cell: |flow| some(flow.feedback.as_ref().map_or(0, |back| back.counts.naks())),
    },
    Shown {
        label: "resent",
        unit: "packets",
        always: false,
        cell: |flow| some(flow.sequence.retransmitted),
    },
    Shown {
        label: "missing",
        unit: "packets",
        always: false,
        cell: |flow| some(flow.sequence.missing),
    },
    Shown {
        label: "reordered",
        unit: "packets",
        always: false,
        cell: |flow| some(flow.sequence.reordered),
    },
    Shown {
        label: "bad CRC",
        unit: "packets",
        always: false,
        cell: |flow| some(flow.counts.wrong_crcs),
    },
];

/// In the order of the table: who contributes, to the most contended port first; who suffers; the
/// rest. Within each by payload.
pub(crate) fn ordered(analysed: &Analysed, management: bool) -> Vec<&FoundFlow> {
    let found = &analysed.found;
    // Of a contributor the place of its port, which is before that of all others.
    let mut ranks = vec![usize::MAX; found.flows.len()];
    for (place, bottleneck) in found.bottlenecks.iter().enumerate() {
        bottleneck.flows.iter().for_each(|flow| ranks[*flow] = place);
    }
    let flows = found.flows.iter().zip(ranks);
    let mut flows: Vec<(&FoundFlow, usize)> =
        flows.filter(|(flow, _)| management || !flow.is_management()).collect();
    flows.sort_by_key(|(flow, port)| {
        let suffers = matches!(flow.standing, Standing::Victim { .. });
        (*port, !suffers, Reverse(flow.counts.payload_bytes), Reverse(flow.cnps()))
    });
    flows.into_iter().map(|(flow, _)| flow).collect()
}

/// The table, and how many flows are left out of it.
pub fn table(analysed: &Analysed, names: &Names, options: TableOptions) -> (Table, usize) {
    let flows = ordered(analysed, options.management);
    let shown: Vec<&FoundFlow> = flows.iter().copied().take(options.rows_max).collect();
    let columns: Vec<&Shown> = COLUMNS
        .iter()
        .filter(|column| column.always || shown.iter().any(|flow| (column.cell)(flow).is_some()))
        .collect();
    let heads = columns.iter().map(|column| (column.label, column.unit, Align::Right));
    let first = [("flow", "", Align::Left), ("queue pairs", "", Align::Left)];
    let last = [("verdict", "", Align::Left)];
    let mut table = Table::new(first.into_iter().chain(heads).chain(last));
    for flow in &shown {
        let cells = columns.iter().map(|column| (column.cell)(flow).unwrap_or_else(|| "–".into()));
        let first = [ends(flow, names), queue_pairs(flow)];
        let standing = match flow.standing {
            Standing::Victim { share } => format!("victim, slowed to {}", percent(share)),
            other => other.name().to_owned(),
        };
        table.row(first.into_iter().chain(cells).chain([standing]));
    }
    (table, flows.len() - shown.len())
}
