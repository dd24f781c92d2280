//! The table of results: a row per variant, a column per quantity; beside it published numbers,
//! what mechanisms did, and when programs were complete.

mod control;
mod programs;
mod published;

pub use control::ControlTotals;
pub(crate) use control::{CONTROL_COLUMNS, control_row};
pub use published::{Moved, PublishedRow};
pub(crate) use published::{note_moves, published_table};

use crate::measure::{Asked, Entry, Estimate, Scope, kinds};
use crate::result::{RunResult, VariantResult};
use crate::table::{Align, Table, with_interval};
use clearlane_workload::{Class, FlowGroup, Rank};
use serde::{Deserialize, Serialize};

/// Which end of a scale is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Much is good.
    High,
    /// Little is good.
    Low,
}

/// A column of the headline.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HeadlineColumn {
    /// The measure's name as a column, and whose it is where that is one class.
    pub(crate) key: String,
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Option<Better>,
    /// What it measures, in one line.
    pub(crate) explained: &'static str,
    #[serde(skip)]
    pub(crate) measure: Asked,
}

/// Columns and, by variant, cells.
pub(crate) struct Headline {
    pub(crate) columns: Vec<HeadlineColumn>,
    pub(crate) rows: Vec<(String, Vec<Option<Estimate>>)>,
}

fn column(
    label: &'static str,
    better: Option<Better>,
    entry: &'static Entry,
    scope: Scope,
) -> HeadlineColumn {
    // Micro sign in what people read; files keep to ASCII.
    let unit = match entry.unit {
        "us" => "µs",
        unit => unit,
    };
    let key = match &scope {
        Scope::Class(class) => format!("{}_{}", class.name(), entry.column()),
        Scope::All | Scope::Group(_) => entry.column(),
    };
    let explained = entry.summary;
    HeadlineColumn { key, label, unit, better, explained, measure: Asked::scoped(entry, scope) }
}

/// What is shown depends on whose side there is: hot flows and victims, or everybody.
fn columns(result: &RunResult) -> Vec<HeadlineColumn> {
    use Better::{High, Low};
    let has = |class| {
        let mut groups = result.variants.iter().flat_map(|variant| &variant.prepared.groups);
        groups.any(|group| group.class == class)
    };
    let sides = has(Class::Hot) && has(Class::Victim);
    let mut columns = Vec::new();
    let groups = || result.variants.iter().flat_map(|variant| &variant.prepared.groups);
    // Programs post as much as is delivered, and offer no share of a link to be fair about.
    let open_loop = groups().any(|group| group.offered().is_some());
    if groups().any(|group| group.program().is_some()) {
        let all = Scope::All;
        columns.push(column("completion", Some(Low), &kinds::completion_time::ENTRY, all));
        if repeats(result) {
            let all = Scope::All;
            columns.push(column("one operation", Some(Low), &kinds::operation_time::ENTRY, all));
        }
    }
    // Shares of links that differ between variants say nothing of who gets more.
    let share = if result.links_differ() { None } else { Some(High) };
    if sides {
        let hot = Scope::Class(Class::Hot);
        columns.push(column("hot payload", Some(High), &kinds::accepted_gbps::ENTRY, hot));
    }
    let scope = || if sides { Scope::Class(Class::Victim) } else { Scope::All };
    if sides {
        columns.push(column("victim payload", Some(High), &kinds::accepted_gbps::ENTRY, scope()));
        let alone = &kinds::alone_gbps::ENTRY;
        columns.push(column("victims without hot flows", Some(High), alone, Scope::All));
        columns.push(column("victim accepted", share, &kinds::accepted_load::ENTRY, scope()));
        columns.push(column("victim slowdown", Some(Low), &kinds::slowdown::ENTRY, Scope::All));
        let uncontrolled = &kinds::slowdown_uncontrolled::ENTRY;
        if result.experiment.asks(uncontrolled) {
            columns.push(column("against uncontrolled", Some(Low), uncontrolled, Scope::All));
        }
    } else {
        if open_loop {
            columns.push(column("offered", None, &kinds::offered_load::ENTRY, scope()));
        }
        if share.is_none() {
            columns.push(column("payload", Some(High), &kinds::accepted_gbps::ENTRY, scope()));
        }
        columns.push(column("delivered", share, &kinds::delivered_load::ENTRY, scope()));
        columns.push(column("accepted", share, &kinds::accepted_load::ENTRY, scope()));
    }
    let label = |victims, everybody| if sides { victims } else { everybody };
    let (mean, p50) = (label("victim latency mean", "latency mean"), label("victim p50", "p50"));
    let (p99, jain) = (label("victim p99", "p99"), label("victim Jain", "Jain"));
    columns.push(column(mean, Some(Low), &kinds::latency_mean::ENTRY, scope()));
    columns.push(column(p50, Some(Low), &kinds::latency_p50::ENTRY, scope()));
    columns.push(column(p99, Some(Low), &kinds::latency_p99::ENTRY, scope()));
    let offers = |group: &FlowGroup| group.offered().is_some();
    if groups().any(|group| offers(group) && (!sides || group.class == Class::Victim)) {
        columns.push(column(jain, Some(High), &kinds::jain::ENTRY, scope()));
    }
    columns.push(column("worst link", None, &kinds::worst_load::ENTRY, Scope::All));
    columns.push(column("held back", Some(Low), &kinds::held_back::ENTRY, Scope::All));
    columns
}

