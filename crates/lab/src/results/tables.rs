//! Flows, links and time series as Parquet, which pandas, polars and DuckDB read. One row group a
//! run; units are part of a column's name.

use crate::measure::Estimate;
use crate::report::AxisValue;
use crate::result::{RunResult, SeedResult, VariantResult};
use crate::sweep::{SweepResult, VariantPoint};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::{Picoseconds, PortNumber};
use clearlane_sim::FlowControl;
use clearlane_workload::Rank;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The schema of the tables, in the metadata of each file.
const SCHEMA: &str = "clearlane-tables/1";
/// The same for the points of a sweep.
const SWEEP_SCHEMA: &str = "clearlane-points/1";

/// Flows of a variant in the table of mechanisms: a line each, slice and quantity.
const CONTROL_FLOWS: usize = 1000;
/// What stands for notifications in that table.
const BECNS: &str = "BECNs";

/// One column of one run.
enum Column {
    Text(&'static str, Vec<ByteArray>),
    Count(&'static str, Vec<i64>),
    Real(&'static str, Vec<f64>),
    /// Texts, and numbers that may be missing, of columns whose names come from the experiment.
    TextOf(String, Vec<ByteArray>),
    RealOf(String, Vec<Option<f64>>),
    YesNo(String, Vec<Option<bool>>),
}

impl Column {
    fn field(&self) -> String {
        match self {
            Column::Text(name, _) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Column::Count(name, _) => format!("REQUIRED INT64 {name};"),
            Column::Real(name, _) => format!("REQUIRED DOUBLE {name};"),
            Column::TextOf(name, _) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Column::RealOf(name, _) => format!("OPTIONAL DOUBLE {name};"),
            Column::YesNo(name, _) => format!("OPTIONAL BOOLEAN {name};"),
        }
    }
}

type Columns = fn(&VariantResult, &SeedResult) -> Vec<Column>;

/// Payload of every flow over the measured part.
pub(super) fn flows(result: &RunResult) -> Result<Vec<u8>, ParquetError> {
    parquet(result, flow_columns)
}

/// Counters of every channel, named as in PMA.
pub(super) fn links(result: &RunResult) -> Result<Vec<u8>, ParquetError> {
    parquet(result, link_columns)
}

/// Every flow group slice by slice, warm-up included.
pub(super) fn series(result: &RunResult) -> Result<Vec<u8>, ParquetError> {
    parquet(result, series_columns)
}

fn parquet(result: &RunResult, columns: Columns) -> Result<Vec<u8>, ParquetError> {
    let runs = result.variants.iter().flat_map(|v| v.runs.iter().map(move |run| (v, run)));
    let runs = runs.map(|(variant, run)| columns(variant, run));
    written(runs, SCHEMA)
}

/// What congestion mechanisms did slice by slice, in the first seed of each variant that has some,
/// of at most [`CONTROL_FLOWS`] flows that were notified most often; nothing without mechanisms.
pub(super) fn control(result: &RunResult) -> Option<Result<Vec<u8>, ParquetError>> {
    let on = result.variants.iter().filter(|variant| variant.prepared.control.is_on());
    let runs: Vec<_> = on.filter_map(|v| Some((v, v.runs.first()?))).collect();
    let columns = runs.iter().map(|(variant, run)| control_columns(variant, run));
    (!runs.is_empty()).then(|| written(columns, SCHEMA))
}

/// The points of a sweep: axes, variant, and for every figure mean, half-width and whether it had
/// converged; a figure that was not measured is null.
pub(crate) fn parquet_of_points(sweep: &SweepResult) -> Result<Vec<u8>, ParquetError> {
    written(std::iter::once(point_columns(sweep)), SWEEP_SCHEMA)
}

/// One row group for each set of columns; all have the same.
fn written(
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
                Column::Real(_, values) => {
                    writer.typed::<DoubleType>().write_batch(&values, None, None)?
                }
                Column::TextOf(_, values) => {
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?
                }
                Column::RealOf(_, values) => {
                    let (there, values) = present(values);
                    writer.typed::<DoubleType>().write_batch(&values, Some(&there), None)?
                }
                Column::YesNo(_, values) => {
                    let (there, values) = present(values);
                    writer.typed::<BoolType>().write_batch(&values, Some(&there), None)?
                }
            };
            writer.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(bytes)
}

/// Definition levels of a column that may have nulls, and the values that are there.
fn present<T>(values: Vec<Option<T>>) -> (Vec<i16>, Vec<T>) {
    let there = values.iter().map(|value| i16::from(value.is_some())).collect();
    (there, values.into_iter().flatten().collect())
}

/// A column's name: letters, digits and `_`; `traffic.hot.load` becomes `traffic_hot_load`.
fn column_name(parts: &[&str]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| part.replace('µ', "u").replace('/', "p").chars().map(plain).collect())
        .collect();
    parts.join("_")
}

fn point_columns(sweep: &SweepResult) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, axis) in sweep.axes.iter().enumerate() {
        let value = |point: &VariantPoint| axis.values.get(*point.at.get(index)?).cloned();
        let values: Vec<_> = sweep.points.iter().map(value).collect();
        let name = column_name(&[&axis.key, &axis.unit]);
        let number = |value: &Option<AxisValue>| match value {
            Some(AxisValue::Number(number)) => Some(*number),
            _ => None,
        };
        let text = |value: &Option<AxisValue>| match value {
            Some(AxisValue::Text(text)) => ByteArray::from(text.as_str()),
            _ => ByteArray::new(),
        };
        columns.push(match axis.values.iter().all(|v| matches!(v, AxisValue::Number(_))) {
            true => Column::RealOf(name, values.iter().map(number).collect()),
            false => Column::TextOf(name, values.iter().map(text).collect()),
        });
    }
    columns.push(text("variant", sweep.points.iter().map(|point| point.variant.clone())));
    columns.push(text("status", sweep.points.iter().map(|point| point.status.to_string())));
    for (index, figure) in sweep.figures.iter().enumerate() {
        let of = |point: &VariantPoint| *point.figures.get(index)?;
        let of: Vec<Option<Estimate>> = sweep.points.iter().map(of).collect();
        let name = |what: &str| column_name(&[&figure.key, &figure.unit, what]);
        let mean = of.iter().map(|estimate| estimate.map(|e| e.mean)).collect();
        columns.push(Column::RealOf(name(""), mean));
        let half = of.iter().map(|estimate| estimate.and_then(|e| e.half_width)).collect();
        columns.push(Column::RealOf(name("half_width"), half));
        let converged = of.iter().map(|estimate| estimate.map(|e| e.converged)).collect();
        columns.push(Column::YesNo(column_name(&[&figure.key, "converged"]), converged));
    }
    columns
}

