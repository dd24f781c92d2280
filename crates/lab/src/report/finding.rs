//! The finding of an experiment in one sentence, and why a link is bad in one.

use crate::experiment::Ends;
use crate::measure::{Asked, ChannelFigures, Entry, Estimate, Scope, kinds};
use crate::result::{RunResult, SeedResult, VariantResult};
use crate::table::significant;
use clearlane_sim::Ending;
use clearlane_workload::Class;
use std::borrow::Cow;

/// What the results say, in one sentence.
pub(super) fn finding(result: &RunResult) -> String {
    if let Some(deadlock) = deadlock(result) {
        return deadlock;
    }
    let all = result.variants.len();
    if let Some(completion) = completion(result) {
        return completion;
    }
    let slowdowns = by_variant(result, &kinds::slowdown::ENTRY, &Scope::All);
    if !slowdowns.is_empty() {
        return slowdown(result, &slowdowns);
    }
    let differ = result.links_differ();
    let entry = if differ { &kinds::accepted_gbps::ENTRY } else { &kinds::delivered_load::ENTRY };
    let delivered = by_variant(result, entry, &Scope::All);
    let best = delivered.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let Some((name, most)) = best else { return "Nothing was measured.".into() };
    let (name, most) = (called(name), significant(most.mean));
    match all {
        1 => format!("The senders get {most} of their link rate through."),
        _ if differ => format!("Highest throughput in {name}: {most} Gb/s of payload."),
        _ => format!("Highest throughput in {name}: {most} of the senders' link rate."),
    }
}

/// Where the network deadlocks, and where ranks wait for each other.
fn deadlock(result: &RunResult) -> Option<String> {
    let which = |is: fn(&SeedResult) -> bool| -> Vec<Cow<'_, str>> {
        let variants = result.variants.iter().filter(|variant| variant.runs.iter().any(is));
        variants.map(|variant| called(&variant.name)).collect()
    };
    let all = result.variants.len();
    let network = which(|run| matches!(run.ending, Ending::Deadlock(_)));
    let ranks = which(|run| matches!(run.ending, Ending::RanksWait(_)));
    let names = |names: &[Cow<'_, str>]| list(&names.iter().map(|n| &**n).collect::<Vec<_>>());
    let (who, variants) = match (network.as_slice(), ranks.as_slice()) {
        ([], []) => return None,
        (network, []) => ("The network deadlocks", network),
        ([], ranks) => ("Ranks wait for ever", ranks),
        (network, ranks) => {
            let (network, ranks) = (names(network), names(ranks));
            let both =
                format!("The network deadlocks in {network}. Ranks wait for ever in {ranks}.");
            return Some(both);
        }
    };
    Some(match variants.len() == all {
        true if all == 1 => format!("{who}."),
        true => format!("{who} in every variant."),
        false => format!("{who} in {}, and not in the others.", names(variants)),
    })
}

/// How long programs take, where runs end with them.
fn completion(result: &RunResult) -> Option<String> {
    let plan = &result.experiment.plan;
    if plan.ends != Ends::Programs {
        return None;
    }
    let programs = |variant: &VariantResult| -> Vec<String> {
        let groups = variant.prepared.groups.iter().filter(|group| group.program().is_some());
        groups.map(|group| group.name.clone()).collect()
    };
    let mut names: Vec<String> = result.variants.iter().flat_map(programs).collect();
    names.sort_unstable();
    names.dedup();
    let who = match names.as_slice() {
        [] => return None,
        [one] => format!("Program {}", called(one)),
        _ => "The last program".to_owned(),
    };
    let times = by_variant(result, &kinds::completion_time::ENTRY, &Scope::All);
    let limit = plan.duration.exact();
    let longest = times.iter().map(|(_, time)| time.mean).fold(0.0, f64::max);
    let (unit, us) = unit_for(longest);
    let in_unit = |time: &Estimate| format!("{} {unit}", significant(time.mean / us));
    let each = |(name, time): &(String, Estimate)| format!("{} in {}", in_unit(time), called(name));
    let best = times.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let worst = times.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    Some(match (times.as_slice(), best, worst) {
        ([(_, only)], ..) if result.variants.len() == 1 => {
            format!("{who} is complete after {}.", in_unit(only))
        }
        (few, Some(_), _) if few.len() <= 4 => {
            let each: Vec<String> = few.iter().map(each).collect();
            let each: Vec<&str> = each.iter().map(String::as_str).collect();
            format!("{who} is complete after {}.", list(&each))
        }
        (_, Some(best), Some(worst)) => {
            let (least, most) = (each(best), each(worst));
            format!("{who} takes {least}, the least, and {most}, the most.")
        }
        _ => format!("{who} is not complete after {limit}."),
    })
}

