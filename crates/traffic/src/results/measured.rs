//! Figures of a run, from the logs of both ends of each connection, on the controller's clock.

use crate::controller::{Host, Kept, KeptLog, Record};
use crate::log::{Decoder, LogError, Logged};
use clearlane_ib::Picoseconds;
use clearlane_lab::{HostFlow, HostPlan, LoggedPacket, PacketLog};
use clearlane_workload::Class;
use hdrhistogram::Histogram;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Slices of a flow: those of the longest plan, and as many again for what is late.
const SLICES_MAX: usize = 4000;

/// A latency beyond an hour is no latency.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// What a flow did.
#[derive(Clone, Debug)]
pub struct MeasuredFlow {
    /// Who sent.
    pub source: String,
    /// Who received.
    pub destination: String,
    /// Flow group.
    pub group: String,
    /// Its class.
    pub class: Class,
    /// Connections of it.
    pub connections: u32,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Those of them whose sending is in no log, as after a full disk.
    pub unlogged: u64,
    /// Packets sent of which it is not known whether they were received: that log is missing, or
    /// cut.
    pub unknown: u64,
    /// Connections whose receiver's log is missing, or cut.
    pub unknown_connections: u32,
    /// Bytes received, headers of packets with them.
    pub bytes: u64,
    /// From the first header received to the last, ns since the start.
    pub span_ns: Option<(u64, u64)>,
    /// Bytes received in each slice.
    pub slices: Vec<u64>,
    /// Bytes received in the measured part.
    pub measured_bytes: u64,
    /// From write to read, ns.
    pub latency: Histogram<u64>,
    /// What the sender's policy held it to, bit/s.
    pub held_to_bps: Option<u64>,
}

/// A host that took part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeasuredHost {
    /// Name of its agent.
    pub name: String,
    /// Times of its clock are known on the controller's to within this, ns.
    pub bound_ns: u64,
    /// Why its part ended before its time; empty if it did not.
    pub stopped: String,
    /// Why logs of it are missing; empty if none is.
    pub missing: String,
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By group, source and destination, in the order of the plan.
    pub flows: Vec<MeasuredFlow>,
    /// The hosts.
    pub hosts: Vec<MeasuredHost>,
    /// Length of a slice, ns.
    pub slice_ns: u64,
    /// The measured part, in which all flows may send, ns since the start; nothing without one.
    pub window_ns: Option<(u64, u64)>,
    /// Bytes of a full packet.
    pub packet_bytes: u32,
    /// Whether the run ended before its time, or logs are missing.
    pub partial: bool,
    /// Records that agents noted and that are in no log: 0, unless a disk was full.
    pub unkept: u64,
}

/// Why logs say nothing.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A log cannot be read.
    #[error("{}: {problem}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The table of packets cannot be written.
    #[error("packets.parquet: {0}")]
    Packets(String),
}

impl MeasuredFlow {
    /// Packets that were sent and not received.
    pub fn lost(&self) -> u64 {
        let noted = self.received.saturating_sub(self.unlogged);
        self.sent.saturating_sub(self.unknown).saturating_sub(noted)
    }

    /// Whether the logs of all its receiver's connections are there.
    pub fn is_known(&self) -> bool {
        self.unknown_connections == 0
    }

    /// A packet has arrived.
    fn arrived(&mut self, at: u64, bytes: u32, slice_ns: u64, window: Option<(u64, u64)>) {
        let bytes = u64::from(bytes);
        self.received += 1;
        self.bytes += bytes;
        let span = self.span_ns.unwrap_or((at, at));
        self.span_ns = Some((span.0.min(at), span.1.max(at)));
        // A packet is late by some seconds at most; an agent that says otherwise is not followed.
        let slice = usize::try_from(at / slice_ns).unwrap_or(usize::MAX).min(SLICES_MAX - 1);
        if self.slices.len() <= slice {
            self.slices.resize(slice + 1, 0);
        }
        self.slices[slice] += bytes;
        if window.is_some_and(|(from, to)| (from..to).contains(&at)) {
            self.measured_bytes += bytes;
        }
    }

    /// Rate from the first header received to the last, bit/s; nothing of a flow of one packet, or
    /// whose receiver's log is missing.
    pub fn rate_bps(&self) -> Option<f64> {
        self.is_known().then_some(())?;
        let (from, to) = self.span_ns.filter(|(from, to)| from < to)?;
        Some(self.bytes as f64 * 8e9 / (to - from) as f64)
    }
}

impl Measured {
    /// Flows whose receivers' logs are there.
    pub fn known(&self) -> impl Iterator<Item = &MeasuredFlow> {
        self.flows.iter().filter(|flow| flow.is_known())
    }

