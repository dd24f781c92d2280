//! Tables as Parquet, which pandas, polars and DuckDB read: columns that say what they are, and the
//! file they make. `tables` has one table of a run's folder a file.

mod flow_series;
mod packet_log;
mod tables;

pub use flow_series::{FLOW_SERIES_FILE, FlowSlice, read_flow_series, write_flow_series};
pub use packet_log::{LoggedPacket, PACKET_LOG_COLUMNS, PACKET_LOG_FILE, PacketLog};
pub use tables::{TABLES, TableEntry};

use crate::halt::{Deadline, LeftOut};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

/// A column of a table, as the reference lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Described {
    /// Its name; a unit is part of it.
    pub name: &'static str,
    /// `text` (UTF-8), `count` (INT64), `real` (DOUBLE) or `count_if_any` (INT64 or null).
    pub kind: &'static str,
    /// Unit; empty for a text or a pure number.
    pub unit: &'static str,
    /// What it holds.
    pub summary: &'static str,
}

/// The columns of a table: what they are, and how they are made of its rows.
macro_rules! columns {
    (|$row:ident: $type:ty| $($kind:ident $name:literal $unit:literal $summary:literal $of:expr;)*)
    => {
        /// What the columns are.
        pub(super) const COLUMNS: &[$crate::columns::Described] = &[$($crate::columns::Described {
            name: $name, kind: stringify!($kind), unit: $unit, summary: $summary,
        }),*];

        /// The columns of these rows, each made when it is asked for.
        fn columns<'a>(rows: &'a [$type]) -> impl Iterator<Item = $crate::columns::Column> + 'a {
            type Make<'a> = Box<dyn Fn() -> $crate::columns::Column + 'a>;
            let all: Vec<Make<'a>> = vec![$(
                Box::new(|| $crate::columns::$kind($name, rows.iter().map(|$row: &$type| $of)))
            ),*];
            all.into_iter().map(|make| make())
        }
    };
}
use columns;

/// One column of one row group.
pub(crate) enum Column {
    Text(String, Vec<ByteArray>),
    Count(String, Vec<i64>),
    CountIfAny(String, Vec<Option<i64>>),
    Real(String, Vec<f64>),
    /// Numbers and answers that may be missing.
    RealIfAny(String, Vec<Option<f64>>),
    YesNoIfAny(String, Vec<Option<bool>>),
}

impl Column {
    fn field(&self) -> String {
        match self {
            Column::Text(name, _) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Column::Count(name, _) => format!("REQUIRED INT64 {name};"),
            Column::CountIfAny(name, _) => format!("OPTIONAL INT64 {name};"),
            Column::Real(name, _) => format!("REQUIRED DOUBLE {name};"),
            Column::RealIfAny(name, _) => format!("OPTIONAL DOUBLE {name};"),
            Column::YesNoIfAny(name, _) => format!("OPTIONAL BOOLEAN {name};"),
        }
    }
}

/// A column of texts, all of them in one piece of memory.
pub(crate) fn text<T: AsRef<str>>(name: &str, values: impl Iterator<Item = T>) -> Column {
    let (mut texts, mut ends) = (Vec::new(), Vec::new());
    for value in values {
        texts.extend_from_slice(value.as_ref().as_bytes());
        ends.push(texts.len());
    }
    let (texts, mut begin) = (Bytes::from(texts), 0);
    let part = |end| ByteArray::from(texts.slice(std::mem::replace(&mut begin, end)..end));
    Column::Text(name.to_owned(), ends.into_iter().map(part).collect())
}

/// A column of whole numbers.
pub(crate) fn count(name: &str, values: impl Iterator<Item = u64>) -> Column {
    let number = |value| i64::try_from(value).unwrap_or(i64::MAX);
    Column::Count(name.to_owned(), values.map(number).collect())
}

/// A column of whole numbers that may be missing.
pub(crate) fn count_if_any(name: &str, values: impl Iterator<Item = Option<u64>>) -> Column {
    let number = |value| i64::try_from(value).unwrap_or(i64::MAX);
    Column::CountIfAny(name.to_owned(), values.map(|value| value.map(number)).collect())
}

/// A column of numbers.
pub(crate) fn real(name: &str, values: impl Iterator<Item = f64>) -> Column {
    Column::Real(name.to_owned(), values.collect())
}

/// Makes columns one after another while there is time.
fn in_time(
    columns: impl Iterator<Item = Column>,
    deadline: &Deadline,
) -> Result<Vec<Column>, LeftOut> {
    columns.map(|column| deadline.go_on().map(|()| column)).collect()
}

/// One row group for each set of columns; all have the same.
pub(crate) fn written(
    groups: impl Iterator<Item = Vec<Column>>,
    schema_name: &str,
) -> Result<Vec<u8>, ParquetError> {
    let mut runs = groups.peekable();
    let fields: Vec<String> =
        runs.peek().map_or(Vec::new(), |columns| columns.iter().map(Column::field).collect());
    let schema = match fields.is_empty() {
        // Nothing was finished: a table without rows still says what it would hold.
        true => "message clearlane { REQUIRED INT64 seed; }".to_owned(),
        false => format!("message clearlane {{ {} }}", fields.join(" ")),
    };
    let schema = Arc::new(parse_message_type(&schema)?);
    let metadata = vec![KeyValue::new("schema".into(), schema_name.to_owned())];
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_created_by(format!("clearlane {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    for columns in runs {
        write_group(&mut file, columns)?;
    }
    file.close()?;
    Ok(bytes)
}

/// Adds a row group to a file.
fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: Vec<Column>,
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            Column::Text(_, values) => {
                writer.typed::<ByteArrayType>().write_batch(&values, None, None)?
            }
            Column::Count(_, values) => {
                writer.typed::<Int64Type>().write_batch(&values, None, None)?
            }
            Column::CountIfAny(_, values) => {
                let (there, values) = present(values);
                writer.typed::<Int64Type>().write_batch(&values, Some(&there), None)?
            }
            Column::Real(_, values) => {
                writer.typed::<DoubleType>().write_batch(&values, None, None)?
            }
            Column::RealIfAny(_, values) => {
                let (there, values) = present(values);
                writer.typed::<DoubleType>().write_batch(&values, Some(&there), None)?
            }
            Column::YesNoIfAny(_, values) => {
                let (there, values) = present(values);
                writer.typed::<BoolType>().write_batch(&values, Some(&there), None)?
            }
        };
        writer.close()?;
    }
    group.close().map(|_| ())
}

/// Definition levels of a column that may have nulls, and the values that are there.
fn present<T>(values: Vec<Option<T>>) -> (Vec<i16>, Vec<T>) {
    let there = values.iter().map(|value| i16::from(value.is_some())).collect();
    (there, values.into_iter().flatten().collect())
}

/// A column's name: letters, digits and `_`; `traffic.hot.load` becomes `traffic_hot_load`.
pub(crate) fn column_name(parts: &[&str]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| part.replace('µ', "u").replace('/', "p").chars().map(plain).collect())
        .collect();
    parts.join("_")
}
