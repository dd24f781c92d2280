//! What a whole experiment found out.

use crate::alone::Alone;
use crate::experiment::{Ends, Experiment, Plan, Published};
use crate::figures::History;
use crate::measure::{
    Answers, Asked, At, ChannelFigures, Estimate, Figures, HELD_BACK, RunFigures, RunView, Series,
    Varied,
};
use crate::prepare::Prepared;
use crate::results::headline;
use crate::table::significant;
use crate::waiting::WaitingRank;
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::{Picoseconds, PortNumber};
use clearlane_sim::{Ending, Totals};
use clearlane_workload::{Class, Rank};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an experiment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// All runs reached their end and settled.
    #[serde(rename = "complete")]
    Complete,
    /// Interrupted: what was finished is there.
    #[serde(rename = "partial")]
    Partial,
    /// A run ended in a deadlock: of the simulated network, or of ranks that wait for each other.
    #[serde(rename = "deadlock")]
    Deadlock,
    /// A run that was to end with its programs came to its limit, `run.duration`, before; or a
    /// program had ended with some seeds only.
    #[serde(rename = "not ended")]
    NotEnded,
    /// A figure of the headline was still changing when a run ended, or a run was over before its
    /// warm-up.
    #[serde(rename = "not converged")]
    NotConverged,
}

impl Status {
    /// The one that says most of a whole: partial, deadlock, not ended, not converged.
    pub(crate) fn worst(all: impl IntoIterator<Item = Status>) -> Status {
        const ORDER: [Status; 4] =
            [Status::Partial, Status::Deadlock, Status::NotEnded, Status::NotConverged];
        let all: Vec<Status> = all.into_iter().collect();
        ORDER.into_iter().find(|status| all.contains(status)).unwrap_or(Status::Complete)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Complete => "complete",
            Status::Partial => "partial",
            Status::Deadlock => "deadlock",
            Status::NotEnded => "not ended",
            Status::NotConverged => "not converged",
        })
    }
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

/// A published number beside what was obtained.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedRow {
    /// What the row is called.
    pub name: String,
    /// As the source prints it.
    pub published: Option<String>,
    /// What the runs gave.
    pub obtained: Option<Estimate>,
    /// Unit of both.
    pub unit: String,
    /// Where it is published and why the two differ.
    pub note: String,
    /// The row that shows what a changed parameter makes of this one.
    pub moved_by: Option<String>,
    /// Of a sweep: the point that was taken.
    pub point: Option<String>,
    /// How many seeds were run and have no such figure.
    pub seeds_without: usize,
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
}

impl PublishedRow {
    /// A row with what was obtained for it in so many seeds.
    pub(crate) fn of(
        row: &Published,
        obtained: Option<Estimate>,
        point: Option<String>,
        seeds: usize,
    ) -> Self {
        let with = obtained.map_or(seeds, |estimate| estimate.seeds);
        PublishedRow {
            seeds_without: seeds.saturating_sub(with),
            name: row.name.clone(),
            published: row.published.clone(),
            obtained,
            unit: row.unit.clone(),
            note: row.note.clone(),
            moved_by: row.moved_by.clone(),
            point,
        }
    }

    /// Where it is published, which point of a sweep was taken, and what moves it.
    pub fn remarks(&self) -> String {
        let point = self.point.as_ref().map(|point| format!("at {point}"));
        let without = match self.seeds_without {
            0 => None,
            1 => Some("1 seed has none".to_owned()),
            some => Some(format!("{some} seeds have none")),
        };
        let moved = self.moved_by.as_ref();
        let moved = moved.map(|row| format!("with a parameter changed: see row \"{row}\""));
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        point.into_iter().chain(without).chain(note).chain(moved).collect::<Vec<_>>().join("; ")
    }
}

impl SeedResult {
    /// Whether the network or the ranks of a program deadlocked.
    pub fn is_deadlock(&self) -> bool {
        matches!(self.ending, Ending::Deadlock(_) | Ending::RanksWait(_))
    }

