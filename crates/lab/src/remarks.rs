//! What a careful reader should know about runs.

use crate::experiment::{Ends, Plan};
use crate::measure::{ChannelFigures, Estimate, Figures, HELD_BACK};
use crate::result::{Alone, RunResult, SeedResult, VariantResult};
use crate::table::significant;
use clearlane_fabric::Endpoint;
use clearlane_sim::Ending;
use clearlane_workload::{Class, FlowGroup, Rank};
use std::collections::BTreeMap;

impl RunResult {
    /// Everything a careful reader should know about these runs.
    pub fn oddities(&self) -> Vec<String> {
        // What was changed about the question comes first, then what the runs showed: both bear on
        // how to read the results. Oddities of shared files come last. Each is listed once.
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
            say(senders(variant));
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

/// Oddities of single runs; one that several seeds have is listed once, with the seeds.
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

/// Remarks on a run whose programs did not end.
fn of_programs(variant: &VariantResult, run: &SeedResult, plan: &Plan) -> Vec<String> {
    let waiting = variant.waiting(run);
    let mut all = Vec::new();
    if let Ending::RanksWait(stuck) = &run.ending {
        let ranks = if stuck.len() == 1 { "rank waits" } else { "ranks wait" };
        all.push(format!("deadlock: {} {ranks} for operations that never complete", stuck.len()));
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
            all.push("victims starved: with the hot flows no victim traffic arrives".into());
        }
        _ => {}
    }
    if run.figures.flows_dropped {
        all.push("too many flows to record one by one: no flow table and no Jain index".into());
    }
    if run.history.as_ref().is_some_and(|history| history.control.dropped) {
        all.push(
            "congestion control acted on too many flows to record one by one: no table and no \
             charts of its actions"
                .into(),
        );
    }
    all
}

/// A host whose link is busy for this share of the time is the bottleneck itself.
const FULL: f64 = 0.95;
/// How many hosts a remark names.
const NAMED: usize = 3;

/// Hosts to which paths were opened in vain, because the host's own link is full.
fn opened_in_vain(variant: &VariantResult) -> Option<String> {
    let hosts = &variant.prepared.hosts;
    let vain = |run: &SeedResult| -> Vec<Rank> {
        if run.opened_to.is_empty() {
            return Vec::new();
        }
        let load =
            |channel: &ChannelFigures| Some((variant.channel_ends(channel)?.1, channel.load));
        let loads: BTreeMap<Endpoint, f64> = run.figures.channels.iter().filter_map(load).collect();
        let full = |rank: &Rank| {
            let ports = hosts.ports(*rank).iter();
            let mut loads = ports.filter_map(|port| loads.get(port)).peekable();
            loads.peek().is_some() && loads.all(|load| *load >= FULL)
        };
        run.opened_to.iter().copied().filter(full).collect()
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
        "more paths to {}{others} do not help: the host's own link is full; {} switch outputs are \
         held back for a tenth of the time or more",
        names.join(", "),
        significant(held_back.mean)
    ))
}

/// A smaller share of the offered load may be missing without a remark.
const SURPLUS_MIN: f64 = 0.05;

/// True if a group is meant to fill links, so that undelivered load is no oddity.
fn is_to_saturate(group: &FlowGroup) -> bool {
    // A load of 1 counts headers and leaves no link any time to spare.
    let fills = group.offered().is_some_and(|offered| offered.load >= 1.0);
    group.class == Class::Hot || group.class == Class::Background && fills
}

/// Groups that offer more than is delivered: their latency grows with the length of the run.
fn saturated(variant: &VariantResult) -> Vec<String> {
    let groups = &variant.prepared.groups;
    let mut all = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        if is_to_saturate(group) {
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
            figures.is_none_or(|f| f.latency_converged || !f.throughput_converged || f.saturated)
        };
        let mut ended = variant.runs.iter().filter(|run| !run.is_deadlock() && !run.interrupted);
        if saturated {
            all.push(format!(
                "{}: {} % of its senders' link rate is offered and {} % is delivered; its latency \
                 has no steady value",
                group.name,
                significant(offered.mean * 100.0),
                significant(delivered.mean * 100.0)
            ));
        } else if variant.runs.iter().any(grows) {
            let some = variant.runs.iter().filter(|run| grows(run)).count();
            all.push(format!(
                "{}: with {some} of {} seeds less arrives than is offered; its latency has no \
                 steady value",
                group.name,
                variant.runs.len()
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

/// Senders that starve, and senders that were still gaining or losing, group by group.
fn senders(variant: &VariantResult) -> Vec<String> {
    let mut all = Vec::new();
    for (index, group) in variant.prepared.groups.iter().enumerate() {
        let ended = variant.runs.iter().filter(|run| !run.is_deadlock() && !run.interrupted);
        let figures: Vec<&Figures> =
            ended.filter_map(|run| run.figures.groups.get(index)).collect();
        let most = |of: fn(&Figures) -> usize| figures.iter().map(|f| of(f)).max().unwrap_or(0);
        let senders = most(|figures| figures.senders);
        let (starved, changing) = (most(|f| f.starved), most(|f| f.changing));
        let starve = if starved == 1 { "senders starves" } else { "senders starve" };
        if starved > 0 {
            all.push(format!(
                "{}: {starved} of {senders} {starve}; each gets a tenth or less of the average",
                group.name
            ));
        }
        if changing > 0 {
            all.push(format!(
                "{}: the throughput of {changing} of {senders} senders was still changing when \
                 the run ended; raise duration",
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
    "Flits of different packets are not interleaved at one input or output of a crossbar; [sim] \
     sets the other limits of a crossbar.",
    "Host memory, caches and interrupts beyond the overheads and rates among the parameters.",
    "adapter_ports sets how many cabled ports of an adapter send and receive; a message uses one \
     of them.",
];
