//! What a sweep came to: as JSON (`clearlane-sweep/2`), as Parquet, as a page.

use super::Sweep;
use super::grid::Grid;
use super::record::{Record, VariantRecord};
use crate::LabError;
use crate::experiment::{Axis, Ends, Experiment};
use crate::fact::Fact;
use crate::headline::{CONTROL_COLUMNS, PublishedRow, note_moves};
use crate::measure::{At, Entry, Estimate, kinds};
use crate::report::{
    AxisValue, SweepAxis, SweepData, SweepFigure, SweepPage, SweepPoint, lost, sweep_page,
};
use crate::status::Status;
use clearlane_ib::Picoseconds;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema of `sweep.json`. Fields may be added under the same number; none changes or goes.
const SCHEMA: &str = "clearlane-sweep/2";

/// One variant at one point.
#[derive(Clone, Debug)]
pub struct VariantPoint {
    /// By axis, the index among its values.
    pub at: Vec<usize>,
    /// The variant.
    pub variant: String,
    /// How its runs ended.
    pub status: Status,
    /// By figure; nothing if it was not measured.
    pub figures: Vec<Option<Estimate>>,
    /// By column of the table of mechanisms, what they did; nothing without any.
    pub(super) control: Option<Vec<Option<Estimate>>>,
    /// The report of the point, relative to the folder.
    pub run: Option<String>,
}

/// What a sweep came to.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The experiment as its file has it.
    pub experiment: Experiment,
    /// The command line that makes the same results again.
    pub command: String,
    /// The keys that were varied, with their values.
    pub axes: Vec<SweepAxis>,
    /// The measures taken at each point.
    pub figures: Vec<SweepFigure>,
    /// The finished points, in the order of the grid.
    pub points: Vec<VariantPoint>,
    /// How many points the grid has.
    pub asked: usize,
    /// How many of them are finished.
    pub finished: usize,
    /// How many of those were in the folder already.
    pub known: usize,
    published: Vec<PublishedRow>,
    oddities: Vec<String>,
    facts: Vec<Fact>,
    told: Option<Told>,
}

/// What the command that asked for the sweep found out by it.
#[derive(Clone, Debug, Serialize)]
struct Told {
    /// In a sentence or two, in place of what a sweep says of itself.
    finding: String,
    /// One by one.
    facts: Vec<Fact>,
}

#[derive(Serialize)]
struct Summary<'a> {
    schema: &'static str,
    name: &'a str,
    summary: &'a str,
    version: &'static str,
    command: &'a str,
    status: Status,
    seeds: Vec<u64>,
    points_asked: usize,
    points_finished: usize,
    axes: &'a [SweepAxis],
    figures: &'a [SweepFigure],
    points: Vec<PointSummary>,
    published: &'a [PublishedRow],
    oddities: &'a [String],
    #[serde(flatten)]
    told: Option<&'a Told>,
    experiment: toml::Table,
}

#[derive(Serialize)]
struct PointSummary {
    at: Vec<usize>,
    values: BTreeMap<String, AxisValue>,
    variant: String,
    status: Status,
    figures: BTreeMap<String, Option<Estimate>>,
    control: Option<BTreeMap<&'static str, Option<Estimate>>>,
    run: Option<String>,
}

impl SweepResult {
    pub(super) fn of(
        sweep: &Sweep,
        records: Vec<Option<Record>>,
        known: usize,
        command: String,
    ) -> Self {
        let done: Vec<&Record> = records.iter().flatten().collect();
        let figures = figures(&done);
        let mut points = Vec::new();
        let grid = Grid::of(sweep, &records);
        for point in &sweep.points {
            for variant in &sweep.base.variants {
                let found = grid.found(&variant.name, &point.at);
                points.extend(found.map(|(record, variant)| VariantPoint {
                    at: point.at.clone(),
                    variant: variant.name.clone(),
                    status: variant.status,
                    figures: in_order(&figures, record, variant),
                    control: variant.control.clone(),
                    run: record.run.clone(),
                }));
            }
        }
        SweepResult {
            experiment: sweep.base.clone(),
            command,
            axes: sweep.axes.iter().map(axis).collect(),
            published: published(sweep, &records),
            oddities: oddities(sweep, &records),
            facts: facts(&done),
            told: None,
            asked: sweep.points.len(),
            finished: done.len(),
            known,
            figures,
            points,
        }
    }

