//! `smallest`: which point of a sweep answers.

use super::chosen::{chosen_by, smallest};
use crate::measure::{
    AS_WITHIN, Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles,
};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "smallest",
    summary: "the smallest value of a measure over the points of a sweep, or over the named \
              variants",
    unit: AS_WITHIN,
    takes: &[Parameter::Of, Parameter::Variants, Parameter::Points],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let found = chosen_by(arguments, answers, at)?.into_iter();
    found.reduce(smallest).map(|found| found.series)
}
