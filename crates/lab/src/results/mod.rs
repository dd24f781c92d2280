//! What a run's folder holds: the headline table, the summary as JSON, tables as Parquet.

mod folder;
mod headline;
mod summary;
mod tables;

pub use folder::{check_run_folder, write_run_folder};
pub use headline::Better;

pub(crate) use headline::{HeadlineColumn, headline};
