//! What a run's folder holds: the headline table, the summary as JSON, tables as Parquet.

mod claim;
mod control;
mod exchange;
mod folder;
mod headline;
mod programs;
mod summary;
mod tables;

pub use control::ControlTotals;
pub use exchange::exchange_folders;
pub use folder::{RunFolder, write_run_folder};
pub use headline::Better;

pub(crate) use claim::Claim;
pub(crate) use control::{CONTROL_COLUMNS, control_row};
pub(crate) use folder::{refused, replace, whole};
pub(crate) use headline::{HeadlineColumn, align_marks, cell_text, headline, published_table};
pub(crate) use tables::parquet_of_points;
