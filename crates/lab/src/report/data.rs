//! The data of the report page, schema `clearlane-report/1`; the contract is `web/src/data.ts`.

use super::control::{ControlData, control_data};
use super::curves::curves;
use super::excerpt::Excerpt;
use super::finding::{finding, why};
use super::layout::layout;
use super::link_series::link_series;
use super::map::Map;
use super::observed::{ObservedColumn, ObservedData, ObservedPage, ObservedRecord};
use super::over_time::{OverTime, over_time};
use super::paths::drawn;
use super::programs::{ProgramData, programs};
use super::suffering::SUFFERS_FROM;
use super::sweep::{SweepData, SweepPage};
use crate::experiment::Ends;
use crate::fact::Fact;
use crate::halt::{Deadline, LeftOut};
use crate::headline::{HeadlineColumn, headline};
use crate::measure::{ChannelFigures, Estimate, SeriesSlice};
use crate::remarks::NOT_MODELLED;
use crate::result::{RunResult, SeedResult, VariantResult};
use crate::status::Status;
use crate::waiting::WaitingRank;
use clearlane_fabric::{Fabric, NodeId};
use clearlane_sim::Ending;
use clearlane_workload::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many links the table of worst ones has.
const WORST: usize = 12;
/// How many ranks that wait a report names.
const WAITING: usize = 20;
/// How many single flows the charts of throughput offer.
const FLOWS_DRAWN: usize = 20;

#[derive(Serialize)]
pub(super) struct Report {
    schema: &'static str,
    title: String,
    summary: String,
    /// What it says in a few lines, where somebody has made that of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<crate::verdict::Verdict>,
    version: &'static str,
    command: String,
    seeds: Vec<u64>,
    status: Status,
    suffers_from: f64,
    headline: Headline,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramData>,
    published: Vec<PublishedRow>,
    facts: Vec<FactData>,
    oddities: Vec<String>,
    fabric: Option<FabricData>,
    variants: Vec<VariantData>,
    /// What is shown was observed and not run; nothing of experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<ObservedData>,
    sweep: Option<SweepData>,
    curves: Option<SweepData>,
    not_modelled: &'static [&'static str],
}

#[derive(Serialize)]
struct Headline {
    columns: Vec<ObservedColumn>,
    rows: Vec<HeadlineRow>,
}

#[derive(Serialize)]
struct HeadlineRow {
    variant: String,
    /// What is different in it, in one line; may be empty.
    summary: String,
    /// Seeds that had not settled when they ended.
    unsettled: Vec<u64>,
    cells: BTreeMap<String, Cell>,
}

#[derive(Serialize)]
struct Cell {
    value: Option<f64>,
    interval: Option<f64>,
    /// False if a longer run would tell more.
    converged: bool,
    /// False if no run would.
    steady: bool,
}

#[derive(Serialize)]
struct PublishedRow {
    name: String,
    published: Option<String>,
    obtained: String,
    unit: String,
    note: String,
}

#[derive(Serialize)]
struct FactData {
    label: String,
    value: String,
    /// Those it is true of; empty if it is true of all.
    variants: Vec<String>,
}

#[derive(Serialize)]
struct FabricData {
    structure: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dims: Option<Vec<u32>>,
    /// Names of the groups of switches it is drawn by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    nodes: Vec<NodeData>,
    links: Vec<LinkData>,
}

#[derive(Serialize)]
struct NodeData {
    name: String,
    kind: &'static str,
    x: f64,
    y: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
}

#[derive(Serialize)]
struct LinkData {
    a: u32,
    b: u32,
    gbps: f64,
    name: String,
}

#[derive(Serialize)]
struct VariantData {
    name: String,
    /// The seed whose time series and flows are shown; nothing if it was not run.
    seed: Option<u64>,
    links: LinkLoads,
    hosts_hot: Vec<u32>,
    series: SeriesSet,
    worst_links: Vec<WorstLink>,
    deadlock: Option<Vec<DeadlockHop>>,
    /// Ranks that wait for what will never happen, the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingRank>,
    /// How many there are.
    #[serde(skip_serializing_if = "is_zero")]
    waiting_all: usize,
    over_time: Option<OverTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<ControlData>,
}

#[derive(Serialize, Default)]
struct LinkLoads {
    forward: Vec<f64>,
    backward: Vec<f64>,
    wait_forward: Vec<f64>,
    wait_backward: Vec<f64>,
}

#[derive(Serialize)]
struct SeriesSet {
    dt_us: f64,
    start_us: f64,
    groups: Vec<Series>,
    flows: Vec<Series>,
    /// Links between switches, a line for each quarter of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<Series>,
}