    /// Rate of a flow in the measured part, bit/s; nothing of one whose receiver's log is missing.
    pub fn measured_bps(&self, flow: &MeasuredFlow) -> Option<f64> {
        flow.is_known().then_some(())?;
        let (from, to) = self.window_ns.filter(|(from, to)| from < to)?;
        Some(flow.measured_bytes as f64 * 8e9 / (to - from) as f64)
    }

    /// All known flows in the measured part, bit/s; nothing if none is known.
    pub fn total_bps(&self) -> Option<f64> {
        self.known().next()?;
        self.known().map(|flow| self.measured_bps(flow)).sum()
    }

    /// The part of a flow in all that was received in the measured part.
    pub fn share(&self, flow: &MeasuredFlow) -> Option<f64> {
        let total = self.total_bps().filter(|total| *total > 0.0)?;
        Some(self.measured_bps(flow)? / total)
    }

    /// Fairness of rates in the measured part: Jain, Chiu, Hawe, DEC-TR-301, 1984.
    pub fn jain(&self) -> Option<f64> {
        self.window_ns?;
        jain(self.known().map(|flow| flow.measured_bytes as f64))
    }

    /// Packets that were sent and not received.
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(MeasuredFlow::lost).sum()
    }

    /// Times of two hosts are known beside each other to within this, ns.
    pub fn bound_ns(&self) -> u64 {
        let mut bounds: Vec<u64> = self.hosts.iter().map(|host| host.bound_ns).collect();
        bounds.sort_unstable();
        bounds.iter().rev().take(2).sum()
    }
}

/// (Σx)² / (n Σx²); nothing if nobody has anything.
pub fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) =
        values.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// The measured part: where all flows may send, from the warm-up's end on, or its second half. Of a
/// run that was stopped, until then.
fn window(plan: &HostPlan, stopped_ns: Option<u64>) -> Option<(u64, u64)> {
    let from = plan.flows.iter().map(|flow| flow.start).max()?;
    let to = plan.flows.iter().map(|flow| flow.stop).min()?.min(plan.duration);
    let stopped = stopped_ns.map(|ns| Picoseconds(ns.saturating_mul(1000)));
    let to = stopped.map_or(to, |stopped| to.min(stopped));
    let half = Picoseconds(from.0.saturating_add(to.0.saturating_sub(from.0) / 2));
    // Of a run that was stopped in its warm-up, the half has to do.
    let warm_up = plan.warm_up.filter(|warm_up| stopped.is_none() || *warm_up < to);
    let from = warm_up.map_or(half, |warm_up| warm_up.max(from));
    (from < to).then_some((from.0 / 1000, to.0 / 1000))
}

/// Reads the logs of a run, and puts every packet into `packets`; `told` hears the share done.
pub fn measure<'a>(
    plan: &'a HostPlan,
    record: &Record,
    packet_bytes: Option<u32>,
    packets: &mut PacketLog<'a>,
    told: &dyn Fn(f64),
) -> Result<Measured, MeasureError> {
    let duration_ns = plan.duration.0 / 1000;
    let slice_ns = duration_ns.div_ceil(plan.slices.into()).max(1);
    let of_plan = plan.flows.first().map_or(0, |flow| flow.payload_max);
    let mut measured = Measured {
        flows: Vec::new(),
        hosts: record.hosts.iter().map(host).collect(),
        slice_ns,
        window_ns: window(plan, record.stopped_ns),
        packet_bytes: packet_bytes.unwrap_or(of_plan),
        partial: record.partial,
        unkept: 0,
    };
    let logs = || record.connections.iter().flat_map(|kept| kept.logs.iter().flatten());
    // A log that is not there is told when it is opened.
    let size = |log: &KeptLog| std::fs::metadata(&log.path).map_or(0, |known| known.len());
    let read = Share { done: Cell::new(0), all: logs().map(size).sum::<u64>().max(1), told };
    for kept in &record.connections {
        let Some(planned) = plan.flows.get(kept.flow) else { continue };
        let place = place(&mut measured.flows, planned);
        let window = measured.window_ns;
        let flow = &mut measured.flows[place];
        flow.connections += 1;
        flow.held_to_bps = flow.held_to_bps.or(kept.held_to_bps);
        measured.unkept +=
            add(flow, (planned, kept), record, (slice_ns, window), (packets, &read))?;
    }
    Ok(measured)
}

fn host(host: &Host) -> MeasuredHost {
    MeasuredHost {
        name: host.known.name.to_string(),
        bound_ns: host.clocks.bound_ns(),
        stopped: host.stopped.clone(),
        missing: host.missing.clone(),
    }
}

