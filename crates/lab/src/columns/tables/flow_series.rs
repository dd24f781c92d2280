//! `flow-series.parquet`: flows slice by slice, in the format that captures have too.

use super::{Column, SeedResult, TableEntry, VariantResult};
use crate::columns::flow_series::{COLUMNS, FLOW_SERIES_FILE, FlowSlice, columns_of};
use crate::figures::History;
use crate::halt::{Deadline, LeftOut};
use clearlane_sim::FlowControl;
use clearlane_workload::Rank;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: FLOW_SERIES_FILE,
    summary: "flows slice by slice, of the first seed; those that deliver most, to 100,000 rows",
    columns: COLUMNS,
    of,
};

/// Rows of a run: flows that deliver most come first.
const ROWS_MAX: usize = 100_000;

fn of(
    variant: &VariantResult,
    run: &SeedResult,
    deadline: &Deadline,
) -> Result<Option<Vec<Column>>, LeftOut> {
    let Some(history) = run.history.as_ref() else { return Ok(None) };
    let flows = &run.figures.flows;
    let whole = run.figures.slices.count(run.simulated);
    let mut largest: Vec<usize> = (0..flows.len().min(history.flow_bytes.len())).collect();
    largest.sort_by_key(|index| (Reverse(flows[*index].payload_bytes), *index));
    let controlled = controlled(history);
    let mut rows = Vec::new();
    for index in largest {
        let slices = history.flow_bytes[index].len().min(whole);
        if rows.len() + slices > ROWS_MAX {
            break;
        }
        let flow = &flows[index];
        let known = controlled.get(&(flow.source, flow.destination, flow.group));
        add(&mut rows, variant, run, (index, known.map_or(&[], Vec::as_slice)));
    }
    columns_of(&rows, deadline).map(Some)
}

/// Paths and queue pairs that mechanisms know one by one, under their flow: source, destination and
/// group.
fn controlled(history: &History) -> BTreeMap<(Rank, Rank, usize), Vec<&FlowControl>> {
    let mut by_flow = BTreeMap::<_, Vec<_>>::new();
    for known in &history.control.flows {
        let flow = (known.source, known.destination, usize::from(known.group));
        by_flow.entry(flow).or_default().push(known);
    }
    by_flow
}

/// Adds the slices in which a flow did anything. `controlled` are its paths and queue pairs that
/// mechanisms know.
fn add(
    rows: &mut Vec<FlowSlice>,
    variant: &VariantResult,
    run: &SeedResult,
    (index, controlled): (usize, &[&FlowControl]),
) {
    let (flow, cut) = (&run.figures.flows[index], run.figures.slices);
    let (ranks, whole) = (variant.prepared.hosts.ranks(), cut.count(run.simulated));
    let Some(group) = variant.prepared.groups.get(flow.group) else { return };
    let Some(history) = run.history.as_ref() else { return };
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
