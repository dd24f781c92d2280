//! `saturation`: what a network carries at most.

use super::chosen::{chosen, largest, named, places};
use super::delivered_load;
use crate::measure::{
    Answer, Answers, Arguments, Asked, At, Entry, Parameter, Points, Series, Settles,
};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "saturation",
    summary: "largest delivered load over variants with growing offered load; in a sweep also \
              over the loads",
    unit: "",
    takes: &[Parameter::Scope, Parameter::Variants],
    settles: Settles::Always,
    answer: Answer::Combined(answer),
};

fn answer(arguments: &Arguments, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
    let of = Asked::scoped(&delivered_load::ENTRY, arguments.scope.clone());
    let loads = answers.varied().iter().map(|varied| varied.key.clone());
    let along: Vec<String> = loads.filter(|key| key.ends_with(".load")).collect();
    let points = Points { along, ..Points::default() };
    let places = places(&points, answers, at)?;
    let mut all = Vec::new();
    for variant in named(arguments, answers) {
        all.extend(places.iter().map(|point| At { variant, point: point.clone() }));
    }
    chosen(&of, &points, answers, all).into_iter().reduce(largest).map(|found| found.series)
}
