//! What a run's folder holds: the summary as JSON, tables as Parquet, the report.

mod folder;
mod loads;
mod summary;

pub use folder::{RunFolder, write_run_folder};
pub use loads::loads_to_nodes;
