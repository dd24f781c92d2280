//! How busy the ways to nodes were in a run that lies in a folder.

use crate::{LabError, error::named};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use std::fs::File;
use std::path::Path;

const FILE: &str = "links.parquet";
/// The columns that are read.
const COLUMNS: [&str; 4] = ["variant", "seed", "to_node", "load"];

/// The load, 0 to 1, of every channel of the first variant and seed of a run's folder, by the name
/// of the node that receives, in the order of the file. Fails where the folder has no such run.
pub fn loads_to_nodes(folder: &Path) -> Result<Vec<(String, f64)>, LabError> {
    let path = folder.join(FILE);
    let file = File::open(&path).map_err(|source| LabError::Read { path: path.clone(), source })?;
    let broken = |error: ParquetError| {
        let error = error.to_string().replace('\n', " ");
        let path = named(&path);
        LabError::Request(format!("{path}: {error}; give the folder of a `clearlane run`"))
    };
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let column = |name: &str| {
        let at = schema.columns().iter().position(|column| column.name() == name);
        at.ok_or_else(|| broken(ParquetError::General(format!("has no column {name}"))))
    };
    let [variant, seed, node, load] = COLUMNS.map(column);
    let (variant, seed, node, load) = (variant?, seed?, node?, load?);
    let read = |row: Row| -> Result<(String, i64, String, f64), ParquetError> {
        let text = |at| row.get_string(at).cloned();
        Ok((text(variant)?, row.get_long(seed)?, text(node)?, row.get_double(load)?))
    };
    let rows = reader.get_row_iter(None).map_err(broken)?;
    let rows = rows.map(|row| row.and_then(read).map_err(broken)).collect::<Result<Vec<_>, _>>()?;
    let first = rows.first().map(|(variant, seed, ..)| (variant.clone(), *seed));
    let is_first = |(variant, seed, ..): &(String, i64, String, f64)| {
        first.as_ref().is_some_and(|first| first.0 == *variant && first.1 == *seed)
    };
    let rows = rows.into_iter().filter(is_first);
    Ok(rows.map(|(_, _, node, load)| (node, load)).collect())
}
