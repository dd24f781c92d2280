//! The report page of captures: the one that simulations have.

use crate::names::Names;
use crate::table::ordered;
use crate::verdict::{remarks, verdict};
use crate::words::{count, ends, queue_pairs, time};
use clearlane_capture::judge::Standing;
use clearlane_capture::{Analysed, FoundFlow, Slice};
use clearlane_lab::{
    Fact, ObservedColumn, ObservedLine, ObservedPage, ObservedRecord, ObservedRow,
};

/// Flows in the table, so that charts are near, and flows that are drawn.
const ROWS_MAX: usize = 24;
const DRAWN_MAX: usize = 20;

/// A column of the table, and its value.
struct Shown {
    column: ObservedColumn,
    value: fn(&FoundFlow) -> Option<f64>,
}

/// The columns: key, label, unit, what each is, and its value.
fn columns() -> Vec<Shown> {
    let column = |key: &str, label, unit, explained, value| Shown {
        column: ObservedColumn { key: key.into(), label, unit, better: None, explained },
        value,
    };
    vec![
        column(
            "rate",
            "Rate",
            "Gb/s",
            "payload from the first packet with data to the last",
            |flow| flow.rate_bps().map(|bps| bps * 1e-9),
        ),
        column("packets", "Packets", "", "packets with data", |flow| {
            Some(flow.counts.data_packets as f64)
        }),
        column("marked", "Marked", "%", "packets with data and FECN or CE", |flow| {
            flow.marked_share().map(|share| 100.0 * share)
        }),
        column(
            "notified",
            "Notified",
            "",
            "CNPs and other packets with BECN that came back",
            |flow| flow.feedback.as_ref().map(|back| (back.counts.cnp + back.counts.becn) as f64),
        ),
        column("naks", "NAKs", "", "negative acknowledgements that came back", |flow| {
            flow.feedback.as_ref().map(|back| back.counts.naks() as f64)
        }),
        column("resent", "Resent", "", "packets sent again", |flow| {
            Some(flow.sequence.retransmitted as f64)
        }),
        column(
            "missing",
            "Missing",
            "",
            "packets whose number was left out and never came",
            |flow| Some(flow.sequence.missing as f64),
        ),
    ]
}

/// The page.
pub fn page(analysed: &Analysed, names: &Names, command: &str) -> ObservedPage {
    let flows = ordered(analysed, false);
    let verdict = verdict(analysed, names);
    let files: Vec<&str> = analysed.captures.iter().map(|one| one.name.as_str()).collect();
    let columns = columns();
    let row = |flow: &&FoundFlow| ObservedRow {
        name: name(flow, names),
        summary: standing(flow),
        values: columns.iter().map(|shown| (shown.value)(flow)).collect(),
    };
    ObservedPage {
        title: format!("Captures: {}", files.join(", ")),
        summary: verdict.lines.first().map_or(String::new(), |line| line.text.clone()),
        verdict: Some(verdict),
        command: command.into(),
        repeats: true,
        row: "Flow",
        rows: flows.iter().take(ROWS_MAX).map(row).collect(),
        columns: columns.into_iter().map(|shown| shown.column).collect(),
        facts: facts(analysed, flows.len()),
        oddities: remarks(analysed),
        records: vec![record(analysed, &flows, names)],
    }
}

fn name(flow: &FoundFlow, names: &Names) -> String {
    format!("{} (QP {})", ends(flow, names), queue_pairs(flow))
}

fn standing(flow: &FoundFlow) -> String {
    match flow.standing {
        Standing::Victim { share } => format!("victim: slowed to {:.0} %", 100.0 * share),
        other => other.name().into(),
    }
}

fn class(flow: &FoundFlow) -> &'static str {
    match flow.standing {
        Standing::Contributor => "hot",
        Standing::Victim { .. } => "victim",
        Standing::Unhurt | Standing::Unknown => "background",
    }
}

fn facts(analysed: &Analysed, flows: usize) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact { label: label.into(), value };
    let mut facts = Vec::new();
    if flows > ROWS_MAX {
        let value = format!("{ROWS_MAX} of {flows} in the table; capture.json has all");
        facts.push(fact("flows", value));
    }
    for (point, counts) in analysed.points.iter().zip(&analysed.found.points) {
        let length = counts.span_ns.map_or(0, |(first, last)| last - first);
        let others = counts.others.all();
        let besides = match others {
            0 => String::new(),
            many => format!(", {}", count(many, "other record", "other records")),
        };
        let packets = count(counts.packets, "packet", "packets");
        let value = format!("{}: {packets} in {}{besides}", point.name, time(length));
        facts.push(fact("captured at", value));
    }
    let grid = &analysed.found.grid;
    facts.push(fact("slices", time(grid.length_ns)));
    facts
}

/// Flows that are drawn: many contributors leave room for who suffers and for who does not.
fn drawn<'a>(flows: &[&'a FoundFlow]) -> Vec<&'a FoundFlow> {
    let of = |class| flows.iter().copied().filter(move |flow| self::class(flow) == class);
    let [hot, victims, others] = [("hot", 12), ("victim", 4), ("background", DRAWN_MAX)]
        .map(|(class, most)| of(class).take(most).collect::<Vec<_>>());
    let first = [hot, victims, others].concat();
    first.into_iter().take(DRAWN_MAX).collect()
}

/// The charts: throughput, marks and notifications of the flows that matter most.
fn record(analysed: &Analysed, flows: &[&FoundFlow], names: &Names) -> ObservedRecord {
    let grid = &analysed.found.grid;
    let drawn = drawn(flows);
    let all = drawn.iter().map(|flow| {
        let back = flow.feedback.as_ref().map_or(0, |back| back.slices.len());
        flow.slices.len().max(back)
    });
    let length = all.max().unwrap_or(0);
    let line = |flow: &FoundFlow, slices: &[Slice], value: &dyn Fn(&Slice) -> f64| ObservedLine {
        name: name(flow, names),
        class: class(flow),
        values: (0..length).map(|at| slices.get(at).map_or(0.0, value)).collect(),
    };
    let per_ns = 1.0 / grid.length_ns as f64;
    type Seen = fn(&FoundFlow) -> &[Slice];
    let of = |seen: Seen, value: &dyn Fn(&Slice) -> f64| -> Vec<ObservedLine> {
        let lines = drawn.iter().map(|flow| line(flow, seen(flow), value));
        lines.filter(|line| line.values.iter().any(|value| *value > 0.0)).collect()
    };
    let sent: Seen = |flow| &flow.slices;
    let back: Seen = |flow| flow.feedback.as_ref().map_or(&[], |feedback| &feedback.slices);
    let share = |slice: &Slice| match slice.data_packets {
        0 => 0.0,
        all => 100.0 * f64::from(slice.marked) / f64::from(all),
    };
    ObservedRecord {
        name: "captured".into(),
        slice_us: grid.length_ns as f64 * 1e-3,
        flows: of(sent, &|slice| slice.payload_bytes as f64 * 8.0 * per_ns),
        quantities: vec![
            ("Marked packets (%)", 1, of(|flow| &flow.marks, &share)),
            (
                "CNPs and BECNs (1/ms)",
                1,
                of(back, &|slice| f64::from(slice.cnp + slice.becn) * per_ns * 1e6),
            ),
            (
                "Packets sent again (1/ms)",
                1,
                of(sent, &|slice| f64::from(slice.retransmitted) * per_ns * 1e6),
            ),
        ],
    }
}
