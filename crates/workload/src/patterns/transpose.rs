//! Matrix transpose: row and column of the host change places.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{Ranks, Routes};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "transpose",
    summary: "hosts as a matrix in row order; (row, column) sends to (column, row)",
    parameters: "columns: of the matrix, must divide N; default √N. Not square: index transpose",
    reference: "Dally and Towles, Principles and Practices of Interconnection Networks, 3.2",
};

/// The matrix.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Columns; √N if left out.
    #[serde(default)]
    pub columns: Option<u32>,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let count = ranks.count();
        let columns = self.columns.unwrap_or(count.isqrt());
        if columns == 0 || !count.is_multiple_of(columns) {
            return Err(format!("{count} hosts are no matrix of {columns} columns; set columns"));
        }
        if self.columns.is_none() && columns * columns != count {
            return Err(format!("{count} hosts are no square matrix; set columns"));
        }
        let rows = count / columns;
        Ok(Permutation::of(count, |rank| rank % columns * rows + rank / columns))
    }
}
