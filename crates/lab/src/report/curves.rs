//! Variants that differ in the load they offer, as curves over it: the latency-load curves of an
//! experiment whose variants are its points.

use super::sweep::{AxisValue, SweepAxis, SweepData, SweepFigure, SweepPoint};
use crate::experiment::Variant;
use crate::result::RunResult;
use crate::results::{HeadlineColumn, headline};

/// The variants over the load of their traffic; nothing unless two of them are alike in everything
/// else, and the loads of all groups of a variant are one.
pub(super) fn curves(result: &RunResult) -> Option<SweepData> {
    let specs = &result.experiment.variants;
    let loads: Vec<f64> = specs.iter().map(load).collect::<Option<_>>()?;
    let mut values = loads.clone();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut lines: Vec<Vec<usize>> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let alike = lines.iter_mut().find(|line| same_but_load(&specs[line[0]], spec));
        match alike {
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
                mean: shown.iter().map(|c| Some(cells[*c]?.mean)).collect(),
                half_width: shown.iter().map(|c| cells[*c]?.half_width).collect(),
                converged: !runs.is_empty() && runs.iter().all(settled),
                run: None,
            });
        }
    }
    let figure = |column: &HeadlineColumn| SweepFigure {
        key: column.key.to_owned(),
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

/// Columns with what is delivered first and latency next: the two curves people look for.
fn order(columns: &[HeadlineColumn]) -> Vec<usize> {
    let rank = |column: &HeadlineColumn| match column.key {
        "delivered" | "gbps" => 0,
        "mean" => 1,
        _ => 2,
    };
    let mut order: Vec<usize> =
        (0..columns.len()).filter(|index| columns[*index].key != "offered").collect();
    order.sort_by_key(|index| rank(&columns[*index]));
    order
}

/// The load of a variant's groups, if it is one.
fn load(variant: &Variant) -> Option<f64> {
    let first = variant.traffic.first()?.load;
    variant.traffic.iter().all(|group| group.load == first).then_some(first)
}

fn same_but_load(a: &Variant, b: &Variant) -> bool {
    let plain = |variant: &Variant| {
        let mut plain = variant.clone();
        plain.name.clear();
        plain.summary.clear();
        plain.traffic.iter_mut().for_each(|group| group.load = 0.0);
        // What is derived shows every field.
        format!("{plain:?}")
    };
    plain(a) == plain(b)
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