fn text(name: &'static str, values: impl Iterator<Item = String>) -> Column {
    Column::Text(name, values.map(|value| ByteArray::from(value.as_str())).collect())
}

fn count(name: &'static str, values: impl Iterator<Item = u64>) -> Column {
    Column::Count(name, values.map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect())
}

fn real(name: &'static str, values: impl Iterator<Item = f64>) -> Column {
    Column::Real(name, values.collect())
}

/// Variant and seed, the same in all rows of a run.
fn whose(variant: &VariantResult, run: &SeedResult, rows: usize) -> Vec<Column> {
    let name = ByteArray::from(variant.name.as_str());
    vec![
        Column::Text("variant", vec![name; rows]),
        count("seed", std::iter::repeat_n(run.seed, rows)),
    ]
}

fn flow_columns(variant: &VariantResult, run: &SeedResult) -> Vec<Column> {
    let flows = &run.figures.flows;
    let group = |index: usize| variant.prepared.groups.get(index);
    let ranks = variant.prepared.hosts.ranks();
    let host = |rank: Rank| ranks.name(rank).to_owned();
    let warm_up = &run.figures.warm_up;
    let span_us = warm_up.to_us - warm_up.from_us;
    let gbps = |bytes: u64| if span_us > 0.0 { bytes as f64 * 8e-3 / span_us } else { 0.0 };
    let mut columns = whose(variant, run, flows.len());
    let of_group = |f: &crate::measure::FlowFigures| group(f.group);
    columns.extend([
        text("group", flows.iter().map(|f| of_group(f).map_or(String::new(), |g| g.name.clone()))),
        text("class", flows.iter().map(|f| of_group(f).map_or("", |g| g.class.name()).into())),
        text("source", flows.iter().map(|flow| host(flow.source))),
        text("destination", flows.iter().map(|flow| host(flow.destination))),
        count("payload_bytes", flows.iter().map(|flow| flow.payload_bytes)),
        real("payload_gbps", flows.iter().map(|flow| gbps(flow.payload_bytes))),
    ]);
    columns
}