/// The unit that times up to this many µs read best in, and how many µs it has.
fn unit_for(us: f64) -> (&'static str, f64) {
    match us {
        us if us >= 1e6 => ("s", 1e6),
        us if us >= 1e4 => ("ms", 1e3),
        _ => ("µs", 1.0),
    }
}

fn by_variant(result: &RunResult, entry: &'static Entry, scope: &Scope) -> Vec<(String, Estimate)> {
    let asked = Asked::scoped(entry, scope.clone());
    let one = |variant: &VariantResult| Some((variant.name.clone(), result.ask(&asked, variant)?));
    result.variants.iter().filter_map(one).collect()
}

fn slowdown(result: &RunResult, slowdowns: &[(String, Estimate)]) -> String {
    match slowdowns {
        [(_, only)] if only.mean.is_infinite() => {
            "The hot flows starve the victims: nothing of theirs arrives.".into()
        }
        [(_, only)] => {
            let victims =
                by_variant(result, &kinds::accepted_gbps::ENTRY, &Scope::Class(Class::Victim));
            let left = victims.first().map_or(String::new(), |(_, gbps)| {
                format!("; they get {} Gb/s together", significant(gbps.mean))
            });
            format!("Victims lose {} to the hot flows{left}.", lost(only, true))
        }
        few if few.len() <= 4 => {
            let each = |(index, (name, slow)): (usize, &(String, Estimate))| {
                format!("{} in {}", lost(slow, index == 0), called(name))
            };
            let each: Vec<String> = few.iter().enumerate().map(each).collect();
            let each: Vec<&str> = each.iter().map(String::as_str).collect();
            format!("Victims lose {}.", list(&each))
        }
        several => {
            let worst = several.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
            let best = several.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
            let (Some(worst), Some(best)) = (worst, best) else { return String::new() };
            format!(
                "Victims lose {} in {}, the most, and {} in {}, the least.",
                lost(&worst.1, true),
                called(&worst.0),
                lost(&best.1, false),
                called(&best.0)
            )
        }
    }
}

/// What victims lose that are so many times slower, in words: `20 % (± 2)`, of their throughput
/// where that is to be said. Nothing where the interval has no loss in it.
pub fn lost(slowdown: &Estimate, is_first: bool) -> String {
    /// A loss below half a percent rounds to none.
    const SEEN: f64 = 1.005;
    let mean = slowdown.mean;
    let half = slowdown.half_width.unwrap_or(0.0);
    let of = if is_first { " of their throughput" } else { "" };
    if mean.is_infinite() {
        return "everything".into();
    }
    if mean - half <= 1.0 || mean < SEEN {
        return "nothing".into();
    }
    // A small change of s changes 1 - 1/s by 1/s² of it.
    let (share, half) = (100.0 * (1.0 - 1.0 / mean), 100.0 * half / (mean * mean));
    let interval = if half >= 0.5 { format!(" (± {half:.0})") } else { String::new() };
    format!("{share:.0} %{interval}{of}")
}

/// A name in a sentence: in quotes if it has a comma.
fn called(name: &str) -> Cow<'_, str> {
    match name.contains(',') {
        true => format!("“{name}”").into(),
        false => name.into(),
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Why a channel is among the worst.
pub(super) fn why(variant: &VariantResult, channel: &ChannelFigures) -> String {
    let Some((_, to)) = variant.channel_ends(channel) else { return String::new() };
    let fabric = &variant.prepared.fabric;
    let peer = fabric.node(to.node);
    let (load, wait) = (channel.load * 100.0, channel.wait * 100.0);
    if !peer.is_switch() && channel.load >= 0.9 {
        format!("{} receives at the full rate of its link", peer.name)
    } else if channel.wait >= 0.2 {
        format!("{} takes no more: its input buffer was full {wait:.0} % of the time", peer.name)
    } else if channel.load >= 0.9 {
        format!("full: {load:.0} % of its rate is used")
    } else if !peer.is_switch() {
        format!("link to a host, {load:.0} % used")
    } else {
        format!("{load:.0} % used, {wait:.0} % held back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_a_share_with_its_interval_and_chance_is_none() {
        let of = |mean, half_width| {
            let some = Estimate { mean, half_width, seeds: 3, converged: true, steady: true };
            lost(&some, false)
        };
        assert_eq!(of(1.25, Some(0.03)), "20 % (± 2)");
        assert_eq!(of(2.0, Some(0.0)), "50 %");
        assert_eq!(of(2.0, None), "50 %");
        assert_eq!(of(1.09, Some(0.16)), "nothing");
        assert_eq!(of(0.97, None), "nothing");
        assert_eq!(of(f64::INFINITY, None), "everything");
    }

    #[test]
    fn names_with_commas_stand_in_quotes() {
        assert_eq!(
            list(&[&called("none"), &called("four paths, drb")]),
            "none and “four paths, drb”"
        );
    }
}
