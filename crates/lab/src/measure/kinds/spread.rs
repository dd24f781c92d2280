//! `spread`: whether what differs between variants matters.

use super::chosen::named;
use crate::measure::{Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "spread",
    summary: "how much variants differ in a measure, seed by seed: largest ÷ smallest − 1",
    unit: "",
    takes: &[Parameter::Of, Parameter::Variants],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let of = arguments.of.as_deref()?;
    let named = named(arguments, answers);
    let each = named
        .into_iter()
        .map(|variant| of.answer(answers, &At { variant, point: at.point.clone() }));
    Series::combined(&each.collect::<Option<Vec<_>>>()?, |values| {
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(most / least - 1.0).filter(|spread| spread.is_finite())
    })
}
