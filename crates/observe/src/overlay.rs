//! Records of flows laid over each other: a capture, a simulation, the hosts of a real network.

use clearlane_lab::{
    Align, Fact, FlowSlice, ObservedColumn, ObservedLine, ObservedPage, ObservedRecord,
    ObservedRow, Table,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Records that are laid over each other at most.
const RECORDS_MAX: usize = 4;
/// Flows that are drawn.
const DRAWN_MAX: usize = 8;
/// Flows in the table of the page, so that charts are near; the document has all.
const PAGE_ROWS_MAX: usize = 24;
/// Slices that series are drawn in, of all records together.
const SLICES: usize = 200;

/// A record of flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// What it is called.
    pub name: String,
    /// Its rows.
    pub rows: Vec<FlowSlice>,
}

/// Who sends to whom.
type Ends = (String, String);

/// A flow as one record has it.
#[derive(Clone, PartialEq, Debug, Default)]
struct Flow {
    payload_bytes: u64,
    /// First and last instant with payload, since the record's first, µs.
    from_us: f64,
    to_us: f64,
    packets: Option<u64>,
    marked: Option<u64>,
    notified: Option<u64>,
    /// When, how long, and payload.
    slices: Vec<(f64, f64, u64)>,
}

impl Flow {
    fn gbps(&self) -> Option<f64> {
        let us = self.to_us - self.from_us;
        (us > 0.0).then(|| self.payload_bytes as f64 * 8e-3 / us)
    }

    fn marked_percent(&self) -> Option<f64> {
        match (self.marked, self.packets) {
            (Some(marked), Some(packets)) if packets > 0 => {
                Some(100.0 * marked as f64 / packets as f64)
            }
            _ => None,
        }
    }
}

/// Records that have flows in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Overlay {
    records: Vec<(String, BTreeMap<Ends, Flow>)>,
    /// The flows of any record, those with most payload first.
    flows: Vec<Ends>,
    /// How long slices are when all are laid over each other, µs.
    slice_us: f64,
}

impl Overlay {
    /// Lays records over each other: each begins with its first payload. Fails if there are fewer
    /// than two, or one of them is empty.
    pub fn of(records: Vec<Record>) -> Result<Self, String> {
        if records.len() < 2 {
            return Err("give two records of flows or more: folders of `run` or `capture`".into());
        }
        if records.len() > RECORDS_MAX {
            return Err(format!(
                "{} records are more than the {RECORDS_MAX} that can be seen beside each other; \
                 choose variants of a run with --variants",
                records.len()
            ));
        }
        let records: Vec<(String, BTreeMap<Ends, Flow>)> = records
            .into_iter()
            .map(|Record { name, rows }| match flows(&rows) {
                flows if flows.is_empty() => Err(format!("{name} has no flow with payload")),
                flows => Ok((name, flows)),
            })
            .collect::<Result<_, _>>()?;
        let mut most: BTreeMap<&Ends, u64> = BTreeMap::new();
        for (ends, flow) in records.iter().flat_map(|(_, flows)| flows) {
            let known = most.entry(ends).or_insert(0);
            *known = flow.payload_bytes.max(*known);
        }
        let mut order: Vec<(&Ends, u64)> = most.into_iter().collect();
        order.sort_by(|(a, a_bytes), (b, b_bytes)| b_bytes.cmp(a_bytes).then(a.cmp(b)));
        let flows = order.into_iter().map(|(ends, _)| ends.clone()).collect();
        let all = || records.iter().flat_map(|(_, flows)| flows.values());
        let end = all().map(|flow| flow.to_us).fold(0.0, f64::max);
        // No finer than the coarsest record.
        let coarsest = all().flat_map(|flow| &flow.slices).map(|(_, length, _)| *length);
        let slice_us = coarsest.fold(end / SLICES as f64, f64::max);
        Ok(Overlay { records, flows, slice_us })
    }

