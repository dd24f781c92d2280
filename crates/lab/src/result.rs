//! What a whole experiment found out.

use crate::experiment::Experiment;
use crate::figures::History;
use crate::measure::{
    Answers, Asked, At, ChannelFigures, Estimate, RunFigures, RunView, Scope, Series, Varied, kinds,
};
use crate::prepare::Prepared;
use crate::verdict::Verdict;
use crate::waiting::WaitingRank;
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::{Picoseconds, PortNumber};
use clearlane_sim::{Ending, Totals};
use clearlane_workload::{Class, Rank};
use std::collections::BTreeMap;

/// What became of the run of the victims without the hot flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    /// Nobody asks for it: there are no hot flows or no victims.
    NotNeeded,
    /// It reached its end.
    Finished,
    /// It deadlocked: what it delivered is no yardstick.
    Deadlocked,
    /// It was interrupted or not started.
    Missing,
}

/// One seed of one variant.
#[derive(Debug)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// How the run ended.
    pub ending: Ending,
    /// True if it was stopped before its end.
    pub interrupted: bool,
    /// Simulated time.
    pub simulated: Picoseconds,
    /// Totals of the run.
    pub totals: Totals,
    /// By group: when the last rank of its program had ended; nothing without a program, or if that
    /// is not so.
    pub completions: Vec<Option<Picoseconds>>,
    /// What was measured.
    pub figures: RunFigures,
    /// What was asked of its record; nothing where that has no such figure.
    pub recorded: Vec<(Asked, Option<f64>)>,
    /// The hosts to which a mechanism opened more than one path, by rank.
    pub opened_to: Vec<Rank>,
    /// What happened over time; kept of a variant's first seed.
    pub history: Option<History>,
    /// Payload of the victims alone over that beside the hot flows, in the same part of the run:
    /// infinite if they are delivered nothing beside them; nothing without both sides.
    pub slowdown: Option<f64>,
    /// The same of the victims alone without congestion mechanisms, if the experiment asks for it.
    pub slowdown_uncontrolled: Option<f64>,
    /// Payload of the victims alone, Gb/s, in the measured part.
    pub alone_gbps: Option<f64>,
    /// The victims alone.
    pub alone: Alone,
}

/// All seeds of one variant.
#[derive(Debug)]
pub struct VariantResult {
    /// Name of the variant.
    pub name: String,
    /// Finished runs in the order of the seeds; none if the experiment was interrupted before.
    pub runs: Vec<SeedResult>,
    pub(crate) prepared: Prepared,
}

/// What an experiment found out.
#[derive(Debug)]
pub struct RunResult {
    /// The experiment as it was run.
    pub experiment: Experiment,
    /// The command line that makes the same results again.
    pub command: String,
    /// By variant, in the order of the experiment.
    pub variants: Vec<VariantResult>,
    /// What it says, where somebody has made that of it; on top of the report.
    pub verdict: Option<Verdict>,
}

impl SeedResult {
    /// Whether the network or the ranks of a program deadlocked.
    pub fn is_deadlock(&self) -> bool {
        matches!(self.ending, Ending::Deadlock(_) | Ending::RanksWait(_))
    }
}

impl VariantResult {
    /// What ranks of a run wait for that will never happen; empty if it did not end so.
    pub fn waiting(&self, run: &SeedResult) -> Vec<WaitingRank> {
        match &run.ending {
            Ending::RanksWait(stuck) => WaitingRank::all(stuck, &self.prepared),
            _ => Vec::new(),
        }
    }

    /// The transmitting and the receiving end of a channel; nothing for a port without a cable.
    pub(crate) fn channel_ends(&self, channel: &ChannelFigures) -> Option<(Endpoint, Endpoint)> {
        let port = PortNumber::new(channel.port)?;
        let from = Endpoint { node: NodeId(channel.node), port };
        Some((from, self.prepared.fabric.peer(from)?))
    }

    /// `leaf03[19] → spine01[4]`.
    pub(crate) fn channel_name(&self, channel: &ChannelFigures) -> Option<String> {
        let (from, to) = self.channel_ends(channel)?;
        let fabric = &self.prepared.fabric;
        Some(format!("{} → {}", fabric.describe(from), fabric.describe(to)))
    }

