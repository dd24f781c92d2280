//! What people see of a run: a table, remarks, and the report's page.

use super::measured::{Measured, MeasuredFlow, MeasuredHost};
use crate::agent::STOPPED_BY;
use clearlane_lab::{
    Align, Fact, HostPlan, ObservedColumn, ObservedLine, ObservedPage, ObservedRecord, ObservedRow,
    Table, grouped,
};

/// Flows in the page's table, and flows that are drawn.
const ROWS_MAX: usize = 48;
const DRAWN_MAX: usize = 20;

/// From which part of a policy's rate on a flow is said to be held to it: others may share it.
const HELD_FROM: f64 = 0.1;

/// A column of the tables, and its value.
struct Shown {
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    explained: &'static str,
    value: fn(&Measured, &MeasuredFlow) -> Option<f64>,
}

const SHOWN: &[Shown] = &[
    Shown {
        key: "rate",
        label: "Rate",
        unit: "Gb/s",
        explained: "bytes received in the measured part, in which all flows may send",
        value: |measured, flow| Some(measured.measured_bps(flow)? * 1e-9),
    },
    Shown {
        key: "share",
        label: "Share",
        unit: "%",
        explained: "of all that was received in the measured part",
        value: |measured, flow| Some(measured.share(flow)? * 100.0),
    },
    Shown {
        key: "sent",
        label: "Sent",
        unit: "packets",
        explained: "packets written by the sender in the whole run",
        value: |_, flow| Some(flow.sent as f64),
    },
    Shown {
        key: "lost",
        label: "Not received",
        unit: "packets",
        explained: "packets sent whose header the receiver never had",
        value: |_, flow| flow.is_known().then(|| flow.lost() as f64),
    },
    Shown {
        key: "latency_p50",
        label: "Latency p50",
        unit: "ms",
        explained: "from the sender's write to the receiver's read, of half of the packets or less",
        value: |_, flow| quantile(flow, 0.5),
    },
    Shown {
        key: "latency_p99",
        label: "p99",
        unit: "ms",
        explained: "the same of 99 % of the packets",
        value: |_, flow| quantile(flow, 0.99),
    },
];

fn quantile(flow: &MeasuredFlow, quantile: f64) -> Option<f64> {
    let latency = &flow.latency;
    (!latency.is_empty()).then(|| latency.value_at_quantile(quantile) as f64 * 1e-6)
}

fn name(flow: &MeasuredFlow) -> String {
    format!("{} → {}", flow.source, flow.destination)
}

/// The table of flows for a terminal, at most so many; how many are left out.
pub fn table(measured: &Measured, rows_max: usize) -> (Table, usize) {
    let mut table = Table::new([("flow", "", Align::Left)]);
    for shown in SHOWN {
        table.columns.push(clearlane_lab::Column {
            label: shown.label.to_lowercase(),
            unit: shown.unit.into(),
            align: Align::Right,
        });
    }
    let bound_ms = measured.bound_ns() as f64 * 1e-6;
    for flow in measured.flows.iter().take(rows_max) {
        let mut row = vec![name(flow)];
        row.extend(SHOWN.iter().map(|shown| match (shown.value)(measured, flow) {
            None => "-".into(),
            Some(value) if shown.unit == "packets" => grouped(value as u64),
            Some(value) if shown.unit == "%" => format!("{value:.1}"),
            Some(value) if shown.unit == "ms" && value < bound_ms => format!("< {bound_ms:.3}"),
            Some(value) => format!("{value:.3}"),
        }));
        table.rows.push(row);
    }
    (table, measured.flows.len().saturating_sub(rows_max))
}

/// The answer in one line: all flows together, and how fair they were.
pub fn finding(measured: &Measured) -> String {
    let known = measured.known().count();
    let flows = match (known, measured.flows.len()) {
        (1, 1) => "1 flow".to_owned(),
        (known, all) if known < all => format!("{known} of {all} flows"),
        (_, all) => format!("{all} flows"),
    };
    let whole = match measured.partial {
        true if measured.hosts.iter().any(|host| !host.missing.is_empty()) => "incomplete: ",
        true => "stopped before its time: ",
        false => "",
    };
    if known == 0 {
        return format!("{whole}{flows}: what was received is not known, its logs are missing");
    }
    let (Some(total), Some(jain)) = (measured.total_bps(), measured.jain()) else {
        let may = if measured.partial { "could" } else { "may" };
        return format!("{whole}{flows}; there is no time in which all of them {may} send");
    };
    let total = total * 1e-9;
    let fair = match known {
        1 => String::new(),
        _ => format!(", Jain {jain:.3}"),
    };
    format!("{whole}{flows} received {total:.3} Gb/s{fair}")
}