    /// Scales each record to the payload of the first, so that shares of flows are compared where
    /// networks differ in speed. Its name says by how much.
    pub fn scaled(mut self) -> Self {
        let all = |flows: &BTreeMap<Ends, Flow>| -> u64 {
            flows.values().map(|flow| flow.payload_bytes).sum()
        };
        let first = self.records.first().map_or(0, |(_, flows)| all(flows)) as f64;
        for (name, flows) in self.records.iter_mut().skip(1) {
            let factor = first / all(flows).max(1) as f64;
            let scale = |bytes: &mut u64| *bytes = (*bytes as f64 * factor).round() as u64;
            for flow in flows.values_mut() {
                scale(&mut flow.payload_bytes);
                flow.slices.iter_mut().for_each(|(_, _, bytes)| scale(bytes));
            }
            name.push_str(&format!(" × {factor:.2}"));
        }
        self
    }

    /// The rates of flows that a record has in common with the first, as shares of those there.
    fn ratios(&self, record: usize) -> impl Iterator<Item = f64> {
        self.flows.iter().filter_map(move |ends| self.ratio(ends, record))
    }

    /// Flows that a record has in common with the first.
    fn common(&self, record: usize) -> usize {
        let [first, other] = [0, record].map(|place| &self.records[place].1);
        other.keys().filter(|ends| first.contains_key(*ends)).count()
    }

    /// Whether a record has a flow in common with the first.
    pub fn is_comparable(&self) -> bool {
        (1..self.records.len()).any(|record| self.common(record) > 0)
    }

