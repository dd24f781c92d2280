//! `first`: which point of a sweep answers.

use super::chosen::chosen_by;
use crate::measure::{
    AS_WITHIN, Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles,
};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "first",
    summary: "a measure at the first point of a sweep that has a value, in grid order",
    unit: AS_WITHIN,
    takes: &[Parameter::Of, Parameter::Variants, Parameter::Points],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let mut found = chosen_by(arguments, answers, at)?.into_iter();
    found.next().map(|found| found.series)
}
