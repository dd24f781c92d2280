//! `flow-series.parquet`: flows slice by slice, in the format that captures have too.

use super::{Column, SeedResult, TableEntry, VariantResult};
use crate::columns::flow_series::{COLUMNS, FLOW_SERIES_FILE, FlowSlice, columns_of};
use crate::figures::History;
use std::cmp::Reverse;

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: FLOW_SERIES_FILE,
    summary: "flows slice by slice, of the first seed; those that deliver most, to 100,000 rows",
    columns: COLUMNS,
    of,
};

/// Rows of a run: flows that deliver most come first.
const ROWS_MAX: usize = 100_000;

fn of(variant: &VariantResult, run: &SeedResult) -> Option<Vec<Column>> {
    let history = run.history.as_ref()?;
    let flows = &run.figures.flows;
    let whole = run.figures.slices.count(run.simulated);
    let mut largest: Vec<usize> = (0..flows.len().min(history.flow_bytes.len())).collect();
    largest.sort_by_key(|index| (Reverse(flows[*index].payload_bytes), *index));
    let mut rows = Vec::new();
    for index in largest {
        let slices = history.flow_bytes[index].len().min(whole);
        if rows.len() + slices > ROWS_MAX {
            break;
        }
        add(&mut rows, variant, run, history, index);
    }
    Some(columns_of(&rows))
}

/// Adds the slices in which a flow did anything.
fn add(
    rows: &mut Vec<FlowSlice>,
    variant: &VariantResult,
    run: &SeedResult,
    history: &History,
    index: usize,
) {
    let (flow, cut) = (&run.figures.flows[index], run.figures.slices);
    let (ranks, whole) = (variant.prepared.hosts.ranks(), cut.count(run.simulated));
    let Some(group) = variant.prepared.groups.get(flow.group) else { return };
    // Of the paths and queue pairs of a flow that mechanisms know one by one.
    let controlled: Vec<_> = history
        .control
        .flows
        .iter()
        .filter(|known| {
            (known.source, known.destination) == (flow.source, flow.destination)
                && usize::from(known.group) == flow.group
        })
        .collect();
    for (number, bytes) in history.flow_bytes[index].iter().take(whole).enumerate() {
        let notified = controlled
            .iter()
            .map(|known| u64::from(known.becns.get(number).copied().unwrap_or(0)))
            .sum();
        if bytes + notified == 0 {
            continue;
        }
        rows.push(FlowSlice {
            record: "simulation".into(),
            variant: variant.name.clone(),
            source: ranks.name(flow.source).into(),
            destination: ranks.name(flow.destination).into(),
            detail: group.name.clone(),
            class: group.class.name().into(),
            start_us: cut.start(number).as_microseconds(),
            length_us: cut.length_of(number).as_microseconds(),
            payload_bytes: *bytes,
            notified: (!controlled.is_empty()).then_some(notified),
            ..FlowSlice::default()
        });
    }
}
