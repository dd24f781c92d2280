//! `series.parquet`: every flow group slice by slice.

use super::{Column, SeedResult, TableEntry, VariantResult, columns, in_time};
use crate::halt::{Deadline, LeftOut};
use crate::measure::{SeriesSlice, Slices};
use clearlane_workload::FlowGroup;

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: "series.parquet",
    summary: "every flow group slice by slice, warm-up included",
    columns: COLUMNS,
    of,
};

struct Row<'a> {
    variant: &'a str,
    seed: u64,
    group: &'a FlowGroup,
    cut: Slices,
    index: usize,
    slice: &'a SeriesSlice,
}

columns! { |row: Row<'_>|
    text "variant" "" "name of the variant" row.variant;
    count "seed" "" "seed of the run" row.seed;
    text "group" "" "name of the flow group" &row.group.name;
    text "class" "" "hot, victim or background" row.group.class.name();
    real "start_us" "us" "when the slice begins" row.cut.start(row.index).as_microseconds();
    real "length_us" "us" "how long it is" row.cut.length_of(row.index).as_microseconds();
    count "offered_wire_bytes" "bytes" "posted in the slice, headers included"
        row.slice.offered_bytes;
    count "delivered_payload_bytes" "bytes" "payload delivered in the slice"
        row.slice.delivered_payload_bytes;
    count "messages" "messages" "completed in the slice" row.slice.messages;
    real "latency_mean_us" "us" "their mean latency, post to last byte; 0 without any"
        row.slice.latency_mean_us;
}

fn of(
    variant: &VariantResult,
    run: &SeedResult,
    deadline: &Deadline,
) -> Result<Option<Vec<Column>>, LeftOut> {
    let (name, seed, cut) = (&variant.name, run.seed, run.figures.slices);
    let groups = variant.prepared.groups.iter().zip(&run.figures.series);
    let rows: Vec<Row<'_>> = groups
        .flat_map(|(group, slices)| slices.iter().enumerate().map(move |s| (group, s.0, s.1)))
        .map(|(group, index, slice)| Row { variant: name, seed, group, cut, index, slice })
        .collect();
    in_time(columns(&rows), deadline).map(Some)
}
