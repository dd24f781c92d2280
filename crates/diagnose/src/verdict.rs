//! The answer in at most six lines: what the files say, and what would happen under load.

use crate::what_if::Answer;
use crate::words::list;
use crate::{Finding, Site};
use clearlane_lab::{Found, Line, Verdict};

fn line(label: &'static str, text: impl Into<String>) -> Line {
    Line { label, text: text.into() }
}

/// What the files say, of findings as [`crate::facts::all`] ranks them, and what the runs do, if
/// there were any. Faults come first: what is broken is mended before what is busy is looked at.
pub fn verdict(site: &Site, findings: &[Finding], answer: Option<&Answer>, next: &str) -> Verdict {
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.is_fault()).collect();
    let said = answer.map_or(&[][..], |answer| &answer.lines);
    let mut lines = Vec::new();
    match faults.split_first() {
        None => {
            let room = Verdict::LINES_MAX - 1 - said.len().min(Verdict::LINES_MAX - 1);
            let notes = if said.is_empty() { room } else { 0 };
            lines.extend(healthy(site, findings, notes));
        }
        Some((first, others)) => {
            let room = (Verdict::LINES_MAX - 2).saturating_sub(said.len());
            lines.extend(faults_in(room, first, others));
        }
    }
    // A fault need not be what the victims suffer from: both are said.
    let next = match (faults.first(), next) {
        (Some(first), "") => first.remedy.clone(),
        (Some(first), next) => format!("{}; against the hot traffic, {next}", first.remedy),
        (None, next) => next.to_owned(),
    };
    lines.extend(said.iter().take(Verdict::LINES_MAX - 1 - lines.len()).cloned());
    if !next.is_empty() {
        lines.push(line("next", next));
    }
    let found = |finding: &Finding| Found {
        fact: finding.fact,
        text: finding.text.clone(),
        more: finding.more.clone(),
    };
    Verdict { healthy: faults.is_empty(), lines, facts: findings.iter().map(found).collect() }
}

/// The worst fault in a line and the others in so many more; those there is no room for are named
/// by their kinds.
fn faults_in(room: usize, first: &Finding, others: &[&Finding]) -> Vec<Line> {
    let shown = if others.len() > room { room.saturating_sub(1) } else { others.len() };
    let kinds: Vec<String> =
        others[shown..].iter().map(|finding| finding.fact.replace('-', " ")).collect();
    let kinds = list(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
    let mut lines = vec![line("fault", &first.text)];
    lines.extend(others[..shown].iter().map(|finding| line("also", &finding.text)));
    match (kinds.as_str(), room) {
        ("", _) => {}
        (kinds, 0) => lines[0].text.push_str(&format!("; also {kinds}, see the facts")),
        (kinds, _) => lines.push(line("also", format!("{kinds}, see the facts"))),
    }
    lines
}

fn healthy(site: &Site, findings: &[Finding], notes: usize) -> Vec<Line> {
    let summary = site.fabric.summary();
    let what = match &site.tables {
        Some(tables) => format!(
            "no fault in cables and tables: all {} paths arrive, no credit loop is possible \
             ({summary})",
            crate::words::grouped(tables.usage.paths)
        ),
        None => format!("no fault in the cables ({summary}); there are no tables to check"),
    };
    let notes = findings.iter().take(notes).map(|finding| line("note", &finding.text));
    [line("healthy", what)].into_iter().chain(notes).collect()
}