    /// The output of a switch that is busiest in the mean over the seeds, as `leaf03[19] →
    /// spine01[4]`; the first of equals. Nothing without a run that measured any.
    pub fn worst_link(&self) -> Option<String> {
        let mut busy: BTreeMap<(u32, u8), (f64, &ChannelFigures)> = BTreeMap::new();
        for channel in self.runs.iter().flat_map(|run| self.switch_channels(run)) {
            let place = (channel.node, channel.port);
            busy.entry(place).or_insert((0.0, channel)).0 += channel.load;
        }
        let most = busy.into_values().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        self.channel_name(most.1)
    }

    /// A run as measures see it.
    fn view<'a>(&'a self, run: &'a SeedResult) -> RunView<'a> {
        let Prepared { groups, hosts, fabric, .. } = &self.prepared;
        RunView {
            figures: &run.figures,
            groups,
            hosts,
            fabric,
            completions: &run.completions,
            ideals: &self.prepared,
            totals: &run.totals,
            slowdown: run.slowdown,
            slowdown_uncontrolled: run.slowdown_uncontrolled,
            alone_gbps: run.alone_gbps,
            recorded: &run.recorded,
            deadlocked: run.is_deadlock(),
            interrupted: run.interrupted,
        }
    }

    /// What its runs say to a measure of single runs, seed by seed.
    pub(crate) fn series(&self, asked: &Asked) -> Series {
        let one = |run: &SeedResult| {
            let (view, value) = (self.view(run), self.view(run).value(asked));
            let settled = view.is_settled(asked, value.is_some());
            ((run.seed, value), (settled, value.is_none() || view.is_steady(asked)))
        };
        let (values, states): (Vec<_>, Vec<(bool, bool)>) = self.runs.iter().map(one).unzip();
        Series {
            values,
            settled: states.iter().all(|(settled, _)| *settled),
            steady: states.iter().all(|(_, steady)| *steady),
            chosen: Vec::new(),
        }
    }

    /// The channels of a run that leave a switch.
    pub(crate) fn switch_channels<'a>(
        &'a self,
        run: &'a SeedResult,
    ) -> impl Iterator<Item = &'a ChannelFigures> + 'a {
        let nodes = self.prepared.fabric.nodes();
        let is_switch = |channel: &&ChannelFigures| {
            nodes.get(channel.node as usize).is_some_and(|node| node.is_switch())
        };
        run.figures.channels.iter().filter(is_switch)
    }
}

impl RunResult {
    /// What the runs say to a measure, of a variant.
    pub(crate) fn ask(&self, asked: &Asked, variant: &VariantResult) -> Option<Estimate> {
        asked.estimate(self, &At::of(&variant.name, self))
    }

    /// How many times slower the victims of a variant are than alone; nothing without victims, hot
    /// flows or a variant of this name.
    pub fn slowdown(&self, variant: &str) -> Option<Estimate> {
        let asked = Asked::scoped(&kinds::slowdown::ENTRY, Scope::All);
        self.ask(&asked, self.variant(Some(variant))?)
    }

    /// Payload that the victims of a variant are delivered beside the hot flows, Gb/s; nothing
    /// without victims or a variant of this name.
    pub fn victims_gbps(&self, variant: &str) -> Option<Estimate> {
        let victims = Scope::Class(Class::Victim);
        let asked = Asked::scoped(&kinds::accepted_gbps::ENTRY, victims);
        self.ask(&asked, self.variant(Some(variant))?)
    }

    /// The variant of this name, the first if none is given.
    pub(crate) fn variant(&self, name: Option<&str>) -> Option<&VariantResult> {
        match name {
            Some(name) => self.variants.iter().find(|variant| variant.name == name),
            None => self.variants.first(),
        }
    }
}

impl Answers for RunResult {
    fn varied(&self) -> &[Varied] {
        &[]
    }

    fn variants(&self) -> Vec<&str> {
        self.variants.iter().map(|variant| variant.name.as_str()).collect()
    }

    fn of_runs(&self, asked: &Asked, variant: &str, _: &[usize]) -> Option<Series> {
        Some(self.variants.iter().find(|known| known.name == variant)?.series(asked))
    }
}
