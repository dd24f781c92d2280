//! `ratio`: how much better one variant is than another.

use crate::measure::{Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "ratio",
    summary: "a measure of the row's variant ÷ the same measure of another variant, seed by seed",
    unit: "",
    takes: &[Parameter::Of, Parameter::Over],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let of = arguments.of.as_deref()?;
    let below = At { variant: arguments.over.as_deref()?, point: at.point.clone() };
    let both = [of.answer(answers, at)?, of.answer(answers, &below)?];
    Series::combined(&both, |values| match values {
        [above, below] if *below != 0.0 => Some(above / below).filter(|ratio| !ratio.is_nan()),
        _ => None,
    })
}