/// The place of a flow among those of its ends and group.
fn place(flows: &mut Vec<MeasuredFlow>, planned: &HostFlow) -> usize {
    let same = |flow: &MeasuredFlow| {
        flow.source == planned.source
            && flow.destination == planned.destination
            && flow.group == planned.group
    };
    flows.iter().position(same).unwrap_or_else(|| {
        // Three digits; it grows as it has to.
        let latency = Histogram::new(3).expect("three digits are allowed");
        flows.push(MeasuredFlow {
            source: planned.source.clone(),
            destination: planned.destination.clone(),
            group: planned.group.clone(),
            class: planned.class,
            connections: 0,
            sent: 0,
            received: 0,
            unlogged: 0,
            unknown: 0,
            unknown_connections: 0,
            bytes: 0,
            span_ns: None,
            slices: Vec::new(),
            measured_bytes: 0,
            latency,
            held_to_bps: None,
        });
        flows.len() - 1
    })
}

/// Adds a connection to its flow. Returns how many records were noted and are in no log.
fn add<'a>(
    flow: &mut MeasuredFlow,
    (planned, kept): (&'a HostFlow, &Kept),
    record: &Record,
    (slice_ns, window): (u64, Option<(u64, u64)>),
    (packets, read): (&mut PacketLog<'a>, &Share<'_>),
) -> Result<u64, MeasureError> {
    let [sent, received] = [0, 1].map(|end| Reader::of(kept.logs[end].as_ref(), read));
    let (mut sent, mut received) = (sent?, received?);
    let is_known = kept.logs[1].is_some();
    flow.unknown_connections += u32::from(!is_known);
    let since = |end: usize, ns: u64| {
        let clocks = record.hosts.get(kept.ends[end]).map(|host| host.clocks);
        let ours = clocks.map_or(ns, |clocks| clocks.ours(ns));
        ours.saturating_sub(record.start_ns)
    };
    let row = |sequence, bytes, sent_ns, received_ns| LoggedPacket {
        source: &planned.source,
        destination: &planned.destination,
        group: &planned.group,
        connection: kept.connection,
        sequence,
        bytes,
        sent_ns,
        received_ns,
    };
    let mut note =
        |packet| packets.push(packet).map_err(|error| MeasureError::Packets(error.to_string()));
    let mut arrivals = Arrivals::default();
    while let Some(first) = sent.next()? {
        let sent_ns = since(0, first.ns);
        let arrived = arrivals.take(first.sequence, &mut received)?;
        let received_ns = arrived.map(|second| since(1, second.ns));
        flow.sent += 1;
        flow.unknown += u64::from(!is_known);
        if let Some(at) = received_ns {
            flow.arrived(at, first.bytes, slice_ns, window);
            let latency = at.saturating_sub(sent_ns).clamp(1, LATENCY_MAX_NS);
            // It grows up to that.
            let recorded = flow.latency.record(latency);
            debug_assert!(recorded.is_ok());
        }
        note(row(first.sequence, first.bytes, Some(sent_ns), received_ns))?;
    }
    while let Some(second) = arrivals.rest(&mut received)? {
        let at = since(1, second.ns);
        flow.unlogged += 1;
        flow.arrived(at, second.bytes, slice_ns, window);
        note(row(second.sequence, second.bytes, None, Some(at)))?;
    }
    // Of records that the receiver noted and could not keep, nobody knows which those are.
    flow.unknown += received.unkept();
    flow.unknown_connections += u32::from(is_known && received.unkept() > 0);
    Ok(sent.unkept() + received.unkept())
}

/// Packets that have arrived, of which datagrams may be out of order.
#[derive(Default)]
struct Arrivals {
    /// Those that were read ahead.
    early: BTreeMap<u64, Logged>,
}

/// Datagrams that are read ahead for one that may be late.
const AHEAD_MAX: usize = 1 << 16;

impl Arrivals {
    /// The arrival of a packet; nothing if it is lost.
    fn take(
        &mut self,
        sequence: u64,
        log: &mut Reader<'_>,
    ) -> Result<Option<Logged>, MeasureError> {
        loop {
            if let Some(arrived) = self.early.remove(&sequence) {
                return Ok(Some(arrived));
            }
            if self.early.len() >= AHEAD_MAX {
                return Ok(None);
            }
            match log.next()? {
                None => return Ok(None),
                Some(arrived) if arrived.sequence == sequence => return Ok(Some(arrived)),
                // One that was taken for lost, or comes twice, is late beyond telling.
                Some(arrived) if arrived.sequence < sequence => {}
                Some(arrived) => {
                    self.early.insert(arrived.sequence, arrived);
                }
            }
        }
    }