    /// Whether it was to end with its programs and came to its limit before.
    fn is_at_limit(&self, ends: Ends) -> bool {
        ends == Ends::Programs && !self.interrupted && self.ending == Ending::TimeReached
    }
}

impl VariantResult {
    /// Whether a program had ended with some seeds and with others not.
    fn ends_with_some_seeds(&self) -> bool {
        let has_ended = |group: usize| {
            self.runs.iter().map(move |run| run.completions.get(group).copied().flatten().is_some())
        };
        let groups = self.prepared.groups.iter().enumerate();
        let mut programs = groups.filter(|(_, group)| group.program().is_some());
        programs.any(|(group, _)| {
            has_ended(group).any(|ended| ended) && has_ended(group).any(|ended| !ended)
        })
    }

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

    /// A run as measures see it.
    fn view<'a>(&'a self, run: &'a SeedResult) -> RunView<'a> {
        let Prepared { groups, hosts, fabric, .. } = &self.prepared;
        RunView {
            figures: &run.figures,
            groups,
            hosts,
            fabric,
            completions: &run.completions,
            totals: &run.totals,
            slowdown: run.slowdown,
            recorded: &run.recorded,
            deadlocked: run.is_deadlock(),
            interrupted: run.interrupted,
        }
    }

    /// What its runs say to a measure of single runs, seed by seed.
    pub(crate) fn series(&self, asked: &Asked) -> Series {
        let one = |run: &SeedResult| {
            let (view, value) = (self.view(run), self.view(run).value(asked));
            ((run.seed, value), view.is_settled(asked, value.is_some()))
        };
        let (values, settled): (Vec<_>, Vec<bool>) = self.runs.iter().map(one).unzip();
        Series { values, settled: settled.iter().all(|settled| *settled), chosen: Vec::new() }
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
    /// How the experiment ended; the worst of its variants counts.
    pub fn status(&self) -> Status {
        let all = headline(self).rows.into_iter().zip(&self.variants);
        let all = all.map(|((_, figures), variant)| self.status_with(variant, &figures));
        Status::worst(all)
    }

    /// How one of the variants ended.
    pub fn status_of(&self, variant: &VariantResult) -> Status {
        let rows = headline(self).rows.into_iter();
        let figures = rows.filter(|(name, _)| *name == variant.name).flat_map(|(_, row)| row);
        self.status_with(variant, &figures.collect::<Vec<_>>())
    }

    fn status_with(&self, variant: &VariantResult, figures: &[Option<Estimate>]) -> Status {
        let missing = variant.runs.len() < self.experiment.plan.seeds as usize;
        if missing || variant.runs.iter().any(|run| run.interrupted) {
            Status::Partial
        } else if variant.runs.iter().any(SeedResult::is_deadlock) {
            Status::Deadlock
        } else if variant.runs.iter().any(|run| run.is_at_limit(self.experiment.plan.ends))
            || variant.ends_with_some_seeds()
        {
            Status::NotEnded
        } else if variant.runs.iter().any(|run| !run.figures.warm_up.converged)
            || figures.iter().flatten().any(|figure| !figure.converged)
        {
            Status::NotConverged
        } else {
            Status::Complete
        }
    }

    /// The columns of the headline that had not settled in some variant.
    pub fn not_converged(&self) -> Vec<&'static str> {
        let table = headline(self);
        let moving = |index: &usize| {
            let mut cells = table.rows.iter().filter_map(|(_, row)| row.get(*index)?.as_ref());
            cells.any(|figure| !figure.converged)
        };
        (0..table.columns.len()).filter(moving).map(|index| table.columns[index].label).collect()
    }

    /// The published numbers with what was obtained, but for those that only a sweep answers.
    pub fn published(&self) -> Vec<PublishedRow> {
        let rows = self.experiment.published.iter().filter(|row| !row.measure.is_of_sweep());
        let seeds = self.experiment.plan.seeds as usize;
        rows.map(|row| PublishedRow::of(row, self.obtained(row), None, seeds)).collect()
    }

