//! `summary.json`, schema `clearlane-summary/2`: every figure with its unit in its name.

use super::busiest::BusiestHosts;
use crate::experiment::{MechanismSpec, Variant};
use crate::fact::Fact;
use crate::headline::{ControlTotals, PublishedRow, headline};
use crate::measure::{Estimate, Figures, WarmUpFound};
use crate::remarks::NOT_MODELLED;
use crate::result::{RunResult, SeedResult, VariantResult};
use crate::status::Status;
use crate::verdict::Verdict;
use crate::waiting::WaitingRank;
use clearlane_sim::Ending;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema of the summary. Fields may be added under the same number; none changes or goes.
pub(crate) const SCHEMA: &str = "clearlane-summary/2";

#[derive(Serialize)]
pub(super) struct Summary<'a> {
    schema: &'static str,
    name: &'a str,
    summary: &'a str,
    version: &'static str,
    command: &'a str,
    status: Status,
    /// What it says in a few lines, where somebody has made that of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Verdict>,
    seeds: Vec<u64>,
    headline: BTreeMap<String, BTreeMap<String, Option<Estimate>>>,
    published: Vec<PublishedRow>,
    variants: Vec<VariantSummary<'a>>,
    /// Files that were left out because the command was interrupted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<&'static str>,
    oddities: Vec<String>,
    not_modelled: &'static [&'static str],
    experiment: toml::Table,
}

#[derive(Serialize)]
struct VariantSummary<'a> {
    name: &'a str,
    facts: &'a [Fact],
    parameters: Vec<ParameterSummary>,
    runs: Vec<RunSummary<'a>>,
}

#[derive(Serialize)]
struct ParameterSummary {
    name: String,
    value: toml::Value,
    source: String,
}

#[derive(Serialize)]
struct RunSummary<'a> {
    seed: u64,
    ending: &'static str,
    interrupted: bool,
    simulated_us: f64,
    deadlock: Option<DeadlockSummary>,
    /// What ranks wait for, of a run that ended so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_ranks: Vec<WaitingRank>,
    /// By traffic with a program: when its last rank had ended, µs; null if it had not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    completion_us: BTreeMap<&'a str, Option<f64>>,
    measured: &'a WarmUpFound,
    all: &'a Figures,
    classes: BTreeMap<&'static str, &'a Figures>,
    groups: BTreeMap<&'a str, &'a Figures>,
    victim_slowdown: Option<f64>,
    worst_link: Option<WorstSummary>,
    most_held_back_link: Option<WorstSummary>,
    busiest_hosts: BusiestHosts,
    totals: TotalsSummary,
}

#[derive(Serialize)]
struct WorstSummary {
    link: String,
    load: f64,
    wait: f64,
}

#[derive(Serialize)]
struct DeadlockSummary {
    found_at_us: f64,
    cycle: Vec<WaitingSummary>,
}

#[derive(Serialize)]
struct WaitingSummary {
    switch: String,
    port: u8,
    vl: u8,
    output: u8,
    output_vl: u8,
}

#[derive(Serialize)]
struct TotalsSummary {
    packet_hops: u64,
    ack_hops: u64,
    packets_injected: u64,
    packets_delivered: u64,
    acks_injected: u64,
    acks_delivered: u64,
    messages_posted: u64,
    messages_delivered: u64,
    /// Nothing without mechanisms.
    #[serde(flatten)]
    control: Option<ControlTotals>,
}

impl RunResult {
    /// The summary as one JSON document, ending in a line feed.
    pub fn to_json(&self) -> String {
        self.summary().text()
    }

    /// The summary, to be written when it is known what of the results is left out.
    pub(super) fn summary(&self) -> Summary<'_> {
        let table = headline(self);
        let keys: Vec<String> = table.columns.iter().map(|column| column.key.clone()).collect();
        let row = |(name, cells): (String, Vec<Option<Estimate>>)| {
            (name, keys.iter().cloned().zip(cells).collect())
        };
        let specs = self.experiment.variants.iter();
        Summary {
            schema: SCHEMA,
            name: &self.experiment.name,
            summary: &self.experiment.summary,
            version: env!("CARGO_PKG_VERSION"),
            command: &self.command,
            status: self.status(),
            verdict: self.verdict.as_ref(),
            seeds: self.experiment.plan.all_seeds().collect(),
            headline: table.rows.into_iter().map(row).collect(),
            published: self.published(),
            variants: specs
                .zip(&self.variants)
                .map(|(spec, result)| variant(spec, result))
                .collect(),
            left_out: Vec::new(),
            oddities: self.oddities(),
            not_modelled: NOT_MODELLED,
            experiment: self.experiment.resolved_table(),
        }
    }
}

