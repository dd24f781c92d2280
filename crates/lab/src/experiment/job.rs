//! A program of a flow group as a file writes it: what its ranks do, where they are, and how far
//! apart the packets of their messages are.

use super::document::Value;
use super::keys::{Field, Keys, nearest};
use super::pattern;
use super::traces;
use super::traffic::OF_OPEN_LOOP;
use crate::{LabError, text};
use clearlane_ib::random::Stream;
use clearlane_ib::{LinkRate, Picoseconds};
use clearlane_sim::Parameters;
use clearlane_workload::programs::Group;
use clearlane_workload::{Gap, HostRef, Pacing, PacingSpec, ProgramSpec, Rank, Ranks, Routes};
use clearlane_workload::{StepGaps, Transport};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The keys that only a program has.
pub(super) const KEYS: &[&str] = &["gap", "mapping"];

/// Most bytes of a mapping: a line for each of a million ranks.
const MAPPING_BYTES_MAX: u64 = 256 << 20;
/// The widest gap, in times of a packet.
const GAP_MAX: f64 = 100_000.0;

/// A program as a file writes it.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// What its ranks do.
    pub spec: ProgramSpec,
    /// How far apart packets are.
    pub pacing: PacingSpec,
    /// Which rank is at which of its hosts.
    pub mapping: Mapping,
    written: toml::Value,
}

/// Which rank of a program is at which of its hosts.
#[derive(Clone, PartialEq, Debug)]
pub enum Mapping {
    /// Ranks are numbered as hosts are.
    Linear,
    /// Drawn once, by a seed apart from the run's.
    Random(u64),
    /// As a file says: a host a line, that of rank 0 first.
    File(PathBuf),
}

/// What a program needs to know of the fabric it is to run on.
pub(crate) struct Place<'a> {
    /// All hosts.
    pub(crate) ranks: &'a Ranks,
    /// The routes packets take.
    pub(crate) routes: &'a dyn Routes,
    /// What devices are made of.
    pub(crate) parameters: &'a Parameters,
    /// The rate of one port of an adapter.
    pub(crate) port_rate: LinkRate,
}

impl JobSpec {
    /// Reads `program`, beside which nothing of open-loop traffic stands.
    pub(super) fn read(field: &Field<'_>, keys: &Keys<'_>) -> Result<Self, LabError> {
        for key in OF_OPEN_LOOP {
            if let Some(field) = keys.optional(key) {
                return Err(field.error("does not belong beside program; drop it"));
            }
        }
        let pacing = keys.optional("gap").map(|field| pacing(&field)).transpose()?;
        let mapping = keys.optional("mapping").map(|field| mapping(&field)).transpose()?;
        Ok(JobSpec {
            spec: pattern::program(field)?,
            pacing: pacing.unwrap_or(PacingSpec::None),
            mapping: mapping.unwrap_or(Mapping::Linear),
            written: field.node.plain(),
        })
    }

    /// Its part of the table that reads back as the group.
    pub(super) fn resolve(&self, table: &mut toml::Table) {
        let mut written = self.written.clone();
        let mut spec = self.spec.clone();
        if let (Some(file), Some(written)) = (spec.trace_file(), written.as_table_mut()) {
            written.insert("file".into(), super::fabric::text_of(Path::new(&file.path)));
        }
        table.insert("program".into(), written);
        table.insert("gap".into(), gap_written(self.pacing));
        let mapping = match &self.mapping {
            Mapping::Linear => "linear".into(),
            Mapping::Random(seed) => toml::Table::from_iter([(
                "seed".to_owned(),
                i64::try_from(*seed).unwrap_or(i64::MAX).into(),
            )])
            .into(),
            Mapping::File(path) => {
                toml::Table::from_iter([("file".to_owned(), super::fabric::text_of(path))]).into()
            }
        };
        table.insert("mapping".into(), mapping);
    }