    /// The page and `sweep.json` say what the command found out by the sweep. Published numbers are
    /// left out: those of the experiment are about its own axes.
    pub(crate) fn tell(&mut self, finding: String, facts: Vec<Fact>) {
        self.published.clear();
        self.told = Some(Told { finding, facts });
    }

    /// How the sweep ended; the worst of its points counts.
    pub fn status(&self) -> Status {
        let missing = (self.finished < self.asked).then_some(Status::Partial);
        Status::worst(self.points.iter().map(|point| point.status).chain(missing))
    }

    /// Published numbers beside what the points give; only what a whole sweep can answer.
    pub fn published(&self) -> &[PublishedRow] {
        &self.published
    }

    /// What a careful reader should know.
    pub fn oddities(&self) -> &[String] {
        &self.oddities
    }

    /// `sweep.json`, ending in a line feed.
    pub fn to_json(&self) -> String {
        let values = |point: &VariantPoint| {
            let axes = self.axes.iter().zip(&point.at);
            axes.filter_map(|(axis, at)| Some((axis.key.clone(), axis.values.get(*at)?.clone())))
                .collect()
        };
        let figures = |point: &VariantPoint| {
            let keys = self.figures.iter().map(|figure| figure.key.clone());
            keys.zip(point.figures.iter().copied()).collect()
        };
        let point = |point: &VariantPoint| PointSummary {
            at: point.at.clone(),
            values: values(point),
            variant: point.variant.clone(),
            status: point.status,
            figures: figures(point),
            control: point.control.as_ref().map(|cells| {
                let keys = CONTROL_COLUMNS.iter().map(|column| column.key);
                keys.zip(cells.iter().copied()).collect()
            }),
            run: point.run.clone(),
        };
        let summary = Summary {
            schema: SCHEMA,
            name: &self.experiment.name,
            summary: &self.experiment.summary,
            version: env!("CARGO_PKG_VERSION"),
            command: &self.command,
            status: self.status(),
            seeds: self.experiment.plan.all_seeds().collect(),
            points_asked: self.asked,
            points_finished: self.finished,
            axes: &self.axes,
            figures: &self.figures,
            points: self.points.iter().map(point).collect(),
            published: &self.published,
            oddities: &self.oddities,
            told: self.told.as_ref(),
            experiment: self.experiment.resolved_table(),
        };
        // Keys are strings and numbers finite or null, so nothing here can fail to be written.
        let mut text = serde_json::to_string_pretty(&summary).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The report.
    pub(super) fn page(&self) -> String {
        let experiment = &self.experiment;
        let title = match experiment.summary.is_empty() {
            true => experiment.name.clone(),
            false => format!("{}: {}", experiment.name, experiment.summary),
        };
        let fact = |label: &str, value: String| Fact { label: label.into(), value };
        let finished = match self.finished == self.asked {
            true => format!("{} points", self.asked),
            false => format!("{} of {} points", self.finished, self.asked),
        };
        let duration = experiment.plan.duration.exact();
        let at_most = match experiment.plan.ends {
            Ends::Duration => "",
            Ends::Programs => " at most, until its programs end",
        };
        let told = self.told.as_ref();
        sweep_page(&SweepPage {
            title,
            summary: told.map_or_else(|| self.finding(), |told| told.finding.clone()),
            command: self.command.clone(),
            seeds: experiment.plan.all_seeds().collect(),
            status: self.status(),
            facts: self
                .axes
                .iter()
                .map(|axis| fact(&format!("varied {}", axis.key), values(axis)))
                .chain([
                    fact("finished", finished),
                    fact("simulated time", format!("{duration} per run{at_most}")),
                ])
                .chain(told.into_iter().flat_map(|told| told.facts.clone()))
                .chain(self.facts.iter().cloned())
                .collect(),
            published: self.published.clone(),
            oddities: self.oddities.clone(),
            data: self.data(),
        })
    }

    /// The finding in one or two sentences: deadlocks, then how slow victims get, when programs
    /// end, or how much is delivered at most, and at which points.
    fn finding(&self) -> String {
        let stuck = |point: &&VariantPoint| point.status == Status::Deadlock;
        let deadlocks = self.points.iter().filter(stuck).count();
        let mut said = match deadlocks {
            0 => String::new(),
            all if all == self.points.len() => return "The network deadlocks everywhere.".into(),
            some => format!("The network deadlocks in {some} of {} runs. ", self.points.len()),
        };
        let number = crate::table::significant;
        if let Some((least, most)) = self.ends(&kinds::slowdown::ENTRY, None) {
            let (least_lost, most_lost) = (lost(&least.1, false), lost(&most.1, false));
            said += &match least_lost == most_lost {
                true => format!("Victims lose {least_lost} of their throughput everywhere."),
                false => format!(
                    "Victims lose {most_lost} of their throughput at most ({}) and {least_lost} at \
                     least ({}).",
                    self.place(most.0),
                    self.place(least.0)
                ),
            };
        } else if let Some(soonest) = self.soonest() {
            said += &soonest;
        } else if let Some((_, (point, most))) = self.ends(&kinds::delivered_load::ENTRY, None) {
            let (most, place) = (number(most.mean), self.place(point));
            said += &format!("At most {most} of the senders' links' rate is delivered: {place}.");
        }
        said.trim_end().to_owned()
    }

    /// Where programs end soonest: of a few variants each, of one or many the first and the last.
    fn soonest(&self) -> Option<String> {
        const FEW: usize = 4;
        let entry = &kinds::completion_time::ENTRY;
        let (least, most) = self.ends(entry, None)?;
        let after = |(_, time): &Extreme<'_>| Picoseconds((time.mean * 1e6).round() as u64);
        let mut variants: Vec<&str> = Vec::new();
        for point in &self.points {
            if !variants.contains(&point.variant.as_str()) {
                variants.push(&point.variant);
            }
        }
        let index = self.figures.iter().position(|figure| figure.key == entry.column())?;
        let all = self.points.len();
        let ended =
            self.points.iter().filter(|p| p.figures.get(index).is_some_and(Option::is_some));
        let missing = all - ended.count();
        let mut said = if variants.len() > 1 && variants.len() <= FEW {
            let each = variants.iter().filter_map(|variant| {
                let (least, _) = self.ends(entry, Some(variant))?;
                Some(format!("after {} ({})", after(&least), self.place(least.0)))
            });
            let each: Vec<String> = each.collect();
            format!("The programs end soonest {}.", each.join(", "))
        } else if all == 1 {
            format!("The programs end after {}.", after(&least))
        } else {
            let (time, place) = (after(&least), self.place(least.0));
            match missing {
                0 => format!(
                    "The programs end soonest after {time} ({place}), latest after {} ({}).",
                    after(&most),
                    self.place(most.0)
                ),
                _ => format!("The programs end soonest after {time} ({place})."),
            }
        };
        if missing > 0 {
            said += &format!(" In {missing} of {all} runs they do not end.");
        }
        Some(said)
    }

    /// The points with the least and the most of a figure, the first of equals, among all or those
    /// of a variant. A network that stands still is neither.
    fn ends(&self, entry: &Entry, of: Option<&str>) -> Option<(Extreme<'_>, Extreme<'_>)> {
        let index = self.figures.iter().position(|figure| figure.key == entry.column())?;
        let mut ends: Option<(Extreme<'_>, Extreme<'_>)> = None;
        let asked = |point: &&VariantPoint| {
            point.status != Status::Deadlock && of.is_none_or(|variant| point.variant == variant)
        };
        for point in self.points.iter().filter(asked) {
            let Some(figure) = point.figures.get(index).copied().flatten() else {
                continue;
            };
            let (least, most) = ends.get_or_insert(((point, figure), (point, figure)));
            if figure.mean < least.1.mean {
                *least = (point, figure);
            }
            if figure.mean > most.1.mean {
                *most = (point, figure);
            }
        }
        ends
    }

    /// Where on the grid a point is, in words.
    fn place(&self, point: &VariantPoint) -> String {
        let at: Vec<Option<usize>> = point.at.iter().copied().map(Some).collect();
        let mut words = place(&self.axes, &at);
        if self.points.iter().any(|other| other.variant != point.variant) {
            words.push(point.variant.clone());
        }
        words.join(", ")
    }

    /// What the page draws.
    pub fn data(&self) -> SweepData {
        let steady = |figure: &Option<Estimate>| figure.filter(|figure| figure.steady);
        let changing = |figure: &Option<Estimate>| figure.is_some_and(|f| f.is_changing());
        let point = |point: &VariantPoint| SweepPoint {
            at: point.at.clone(),
            variant: point.variant.clone(),
            mean: point.figures.iter().map(|f| Some(steady(f)?.mean)).collect(),
            half_width: point.figures.iter().map(|f| steady(f)?.half_width).collect(),
            converged: matches!(point.status, Status::Complete | Status::Starved),
            settled: point.figures.iter().map(|f| !changing(f)).collect(),
            steady: point.figures.iter().map(|f| f.is_none_or(|f| f.steady)).collect(),
            run: point.run.clone(),
        };
        SweepData {
            axes: self.axes.clone(),
            figures: self.figures.clone(),
            points: self.points.iter().map(point).collect(),
        }
    }
}

/// A point and a figure of it.
type Extreme<'a> = (&'a VariantPoint, Estimate);

