//! Flows slice by slice, in one format whatever they were seen by: a simulation, captures, or the
//! hosts of a real network. A slice in which a flow did nothing has no row.

use super::{Column, columns, in_time, written};
use crate::halt::{Deadline, LeftOut};
use clearlane_ib::within;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// What a file of it is called.
pub const FLOW_SERIES_FILE: &str = "flow-series.parquet";

/// The schema, in the file's metadata.
const SCHEMA: &str = "clearlane-flow-series/1";

/// One flow in one slice of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowSlice {
    /// What it was seen by: `simulation`, `capture` or `hosts`.
    pub record: String,
    /// Name of the variant; empty where there are none.
    pub variant: String,
    /// Who sends, as its name or address.
    pub source: String,
    /// Who receives.
    pub destination: String,
    /// What tells it from other flows of the two: flow group, or queue pairs.
    pub detail: String,
    /// `hot`, `victim`, `background`; of a capture `contributor`, `victim`, `unhurt` or empty.
    pub class: String,
    /// When the slice begins, since the record began, µs.
    pub start_us: f64,
    /// How long it is, µs.
    pub length_us: f64,
    /// Payload, bytes.
    pub payload_bytes: u64,
    /// Packets with data; nothing where it is not recorded, as in what follows.
    pub packets: Option<u64>,
    /// Those of them marked with FECN or CE.
    pub marked: Option<u64>,
    /// CNPs and other packets with BECN that came back.
    pub notified: Option<u64>,
    /// Packets sent again.
    pub retransmitted: Option<u64>,
}

columns! { |row: FlowSlice|
    text "record" "" "what saw the flow: simulation, capture or hosts" &row.record;
    text "variant" "" "name of the variant; empty where there are none" &row.variant;
    text "source" "" "name or address of who sends" &row.source;
    text "destination" "" "name or address of who receives" &row.destination;
    text "detail" "" "flow group, or queue pairs" &row.detail;
    text "class" "" "hot, victim, background; of a capture contributor, victim, unhurt or empty"
        &row.class;
    real "start_us" "us" "when the slice begins, since the record began" row.start_us;
    real "length_us" "us" "how long the slice is" row.length_us;
    count "payload_bytes" "bytes" "payload: delivered in a simulation, seen in a capture"
        row.payload_bytes;
    count_if_any "packets" "packets" "packets with data; null where it is not recorded" row.packets;
    count_if_any "marked" "" "packets with data and FECN or CE; null where it is not recorded"
        row.marked;
    count_if_any "notified" "" "CNPs and packets with BECN that came back; null likewise"
        row.notified;
    count_if_any "retransmitted" "" "packets sent again; null likewise" row.retransmitted;
}

/// Makes the columns of rows of one run.
pub(crate) fn columns_of(rows: &[FlowSlice], deadline: &Deadline) -> Result<Vec<Column>, LeftOut> {
    in_time(columns(rows), deadline)
}

/// The file of these rows.
pub fn write_flow_series(rows: &[FlowSlice]) -> Result<Vec<u8>, ParquetError> {
    written(std::iter::once(columns(rows).collect()), SCHEMA)
}

/// Rows that are read: those of a capture of as many flows and slices as there can be.
const ROWS_MAX: i64 = 1 << 22;

/// The rows of such a file. Fails on another file, and on one without the columns.
pub fn read_flow_series(bytes: Vec<u8>) -> Result<Vec<FlowSlice>, String> {
    let wrong = |e: ParquetError| {
        format!(
            "is no {FLOW_SERIES_FILE}, which `run EXPERIMENT --out DIR` or `capture FILE --out \
             DIR` write; give such a folder ({e})"
        )
    };
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(wrong)?;
    let known = reader.metadata().file_metadata();
    if known.num_rows() > ROWS_MAX {
        return Err(format!("has {} rows; {ROWS_MAX} are read", known.num_rows()));
    }
    let fields = known.schema().get_fields();
    for column in COLUMNS {
        if !fields.iter().any(|field| field.name() == column.name) {
            return Err(format!(
                "has no column {}; give {FLOW_SERIES_FILE} of `run --out` or `capture --out`",
                column.name
            ));
        }
    }
    let rows = reader.get_row_iter(None).map_err(wrong)?;
    rows.map(|row| row.map(|row| slice(&row)).map_err(wrong)).collect()
}

/// Characters of a name that are read: no record of ours has more.
const NAME_CHARS_MAX: usize = 1000;

fn slice(row: &Row) -> FlowSlice {
    let mut slice = FlowSlice::default();
    for (name, field) in row.get_column_iter() {
        let text = || match field {
            Field::Str(text) => within(text, NAME_CHARS_MAX).into_owned(),
            _ => String::new(),
        };
        let count = || match field {
            Field::Long(count) => u64::try_from(*count).ok(),
            _ => None,
        };
        let real = || match field {
            Field::Double(real) if real.is_finite() => *real,
            _ => 0.0,
        };
        match name.as_str() {
            "record" => slice.record = text(),
            "variant" => slice.variant = text(),
            "source" => slice.source = text(),
            "destination" => slice.destination = text(),
            "detail" => slice.detail = text(),
            "class" => slice.class = text(),
            "start_us" => slice.start_us = real(),
            "length_us" => slice.length_us = real(),
            "payload_bytes" => slice.payload_bytes = count().unwrap_or(0),
            "packets" => slice.packets = count(),
            "marked" => slice.marked = count(),
            "notified" => slice.notified = count(),
            "retransmitted" => slice.retransmitted = count(),
            _ => {}
        }
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = |start_us, packets| FlowSlice {
            record: "capture".into(),
            source: "H1".into(),
            destination: "H4".into(),
            detail: "QP 0x2a".into(),
            start_us,
            length_us: 10.0,
            payload_bytes: 4096,
            packets,
            ..FlowSlice::default()
        };
        let rows = [row(0.0, Some(2)), row(10.0, None)];
        assert_eq!(read_flow_series(write_flow_series(&rows).unwrap()).unwrap(), rows);
        assert_eq!(read_flow_series(write_flow_series(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn a_name_without_an_end_is_cut() {
        let row = FlowSlice { source: "h".repeat(10 << 20), ..FlowSlice::default() };
        let read = read_flow_series(write_flow_series(&[row]).unwrap()).unwrap();
        assert_eq!(read[0].source.chars().count(), NAME_CHARS_MAX);
    }

    #[test]
    fn other_files_are_refused_in_words() {
        let error = read_flow_series(b"no".to_vec()).unwrap_err();
        assert!(error.starts_with("is no flow-series.parquet, which `run EXPERIMENT"), "{error}");
        let other = written(std::iter::empty(), "other").unwrap();
        let error = read_flow_series(other).unwrap_err();
        assert!(error.starts_with("has no column record; give flow-series.parquet"), "{error}");
    }
}