/// What a reader should know, one sentence each.
pub fn remarks(plan: &HostPlan, measured: &Measured) -> Vec<String> {
    let mut remarks = Vec::new();
    // What ended one agent's part, the controller ends everywhere.
    let is_cause =
        |host: &&MeasuredHost| !host.stopped.is_empty() && !host.stopped.starts_with(STOPPED_BY);
    let has_cause = measured.hosts.iter().any(|host| is_cause(&host));
    let told = |host: &&MeasuredHost| match has_cause {
        true => is_cause(host),
        false => !host.stopped.is_empty(),
    };
    for host in measured.hosts.iter().filter(told) {
        remarks.push(format!("agent {} stopped: {}", host.name, host.stopped));
    }
    for host in measured.hosts.iter().filter(|host| !host.missing.is_empty()) {
        remarks.push(format!("logs of agent {} are missing: {}", host.name, host.missing));
    }
    let unknown: u64 = measured.flows.iter().map(|flow| flow.unknown).sum();
    if unknown > 0 {
        let many = grouped(unknown);
        remarks.push(format!(
            "of {many} packets sent it is not known whether they were received: that log is missing"
        ));
    }
    if measured.unkept > 0 {
        let many = grouped(measured.unkept);
        remarks.push(format!("{many} records of packets were noted and are in no log"));
    }
    if measured.lost() > 0 {
        let lost = grouped(measured.lost());
        remarks.push(format!("{lost} packets were sent and not received"));
    }
    let unlogged: u64 = measured.flows.iter().map(|flow| flow.unlogged).sum();
    if unlogged > 0 {
        let many = grouped(unlogged);
        remarks.push(format!("{many} packets were received whose sending was not logged"));
    }
    for flow in &measured.flows {
        // A limit far above what was sent has held nothing.
        let near = |bps: &u64| flow.rate_bps().is_some_and(|rate| rate > HELD_FROM * *bps as f64);
        if let Some(bps) = flow.held_to_bps.filter(near) {
            let gbps = bps as f64 * 1e-9;
            remarks.push(format!(
                "{}: the sender's policy holds all it sends there, headers with it, to {gbps:.3} \
                 Gb/s",
                name(flow)
            ));
        }
    }
    let bound_ms = measured.bound_ns() as f64 * 1e-6;
    let short = |flow: &MeasuredFlow| quantile(flow, 0.5).is_some_and(|p50| p50 < bound_ms);
    if measured.flows.iter().any(short) {
        remarks.push(format!(
            "latencies below {bound_ms:.3} ms say nothing: clocks of two hosts are known to within \
             that"
        ));
    }
    remarks.push(format!(
        "a packet is one write of {} B; it is received when its header has been read",
        grouped(measured.packet_bytes.into())
    ));
    if !plan.control.is_empty() {
        remarks.push(
            "mechanisms hear acknowledgements of the receiving agent; no switch marks for them"
                .into(),
        );
    }
    remarks
}

fn facts(plan: &HostPlan, measured: &Measured) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact { label: label.into(), value };
    let seconds = |ns: u64| format!("{} s", ns as f64 * 1e-9);
    let hosts: Vec<&str> = measured.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut facts = vec![
        fact("plan", format!("{}, variant {}", plan.name, plan.variant)),
        fact("agents", hosts.join(", ")),
        fact(
            "clocks",
            format!("of two hosts known to within {:.1} us", measured.bound_ns() as f64 * 1e-3),
        ),
    ];
    if let Some((from, to)) = measured.window_ns {
        facts.push(fact("measured part", format!("{} to {}", seconds(from), seconds(to))));
    }
    if measured.flows.len() > ROWS_MAX {
        let all = measured.flows.len();
        facts
            .push(fact("flows", format!("{ROWS_MAX} of {all} in the table; traffic.json has all")));
    }
    facts
}

/// The page.
pub fn page(plan: &HostPlan, measured: &Measured, command: &str) -> ObservedPage {
    let column = |shown: &Shown| ObservedColumn {
        key: shown.key.into(),
        label: shown.label,
        unit: shown.unit,
        better: None,
        explained: shown.explained,
    };
    let row = |flow: &MeasuredFlow| ObservedRow {
        name: name(flow),
        summary: flow.group.clone(),
        values: SHOWN.iter().map(|shown| (shown.value)(measured, flow)).collect(),
    };
    let line = |flow: &MeasuredFlow| ObservedLine {
        name: name(flow),
        class: flow.class.name(),
        values: flow
            .slices
            .iter()
            .map(|bytes| *bytes as f64 * 8.0 / measured.slice_ns as f64)
            .collect(),
    };
    ObservedPage {
        title: format!("{}: measured on hosts", plan.name),
        summary: finding(measured),
        verdict: None,
        command: command.into(),
        repeats: false,
        row: "Flow",
        columns: SHOWN.iter().map(column).collect(),
        rows: measured.flows.iter().take(ROWS_MAX).map(row).collect(),
        facts: facts(plan, measured),
        oddities: remarks(plan, measured),
        records: vec![ObservedRecord {
            name: "received".into(),
            slice_us: measured.slice_ns as f64 * 1e-3,
            flows: measured.flows.iter().take(DRAWN_MAX).map(line).collect(),
            quantities: Vec::new(),
        }],
    }
}