    fn obtained(&self, row: &Published) -> Option<Estimate> {
        self.ask(&row.measure, self.variant(row.variant.as_deref())?)
    }

    /// What the runs say to a measure, of a variant.
    pub(crate) fn ask(&self, asked: &Asked, variant: &VariantResult) -> Option<Estimate> {
        asked.estimate(self, &At::of(&variant.name, self))
    }

    /// The variant of this name, the first if none is given.
    fn variant(&self, name: Option<&str>) -> Option<&VariantResult> {
        match name {
            Some(name) => self.variants.iter().find(|variant| variant.name == name),
            None => self.variants.first(),
        }
    }

    /// Everything a careful reader should know about these runs.
    pub fn oddities(&self) -> Vec<String> {
        // What was changed about the question comes first, then what the runs showed: both bear on
        // how to read the results. What is odd in shared files comes last; either is said once.
        let (mut first, mut given) = (Vec::new(), Vec::new());
        let (mut vain, mut all) = (Vec::new(), Vec::new());
        for variant in &self.variants {
            once(&mut first, &variant.prepared.stand_ins);
            once(&mut given, &variant.prepared.oddities);
            let mut say = |remarks: Vec<String>| shared(&mut all, &variant.name, remarks);
            let missing = self.experiment.plan.seeds as usize - variant.runs.len();
            if missing > 0 {
                let runs = if missing == 1 { "run was" } else { "runs were" };
                say(vec![format!("{missing} {runs} not started or not finished")]);
            }
            say(by_seed(variant, &self.experiment.plan));
            say(saturated(variant));
            shared(&mut vain, &variant.name, opened_in_vain(variant).into_iter().collect());
        }
        let several = self.variants.len() > 1;
        first.extend(vain.into_iter().chain(all).map(|(remark, names)| match names.as_slice() {
            _ if !several => remark,
            [one] => format!("{one}: {remark}"),
            [one, two] => format!("{one} and {two}: {remark}"),
            [one, more @ ..] => format!("{one} and {} more variants: {remark}", more.len()),
            [] => remark,
        }));
        first.extend(given);
        first
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

/// Adds the remarks of a variant, each to those that have it already.
fn shared<'a>(all: &mut Vec<(String, Vec<&'a str>)>, name: &'a str, remarks: Vec<String>) {
    for remark in remarks {
        match all.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, names)) => names.push(name),
            None => all.push((remark, vec![name])),
        }
    }
}

/// Adds the remarks that are not there yet.
fn once(all: &mut Vec<String>, remarks: &[String]) {
    for remark in remarks {
        if !all.contains(remark) {
            all.push(remark.clone());
        }
    }
}

/// What is odd in single runs; what several seeds have in common is said once.
fn by_seed(variant: &VariantResult, plan: &Plan) -> Vec<String> {
    let mut all: Vec<(String, Vec<u64>)> = Vec::new();
    for run in &variant.runs {
        for remark in remarks(variant, run, plan) {
            match all.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, seeds)) => seeds.push(run.seed),
                None => all.push((remark, vec![run.seed])),
            }
        }
    }
    let said = |(remark, seeds): (String, Vec<u64>)| {
        let plural = if seeds.len() == 1 { "seed" } else { "seeds" };
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        format!("{plural} {}: {remark}", seeds.join(", "))
    };
    all.into_iter().map(said).collect()
}

/// How many ranks that wait are named where all do not fit.
const WAITING_NAMED: usize = 3;