    /// The files it reads: its mapping and its trace.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mapping = match &self.mapping {
            Mapping::File(path) => Some(path.clone()),
            _ => None,
        };
        let mut spec = self.spec.clone();
        let trace = spec.trace_file().map_or(Vec::new(), |file| traces::files(file));
        mapping.into_iter().chain(trace).collect()
    }

    /// Where its ranks are, of the hosts that it has, which are in ascending order.
    pub(super) fn hosts(&self, ranks: &Ranks, mut hosts: Vec<Rank>) -> Result<Vec<Rank>, String> {
        match &self.mapping {
            Mapping::Linear => Ok(hosts),
            Mapping::Random(seed) => {
                let mut stream = Stream::new(*seed, "mapping", 0);
                for last in (1..hosts.len()).rev() {
                    hosts.swap(last, stream.below(last as u64 + 1) as usize);
                }
                Ok(hosts)
            }
            Mapping::File(path) => of_file(path, ranks, &hosts),
        }
    }

    /// How far apart the packets of its messages are. Fails if it does not fit the ranks it has, or
    /// cannot be paced as it is asked to be, or needs RDMA READ and has none.
    pub(super) fn pacing(
        &self,
        place: &Place<'_>,
        hosts: &[Rank],
        transport: Transport,
    ) -> Result<Pacing, String> {
        let (spec, ranks) = (&self.spec, hosts.len() as u32);
        let group = Group { ranks, ..Group::default() };
        spec.build(&group).map_err(|error| format!("{error}; change senders"))?;
        let (longest, eager) = (spec.longest(ranks), place.parameters.eager_max);
        if transport == Transport::Ud && longest > eager {
            return Err(format!(
                "program {} sends messages of up to {longest}, which are read by RDMA READ beyond \
                 eager_max = {eager}, and UD has none; set transport = \"rc\" or raise eager_max",
                spec.name()
            ));
        }
        match self.pacing {
            PacingSpec::None => Ok(Pacing::None),
            PacingSpec::Fixed(gap) => Ok(Pacing::Fixed(gap)),
            PacingSpec::Overlap | PacingSpec::Hops => {
                let schedule = spec.schedule(ranks).map_err(|error| error.to_string())?;
                let Some(schedule) = schedule else {
                    return Err(format!(
                        "program {} has no steps to compute gaps from; write gap = a number",
                        spec.name()
                    ));
                };
                let by_hops = self.pacing == PacingSpec::Hops;
                let gaps = StepGaps::of(&*schedule, place.routes, hosts, by_hops);
                Ok(Pacing::Steps(Arc::new(gaps)))
            }
            PacingSpec::Timetable if spec.keeps_timetable() => {
                let (payload, header) = place.parameters.packet(transport);
                let packet = place.port_rate.serialisation(u64::from(payload + header));
                Ok(Pacing::Timetable { payload, packet: Picoseconds(packet) })
            }
            PacingSpec::Timetable => Err(format!(
                "program {} keeps no timetable; a2at-alltoall in two dimensions does, others take \
                 gap = \"mod\"",
                spec.name()
            )),
        }
    }
}

/// Gaps in words.
const WORDS: &[(&str, PacingSpec)] = &[
    ("none", PacingSpec::None),
    ("mod", PacingSpec::Overlap),
    ("hops", PacingSpec::Hops),
    ("timetable", PacingSpec::Timetable),
];

fn pacing(field: &Field<'_>) -> Result<PacingSpec, LabError> {
    if let Value::Text(text) = &field.node.value {
        let found = WORDS.iter().find(|(word, _)| word == text).map(|(_, pacing)| *pacing);
        return found.ok_or_else(|| {
            let near = nearest(text, WORDS.iter().map(|(word, _)| *word));
            field.error(&format!(
                "is neither a number of packet times, without quotes, nor \"none\", \"mod\", \
                 \"hops\" or \"timetable\"{near}"
            ))
        });
    }
    let gap = field.number(0.0, GAP_MAX).map_err(|_| {
        field.error(&format!(
            "is neither a number of packet times from 0 to {GAP_MAX} nor mod, hops, timetable or \
             none"
        ))
    })?;
    Ok(PacingSpec::Fixed(Gap((gap * 1000.0).round() as u32)))
}

