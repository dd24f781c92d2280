//! Variants that differ in the load they offer, as curves over it: the latency-load curves of an
//! experiment whose variants are its points.

use super::sweep::{AxisValue, SweepAxis, SweepData, SweepFigure, SweepPoint};
use crate::experiment::Variant;
use crate::headline::{HeadlineColumn, headline};
use crate::measure::Estimate;
use crate::result::RunResult;

/// The variants over the load of the traffic in which they differ; nothing unless two of them are
/// alike in everything else, and that load is one number in each.
pub(super) fn curves(result: &RunResult) -> Option<SweepData> {
    let specs = &result.experiment.variants;
    let loads = loads(specs)?;
    let alike = without_loads(result)?;
    let mut values = loads.clone();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut lines: Vec<Vec<usize>> = Vec::new();
    for index in 0..specs.len() {
        match lines.iter_mut().find(|line| alike[line[0]] == alike[index]) {
            Some(line) => line.push(index),
            None => lines.push(vec![index]),
        }
    }
    if values.len() < 2 || lines.iter().all(|line| line.len() < 2) {
        return None;
    }
    let table = headline(result);
    // Offered load is what the curves are over.
    let shown: Vec<usize> = order(&table.columns);
    let mut points = Vec::new();
    for line in &lines {
        let names: Vec<&str> = line.iter().map(|index| specs[*index].name.as_str()).collect();
        let name = name_of(&names);
        for index in line {
            let cells = &table.rows[*index].1;
            let runs = &result.variants[*index].runs;
            let settled = |run: &crate::result::SeedResult| {
                run.figures.warm_up.converged && !run.interrupted && !run.is_deadlock()
            };
            let place = values.iter().position(|value| *value == loads[*index])?;
            points.push(SweepPoint {
                at: vec![place],
                variant: name.clone(),
                mean: shown.iter().map(|c| Some(steady(&cells[*c])?.mean)).collect(),
                half_width: shown.iter().map(|c| steady(&cells[*c])?.half_width).collect(),
                converged: !runs.is_empty() && runs.iter().all(settled),
                settled: shown.iter().map(|c| !is_changing(&cells[*c])).collect(),
                steady: shown.iter().map(|c| cells[*c].is_none_or(|f| f.steady)).collect(),
                run: None,
            });
        }
    }
    let figure = |column: &HeadlineColumn| SweepFigure {
        key: column.key.clone(),
        label: column.label.to_owned(),
        unit: column.unit.to_owned(),
        better: column.better,
    };
    Some(SweepData {
        axes: vec![SweepAxis {
            key: "load".into(),
            label: "offered load".into(),
            unit: String::new(),
            values: values.into_iter().map(AxisValue::Number).collect(),
        }],
        figures: shown.iter().map(|index| figure(&table.columns[*index])).collect(),
        points,
    })
}

/// A figure that can be drawn.
fn steady(figure: &Option<Estimate>) -> Option<Estimate> {
    figure.filter(|figure| figure.steady)
}

fn is_changing(figure: &Option<Estimate>) -> bool {
    figure.is_some_and(|figure| figure.is_changing())
}

/// Columns with what is delivered first and latency next: the two curves people look for.
fn order(columns: &[HeadlineColumn]) -> Vec<usize> {
    let rank = |column: &HeadlineColumn| match column.measure.entry.name {
        "delivered-load" | "accepted-gbps" => 0,
        "latency-mean" => 1,
        _ => 2,
    };
    let mut order: Vec<usize> = (0..columns.len())
        .filter(|index| columns[*index].measure.entry.name != "offered-load")
        .collect();
    order.sort_by_key(|index| rank(&columns[*index]));
    order
}

/// By variant, the load of the groups whose loads differ between variants.
fn loads(specs: &[Variant]) -> Option<Vec<f64>> {
    let first = specs.first()?;
    let groups = first.traffic.len();
    if specs.iter().any(|spec| spec.traffic.len() != groups) {
        return None;
    }
    let load = |spec: &Variant, group: usize| spec.traffic[group].load();
    let differs =
        |group: &usize| specs.iter().any(|spec| load(spec, *group) != load(first, *group));
    let differing: Vec<usize> = (0..groups).filter(differs).collect();
    let one = |spec: &Variant| {
        let value = load(spec, *differing.first()?);
        let same = differing.iter().all(|group| load(spec, *group) == value);
        value.filter(|_| same)
    };
    specs.iter().map(one).collect()
}

/// By variant, everything the experiment says of it but its name and its loads.
fn without_loads(result: &RunResult) -> Option<Vec<toml::Value>> {
    let table = result.experiment.resolved_table();
    let plain = |variant: &toml::Value| {
        let mut plain = variant.as_table()?.clone();
        plain.remove("name");
        plain.remove("summary");
        for group in plain.get_mut("traffic")?.as_array_mut()? {
            group.as_table_mut()?.remove("load");
        }
        Some(toml::Value::Table(plain))
    };
    table.get("variant")?.as_array()?.iter().map(plain).collect()
}

/// The words that the names of a line share; the first and the last of them if there are none.
fn name_of(names: &[&str]) -> String {
    let words = |name: &str| name.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let Some(first) = names.first() else { return String::new() };
    let in_all = |word: &String| names.iter().all(|name| words(name).contains(word));
    let shared: Vec<String> = words(first).into_iter().filter(in_all).collect();
    match (shared.is_empty(), names) {
        (false, _) => shared.join(" "),
        (true, [one]) => (*one).to_owned(),
        (true, [first, .., last]) => format!("{first} … {last}"),
        (true, []) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_called_by_what_its_variants_share() {
        assert_eq!(name_of(&["deep 0.5", "deep 0.6"]), "deep");
        assert_eq!(name_of(&["deep free 0.7", "deep free 1.0"]), "deep free");
        assert_eq!(name_of(&["0.3", "0.4", "1.0"]), "0.3 … 1.0");
        assert_eq!(name_of(&["alone"]), "alone");
    }
}
