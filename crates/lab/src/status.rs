//! How an experiment ended.

use crate::experiment::Ends;
use crate::headline::headline;
use crate::measure::Estimate;
use crate::result::{RunResult, SeedResult, VariantResult};
use clearlane_sim::Ending;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an experiment ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// All runs reached their end and settled.
    #[serde(rename = "complete")]
    Complete,
    /// Interrupted; the finished runs are in the result.
    #[serde(rename = "partial")]
    Partial,
    /// A run ended in a deadlock: of the simulated network, or of ranks that wait for each other.
    #[serde(rename = "deadlock")]
    Deadlock,
    /// A run that should end with its programs reached its limit, `run.duration`, first; or a
    /// program ended with some seeds only.
    #[serde(rename = "not ended")]
    NotEnded,
    /// A figure of the headline was still changing when a run ended, or a run ended before its
    /// warm-up.
    #[serde(rename = "not converged")]
    NotConverged,
    /// All runs settled, and some senders starve beside others of their traffic.
    #[serde(rename = "starved")]
    Starved,
}

impl Status {
    /// The worst status: partial, deadlock, not ended, not converged, starved, complete.
    pub(crate) fn worst(all: impl IntoIterator<Item = Status>) -> Status {
        const ORDER: [Status; 5] = [
            Status::Partial,
            Status::Deadlock,
            Status::NotEnded,
            Status::NotConverged,
            Status::Starved,
        ];
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
            Status::Starved => "starved",
        })
    }
}

impl RunResult {
    /// How the experiment ended: the worst status of its variants.
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
            || figures.iter().flatten().any(Estimate::is_changing)
        {
            Status::NotConverged
        } else if variant.runs.iter().any(|run| run.figures.all.starved > 0) {
            Status::Starved
        } else {
            Status::Complete
        }
    }

    /// The columns of the headline that did not converge in at least one variant.
    pub fn not_converged(&self) -> Vec<&'static str> {
        let table = headline(self);
        let moving = |index: &usize| {
            let mut cells = table.rows.iter().filter_map(|(_, row)| row.get(*index)?.as_ref());
            cells.any(Estimate::is_changing)
        };
        (0..table.columns.len()).filter(moving).map(|index| table.columns[index].label).collect()
    }
}

impl SeedResult {
    /// True if the run should end with its programs and reached its limit first.
    fn is_at_limit(&self, ends: Ends) -> bool {
        ends == Ends::Programs && !self.interrupted && self.ending == Ending::TimeReached
    }
}

impl VariantResult {
    /// True if a program ended with some seeds and not with others.
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
}
