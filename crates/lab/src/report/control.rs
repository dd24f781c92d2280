//! What congestion mechanisms did over time, of the flows that were notified most: the charts of
//! the section "Congestion control".

use crate::result::VariantResult;
use clearlane_sim::FlowControl;
use serde::Serialize;

/// How many flows of a variant are drawn.
const FLOWS_DRAWN: usize = 8;

/// The mechanisms of a variant in its first seed.
#[derive(Serialize)]
pub(super) struct ControlData {
    /// What the mechanisms are called, those that decide when first.
    pub(super) mechanisms: Vec<&'static str>,
    pub(super) quantities: Vec<Quantity>,
}

/// One chart.
#[derive(Serialize)]
pub(super) struct Quantity {
    /// Name with its unit.
    pub(super) name: &'static str,
    /// How many digits behind the point say something.
    pub(super) decimals: u8,
    pub(super) lines: Vec<Line>,
}

/// One line, a value per slice.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) values: Vec<f64>,
}

/// Nothing without mechanisms or without a run.
pub(super) fn control_data(variant: &VariantResult) -> Option<ControlData> {
    let mechanisms = variant.prepared.control.names();
    let run = variant.runs.first().filter(|_| !mechanisms.is_empty())?;
    let flows = run.history.as_ref().map_or(Vec::new(), |h| h.most_notified(FLOWS_DRAWN));
    let slices = run.figures.slices;
    let simulated = slices.count(run.simulated);
    let line = |flow: &FlowControl, values: &mut dyn Iterator<Item = f64>| Line {
        name: name(variant, &flows, flow),
        class: variant.prepared.groups.get(usize::from(flow.group)).map_or("", |g| g.class.name()),
        values: values.take(simulated).collect(),
    };
    // Four digits are more than a chart shows.
    let rate = |(slice, becns): (usize, &u32)| match slices.length_of(slice).as_microseconds() {
        0.0 => 0.0,
        us => (f64::from(*becns) * 1e4 / us).round() / 10.0,
    };
    let becns = |flow: &&FlowControl| line(flow, &mut flow.becns.iter().enumerate().map(rate));
    let becns = flows.iter().map(becns);
    let becns = Quantity { name: "BECNs (1/ms)", decimals: 1, lines: becns.collect() };
    let mut quantities = vec![becns];
    for (probe, flow) in flows.iter().flat_map(|flow| flow.probes.iter().map(move |p| (p, flow))) {
        let line = line(flow, &mut probe.1.iter().map(|value| *value as f64));
        match quantities.iter_mut().find(|quantity| quantity.name == probe.0) {
            Some(quantity) => quantity.lines.push(line),
            None => {
                quantities.push(Quantity { name: probe.0, decimals: 0, lines: vec![line] });
            }
        }
    }
    Some(ControlData { mechanisms, quantities })
}

/// `H1 → H4`, with the path and the group where several flows would be called so.
fn name(variant: &VariantResult, flows: &[&FlowControl], flow: &FlowControl) -> String {
    let ranks = variant.prepared.hosts.ranks();
    let same = |other: &&&FlowControl| {
        (other.source, other.destination) == (flow.source, flow.destination)
    };
    let mut name = format!("{} → {}", ranks.name(flow.source), ranks.name(flow.destination));
    if flows.iter().filter(same).any(|other| other.group != flow.group) {
        let group = variant.prepared.groups.get(usize::from(flow.group));
        name.push_str(&group.map_or(String::new(), |group| format!(" ({})", group.name)));
    }
    if flows.iter().any(|other| other.path != 0) {
        name.push_str(&format!(", path {}", flow.path));
    }
    name
}
