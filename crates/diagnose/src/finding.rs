//! A fact of the files that an administrator should know.

use crate::words::count;
use serde::Serialize;

/// What a fact does to traffic, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Packets do not arrive.
    Lost,
    /// The network can stop for ever.
    Deadlock,
    /// Cables that many share carry less than they should.
    Shared,
    /// One host's own cable carries less than it should.
    Own,
    /// Nothing; it is as well to know it.
    Note,
}

/// A fact.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Name of the kind of fact, as `clearlane list facts` has it.
    pub fact: &'static str,
    /// What it does to traffic.
    pub severity: Severity,
    /// How much of the traffic of all hosts among each other it takes away, 0 to 1: paths lost, or
    /// paths that are slower times by how much. 0 for a note.
    pub share: f64,
    /// What it is, one sentence without a full stop.
    pub text: String,
    /// Where else the same is, one line each; may be empty.
    pub more: Vec<String>,
    /// What to do about it, one sentence without a full stop.
    pub remedy: String,
}

impl Finding {
    /// Whether something is wrong, rather than worth knowing.
    pub fn is_fault(&self) -> bool {
        self.severity != Severity::Note
    }

    /// Sorts by severity, then by share, the worst first. Equals stay as they are.
    pub(crate) fn rank(findings: &mut [Finding]) {
        findings
            .sort_by(|a, b| a.severity.cmp(&b.severity).then_with(|| b.share.total_cmp(&a.share)));
    }

    /// One finding of several of a kind: the worst as it is, how many more there are, and the
    /// others listed. `more` says what those are: one of them, several.
    pub(crate) fn together(mut findings: Vec<Finding>, more: [&str; 2]) -> Option<Finding> {
        Finding::rank(&mut findings);
        let mut findings = findings.into_iter();
        let mut worst = findings.next()?;
        let others: Vec<Finding> = findings.collect();
        if !others.is_empty() {
            let number = count(others.len() as u64, more[0], more[1]);
            worst.text.push_str(&format!("; {number}"));
        }
        worst.share += others.iter().map(|finding| finding.share).sum::<f64>();
        worst.more.extend(others.into_iter().map(|finding| finding.text));
        Some(worst)
    }
}