#[derive(Serialize)]
pub(super) struct Series {
    name: String,
    class: &'static str,
    gbps: Vec<f64>,
}

impl Series {
    /// A line of links, which are of no class, still without its samples.
    pub(super) fn of_links(name: &str, samples: usize) -> Self {
        let class = Class::Background.name();
        Series { name: name.to_owned(), class, gbps: Vec::with_capacity(samples) }
    }

    /// A line of these samples, Gb/s.
    pub(super) fn of(name: &str, class: &'static str, gbps: Vec<f64>) -> Self {
        Series { name: name.to_owned(), class, gbps }
    }

    /// Adds a sample, Gb/s.
    pub(super) fn push(&mut self, gbps: f64) {
        self.gbps.push((gbps * 1e4).round() / 1e4);
    }
}

#[derive(Serialize)]
struct WorstLink {
    link: usize,
    direction: &'static str,
    load: f64,
    wait: f64,
    why: String,
}

#[derive(Serialize)]
struct DeadlockHop {
    switch: String,
    port: u8,
    vl: u8,
}

/// The report of a result. The map is that of the first variant's fabric.
pub(super) fn report(result: &RunResult, deadline: &Deadline) -> Result<Report, LeftOut> {
    let experiment = &result.experiment;
    let title = match experiment.summary.is_empty() {
        true => experiment.name.clone(),
        false => format!("{}: {}", experiment.name, experiment.summary),
    };
    let mut oddities = result.oddities();
    let first = result.variants.first().map(|variant| &variant.prepared.fabric);
    let drawn = Excerpt::of(result);
    let map = Map::new(&drawn.fabric);
    oddities.extend(drawn.note.clone());
    for variant in result.variants.iter().skip(1) {
        if first.is_some_and(|first| *first != variant.prepared.fabric) {
            oddities.push(format!(
                "{}: its cables differ; the map shows those it shares with {}",
                variant.name, result.variants[0].name
            ));
        }
    }
    deadline.go_on()?;
    let fabric = fabric_data(result, map.fabric);
    let mut variants = Vec::new();
    for one in &result.variants {
        deadline.go_on()?;
        variants.push(variant(result, one, &map, drawn.is_whole()));
    }
    deadline.go_on()?;
    Ok(Report {
        schema: "clearlane-report/1",
        title,
        summary: finding(result),
        verdict: result.verdict.clone(),
        version: env!("CARGO_PKG_VERSION"),
        command: result.command.clone(),
        seeds: experiment.plan.all_seeds().collect(),
        status: result.status(),
        suffers_from: SUFFERS_FROM,
        headline: headline_data(result),
        programs: programs(result),
        published: published(result.published()),
        facts: facts(result),
        oddities,
        fabric: Some(fabric),
        observed: None,
        sweep: None,
        curves: curves(result),
        variants,
        not_modelled: NOT_MODELLED,
    })
}

/// The report of a sweep: no fabric is drawn, the reports of single points do that.
pub(super) fn sweep_report(page: &SweepPage) -> Report {
    Report {
        schema: "clearlane-report/1",
        title: page.title.clone(),
        summary: page.summary.clone(),
        verdict: None,
        version: env!("CARGO_PKG_VERSION"),
        command: page.command.clone(),
        seeds: page.seeds.clone(),
        status: page.status,
        suffers_from: SUFFERS_FROM,
        headline: Headline { columns: Vec::new(), rows: Vec::new() },
        programs: Vec::new(),
        published: published(page.published.clone()),
        facts: page.facts.iter().map(|fact| fact_data(fact.clone(), Vec::new())).collect(),
        oddities: page.oddities.clone(),
        fabric: None,
        observed: None,
        variants: Vec::new(),
        sweep: Some(page.data.clone()),
        curves: None,
        not_modelled: NOT_MODELLED,
    }
}