impl Summary<'_> {
    /// Files are left out, which makes the result a partial one.
    pub(super) fn leave_out(&mut self, files: &[&'static str]) {
        if !files.is_empty() {
            self.left_out.extend_from_slice(files);
            self.status = Status::Partial;
        }
    }

    /// One JSON document, ending in a line feed.
    pub(super) fn text(&self) -> String {
        // Keys are strings and numbers finite or null, so nothing here can fail to be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn variant<'a>(spec: &'a Variant, variant: &'a VariantResult) -> VariantSummary<'a> {
    let devices = spec.devices.tagged().into_iter();
    let devices = devices.map(|(name, value, source)| (name.to_owned(), value, source));
    let control = spec.control.all().flat_map(MechanismSpec::tagged);
    let parameter = |(name, value, source)| ParameterSummary { name, value, source };
    VariantSummary {
        parameters: devices.chain(control).map(parameter).collect(),
        name: &variant.name,
        facts: &variant.prepared.facts,
        runs: variant.runs.iter().map(|run| one(variant, run)).collect(),
    }
}

fn one<'a>(variant: &'a VariantResult, run: &'a SeedResult) -> RunSummary<'a> {
    let names = variant.prepared.groups.iter().map(|group| group.name.as_str());
    let worst = |of: fn(&crate::measure::ChannelFigures) -> f64| {
        let channel =
            variant.switch_channels(run).reduce(|a, b| if of(b) > of(a) { b } else { a })?;
        let link = variant.channel_name(channel)?;
        Some(WorstSummary { link, load: channel.load, wait: channel.wait })
    };
    let t = &run.totals;
    RunSummary {
        seed: run.seed,
        ending: match &run.ending {
            Ending::Deadlock(_) => "deadlock",
            Ending::Drained => "drained",
            Ending::RanksWait(_) => "ranks wait",
            Ending::ProgramsEnded => "programs ended",
            Ending::TimeReached => "time reached",
        },
        interrupted: run.interrupted,
        simulated_us: run.simulated.as_microseconds(),
        deadlock: deadlock(&run.ending),
        waiting_ranks: variant.waiting(run),
        completion_us: completions(variant, run),
        measured: &run.figures.warm_up,
        all: &run.figures.all,
        classes: run.figures.classes.iter().map(|(class, f)| (class.name(), f)).collect(),
        groups: names.zip(&run.figures.groups).collect(),
        victim_slowdown: run.slowdown,
        worst_link: worst(|channel| channel.load),
        most_held_back_link: worst(|channel| channel.wait),
        busiest_hosts: BusiestHosts::of(variant, run),
        totals: TotalsSummary {
            packet_hops: t.packet_hops,
            ack_hops: t.ack_hops,
            packets_injected: t.packets_injected,
            packets_delivered: t.packets_delivered,
            acks_injected: t.acks_injected,
            acks_delivered: t.acks_delivered,
            messages_posted: t.messages_posted,
            messages_delivered: t.messages_delivered,
            control: ControlTotals::of(variant, run),
        },
    }
}

fn completions<'a>(variant: &'a VariantResult, run: &SeedResult) -> BTreeMap<&'a str, Option<f64>> {
    let groups = variant.prepared.groups.iter().zip(&run.completions);
    let programs = groups.filter(|(group, _)| group.program().is_some());
    programs
        .map(|(group, end)| (group.name.as_str(), end.map(|end| end.as_microseconds())))
        .collect()
}

fn deadlock(ending: &Ending) -> Option<DeadlockSummary> {
    let Ending::Deadlock(deadlock) = ending else { return None };
    let waiting = |buffer: &clearlane_sim::WaitingBuffer| WaitingSummary {
        switch: buffer.switch.clone(),
        port: buffer.port,
        vl: buffer.vl,
        output: buffer.output,
        output_vl: buffer.output_vl,
    };
    Some(DeadlockSummary {
        found_at_us: deadlock.found_at.as_microseconds(),
        cycle: deadlock.cycle.iter().map(waiting).collect(),
    })
}
