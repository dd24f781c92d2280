//! The points of a sweep as measures ask for them.

use super::Sweep;
use super::record::{Record, VariantRecord};
use crate::measure::{Answers, Asked, Series, Varied};

/// What is known of the points of a sweep.
pub(super) struct Grid<'a> {
    sweep: &'a Sweep,
    records: &'a [Option<Record>],
    varied: Vec<Varied>,
    asked: Vec<&'a Asked>,
}

impl<'a> Grid<'a> {
    pub(super) fn of(sweep: &'a Sweep, records: &'a [Option<Record>]) -> Self {
        let varied = sweep.axes.iter().map(|axis| Varied {
            key: axis.key(),
            values: match axis.numbers() {
                Some((numbers, _)) => numbers.into_iter().map(Some).collect(),
                None => vec![None; axis.count()],
            },
        });
        Grid { sweep, records, varied: varied.collect(), asked: sweep.base.asked() }
    }

    /// What there is of a variant at a point: where what is varied does not change it, it was run
    /// at one point for all.
    pub(super) fn found(
        &self,
        variant: &str,
        at: &[usize],
    ) -> Option<(&'a Record, &'a VariantRecord)> {
        let index = self.sweep.runs_at(variant, at);
        let record = self.records.get(index)?.as_ref()?;
        Some((record, record.variants.iter().find(|known| known.name == variant)?))
    }
}

impl Answers for Grid<'_> {
    fn varied(&self) -> &[Varied] {
        &self.varied
    }

    fn variants(&self) -> Vec<&str> {
        self.sweep.base.variants.iter().map(|variant| variant.name.as_str()).collect()
    }

    fn of_runs(&self, asked: &Asked, variant: &str, point: &[usize]) -> Option<Series> {
        let index = self.asked.iter().position(|known| *known == asked)?;
        let (_, variant) = self.found(variant, point)?;
        Some(variant.asked.get(index)?.series())
    }
}
