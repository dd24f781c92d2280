//! Incidents: a healthy fabric, one thing broken in it, or two, and whether the first line of the
//! verdict names it. Draws are keyed by number, so any of them can be looked at again.

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

/// What every cause was taken for, as docs/diagnose.md has it: by kind of fact in the first line.
fn confusion() -> String {
    let mut seen: BTreeMap<(Cause, String), usize> = BTreeMap::new();
    let mut right: BTreeMap<Cause, usize> = BTreeMap::new();
    for draw in KNOWN.chain(UNSEEN) {
        let broken = break_it::draw(draw);
        let (causes, names) = (broken.causes.clone(), broken.names.clone());
        let (fact, verdict) = first(broken);
        let cause = if causes.len() > 1 { Cause::Two } else { causes[0] };
        let is_true = |(cause, names): (&Cause, &Vec<String>)| {
            fact == Some(cause.fact())
                && names.iter().any(|name| verdict.lines[0].text.contains(name))
        };
        if causes.iter().zip(&names).any(is_true) {
            *right.entry(cause).or_insert(0) += 1;
        } else {
            let as_what = fact.unwrap_or("nothing").replace('-', " ");
            *seen.entry((cause, as_what)).or_insert(0) += 1;
        }
    }
    let mut table = "| what was broken | draws | in the first line | else there |\n".to_owned();
    table.push_str("|---|---|---|---|\n");
    for cause in CAUSES {
        let right = right.get(&cause).copied().unwrap_or(0);
        let wrong: Vec<(&String, &usize)> =
            seen.iter().filter(|((of, _), _)| *of == cause).map(|((_, s), n)| (s, n)).collect();
        let all = right + wrong.iter().map(|(_, number)| **number).sum::<usize>();
        let wrong: Vec<String> =
            wrong.iter().map(|(what, number)| format!("{what}: {number}")).collect();
        let wrong = if wrong.is_empty() { "–".to_owned() } else { wrong.join(", ") };
        table.push_str(&format!("| {} | {all} | {right} | {wrong} |\n", cause.words()));
    }
    table
}

#[test]
fn the_document_has_the_table_of_what_was_taken_for_what() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnose.md");
    let (text, table) = (std::fs::read_to_string(path).unwrap(), confusion());
    assert!(text.contains(&table), "docs/diagnose.md lacks this table:\n{table}");
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