fn control_columns(variant: &VariantResult, run: &SeedResult) -> Vec<Column> {
    let group = |flow: &FlowControl| variant.prepared.groups.get(usize::from(flow.group));
    let ranks = variant.prepared.hosts.ranks();
    let flows = run.history.as_ref().map_or(Vec::new(), |h| h.most_notified(CONTROL_FLOWS));
    let mut rows: Vec<(&FlowControl, &str, usize, u64)> = Vec::new();
    for flow in flows {
        let becns = flow.becns.iter().enumerate();
        rows.extend(becns.map(|(slice, becns)| (flow, BECNS, slice, u64::from(*becns))));
        for (name, values) in &flow.probes {
            rows.extend(values.iter().enumerate().map(|(slice, v)| (flow, *name, slice, *v)));
        }
    }
    let start = |slice: usize| run.figures.slices.start(slice).as_microseconds();
    let host = |rank: Rank| ranks.name(rank).to_owned();
    let mut columns = whose(variant, run, rows.len());
    columns.extend([
        text(
            "group",
            rows.iter().map(|row| group(row.0).map_or(String::new(), |g| g.name.clone())),
        ),
        text("class", rows.iter().map(|row| group(row.0).map_or("", |g| g.class.name()).into())),
        text("source", rows.iter().map(|row| host(row.0.source))),
        text("destination", rows.iter().map(|row| host(row.0.destination))),
        count("path", rows.iter().map(|row| u64::from(row.0.path))),
        real("start_us", rows.iter().map(|row| start(row.2))),
        text("quantity", rows.iter().map(|row| row.1.to_owned())),
        count("value", rows.iter().map(|row| row.3)),
    ]);
    columns
}

fn link_columns(variant: &VariantResult, run: &SeedResult) -> Vec<Column> {
    let fabric = &variant.prepared.fabric;
    let end = |node: u32, port: u8| {
        let port = PortNumber::new(port)?;
        let end = Endpoint { node: NodeId(node), port };
        let link = fabric.link_at(end)?;
        Some((end, fabric.peer(end)?, fabric.link(link).rate()))
    };
    let cabled = run.figures.channels.iter().filter_map(|channel| {
        let (from, to, rate) = end(channel.node, channel.port)?;
        let forced = variant.prepared.parameters.link_rate;
        let rate = forced.unwrap_or(rate.bits_per_second());
        Some((channel, from, to, rate))
    });
    let rows: Vec<_> = cabled.collect();
    let node = |end: &Endpoint| fabric.node(end.node).name.clone();
    let port = |end: &Endpoint| u64::from(end.port.value());
    let mut columns = whose(variant, run, rows.len());
    columns.extend([
        text("from_node", rows.iter().map(|(_, from, _, _)| node(from))),
        count("from_port", rows.iter().map(|(_, from, _, _)| port(from))),
        text("to_node", rows.iter().map(|(_, _, to, _)| node(to))),
        count("to_port", rows.iter().map(|(_, _, to, _)| port(to))),
        real("rate_gbps", rows.iter().map(|(_, _, _, rate)| rate.as_gigabits())),
        count("PortXmitData_4octets", rows.iter().map(|(c, _, _, _)| c.port_xmit_data)),
        count("PortXmitPkts_packets", rows.iter().map(|(c, _, _, _)| c.port_xmit_pkts)),
        count("PortRcvData_4octets", rows.iter().map(|(c, _, _, _)| c.port_rcv_data)),
        count("PortRcvPkts_packets", rows.iter().map(|(c, _, _, _)| c.port_rcv_pkts)),
        count("PortXmitWait_ps", rows.iter().map(|(c, _, _, _)| c.port_xmit_wait_ps)),
        real("measured_load_share", rows.iter().map(|(c, _, _, _)| c.load)),
        real("measured_wait_share", rows.iter().map(|(c, _, _, _)| c.wait)),
    ]);
    columns
}

fn series_columns(variant: &VariantResult, run: &SeedResult) -> Vec<Column> {
    let slices = run.figures.slices;
    let groups = variant.prepared.groups.iter().zip(&run.figures.series);
    let rows: Vec<_> = groups
        .flat_map(|(group, slices)| slices.iter().enumerate().map(move |s| (group, s.0, s.1)))
        .collect();
    let us = |time: Picoseconds| time.as_microseconds();
    let mut columns = whose(variant, run, rows.len());
    columns.extend([
        text("group", rows.iter().map(|(group, _, _)| group.name.clone())),
        text("class", rows.iter().map(|(group, _, _)| group.class.name().to_owned())),
        real("start_us", rows.iter().map(|(_, index, _)| us(slices.start(*index)))),
        real("length_us", rows.iter().map(|(_, index, _)| us(slices.length_of(*index)))),
        count("offered_wire_bytes", rows.iter().map(|(_, _, s)| s.offered_bytes)),
        count("delivered_payload_bytes", rows.iter().map(|(_, _, s)| s.delivered_payload_bytes)),
        count("messages", rows.iter().map(|(_, _, s)| s.messages)),
        real("latency_mean_us", rows.iter().map(|(_, _, s)| s.latency_mean_us)),
    ]);
    columns
}