/// The page of what was observed: no fabric is known, and nothing is left out by a model.
pub(super) fn observed_report(page: &ObservedPage) -> Report {
    let rows = page.rows.iter().map(|row| {
        let cell = |value: &Option<f64>| Cell {
            value: *value,
            interval: None,
            converged: true,
            steady: true,
        };
        let keys = page.columns.iter().map(|column| column.key.clone());
        HeadlineRow {
            variant: row.name.clone(),
            summary: row.summary.clone(),
            unsettled: Vec::new(),
            cells: keys.zip(row.values.iter().map(cell)).collect(),
        }
    });
    Report {
        schema: "clearlane-report/1",
        title: page.title.clone(),
        summary: page.summary.clone(),
        verdict: page.verdict.clone(),
        version: env!("CARGO_PKG_VERSION"),
        command: page.command.clone(),
        seeds: Vec::new(),
        status: ObservedPage::STATUS,
        suffers_from: SUFFERS_FROM,
        headline: Headline { columns: page.columns.clone(), rows: rows.collect() },
        programs: Vec::new(),
        published: Vec::new(),
        facts: page.facts.iter().map(|fact| fact_data(fact.clone(), Vec::new())).collect(),
        oddities: page.oddities.clone(),
        fabric: None,
        observed: Some(page.data()),
        variants: page.records.iter().map(record).collect(),
        sweep: None,
        curves: None,
        not_modelled: &[],
    }
}

/// A record of flows as what a variant is: nothing but its series.
fn record(record: &ObservedRecord) -> VariantData {
    let (groups, links) = Default::default();
    VariantData {
        name: record.name.clone(),
        seed: None,
        links: LinkLoads::default(),
        hosts_hot: Vec::new(),
        series: SeriesSet {
            dt_us: record.slice_us,
            start_us: 0.0,
            groups,
            flows: record.lines(),
            links,
        },
        worst_links: Vec::new(),
        deadlock: None,
        waiting: Vec::new(),
        waiting_all: 0,
        over_time: None,
        control: record.control(),
    }
}

fn headline_data(result: &RunResult) -> Headline {
    let table = headline(result);
    let keys: Vec<String> = table.columns.iter().map(|column| column.key.clone()).collect();
    let cell = |estimate: Option<Estimate>| Cell {
        value: estimate.map(|estimate| estimate.mean),
        interval: estimate.and_then(|estimate| estimate.half_width),
        converged: !estimate.is_some_and(|estimate| estimate.is_changing()),
        steady: estimate.is_none_or(|estimate| estimate.steady),
    };
    let unsettled = |name: &str| {
        let same = result.variants.iter().filter(|variant| variant.name == name);
        let runs = same.flat_map(|variant| &variant.runs);
        runs.filter(|run| !run.figures.warm_up.converged).map(|run| run.seed).collect()
    };
    let summary = |name: &str| {
        let spec = result.experiment.variants.iter().find(|spec| spec.name == name);
        spec.map_or(String::new(), |spec| spec.summary.clone())
    };
    let row = |(variant, cells): (String, Vec<Option<Estimate>>)| HeadlineRow {
        unsettled: unsettled(&variant),
        summary: summary(&variant),
        variant,
        cells: keys.iter().cloned().zip(cells.into_iter().map(cell)).collect(),
    };
    let columns = table.columns.into_iter().map(column).collect();
    Headline { columns, rows: table.rows.into_iter().map(row).collect() }
}

fn column(column: HeadlineColumn) -> ObservedColumn {
    let HeadlineColumn { key, label, unit, better, explained, .. } = column;
    ObservedColumn { key, label, unit, better, explained }
}