/// Whether a program does several operations and is the only one of each variant: of several
/// programs there is no one operation.
fn repeats(result: &RunResult) -> bool {
    let programs = |variant: &VariantResult| -> Vec<u64> {
        let groups = variant.prepared.groups.iter();
        groups.filter_map(|group| Some(group.program()?.operations())).collect()
    };
    let each: Vec<_> = result.variants.iter().map(programs).collect();
    each.iter().all(|programs| programs.len() <= 1) && each.iter().flatten().any(|n| *n > 1)
}

/// The headline of a result.
pub(crate) fn headline(result: &RunResult) -> Headline {
    let columns = columns(result);
    let row = |variant: &VariantResult| {
        let cells = columns.iter().map(|column| result.ask(&column.measure, variant));
        (variant.name.clone(), cells.collect())
    };
    let rows = result.variants.iter().map(row).collect();
    Headline { columns, rows }
}

impl RunResult {
    /// The headline for a terminal: a row per variant, ± 95 % intervals over seeds, a `*` at what
    /// had not converged.
    pub fn headline_table(&self) -> Table {
        let Headline { columns, rows } = headline(self);
        let heads = columns.iter().map(|column| (column.label, column.unit, Align::Right));
        let mut table = Table::new([("variant", "", Align::Left)].into_iter().chain(heads));
        for (name, cells) in rows {
            let cells = cells.iter().map(|cell| cell_text(cell.as_ref()));
            table.rows.push([name].into_iter().chain(cells).collect());
        }
        align_marks(&mut table);
        table
    }

    /// Whether a sender's links carry more in one variant than in another, in the mean.
    pub(crate) fn links_differ(&self) -> bool {
        let carried = |variant: &VariantResult| -> u128 {
            let prepared = &variant.prepared;
            let rate = |rank: &Rank| prepared.hosts.rate(*rank, &prepared.parameters);
            let senders = || prepared.groups.iter().flat_map(|group| &group.senders);
            let all: u128 = senders().map(|rank| u128::from(rate(rank).bits_per_second().0)).sum();
            all / senders().count().max(1) as u128
        };
        let mut each = self.variants.iter().map(carried);
        let first = each.next();
        each.any(|carried| Some(carried) != first)
    }
}

/// Behind what had not converged.
pub(crate) const MARK: char = '*';
/// In the place of a latency that grows for as long as traffic is offered.
pub(crate) const NO_STEADY_VALUE: &str = "no steady value";

/// A figure as a table shows it.
pub(crate) fn cell_text(figure: Option<&Estimate>) -> String {
    match figure {
        None => "–".to_owned(),
        Some(figure) if !figure.steady => NO_STEADY_VALUE.to_owned(),
        Some(figure) => {
            let mut text = with_interval(figure.mean, figure.half_width);
            text.extend((!figure.converged).then_some(MARK));
            text
        }
    }
}

/// Makes room for the marks of a column at the cells that have none, so that digits line up.
pub(crate) fn align_marks(table: &mut Table) {
    for index in 0..table.columns.len() {
        let marked = |row: &Vec<String>| row.get(index).is_some_and(|cell| cell.ends_with(MARK));
        if table.columns[index].align == Align::Right && table.rows.iter().any(marked) {
            for cell in table.rows.iter_mut().filter_map(|row| row.get_mut(index)) {
                if !cell.ends_with(MARK) {
                    cell.push(' ');
                }
            }
        }
    }
}