/// How a run of programs ended, if not well.
fn of_programs(variant: &VariantResult, run: &SeedResult, plan: &Plan) -> Vec<String> {
    let waiting = variant.waiting(run);
    let mut all = Vec::new();
    if let Ending::RanksWait(stuck) = &run.ending {
        let ranks = if stuck.len() == 1 { "rank waits" } else { "ranks wait" };
        all.push(format!("deadlock: {} {ranks} for what will never happen", stuck.len()));
    }
    all.extend(waiting.iter().take(WAITING_NAMED).map(ToString::to_string));
    if waiting.len() > WAITING_NAMED {
        all.push(format!("and {} more in summary.json", waiting.len() - WAITING_NAMED));
    }
    if run.interrupted || run.is_deadlock() {
        return all;
    }
    let limit = plan.duration.exact();
    let groups = variant.prepared.groups.iter().zip(&run.completions);
    let running = groups.filter(|(group, end)| group.program().is_some() && end.is_none());
    all.extend(running.map(|(group, _)| match plan.ends {
        Ends::Programs => format!(
            "program {} had not ended at the limit of {limit}: no completion time; raise duration",
            group.name
        ),
        Ends::Duration => format!(
            "program {} had not ended when the run did, at {limit}: no completion time; raise \
             duration or set ends = \"programs\"",
            group.name
        ),
    }));
    all
}

fn remarks(variant: &VariantResult, run: &SeedResult, plan: &Plan) -> Vec<String> {
    let mut all = of_programs(variant, run, plan);
    if let Ending::Deadlock(deadlock) = &run.ending {
        all.insert(0, deadlock.to_string());
    }
    if run.interrupted {
        let at = run.simulated.as_microseconds();
        let before = match run.figures.measured.is_empty() {
            true => ", before anything was measured",
            false => "",
        };
        all.push(format!("stopped at {at:.1} us of simulated time{before}"));
    }
    let ended_well = !run.is_deadlock() && !run.interrupted;
    if run.figures.measured.is_empty() && ended_well {
        all.push(
            "nothing was measured: the traffic stopped before the warm-up ended; lower warm_up or \
             raise stop"
                .into(),
        );
    } else if !run.figures.warm_up.converged && ended_well {
        all.push(
            "not converged: throughput was still changing in the second half of the run; raise \
             duration"
                .into(),
        );
    }
    match (run.alone, run.slowdown) {
        (Alone::Deadlocked, _) => {
            all.push("the victims deadlock without the hot flows too; no slowdown".into());
        }
        (Alone::Missing, _) => {
            all.push("the victims alone were not run to the end; no slowdown".into());
        }
        (_, Some(slowdown)) if slowdown.is_infinite() => {
            all.push("victims starved: beside the hot flows they are delivered nothing".into());
        }
        _ => {}
    }
    if run.figures.flows_dropped {
        all.push("more flows than are recorded one by one; no flow table and no Jain index".into());
    }
    if run.history.as_ref().is_some_and(|history| history.control.dropped) {
        all.push(
            "congestion control acted on more flows than are recorded one by one; no table and no \
             charts of what it did to each"
                .into(),
        );
    }
    all
}

/// A host whose link is busy for this share of the time is the bottleneck itself.
const FULL: f64 = 0.95;
/// So many hosts are named.
const NAMED: usize = 3;