fn published(rows: Vec<crate::headline::PublishedRow>) -> Vec<PublishedRow> {
    let row = |row: crate::headline::PublishedRow| PublishedRow {
        obtained: row.obtained_text(),
        note: row.remarks(),
        name: row.name,
        published: row.published,
        unit: row.unit,
    };
    rows.into_iter().map(row).collect()
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn fact_data(fact: Fact, variants: Vec<String>) -> FactData {
    FactData { label: fact.label, value: fact.value, variants }
}

/// Facts in the order they are found in, those of one label together; what variants do not share
/// is said once for all that have it.
fn facts(result: &RunResult) -> Vec<FactData> {
    let mut labels: Vec<String> = Vec::new();
    let mut found: Vec<(Fact, Vec<String>)> = Vec::new();
    let mut add = |fact: Fact, variant: &str| {
        if !labels.contains(&fact.label) {
            labels.push(fact.label.clone());
        }
        match found.iter_mut().find(|(known, _)| *known == fact) {
            Some((_, variants)) => variants.push(variant.to_owned()),
            None => found.push((fact, vec![variant.to_owned()])),
        }
    };
    let made = |label: &str, value: String| Fact { label: label.to_owned(), value };
    let duration = result.experiment.plan.duration.exact();
    for variant in &result.variants {
        for fact in &variant.prepared.facts {
            add(fact.clone(), &variant.name);
        }
        let time = match result.experiment.plan.ends {
            Ends::Duration => duration.clone(),
            Ends::Programs => format!("to the end of the programs, {duration} at most"),
        };
        add(made("simulated time", time), &variant.name);
        let parts = variant.runs.iter().map(|run| {
            let part = &run.figures.warm_up;
            format!("{:.0}–{:.0} µs", part.from_us, part.to_us)
        });
        let mut parts: Vec<String> = parts.collect();
        parts.dedup();
        add(made("measured", parts.join(", ")), &variant.name);
    }
    let place = |fact: &Fact| labels.iter().position(|label| *label == fact.label);
    found.sort_by_key(|(fact, _)| place(fact));
    let all = result.variants.len();
    let data = |(fact, variants): (Fact, Vec<String>)| match variants.len() == all {
        true => fact_data(fact, Vec::new()),
        false => fact_data(fact, variants),
    };
    found.into_iter().map(data).collect()
}

fn fabric_data(result: &RunResult, fabric: &Fabric) -> FabricData {
    let layout = layout(fabric);
    let node = |(node, (x, y, level)): (&clearlane_fabric::Node, &(f64, f64, Option<u32>))| {
        let kind = if node.is_switch() { "switch" } else { "host" };
        NodeData { name: node.name.clone(), kind, x: *x, y: *y, level: *level, group: None }
    };
    let mut nodes: Vec<NodeData> = fabric.nodes().iter().zip(&layout.places).map(node).collect();
    for (index, group) in layout.groups.iter().enumerate() {
        for id in &group.switches {
            nodes[id.index()].group = Some(index);
        }
    }
    let forced = result.variants.first().and_then(|v| v.prepared.parameters.link_rate);
    let link = |link: &clearlane_fabric::Link| LinkData {
        a: link.a.node.0,
        b: link.b.node.0,
        gbps: forced.unwrap_or(link.rate().bits_per_second()).as_gigabits(),
        name: format!("{} – {}", fabric.describe(link.a), fabric.describe(link.b)),
    };
    FabricData {
        structure: layout.structure,
        levels: layout.levels,
        dims: layout.dims,
        groups: layout.groups.into_iter().map(|group| group.name).collect(),
        nodes,
        links: fabric.links().iter().map(link).collect(),
    }
}

/// `whole` if the map has all of the fabric: what happens over time is not known of a part.
fn variant(result: &RunResult, variant: &VariantResult, map: &Map<'_>, whole: bool) -> VariantData {
    let fabric = &variant.prepared.fabric;
    let zeros = || vec![0.0; map.fabric.links().len()];
    let mut links = LinkLoads {
        forward: zeros(),
        backward: zeros(),
        wait_forward: zeros(),
        wait_backward: zeros(),
    };
    let mut worst: Vec<(ChannelFigures, usize, bool)> = Vec::new();
    for channel in mean_channels(variant) {
        let Some((position, forward)) = map.link(variant, &channel) else { continue };
        let (loads, waits) = match forward {
            true => (&mut links.forward, &mut links.wait_forward),
            false => (&mut links.backward, &mut links.wait_backward),
        };
        // Rounding of slices may carry a hair beyond the whole.
        loads[position] = channel.load.min(1.0);
        waits[position] = channel.wait.min(1.0);
        let switch = fabric.nodes().get(channel.node as usize).is_some_and(|n| n.is_switch());
        if switch && channel.load + channel.wait > 0.0 {
            worst.push((channel, position, forward));
        }
    }
    // A link is taken as long as it sends or waits; among full ones, the more blocked is worse.
    let key = |c: &ChannelFigures| ((c.load + c.wait).min(0.99), c.wait);
    worst.sort_by(|(a, i, _), (b, j, _)| {
        let ((a, a_wait), (b, b_wait)) = (key(a), key(b));
        b.total_cmp(&a).then(b_wait.total_cmp(&a_wait)).then(i.cmp(j))
    });
    worst.truncate(WORST);
    let row = |(channel, link, forward): (ChannelFigures, usize, bool)| WorstLink {
        link,
        direction: if forward { "forward" } else { "backward" },
        load: channel.load.min(1.0),
        wait: channel.wait.min(1.0),
        why: why(variant, &channel),
    };
    let waiting = variant.runs.iter().map(|run| variant.waiting(run)).find(|all| !all.is_empty());
    let waiting = waiting.unwrap_or_default();
    VariantData {
        name: variant.name.clone(),
        seed: variant.runs.first().map(|run| run.seed),
        links,
        hosts_hot: hosts_hot(variant, map),
        series: series(variant),
        worst_links: worst.into_iter().map(row).collect(),
        deadlock: variant.runs.iter().find_map(deadlock),
        waiting_all: waiting.len(),
        waiting: waiting.into_iter().take(WAITING).collect(),
        over_time: whole.then(|| over_time(variant, map, result.variants.len())).flatten(),
        control: control_data(variant),
    }
}

/// Loads and waits as means over the seeds; counters of the first.
pub(super) fn mean_channels(variant: &VariantResult) -> Vec<ChannelFigures> {
    let Some(first) = variant.runs.first() else { return Vec::new() };
    let mut means = first.figures.channels.clone();
    for (position, mean) in means.iter_mut().enumerate() {
        let of = |value: fn(&ChannelFigures) -> f64| {
            let values = variant.runs.iter().filter_map(|run| run.figures.channels.get(position));
            values.map(value).sum::<f64>() / variant.runs.len() as f64
        };
        (mean.load, mean.wait) = (of(|channel| channel.load), of(|channel| channel.wait));
    }
    means
}

fn hosts_hot(variant: &VariantResult, map: &Map<'_>) -> Vec<u32> {
    let hot = hot_receivers(variant).into_iter();
    hot.filter_map(|node| map.node(variant, NodeId(node))).collect()
}

/// The nodes that the hot groups send to, where they are few: drawn as the senders draw them.
pub(super) fn hot_receivers(variant: &VariantResult) -> Vec<u32> {
    const SHARE_MIN: u64 = 32;
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = 0;
    for group in variant.prepared.groups.iter().filter(|group| group.class == Class::Hot) {
        for ((_, to), count) in drawn(group, "hot receivers") {
            *counts.entry(to.0).or_insert(0) += count;
            all += count;
        }
    }
    let hot = counts.into_iter().filter(|(_, count)| *count * SHARE_MIN >= all);
    let ends = variant.prepared.hosts.ends();
    hot.filter_map(|(rank, _)| Some(ends.get(rank as usize)?.node.0)).collect()
}

/// Throughput over time of the first seed.
fn series(variant: &VariantResult) -> SeriesSet {
    let Some(run) = variant.runs.first() else {
        let (groups, flows, links) = Default::default();
        return SeriesSet { dt_us: 1.0, start_us: 0.0, groups, flows, links };
    };
    let slices = run.figures.slices;
    let dt_us = slices.length.as_microseconds();
    let gbps = |slice: usize, bytes: u64| {
        let us = slices.length_of(slice).as_microseconds();
        if us > 0.0 { (bytes as f64 * 8e-3 / us * 1e4).round() / 1e4 } else { 0.0 }
    };
    // Slices that were not simulated are no zeros.
    let whole = slices.count(run.simulated);
    let groups = variant.prepared.groups.iter().zip(&run.figures.series);
    let ranks = variant.prepared.hosts.ranks();
    let group = |(group, slices): (&clearlane_workload::FlowGroup, &Vec<_>)| Series {
        name: group.name.clone(),
        class: group.class.name(),
        gbps: slices
            .iter()
            .take(whole)
            .enumerate()
            .map(|(index, slice): (usize, &SeriesSlice)| gbps(index, slice.delivered_payload_bytes))
            .collect(),
    };
    let flow = |index: usize| {
        let flow = run.figures.flows.get(index)?;
        let group = variant.prepared.groups.get(flow.group)?;
        let slices = run.history.as_ref()?.flow_bytes.get(index)?;
        Some(Series {
            name: format!("{} → {}", ranks.name(flow.source), ranks.name(flow.destination)),
            class: group.class.name(),
            gbps: slices.iter().take(whole).enumerate().map(|(i, b)| gbps(i, *b)).collect(),
        })
    };
    SeriesSet {
        dt_us,
        start_us: 0.0,
        groups: groups.map(group).collect(),
        flows: largest(run).into_iter().filter_map(flow).collect(),
        links: run.history.as_ref().map_or(Vec::new(), |h| link_series(variant, run, h, whole)),
    }
}

/// The flows that delivered most, in the order of the run's.
fn largest(run: &SeedResult) -> Vec<usize> {
    let flows = &run.figures.flows;
    let mut largest: Vec<usize> = (0..flows.len()).collect();
    largest.sort_by_key(|index| (std::cmp::Reverse(flows[*index].payload_bytes), *index));
    largest.truncate(FLOWS_DRAWN);
    largest.sort_unstable();
    largest
}

fn deadlock(run: &SeedResult) -> Option<Vec<DeadlockHop>> {
    let Ending::Deadlock(deadlock) = &run.ending else { return None };
    let hop = |buffer: &clearlane_sim::WaitingBuffer| DeadlockHop {
        switch: buffer.switch.clone(),
        port: buffer.port,
        vl: buffer.vl,
    };
    Some(deadlock.cycle.iter().map(hop).collect())
}