fn gap_written(pacing: PacingSpec) -> toml::Value {
    if let PacingSpec::Fixed(gap) = pacing {
        return (f64::from(gap.0) / 1000.0).into();
    }
    let word = WORDS.iter().find(|(_, known)| *known == pacing);
    word.map_or("none", |(word, _)| word).into()
}

/// Gaps in words, for the facts of a report; empty for none.
pub(crate) fn in_words(spec: PacingSpec, pacing: &Pacing) -> String {
    match (spec, pacing) {
        (PacingSpec::Fixed(gap), _) => {
            format!(", a gap of {} packets", f64::from(gap.0) / 1000.0)
        }
        (PacingSpec::Overlap, Pacing::Steps(gaps)) => {
            format!(", MOD gaps of up to {} packets", gaps.largest())
        }
        (PacingSpec::Hops, Pacing::Steps(gaps)) => {
            format!(", gaps of hops less one, up to {} packets", gaps.largest())
        }
        (PacingSpec::Timetable, _) => ", by its timetable".to_owned(),
        _ => String::new(),
    }
}

/// `"linear"`, `"random"`, `{ seed = 7 }` or `{ file = "ranks.txt" }`.
fn mapping(field: &Field<'_>) -> Result<Mapping, LabError> {
    if let Value::Text(text) = &field.node.value {
        return match text.as_str() {
            "linear" => Ok(Mapping::Linear),
            "random" => Ok(Mapping::Random(1)),
            other => {
                let near = nearest(other, ["linear", "random"].into_iter());
                Err(field.error(&format!("is neither linear, random nor a table{near}")))
            }
        };
    }
    let keys = field.keys(&["seed", "file"])?;
    match (keys.optional("seed"), keys.optional("file")) {
        (Some(seed), None) => Ok(Mapping::Random(seed.integer(0, i64::MAX as u64)?)),
        (None, Some(file)) => Ok(Mapping::File(file.path_of(file.text()?))),
        _ => Err(field.error("is not exactly one of { seed = … } and { file = … }")),
    }
}

/// The hosts of ranks by a file: each of the hosts there are, once.
fn of_file(path: &Path, ranks: &Ranks, hosts: &[Rank]) -> Result<Vec<Rank>, String> {
    let text = text::read(path, MAPPING_BYTES_MAX).map_err(|error| error.to_string())?;
    let (mut placed, mut lines) = (Vec::new(), vec![0; ranks.count() as usize]);
    for (line, host) in (1..).zip(text.lines()) {
        let host = host.split('#').next().unwrap_or_default().trim();
        if host.is_empty() {
            continue;
        }
        let fault = |problem: String| format!("mapping {}:{line}: {problem}", path.display());
        let named = host.parse().map_or_else(|_| HostRef::Name(host.to_owned()), HostRef::Number);
        let rank = ranks.resolve(&named).map_err(fault)?;
        if hosts.binary_search(&rank).is_err() {
            let problem = format!("{} is none of senders; name it there", ranks.name(rank));
            return Err(fault(problem));
        }
        match std::mem::replace(&mut lines[rank.0 as usize], line) {
            0 => placed.push(rank),
            before => {
                let name = ranks.name(rank);
                return Err(fault(format!("{name} has a rank on line {before} already")));
            }
        }
    }
    match hosts.iter().find(|host| lines[host.0 as usize] == 0) {
        None => Ok(placed),
        Some(missing) => Err(format!(
            "mapping {} has no line for {}; add it, or leave it out of senders",
            path.display(),
            ranks.name(*missing)
        )),
    }
}
