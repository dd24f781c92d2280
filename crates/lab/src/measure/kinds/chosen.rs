//! Which points and variants a measure goes through, and which of them it chooses.

use crate::measure::{Answers, Arguments, Asked, At, Points, Series};

/// A place at which a measure has an answer.
pub(super) struct Found {
    /// Seed by seed.
    pub(super) series: Series,
    /// The mean over seeds.
    mean: f64,
}

/// The one with the larger mean, the first of equals.
pub(super) fn largest(a: Found, b: Found) -> Found {
    if b.mean > a.mean { b } else { a }
}

/// The one with the smaller mean, the first of equals.
pub(super) fn smallest(a: Found, b: Found) -> Found {
    if b.mean < a.mean { b } else { a }
}

/// The variants named, or all.
pub(super) fn named<'a>(arguments: &'a Arguments, answers: &'a dyn Answers) -> Vec<&'a str> {
    match arguments.variants.as_slice() {
        [] => answers.variants(),
        some => some.iter().map(String::as_str).collect(),
    }
}

/// The places a measure goes through, those of which it has an answer: all points of the variants
/// named, or of the one asked about.
pub(super) fn chosen_by(
    arguments: &Arguments,
    answers: &dyn Answers,
    at: &At<'_>,
) -> Option<Vec<Found>> {
    let of = arguments.of.as_deref()?;
    let places = places(&arguments.points, answers, at)?;
    let mut all = Vec::new();
    let variants: Vec<&str> = match arguments.variants.as_slice() {
        [] => vec![at.variant],
        some => some.iter().map(String::as_str).collect(),
    };
    for variant in variants {
        all.extend(places.iter().map(|point| At { variant, point: point.clone() }));
    }
    Some(chosen(of, &arguments.points, answers, all))
}

/// Of these places, those that count and have an answer, each noting where it is.
pub(super) fn chosen(
    of: &Asked,
    points: &Points,
    answers: &dyn Answers,
    places: Vec<At<'_>>,
) -> Vec<Found> {
    let fulfils = |at: &At<'_>| match &points.provided {
        None => true,
        Some(provided) => {
            let variant = provided.variant.as_deref().unwrap_or(at.variant);
            let place = At { variant, point: at.point.clone() };
            let found = provided.asked.estimate(answers, &place);
            found.is_some_and(|found| found.mean >= provided.least)
        }
    };
    let found = |at: At<'_>| {
        let mut series = of.answer(answers, &at)?;
        let mean = series.estimate()?.mean;
        if points.settled && !series.settled {
            return None;
        }
        // What chose within knows more of its place.
        if series.chosen.is_empty() {
            series.chosen.push((at.variant.to_owned(), at.point));
        }
        Some(Found { series, mean })
    };
    places.into_iter().filter(fulfils).filter_map(found).collect()
}

/// The points gone through from a place on: all values of the keys named, or of all that are not
/// fixed, within their bounds. Nothing if a key is not varied.
pub(super) fn places(
    points: &Points,
    answers: &dyn Answers,
    at: &At<'_>,
) -> Option<Vec<Vec<Option<usize>>>> {
    let varied = answers.varied();
    let known = |key: &String| varied.iter().any(|varied| varied.key == *key);
    if !points.along.iter().all(known) || !points.within.iter().all(|(key, _)| known(key)) {
        return None;
    }
    let mut places = vec![at.point.clone()];
    for (index, varied) in varied.iter().enumerate() {
        let named = points.along.is_empty() || points.along.contains(&varied.key);
        if at.point.get(index)?.is_some() || !named {
            continue;
        }
        let bounds = points.within.iter().find(|(key, _)| *key == varied.key).map(|(_, b)| *b);
        let is_within = |value: &usize| match (bounds, varied.values[*value]) {
            (None, _) => true,
            (Some([least, most]), Some(number)) => (least..=most).contains(&number),
            (Some(_), None) => false,
        };
        let values: Vec<usize> = (0..varied.values.len()).filter(is_within).collect();
        let fixed = |place: &Vec<Option<usize>>, value: usize| {
            let mut place = place.clone();
            place[index] = Some(value);
            place
        };
        places = places.iter().flat_map(|p| values.iter().map(move |v| fixed(p, *v))).collect();
    }
    Some(places)
}
