//! `gain-along`: what a sweep's last point gives over its first.

use super::chosen::chosen_by;
use crate::measure::{Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "gain-along",
    summary: "a measure at the last point of a sweep that has a value ÷ at the first, in grid \
              order; 2 is twice as much",
    unit: "",
    takes: &[Parameter::Of, Parameter::Points],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let mut found = chosen_by(arguments, answers, at)?.into_iter().map(|found| found.series);
    let first = found.next()?;
    let both = [found.next_back()?, first];
    Series::combined(&both, |values| match values {
        [last, first] if *first != 0.0 => Some(last / first).filter(|gain| !gain.is_nan()),
        _ => None,
    })
}
