//! The tables of a run's folder, one a file: its rows, and its columns. A new one is its file and
//! its line in `tables!`.

use super::{Column, Described, columns, in_time, written};
use crate::halt::{Deadline, LeftOut};
use crate::result::{RunResult, SeedResult, VariantResult};
use parquet::errors::ParquetError;

type Of = fn(&VariantResult, &SeedResult, &Deadline) -> Result<Option<Vec<Column>>, LeftOut>;

/// A table of a run's folder.
#[derive(Debug)]
pub struct TableEntry {
    /// File name.
    pub file: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its columns, in their order.
    pub columns: &'static [Described],
    /// Makes the columns of one run; `None` where the table has no rows of it. Fails when the
    /// deadline has passed.
    of: Of,
}

macro_rules! tables {
    ($($module:ident)*) => {
        $(mod $module;)*

        /// All tables, in the order of their names.
        pub const TABLES: &[&TableEntry] = &[$(&$module::ENTRY),*];
    };
}

tables! {
    control
    flow_series
    flows
    links
    series
}

/// The schema of the tables, in the metadata of each file.
const SCHEMA: &str = "clearlane-tables/2";

impl TableEntry {
    /// The table of a result, a row group a run; `None` if no finished run has rows for it.
    pub(crate) fn parquet(
        &self,
        result: &RunResult,
        deadline: &Deadline,
    ) -> Result<Option<Result<Vec<u8>, ParquetError>>, LeftOut> {
        let runs = result.variants.iter().flat_map(|v| v.runs.iter().map(move |run| (v, run)));
        let mut groups: Vec<Vec<Column>> = Vec::new();
        for (variant, run) in runs.clone() {
            deadline.go_on()?;
            groups.extend((self.of)(variant, run, deadline)?);
        }
        deadline.go_on()?;
        let is_there = !groups.is_empty() || runs.count() == 0;
        Ok(is_there.then(|| written(groups.into_iter(), SCHEMA)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_says_what_it_is_and_names_its_unit() {
        for table in TABLES {
            for column in table.columns {
                let place = format!("{}: {}", table.file, column.name);
                assert!(column.summary.len() > 9, "{place}");
                let kinds = ["text", "count", "real", "count_if_any"];
                assert!(kinds.contains(&column.kind), "{place}");
                let unit = column.unit.to_lowercase().replace('/', "p").replace(' ', "");
                assert!(column.name.to_lowercase().ends_with(&unit), "{place}: {unit}");
            }
            let names: std::collections::BTreeSet<_> =
                table.columns.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), table.columns.len(), "{}", table.file);
        }
    }
}