    /// The answer: each record beside the first.
    pub fn finding(&self) -> String {
        let first = &self.records[0].0;
        let one = |(record, (name, flows)): (usize, &(String, BTreeMap<Ends, Flow>))| {
            let common = self.common(record);
            if common == 0 {
                return format!(
                    "{name} has no flow in common with {first}; name addresses alike, as with \
                     `capture --names`"
                );
            }
            let all = self.records[0].1.len() + flows.len() - common;
            let (least, most) =
                self.ratios(record).fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(r), b.max(r)));
            let rates = match least <= most {
                true => {
                    format!(", at {:.0} to {:.0} % of their rates", 100.0 * least, 100.0 * most)
                }
                false => String::new(),
            };
            format!("{name} has {common} of {all} flows in common with {first}{rates}")
        };
        let all: Vec<String> = self.records.iter().enumerate().skip(1).map(one).collect();
        all.join("; ")
    }

    /// The rate of a flow in a record, as a share of that in the first.
    fn ratio(&self, ends: &Ends, record: usize) -> Option<f64> {
        let first = self.records[0].1.get(ends)?.gbps()?;
        Some(self.records[record].1.get(ends)?.gbps()? / first)
    }

    /// A row a flow: the rate in each record, as a share of the first, marks.
    pub fn table(&self, rows_max: usize) -> (Table, usize) {
        let mut table = Table::new([("flow", "", Align::Left)]);
        let mut head = |label: &str, unit: &str| {
            table.columns.push(clearlane_lab::Column {
                label: label.into(),
                unit: unit.into(),
                align: Align::Right,
            });
        };
        for (number, (name, _)) in self.records.iter().enumerate() {
            head(name, "Gb/s");
            if number > 0 {
                head("of the first", "%");
            }
            head("marked", "%");
            head("notified", "");
        }
        let text = |value: Option<f64>, decimals: usize| match value {
            Some(value) => format!("{value:.decimals$}"),
            None => "–".into(),
        };
        for ends in self.flows.iter().take(rows_max) {
            let mut cells = vec![format!("{} → {}", ends.0, ends.1)];
            for (number, (_, flows)) in self.records.iter().enumerate() {
                let flow = flows.get(ends);
                cells.push(text(flow.and_then(Flow::gbps), 2));
                if number > 0 {
                    cells.push(text(self.ratio(ends, number).map(|ratio| 100.0 * ratio), 0));
                }
                cells.push(text(flow.and_then(Flow::marked_percent), 1));
                cells.push(text(flow.and_then(|f| f.notified).map(|n| n as f64), 0));
            }
            table.row(cells);
        }
        (table, self.flows.len().saturating_sub(rows_max))
    }

    /// The fields of the document `clearlane-overlay/1`.
    pub fn summary(&self) -> Value {
        let flow = |ends: &Ends| {
            let of = |(name, flows): &(String, BTreeMap<Ends, Flow>)| {
                let flow = flows.get(ends);
                json!({
                    "record": name,
                    "gbps": flow.and_then(Flow::gbps),
                    "payload_bytes": flow.map(|flow| flow.payload_bytes),
                    "marked_percent": flow.and_then(Flow::marked_percent),
                    "notified": flow.and_then(|flow| flow.notified),
                })
            };
            json!({
                "source": ends.0,
                "destination": ends.1,
                "records": self.records.iter().map(of).collect::<Vec<_>>(),
            })
        };
        json!({
            "finding": self.finding(),
            "flows_in_common":
                (1..self.records.len()).map(|record| self.common(record)).collect::<Vec<_>>(),
            "slice_us": self.slice_us,
            "flows": self.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    }

    /// The page: a chart for each of the largest flows.
    pub fn page(&self, command: &str) -> ObservedPage {
        let column = |number: usize| ObservedColumn {
            key: format!("gbps_{number}"),
            label: ["First", "Second", "Third", "Fourth"].get(number).copied().unwrap_or("Further"),
            unit: "Gb/s",
            better: None,
            explained: "payload from the flow's first slice to its last",
        };
        let row = |ends: &Ends| ObservedRow {
            name: format!("{} → {}", ends.0, ends.1),
            summary: String::new(),
            values: self.records.iter().map(|(_, flows)| flows.get(ends)?.gbps()).collect(),
        };
        let names: Vec<&str> = self.records.iter().map(|(name, _)| name.as_str()).collect();
        ObservedPage {
            title: format!("Laid over each other: {}", names.join(", ")),
            summary: self.finding(),
            verdict: None,
            command: command.into(),
            repeats: true,
            row: "Flow",
            columns: (0..self.records.len()).map(column).collect(),
            rows: self.flows.iter().take(PAGE_ROWS_MAX).map(row).collect(),
            facts: names
                .iter()
                .enumerate()
                .map(|(number, name)| Fact {
                    label: column(number).label.to_lowercase(),
                    value: (*name).into(),
                })
                .collect(),
            oddities: Vec::new(),
            records: self.flows.iter().take(DRAWN_MAX).map(|ends| self.drawn(ends)).collect(),
        }
    }

    /// A flow in all records, one line over the other.
    fn drawn(&self, ends: &Ends) -> ObservedRecord {
        const CLASSES: [&str; 3] = ["hot", "background", "victim"];
        let line = |(number, (name, _)): (usize, &(String, _))| {
            self.line(number, ends, name.clone(), CLASSES[number % CLASSES.len()])
        };
        ObservedRecord {
            name: format!("{} → {}", ends.0, ends.1),
            slice_us: self.slice_us,
            flows: self.records.iter().enumerate().filter_map(line).collect(),
            quantities: Vec::new(),
        }
    }

    /// A flow's throughput on the common slices, Gb/s.
    fn line(
        &self,
        record: usize,
        ends: &Ends,
        name: String,
        class: &'static str,
    ) -> Option<ObservedLine> {
        let flow = self.records[record].1.get(ends)?;
        let slices = (flow.to_us / self.slice_us).ceil().clamp(1.0, 10_000.0) as usize;
        let mut bytes = vec![0.0; slices];
        for (start, length, payload) in &flow.slices {
            // A slice that lies across two is shared between them.
            let (mut at, end) = (*start, start + length);
            while at < end {
                let place = (at / self.slice_us) as usize;
                let until = end.min((place + 1) as f64 * self.slice_us);
                let until = if until > at { until } else { end };
                if let Some(sum) = bytes.get_mut(place) {
                    *sum += *payload as f64 * (until - at) / length;
                }
                at = until;
            }
        }
        let values = bytes.iter().map(|bytes| bytes * 8e-3 / self.slice_us).collect();
        Some(ObservedLine { name, class, values })
    }
}

/// The flows of a record; time begins with its first payload.
fn flows(rows: &[FlowSlice]) -> BTreeMap<Ends, Flow> {
    let with_payload = || rows.iter().filter(|row| row.payload_bytes > 0 && row.length_us > 0.0);
    let begin = with_payload().map(|row| row.start_us).fold(f64::MAX, f64::min);
    let mut flows: BTreeMap<Ends, Flow> = BTreeMap::new();
    for row in with_payload() {
        let ends = (row.source.clone(), row.destination.clone());
        let (start, length) = (row.start_us - begin, row.length_us);
        let flow = flows.entry(ends).or_insert_with(|| Flow { from_us: start, ..Flow::default() });
        flow.payload_bytes += row.payload_bytes;
        flow.from_us = flow.from_us.min(start);
        flow.to_us = flow.to_us.max(start + length);
        flow.slices.push((start, length, row.payload_bytes));
    }
    for row in rows {
        let Some(flow) = flows.get_mut(&(row.source.clone(), row.destination.clone())) else {
            continue;
        };
        let sum = |known: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *known = Some(known.unwrap_or(0) + more);
            }
        };
        sum(&mut flow.packets, row.packets);
        sum(&mut flow.marked, row.marked);
        sum(&mut flow.notified, row.notified);
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, length_us: f64, bytes: &[u64]) -> Record {
        let row = |(number, bytes): (usize, &u64)| FlowSlice {
            source: "h1".into(),
            destination: "h4".into(),
            start_us: 1000.0 + number as f64 * length_us,
            length_us,
            payload_bytes: *bytes,
            ..FlowSlice::default()
        };
        Record { name: name.into(), rows: bytes.iter().enumerate().map(row).collect() }
    }

    #[test]
    fn the_same_flow_in_slices_of_two_lengths_has_one_rate() {
        // 8000 bytes in 40 µs are 1.6 Gb/s.
        let fine = record("measured", 10.0, &[0, 2000, 2000, 2000, 2000]);
        let coarse = record("simulated", 20.0, &[4000, 4000]);
        let overlay = Overlay::of(vec![fine, coarse]).unwrap();
        assert_eq!(
            overlay.finding(),
            "simulated has 1 of 1 flows in common with measured, at 100 to 100 % of their rates"
        );
        let page = overlay.page("clearlane compare a b");
        let lines = &page.records[0].flows;
        assert_eq!((page.records[0].name.as_str(), lines.len()), ("h1 → h4", 2));
        assert_eq!(lines[0].values, [1.6, 1.6]);
        assert_eq!(lines[1].values, [1.6, 1.6]);
    }

    #[test]
    fn a_slower_network_is_scaled_to_the_first() {
        let fast = record("simulated", 10.0, &[1000, 1000]);
        let slow = record("measured", 10.0, &[100, 100]);
        let overlay = Overlay::of(vec![fast, slow]).unwrap().scaled();
        assert_eq!(
            overlay.finding(),
            "measured × 10.00 has 1 of 1 flows in common with simulated, at 100 to 100 % of their \
             rates"
        );
    }

    #[test]
    fn records_without_flows_in_common_are_told() {
        let mut other = record("simulated", 10.0, &[1]);
        other.rows[0].source = "LID 1".into();
        let overlay = Overlay::of(vec![record("measured", 10.0, &[1]), other]).unwrap();
        assert!(overlay.finding().starts_with("simulated has no flow in common with measured"));
        assert!(!overlay.is_comparable());
        assert!(Overlay::of(vec![record("measured", 10.0, &[])]).is_err());
        let empty = vec![record("measured", 10.0, &[1]), record("none", 10.0, &[])];
        assert_eq!(Overlay::of(empty).unwrap_err(), "none has no flow with payload");
    }
}
