//! `control.parquet`: what congestion mechanisms did slice by slice.

use super::{Column, SeedResult, TableEntry, VariantResult, columns, in_time};
use crate::halt::{Deadline, LeftOut};
use crate::measure::Slices;
use clearlane_sim::FlowControl;
use clearlane_workload::{FlowGroup, Ranks};

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: "control.parquet",
    summary: "what congestion mechanisms did by flow and slice, in the first seed of each variant \
              that has some, of the 1000 flows that were notified most often",
    columns: COLUMNS,
    of,
};

/// Flows of a variant: a line each, slice and quantity.
const FLOWS_MAX: usize = 1000;
/// What stands for notifications.
const BECNS: &str = "BECNs";

struct Row<'a> {
    variant: &'a str,
    seed: u64,
    group: Option<&'a FlowGroup>,
    ranks: &'a Ranks,
    flow: &'a FlowControl,
    cut: Slices,
    slice: usize,
    quantity: &'a str,
    value: u64,
}

columns! { |row: Row<'_>|
    text "variant" "" "name of the variant" row.variant;
    count "seed" "" "seed of the run" row.seed;
    text "group" "" "name of the flow group" row.group.map_or("", |group| &group.name);
    text "class" "" "hot, victim or background" row.group.map_or("", |group| group.class.name());
    text "source" "" "name of the sending host" row.ranks.name(row.flow.source);
    text "destination" "" "name of the receiving host" row.ranks.name(row.flow.destination);
    count "path" "" "which of the destination's LIDs, from 0" u64::from(row.flow.path);
    count "queue_pair" "" "which queue pair of the group, from 0" u64::from(row.flow.queue_pair);
    real "start_us" "us" "when the slice begins" row.cut.start(row.slice).as_microseconds();
    text "quantity" "" "BECNs, or what the mechanism shows: CCTI, rate, open paths" row.quantity;
    count "value" "" "BECNs in the slice, or what is shown at its end, rates in kbit/s" row.value;
}

fn of(
    variant: &VariantResult,
    run: &SeedResult,
    deadline: &Deadline,
) -> Result<Option<Vec<Column>>, LeftOut> {
    let first = variant.runs.first().is_some_and(|first| first.seed == run.seed);
    if !variant.prepared.control.is_on() || !first {
        return Ok(None);
    }
    let flows = run.history.as_ref().map_or(Vec::new(), |h| h.most_notified(FLOWS_MAX));
    let ranks = variant.prepared.hosts.ranks();
    let (name, seed, cut) = (&variant.name, run.seed, run.figures.slices);
    let mut rows = Vec::new();
    for flow in flows {
        let group = variant.prepared.groups.get(usize::from(flow.group));
        let ranks = &ranks;
        let row = |quantity, slice, value| Row {
            variant: name,
            seed,
            group,
            ranks,
            flow,
            cut,
            slice,
            quantity,
            value,
        };
        let becns = flow.becns.iter().enumerate();
        rows.extend(becns.map(|(slice, becns)| row(BECNS, slice, u64::from(*becns))));
        for (probe, values) in &flow.probes {
            rows.extend(values.iter().enumerate().map(|(slice, value)| row(probe, slice, *value)));
        }
    }
    in_time(columns(&rows), deadline).map(Some)
}