/// Paths to a host whose own link is full: none of them leads around it.
fn opened_in_vain(variant: &VariantResult) -> Option<String> {
    let hosts = &variant.prepared.hosts;
    let full = |run: &SeedResult, rank: Rank| {
        let ports = hosts.ports(rank);
        let to_host = |channel: &&ChannelFigures| {
            variant.channel_ends(channel).is_some_and(|(_, to)| ports.contains(&to))
        };
        let mut channels = run.figures.channels.iter().filter(to_host).peekable();
        channels.peek().is_some() && channels.all(|channel| channel.load >= FULL)
    };
    let vain = |run: &SeedResult| -> Vec<Rank> {
        run.opened_to.iter().copied().filter(|rank| full(run, *rank)).collect()
    };
    let mut vain: Vec<Rank> = variant.runs.iter().flat_map(vain).collect();
    vain.sort_unstable();
    vain.dedup();
    let held_back = |run: &SeedResult| {
        let held_back = |channel: &&ChannelFigures| channel.wait >= HELD_BACK;
        variant.switch_channels(run).filter(held_back).count() as f64
    };
    let held_back = Estimate::over(variant.runs.iter().map(|run| Some(held_back(run))))?;
    let ranks = hosts.ranks();
    let names: Vec<&str> = vain.iter().take(NAMED).map(|rank| ranks.name(*rank)).collect();
    let others = match vain.len() {
        0 => return None,
        many if many > NAMED => format!(" and {} others", many - NAMED),
        _ => String::new(),
    };
    Some(format!(
        "further paths to {}{others} gain nothing: the host's own link is the bottleneck, no path \
         leads around it, and who waits for it stands on all of them; {} switch outputs are held \
         back for a tenth of the time or more",
        names.join(", "),
        significant(held_back.mean)
    ))
}

/// Less than this share of what is offered may be missing without being said.
const SURPLUS_MIN: f64 = 0.05;

/// Groups that offer more than is delivered: their latencies say nothing but how long the run was.
/// Of hot flows beside victims nothing else is expected.
fn saturated(variant: &VariantResult) -> Vec<String> {
    let groups = &variant.prepared.groups;
    let victims = groups.iter().any(|group| group.class == Class::Victim);
    let mut all = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        if victims && group.class == Class::Hot {
            continue;
        }
        let of = |value: fn(&Figures) -> f64| {
            let runs = variant.runs.iter().filter(|run| !run.is_deadlock());
            Estimate::over(runs.map(|run| run.figures.groups.get(index).map(value)))
        };
        let offered = of(|figures| figures.offered_load);
        let delivered = of(|figures| figures.delivered_load);
        let surplus = of(|figures| figures.offered_load - figures.delivered_load);
        let (Some(offered), Some(delivered), Some(surplus)) = (offered, delivered, surplus) else {
            continue;
        };
        let grows = |run: &SeedResult| run.figures.groups.get(index).is_some_and(|f| f.saturated);
        let mut flowing = variant.runs.iter().filter(|run| !run.is_deadlock());
        // Neither within one run nor between the seeds is it chance.
        let saturated = flowing.all(grows)
            && surplus.mean > SURPLUS_MIN * offered.mean
            && surplus.half_width.is_none_or(|half_width| surplus.mean > half_width);
        let latency = |run: &SeedResult| {
            let figures = run.figures.groups.get(index);
            figures.is_none_or(|f| f.latency_converged || !f.throughput_converged)
        };
        let mut ended = variant.runs.iter().filter(|run| !run.is_deadlock() && !run.interrupted);
        if saturated {
            all.push(format!(
                "traffic {} is saturated: it offers {} of its senders' links, and {} is delivered; \
                 its latencies grow with the length of the run",
                group.name,
                significant(offered.mean),
                significant(delivered.mean)
            ));
        } else if !ended.all(latency) {
            all.push(format!(
                "{}: latencies not converged: they were still changing in the second half of the \
                 run; raise duration",
                group.name
            ));
        }
    }
    all
}

/// What the model leaves out; every report says so.
pub const NOT_MODELLED: &[&str] = &[
    "Congestion control is on only where [control] names a mechanism; of annex A10, credit \
     starvation, Control_Map and the logs as attributes are left out.",
    "Bit errors, retransmissions and link flaps: a cable works or is cut.",
    "Management, multicast and congestion of port 0: only the traffic of the experiment flows.",
    "Packets are switched whole: a head waits for credits for all of it (virtual cut-through).",
    "Flits of several packets do not take turns at one input or output of a crossbar; what else \
     limits it is as [sim] says.",
    "Host memory, caches and interrupts beyond the overheads and rates among the parameters.",
    "Of an adapter's cabled ports so many send and receive as adapter_ports says; a message goes \
     by one of them.",
];