    /// The next of those that are left when all that is logged as sent has been asked for.
    fn rest(&mut self, log: &mut Reader<'_>) -> Result<Option<Logged>, MeasureError> {
        match self.early.pop_first() {
            Some((_, arrived)) => Ok(Some(arrived)),
            None => log.next(),
        }
    }
}

/// How much of all logs has been read, in bytes, and who hears of it.
struct Share<'a> {
    done: Cell<u64>,
    all: u64,
    told: &'a dyn Fn(f64),
}

impl Share<'_> {
    fn add(&self, bytes: usize) {
        self.done.set(self.done.get() + bytes as u64);
        (self.told)(self.done.get() as f64 / self.all as f64);
    }
}

/// A log, record by record; of one that is missing, none.
struct Reader<'a> {
    read: &'a Share<'a>,
    path: PathBuf,
    file: Option<File>,
    /// Records that it is to have, and has had.
    noted: u64,
    had: u64,
    decoder: Decoder,
    records: VecDeque<Logged>,
    block: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn of(log: Option<&KeptLog>, read: &'a Share<'_>) -> Result<Self, MeasureError> {
        let path = log.map(|log| log.path.clone()).unwrap_or_default();
        let file = log.map(|log| File::open(&log.path)).transpose();
        let file = file.map_err(|error| MeasureError::Log {
            path: path.clone(),
            problem: clearlane_lab::plain(&error).to_string(),
        })?;
        let noted = log.map_or(0, |log| log.records);
        let (decoder, records, block) = (Decoder::default(), VecDeque::new(), vec![0; 64 << 10]);
        Ok(Reader { read, path, file, noted, had: 0, decoder, records, block })
    }

    /// Records that were noted and are not in it.
    fn unkept(&self) -> u64 {
        self.noted.saturating_sub(self.had)
    }

    fn fault(&self, problem: String) -> MeasureError {
        MeasureError::Log { path: self.path.clone(), problem }
    }

    fn next(&mut self) -> Result<Option<Logged>, MeasureError> {
        while self.records.is_empty() {
            let Some(file) = &mut self.file else { return Ok(None) };
            let read = file.read(&mut self.block);
            let read = read.map_err(|e| self.fault(clearlane_lab::plain(&e).to_string()))?;
            self.read.add(read);
            let wrong = |error: LogError| error.to_string();
            if read == 0 {
                self.decoder.end().map_err(|error| self.fault(wrong(error)))?;
                return Ok(None);
            }
            let records = &mut self.records;
            let decoded =
                self.decoder.read(&self.block[..read], |record| records.push_back(record));
            decoded.map_err(|error| self.fault(wrong(error)))?;
        }
        self.had += 1;
        Ok(self.records.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Encoder;

    /// A log of packets of these numbers.
    fn log<'a>(name: &str, numbers: &[u64], read: &'a Share<'_>) -> Reader<'a> {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for (at, sequence) in numbers.iter().enumerate() {
            encoder.push(Logged { sequence: *sequence, ns: at as u64, bytes: 100 }, &mut bytes);
        }
        let path = std::env::temp_dir().join(format!("clearlane-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let kept = KeptLog { path: path.clone(), records: 1 + numbers.len() as u64 };
        let reader = Reader::of(Some(&kept), read).unwrap();
        std::fs::remove_file(&path).unwrap();
        reader
    }

    #[test]
    fn datagrams_that_are_lost_late_or_twice_are_told_apart() {
        // 0 comes twice, 1 is lost, 4 comes before 3.
        let heard = Cell::new(0.0);
        let told = |share| heard.set(share);
        let read = Share { done: Cell::new(0), all: 1000, told: &told };
        let mut log = log("arrivals", &[0, 0, 4, 2, 3], &read);
        let mut arrivals = Arrivals::default();
        let mut came = |sequence| arrivals.take(sequence, &mut log).unwrap();
        let times: Vec<Option<u64>> = (0..5).map(|at| came(at).map(|one| one.ns)).collect();
        assert_eq!(times, [Some(0), None, Some(3), Some(4), Some(2)]);
        assert!(log.next().unwrap().is_none());
        // One more was noted than the log has.
        assert_eq!(log.unkept(), 1);
        assert!(heard.get() > 0.0 && heard.get() < 1.0, "{heard:?}");
    }

    #[test]
    fn shares_are_fair_when_they_are_equal() {
        assert_eq!(jain([1.0, 1.0].into_iter()), Some(1.0));
        assert_eq!(jain([1.0, 0.0].into_iter()), Some(0.5));
        assert_eq!(jain([0.0].into_iter()), None);
    }
}
