//! Every packet that hosts sent and received, written a part at a time: there may be more than
//! memory holds.

use super::columns;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::sync::Arc;

/// What the file of it is called.
pub const PACKET_LOG_FILE: &str = "packets.parquet";

/// The schema, in the file's metadata.
const SCHEMA: &str = "clearlane-packets/1";
/// Rows that are kept in memory.
const ROWS: usize = 1 << 18;

/// A packet at both ends.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LoggedPacket<'a> {
    /// Who sent it.
    pub source: &'a str,
    /// Who received it.
    pub destination: &'a str,
    /// Flow group.
    pub group: &'a str,
    /// Connection, by its number in the run.
    pub connection: u32,
    /// Number of the packet on its connection, from 0.
    pub sequence: u64,
    /// Its bytes, one write of the sender.
    pub bytes: u32,
    /// When it was written, ns since the start of the run; nothing if that was not logged.
    pub sent_ns: Option<u64>,
    /// When its header was read; nothing if it was not received.
    pub received_ns: Option<u64>,
}

columns! { |row: LoggedPacket<'_>|
    text "source" "" "name of the host that sent it" row.source;
    text "destination" "" "name of the host that received it" row.destination;
    text "group" "" "flow group" row.group;
    count "connection" "" "connection, by its number in the run" u64::from(row.connection);
    count "sequence" "" "number of the packet on its connection, from 0" row.sequence;
    count "bytes" "bytes" "bytes of the packet, which is one write of the sender"
        u64::from(row.bytes);
    count_if_any "sent_ns" "ns"
        "when it was written, since the start of the run, controller's clock; null if not logged"
        row.sent_ns;
    count_if_any "received_ns" "ns"
        "when its header was read, likewise; null if it was not received" row.received_ns;
}

/// The columns, for the reference.
pub const PACKET_LOG_COLUMNS: &[super::Described] = COLUMNS;

/// A file of packets under way.
pub struct PacketLog<'a> {
    file: SerializedFileWriter<File>,
    rows: Vec<LoggedPacket<'a>>,
}

impl<'a> PacketLog<'a> {
    /// Begins a file.
    pub fn new(file: File) -> Result<Self, ParquetError> {
        let fields: Vec<String> = columns(&[]).map(|column| column.field()).collect();
        let schema = parse_message_type(&format!("message clearlane {{ {} }}", fields.join(" ")))?;
        let metadata = vec![KeyValue::new("schema".into(), SCHEMA.to_owned())];
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_created_by(format!("clearlane {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(metadata));
        // Times of neighbours differ by little.
        for name in ["sequence", "sent_ns", "received_ns"] {
            properties = properties
                .set_column_dictionary_enabled(name.into(), false)
                .set_column_encoding(name.into(), Encoding::DELTA_BINARY_PACKED);
        }
        let properties = Arc::new(properties.build());
        let file = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
        Ok(PacketLog { file, rows: Vec::with_capacity(ROWS) })
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: LoggedPacket<'a>) -> Result<(), ParquetError> {
        self.rows.push(packet);
        if self.rows.len() >= ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        super::write_group(&mut self.file, columns(&self.rows).collect())?;
        self.rows.clear();
        Ok(())
    }

    /// Ends the file.
    pub fn end(mut self) -> Result<(), ParquetError> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.file.close().map(|_| ())
    }
}
