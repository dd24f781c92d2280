//! What a run's folder holds: the summary as JSON, tables as Parquet, the report.

mod busiest;
mod folder;
mod summary;

pub use busiest::{BusiestHosts, HostLoad};
pub use folder::{Filled, RunFolder, write_run_folder};
