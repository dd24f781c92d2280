//! `mean-over`: a part of an axis in one number.

use super::chosen::{chosen, places};
use crate::measure::{
    AS_WITHIN, Answer, Answers, Arguments, At, Entry, Parameter, Series, Settles,
};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "mean-over",
    summary: "the mean of a measure over points of a sweep, seed by seed",
    unit: AS_WITHIN,
    takes: &[Parameter::Of, Parameter::Points],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let of = arguments.of.as_deref()?;
    let places = places(&arguments.points, answers, at)?.into_iter();
    let all = places.map(|point| At { variant: at.variant, point }).collect();
    let found = chosen(of, &arguments.points, answers, all);
    let each: Vec<Series> = found.into_iter().map(|found| found.series).collect();
    let mean = |values: &[f64]| Some(values.iter().sum::<f64>() / values.len() as f64);
    // Of all of them: no point is told.
    Some(Series { chosen: Vec::new(), ..Series::combined(&each, mean)? })
}
