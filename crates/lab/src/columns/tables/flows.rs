//! `flows.parquet`: payload of every flow over the measured part.

use super::{Column, SeedResult, TableEntry, VariantResult, columns, in_time};
use crate::halt::{Deadline, LeftOut};
use crate::measure::FlowFigures;
use clearlane_workload::{FlowGroup, Ranks};

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: "flows.parquet",
    summary: "payload of every flow over the measured part",
    columns: COLUMNS,
    of,
};

struct Row<'a> {
    variant: &'a str,
    seed: u64,
    group: Option<&'a FlowGroup>,
    ranks: &'a Ranks,
    flow: &'a FlowFigures,
    span_us: f64,
}

impl Row<'_> {
    fn gbps(&self) -> f64 {
        if self.span_us > 0.0 { self.flow.payload_bytes as f64 * 8e-3 / self.span_us } else { 0.0 }
    }
}

columns! { |row: Row<'_>|
    text "variant" "" "name of the variant" row.variant;
    count "seed" "" "seed of the run" row.seed;
    text "group" "" "name of the flow group" row.group.map_or("", |group| &group.name);
    text "class" "" "hot, victim or background" row.group.map_or("", |group| group.class.name());
    text "source" "" "name of the sending host" row.ranks.name(row.flow.source);
    text "destination" "" "name of the receiving host" row.ranks.name(row.flow.destination);
    count "delivered_payload_bytes" "bytes" "payload delivered in the measured part"
        row.flow.payload_bytes;
    real "accepted_gbps" "Gbps" "the same over the length of the measured part, 10^9 bits a second"
        row.gbps();
}

fn of(
    variant: &VariantResult,
    run: &SeedResult,
    deadline: &Deadline,
) -> Result<Option<Vec<Column>>, LeftOut> {
    let ranks = variant.prepared.hosts.ranks();
    let part = &run.figures.warm_up;
    let rows = run.figures.flows.iter().map(|flow| Row {
        variant: &variant.name,
        seed: run.seed,
        group: variant.prepared.groups.get(flow.group),
        ranks,
        flow,
        span_us: part.to_us - part.from_us,
    });
    in_time(columns(&rows.collect::<Vec<_>>()), deadline).map(Some)
}
