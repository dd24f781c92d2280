//! Incidents: a healthy fabric, one thing broken in it, or two, and whether the first line of the
//! verdict names it. Draws are keyed by number, so any of them can be looked at again.

#[path = "incidents/break_it.rs"]
mod break_it;

use break_it::{Broken, CAUSES, Cause, FABRICS};
use clearlane_diagnose::{Site, facts, verdict};
use clearlane_lab::Verdict;
use std::collections::BTreeMap;

/// Draws looked at while the facts were written.
const KNOWN: std::ops::Range<u64> = 0..180;
/// Draws that were not.
const UNSEEN: std::ops::Range<u64> = 20_000..20_054;

/// The kind of fact in the first line; nothing where no fault is seen.
fn first(broken: Broken) -> (Option<&'static str>, Verdict) {
    let Broken { fabric, subnet, .. } = broken;
    let site = Site::new("incident", fabric, Vec::new(), Some(subnet));
    let findings = facts::all(&site);
    let first = findings.first().filter(|finding| finding.is_fault());
    (first.map(|finding| finding.fact), verdict(&site, &findings, None, ""))
}

/// How many of these draws have their true cause in the first line, and what was seen instead.
fn hits(draws: std::ops::Range<u64>) -> (usize, Vec<String>, BTreeMap<(Cause, String), usize>) {
    let (mut hits, mut misses, mut seen) = (0, Vec::new(), BTreeMap::new());
    for draw in draws {
        let broken = break_it::draw(draw);
        let (causes, names) = (broken.causes.clone(), broken.names.clone());
        let what = format!("draw {draw}, {}: {causes:?} at {names:?}", broken.spec);
        let (fact, verdict) = first(broken);
        let line = &verdict.lines[0];
        let is_true = causes.iter().zip(&names).any(|(cause, names)| {
            fact == Some(cause.fact()) && names.iter().any(|name| line.text.contains(name))
        });
        hits += usize::from(is_true);
        if !is_true {
            misses.push(format!("{what}\n    {}: {}", line.label, line.text));
        }
        let cause = if causes.len() > 1 { Cause::Two } else { causes[0] };
        let seen_as = fact.unwrap_or("nothing").to_owned();
        *seen.entry((cause, seen_as)).or_insert(0) += 1;
    }
    (hits, misses, seen)
}

#[test]
fn the_true_cause_is_in_the_first_line() {
    for draws in [KNOWN, UNSEEN] {
        let all = (draws.end - draws.start) as usize;
        let (hits, misses, seen) = hits(draws.clone());
        assert!(10 * hits >= 9 * all, "{hits} of {all}:\n{}", misses.join("\n"));
        assert!(CAUSES.iter().all(|cause| seen.keys().any(|(of, _)| of == cause)));
    }
}

#[test]
fn nothing_is_invented_on_healthy_fabrics() {
    let healthy = FABRICS.iter().chain(break_it::MORE_HEALTHY);
    let mut tried = 0;
    for (spec, engine) in healthy {
        let (fabric, subnet) = break_it::routed(spec, engine);
        let site = Site::new(*spec, fabric, Vec::new(), Some(subnet));
        let findings = facts::all(&site);
        let verdict = verdict(&site, &findings, None, "");
        assert!(verdict.healthy, "{spec} {engine}: {:#?}", verdict.lines);
        tried += 1;
    }
    assert!(tried >= 20, "{tried}");
}