/// A value as people read it.
fn text(value: &AxisValue) -> String {
    match value {
        AxisValue::Number(number) => {
            // Four significant digits, none of them a zero that says nothing.
            let place = if *number == 0.0 { 0 } else { number.abs().log10().floor() as i32 };
            let text = format!("{number:.*}", (3 - place).clamp(0, 9) as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        AxisValue::Text(text) => text.clone(),
    }
}

/// The values of an axis: all of them, or how many there are from where to where.
fn values(axis: &SweepAxis) -> String {
    const TOLD: usize = 8;
    let unit = if axis.unit.is_empty() { String::new() } else { format!(" {}", axis.unit) };
    match axis.values.as_slice() {
        [first @ AxisValue::Number(_), .., last @ AxisValue::Number(_)]
            if axis.values.len() > TOLD =>
        {
            format!("{} to {}{unit}, {} values", text(first), text(last), axis.values.len())
        }
        all => format!("{}{unit}", all.iter().map(text).collect::<Vec<_>>().join(", ")),
    }
}

/// The facts of the points: of those that differ, both of two, else one of them and how many more.
fn facts(done: &[&Record]) -> Vec<Fact> {
    const TOLD: usize = 2;
    let mut labels: Vec<(&str, Vec<&str>)> = Vec::new();
    for fact in done.iter().flat_map(|record| &record.facts) {
        match labels.iter_mut().find(|(label, _)| *label == fact.label) {
            Some((_, values)) if values.contains(&fact.value.as_str()) => {}
            Some((_, values)) => values.push(&fact.value),
            None => labels.push((&fact.label, vec![&fact.value])),
        }
    }
    let fact = |(label, values): (&str, Vec<&str>)| Fact {
        label: label.to_owned(),
        value: match values.len() {
            few if few <= TOLD => values.join("; "),
            many => format!("{}; {} others at other points", values[0], many - 1),
        },
    };
    labels.into_iter().map(fact).collect()
}

fn axis(axis: &Axis) -> SweepAxis {
    let (values, unit) = match axis.numbers() {
        Some((numbers, unit)) => (numbers.into_iter().map(AxisValue::Number).collect(), unit),
        None => (axis.texts().into_iter().map(AxisValue::Text).collect(), ""),
    };
    let key = axis.key();
    // `load` says enough; of two axes with the same last word the page has the keys.
    let label = key.rsplit('.').next().unwrap_or(&key).replace('_', " ");
    SweepAxis { label, unit: unit.into(), values, key }
}

/// The figures of all points: those with hot flows and victims have others than those without.
fn figures(done: &[&Record]) -> Vec<SweepFigure> {
    let mut all: Vec<SweepFigure> = Vec::new();
    for figure in done.iter().flat_map(|record| &record.figures) {
        if !all.iter().any(|known| known.key == figure.key) {
            all.push(figure.clone());
        }
    }
    all
}

fn in_order(
    figures: &[SweepFigure],
    record: &Record,
    variant: &VariantRecord,
) -> Vec<Option<Estimate>> {
    let of = |figure: &SweepFigure| {
        let at = record.figures.iter().position(|own| own.key == figure.key)?;
        *variant.figures.get(at)?
    };
    figures.iter().map(of).collect()
}

/// Of the rows of `[[published]]`, those that a sweep answers: by going through its points, or by
/// loads being all that is varied. Others, single runs answer.
fn published(sweep: &Sweep, records: &[Option<Record>]) -> Vec<PublishedRow> {
    let grid = Grid::of(sweep, records);
    let axes: Vec<SweepAxis> = sweep.axes.iter().map(axis).collect();
    let first = sweep.base.variants.first().map_or("", |variant| variant.name.as_str());
    let mut rows = Vec::new();
    for row in &sweep.base.published {
        let variant = row.variant.as_deref().unwrap_or(first);
        let found = row.measure.answer(&grid, &At::of(variant, &grid));
        if found.is_none() && !row.measure.is_of_sweep() {
            continue;
        }
        let chosen = found.iter().flat_map(|series| &series.chosen);
        let places: Vec<(&str, String)> =
            chosen.map(|(variant, at)| (variant.as_str(), place(&axes, at).join(", "))).collect();
        let several = places.iter().any(|place| *place != places[0]);
        let text = |(variant, place): &(&str, String)| match several {
            true => format!("{place} ({variant})"),
            false => place.clone(),
        };
        let told: Vec<String> = match (several, places.first()) {
            (_, None) => Vec::new(),
            (false, Some(one)) => vec![text(one)],
            (true, Some(_)) => places.iter().map(text).collect(),
        };
        let place = Some(told.join(" and ")).filter(|place| !place.is_empty());
        let seeds = sweep.base.plan.seeds as usize;
        let estimate = found.and_then(|series| series.estimate());
        rows.push(PublishedRow::of(row, estimate, place, seeds));
    }
    note_moves(&mut rows);
    rows
}

/// Where on the grid a point is, by axis with more than one value.
fn place(axes: &[SweepAxis], at: &[Option<usize>]) -> Vec<String> {
    let several = axes.iter().zip(at).filter(|(axis, _)| axis.values.len() > 1);
    let at = several.filter_map(|(axis, at)| Some((axis, axis.values.get((*at)?)?)));
    let words = at.map(|(axis, value)| {
        let unit = if axis.unit.is_empty() { "" } else { " " };
        format!("{} {}{unit}{}", axis.label, text(value), axis.unit)
    });
    words.collect()
}

/// Rows that go along keys of which none is varied: they have no figure.
fn not_varied(sweep: &Sweep) -> Vec<String> {
    let varied: Vec<String> = sweep.axes.iter().map(Axis::key).collect();
    let mut rows: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for row in &sweep.base.published {
        for key in row.measure.all().into_iter().flat_map(|asked| asked.arguments.points.keys()) {
            let named = rows.entry(key.to_owned()).or_default();
            if !varied.iter().any(|varied| varied == key) && !named.contains(&row.name.as_str()) {
                named.push(&row.name);
            }
        }
    }
    let rows = rows.into_iter().filter_map(|(key, rows)| {
        let near = clearlane_ib::nearest(&key, varied.iter().map(String::as_str));
        let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        let more = match rows.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (first, key) = (LabError::one_line(rows.first()?), LabError::one_line(&key));
        Some(format!("no figure for row \"{first}\"{more}: {key} is not varied{near}"))
    });
    rows.collect()
}

/// Oddities of single points, each once with the points that have it.
fn oddities(sweep: &Sweep, records: &[Option<Record>]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<usize>)> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        for oddity in record.iter().flat_map(|record| &record.oddities) {
            match all.iter_mut().find(|(known, _)| known == oddity) {
                Some((_, points)) => points.push(index),
                None => all.push((oddity, vec![index])),
            }
        }
    }
    let missing = records.iter().filter(|record| record.is_none()).count();
    let finished = records.len() - missing;
    let mut said = Vec::new();
    if missing > 0 {
        said.push(format!("{missing} of {} points are missing; run it again", records.len()));
    }
    said.extend(not_varied(sweep));
    let axes: Vec<SweepAxis> = sweep.axes.iter().map(axis).collect();
    let place = |index: &usize| {
        let texts = axes.iter().zip(&sweep.points[*index].at).filter_map(|(axis, at)| {
            Some(format!("{} {}", axis.label, text(axis.values.get(*at)?)))
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    said.extend(all.into_iter().map(|(oddity, points)| match points.as_slice() {
        every if every.len() == finished && finished > 1 => oddity.to_owned(),
        [first, rest @ ..] if !rest.is_empty() => {
            let points = if rest.len() == 1 { "point" } else { "points" };
            format!("{} and {} more {points}: {oddity}", place(first), rest.len())
        }
        points => format!("{}: {oddity}", points.first().map(place).unwrap_or_default()),
    }));
    said
}
