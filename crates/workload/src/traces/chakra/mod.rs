//! Chakra execution traces: a file of protocol buffers a rank, each behind its length as a varint:
//! `GlobalMetadata`, then nodes (github.com/mlcommons/chakra; Sridharan et al., "Chakra: Advancing
//! Performance Benchmarking and Co-design using Standardized Execution Traces", 2023).
//!
//! Nodes of work keep a CPU busy for their duration: one of CPUs (`is_cpu_op`) or one of the GPU,
//! which is where they are by default. Messages have a CPU of their own. A collective becomes
//! messages: ranks that have collectives of one process group are its members, and the first
//! collective of each is the same one, and so on. `comm_size` is what each rank puts in, as
//! ASTRA-sim takes it (Ring.cc of github.com/astra-sim/astra-sim).

mod collectives;
mod messages;

use super::{Draft, Node, Place, Trace, TraceError, Work};
use crate::Rank;
use clearlane_ib::ticked;
use collectives::{Collective, Kind};
use messages::{GlobalMetadata, Value};
use prost::Message;
use std::collections::BTreeMap;

/// The CPUs of a rank.
mod cpu {
    /// Operations of the CPU.
    pub(super) const HOST: u8 = 0;
    /// Those of the GPU.
    pub(super) const GPU: u8 = 1;
    /// Messages.
    pub(super) const MESSAGES: u8 = 2;
    /// What takes no time.
    pub(super) const NONE: u8 = 3;
}

/// The first tag of collectives; those of messages are less.
const COLLECTIVES: u32 = 1 << 31;

/// A trace, and what is not in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Converted {
    /// What can be run.
    pub trace: Trace,
    /// What the files say and the trace does not, a line each; nothing if there is no such thing.
    pub lost: Vec<String>,
}

/// Whether a file begins as one of these.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let begins = prost::decode_length_delimiter(bytes).is_ok_and(|length| length > 0);
    let mut rest = bytes;
    let metadata = GlobalMetadata::decode_length_delimited(&mut rest);
    let says = |it: GlobalMetadata| {
        it.version.starts_with(|c: char| c.is_ascii_digit())
            || it.attributes.iter().any(|attribute| attribute.name == "schema")
    };
    begins && metadata.is_ok_and(says)
}

/// Reads the files of all ranks, each with its name, which ends in `.RANK.et`.
///
/// # Errors
/// If a rank has no file, a file departs from the format, or what the files say cannot be a trace:
/// a message that nobody receives, collectives of which ranks differ, one that is not converted.
pub fn read(files: &[(&str, &[u8])]) -> Result<Converted, TraceError> {
    let files = by_rank(files)?;
    let mut ranks = Vec::new();
    for (name, bytes) in &files {
        ranks.push(FileOfRank { name, nodes: nodes(bytes, name)? });
    }
    let mut lost = Lost::default();
    let groups = groups(&ranks)?;
    let instances = instances(&ranks, &groups)?;
    let mut built = Vec::new();
    for (rank, file) in (0..).zip(&ranks) {
        built.push(file.draft(rank, ranks.len() as u32, &groups, &instances, &mut lost)?);
    }
    for (group, members) in groups.iter().filter(|(group, _)| !group.is_empty()) {
        lost.groups.push((group, members.len()));
    }
    let (drafts, ids): (Vec<Draft>, Vec<Vec<u64>>) = built.into_iter().unzip();
    let trace = Trace::checked(drafts).map_err(|mut fault| match fault.place {
        Place::Node(rank, node) => {
            let id = ids[rank as usize][node as usize];
            fault.problem = format!("node {id}: {}", fault.problem);
            fault.place = Place::Whole;
            fault.of_file(ranks[rank as usize].name)
        }
        Place::Rank(rank) => {
            fault.place = Place::Whole;
            fault.problem = format!("rank {rank}: {}", fault.problem);
            fault.of_file(ranks[rank as usize].name)
        }
        _ => fault.of_file("Chakra trace"),
    })?;
    Ok(Converted { trace, lost: lost.lines() })
}

/// The files in the order of their ranks.
fn by_rank<'a>(files: &[(&'a str, &'a [u8])]) -> Result<Vec<(&'a str, &'a [u8])>, TraceError> {
    let mut known: BTreeMap<u32, (&str, &[u8])> = BTreeMap::new();
    for (name, bytes) in files {
        let wrong = |problem: &str| TraceError::new(name, Place::Whole, problem.to_owned());
        let stem = name.strip_suffix(".et").and_then(|stem| stem.rsplit_once('.'));
        let rank = stem.and_then(|(_, rank)| rank.parse().ok());
        let rank = rank.ok_or_else(|| {
            wrong("the name says no rank; files of a Chakra trace are called NAME.RANK.et")
        })?;
        if known.insert(rank, (name, bytes)).is_some() {
            return Err(wrong("a second file of this rank; give one of each"));
        }
    }
    for (rank, (known, (name, _))) in (0..).zip(&known) {
        if *known != rank {
            let problem = format!("rank {rank} has no file; give those of all ranks");
            return Err(TraceError::new(name, Place::Whole, problem));
        }
    }
    Ok(known.into_values().collect())
}

/// The nodes of a file.
fn nodes(bytes: &[u8], name: &str) -> Result<Vec<messages::Node>, TraceError> {
    let wrong = |rest: &[u8], problem: String| {
        TraceError::new(name, Place::Byte((bytes.len() - rest.len()) as u64), problem)
    };
    if !is_one(bytes) {
        let problem = "no Chakra trace: these begin with a GlobalMetadata that has a version";
        return Err(wrong(bytes, problem.to_owned()));
    }
    let mut rest = bytes;
    let mut nodes = Vec::new();
    let mut is_metadata = true;
    while !rest.is_empty() {
        let begin = rest;
        let read = match is_metadata {
            true => GlobalMetadata::decode_length_delimited(&mut rest).map(|_| None),
            false => messages::Node::decode_length_delimited(&mut rest).map(Some),
        };
        match read {
            Ok(node) => nodes.extend(node),
            Err(error) => {
                let problem = format!("no node of a Chakra trace ({error}); get the file anew");
                return Err(wrong(begin, problem));
            }
        }
        is_metadata = false;
    }
    Ok(nodes)
}

/// By process group: ranks that have collectives of it, ascending. Without a name it is one too.
type Groups = BTreeMap<String, Vec<u32>>;

/// By process group and number: the tag, the kind and the size of a collective.
type Instances = BTreeMap<(String, usize), (u32, Kind, u64)>;

/// Nodes that collectives become, at most: 2 GiB of them.
const EXPANDED_MAX: u64 = 1 << 26;

fn groups(ranks: &[FileOfRank<'_>]) -> Result<Groups, TraceError> {
    let mut groups = Groups::new();
    for (rank, file) in (0..).zip(ranks) {
        for node in file.collectives() {
            let group = file.group(node)?;
            let members = groups.entry(group).or_default();
            if members.last() != Some(&rank) {
                members.push(rank);
            }
        }
    }
    // What names no group is among all.
    if let Some(members) = groups.get_mut("") {
        *members = (0..ranks.len() as u32).collect();
    }
    Ok(groups)
}

/// What collectives there are; all members of a group have the same ones.
fn instances(ranks: &[FileOfRank<'_>], groups: &Groups) -> Result<Instances, TraceError> {
    let mut instances = Instances::new();
    let mut counts: BTreeMap<(String, u32), usize> = BTreeMap::new();
    let mut expanded = 0u64;
    for (rank, file) in (0..).zip(ranks) {
        for node in file.collectives() {
            let group = file.group(node)?;
            let (kind, bytes) = file.collective(node)?;
            expanded = expanded.saturating_add(kind.nodes(groups[&group].len()));
            if expanded > EXPANDED_MAX {
                let problem = format!(
                    "and the collectives before it are more than {EXPANDED_MAX} messages; trace a \
                     shorter part of the run"
                );
                return Err(file.wrong(node, problem));
            }
            let count = counts.entry((group.clone(), rank)).or_default();
            let number = *count;
            *count += 1;
            // They are fewer than nodes.
            let tag = COLLECTIVES + instances.len() as u32;
            let known = *instances.entry((group, number)).or_insert((tag, kind, bytes));
            if (known.1, known.2) != (kind, bytes) {
                let problem = format!(
                    "is {kind:?} of {bytes} bytes where another rank has {:?} of {}; give traces \
                     of one run",
                    known.1, known.2
                );
                return Err(file.wrong(node, problem));
            }
        }
    }
    for (group, members) in groups {
        let count = |rank: &u32| counts.get(&(group.clone(), *rank)).copied().unwrap_or(0);
        let most = members.iter().map(count).max().unwrap_or(0);
        if let Some(rank) = members.iter().find(|rank| count(rank) < most) {
            let problem = format!(
                "{} collectives{} where another rank has {most}; give traces of one run",
                count(rank),
                match group.as_str() {
                    "" => String::new(),
                    name => format!(" of process group {}", ticked(name)),
                }
            );
            return Err(TraceError::new(ranks[*rank as usize].name, Place::Whole, problem));
        }
    }
    Ok(instances)
}

/// What a trace has no room for.
#[derive(Default)]
struct Lost<'a> {
    without_duration: u64,
    memory: u64,
    begins: u64,
    dimensions: u64,
    roots: u64,
    groups: Vec<(&'a str, usize)>,
}

impl Lost<'_> {
    fn lines(self) -> Vec<String> {
        let counted = [
            (self.without_duration, "nodes of work without a duration, which take no time"),
            (self.memory, "accesses to memory, which keep no memory busy"),
            (self.begins, "times of beginning; nodes begin as soon as what they wait for is over"),
            (self.dimensions, "limits of collectives to dimensions; they are among all ranks"),
            (self.roots, "broadcasts without a root, which are the first rank's"),
        ];
        let line = |(count, text): &(u64, &str)| (*count > 0).then(|| format!("{text}: {count}"));
        let groups = self.groups.iter().map(|(group, members)| {
            format!(
                "members of process group {}: taken for the {members} ranks that have collectives \
                 of it",
                ticked(group)
            )
        });
        counted.iter().filter_map(line).chain(groups).collect()
    }
}

/// A rank's file, decoded.
struct FileOfRank<'a> {
    name: &'a str,
    nodes: Vec<messages::Node>,
}

/// `NodeType` of the schema.
mod kind {
    pub(super) const METADATA: i32 = 1;
    pub(super) const MEMORY_LOAD: i32 = 2;
    pub(super) const MEMORY_STORE: i32 = 3;
    pub(super) const COMPUTE: i32 = 4;
    pub(super) const SEND: i32 = 5;
    pub(super) const RECEIVE: i32 = 6;
    pub(super) const COLLECTIVE: i32 = 7;
}

/// `CollectiveCommType` of the schema.
const COLLECTIVE_NAMES: [&str; 10] = [
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
];

impl<'a> FileOfRank<'a> {
    fn wrong(&self, node: &messages::Node, problem: String) -> TraceError {
        TraceError::new(self.name, Place::Whole, format!("node {} {problem}", node.id))
    }

    fn collectives(&self) -> impl Iterator<Item = &messages::Node> {
        self.nodes.iter().filter(|node| node.kind == kind::COLLECTIVE)
    }

    /// A number that a node has to have.
    fn number(&self, node: &messages::Node, name: &str) -> Result<u64, TraceError> {
        let found = node.attribute(name).and_then(Value::number);
        found.ok_or_else(|| {
            self.wrong(node, format!("has no {name}, or none that is a number from 0 on"))
        })
    }

    /// The process group of a collective; nothing is one too.
    fn group(&self, node: &messages::Node) -> Result<String, TraceError> {
        match node.attribute("pg_name") {
            None => Ok(String::new()),
            Some(Value::Text(name)) => Ok(name.clone()),
            Some(other) => match other.number() {
                Some(number) => Ok(number.to_string()),
                None => Err(self.wrong(node, "has a pg_name that is no name".to_owned())),
            },
        }
    }

    /// The kind and size of a collective.
    fn collective(&self, node: &messages::Node) -> Result<(Kind, u64), TraceError> {
        let number = self.number(node, "comm_type")?;
        let name = COLLECTIVE_NAMES.get(usize::try_from(number).unwrap_or(usize::MAX));
        let kind = match name.copied() {
            Some("ALL_REDUCE") => Kind::AllReduce,
            Some("ALL_GATHER") => Kind::AllGather,
            Some("BROADCAST") => Kind::Broadcast,
            Some("ALL_TO_ALL") => Kind::AllToAll,
            Some("REDUCE_SCATTER" | "REDUCE_SCATTER_BLOCK") => Kind::ReduceScatter,
            Some("BARRIER") => return Ok((Kind::Barrier, 0)),
            other => {
                let name = other.map_or_else(|| number.to_string(), ToOwned::to_owned);
                let problem = format!(
                    "is collective {name}, which is not converted; have its messages traced"
                );
                return Err(self.wrong(node, problem));
            }
        };
        Ok((kind, self.number(node, "comm_size")?))
    }

    /// The graph of this rank of so many, and of each of its nodes the id it is from.
    fn draft(
        &self,
        rank: u32,
        ranks: u32,
        groups: &Groups,
        instances: &Instances,
        lost: &mut Lost<'_>,
    ) -> Result<(Draft, Vec<u64>), TraceError> {
        let (mut draft, mut ids) = (Draft::default(), Vec::new());
        // By id: the first and the last of a node.
        let mut known: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for node in &self.nodes {
            lost.begins += u64::from(node.start_time_micros > 0);
            let both = match node.kind {
                kind::COLLECTIVE => {
                    let group = self.group(node)?;
                    let count = counts.entry(group.clone()).or_default();
                    let (tag, kind, bytes) = instances[&(group.clone(), *count)];
                    *count += 1;
                    let members = &groups[&group];
                    let root = self.root(node, kind, members, lost)?;
                    let cpu = cpu::MESSAGES;
                    let collective = Collective { kind, bytes, tag, members, root, cpu };
                    expand(&mut draft, &collective, rank)
                }
                _ => {
                    let number = draft.add(self.simple(node, ranks, lost)?);
                    (number, number)
                }
            };
            ids.resize(draft.count() as usize, node.id);
            if known.insert(node.id, both).is_some() {
                return Err(self.wrong(node, "stands twice; get the file anew".to_owned()));
            }
        }
        for node in &self.nodes {
            let (first, _) = known[&node.id];
            for id in node.control_dependencies.iter().chain(&node.data_dependencies) {
                let Some((_, last)) = known.get(id) else {
                    let problem = format!("waits for node {id}, which the file does not have");
                    return Err(self.wrong(node, problem));
                };
                draft.starts_after(first, *last);
            }
        }
        Ok((draft, ids))
    }

    /// The place of a collective's root among its members.
    fn root(
        &self,
        node: &messages::Node,
        kind: Kind,
        members: &[u32],
        lost: &mut Lost<'_>,
    ) -> Result<usize, TraceError> {
        if let Some(Value::Bools(dimensions)) = node.attribute("involved_dim") {
            lost.dimensions += u64::from(dimensions.values.contains(&false));
        }
        if kind != Kind::Broadcast {
            return Ok(0);
        }
        if node.attribute("root").is_none() {
            lost.roots += 1;
            return Ok(0);
        }
        let root = self.number(node, "root")?;
        members.iter().position(|member| u64::from(*member) == root).ok_or_else(|| {
            self.wrong(node, format!("has root {root}, which has no such collective"))
        })
    }

    /// A node that becomes one.
    fn simple(
        &self,
        node: &messages::Node,
        ranks: u32,
        lost: &mut Lost<'_>,
    ) -> Result<Node, TraceError> {
        let nothing = Node { work: Work::Calc { ns: 0 }, cpu: cpu::NONE, nic: 0 };
        let message = |work| Node { work, cpu: cpu::MESSAGES, nic: 0 };
        match node.kind {
            kind::METADATA => Ok(nothing),
            kind::MEMORY_LOAD | kind::MEMORY_STORE | kind::COMPUTE => {
                lost.memory += u64::from(node.kind != kind::COMPUTE);
                if node.duration_micros == 0 {
                    lost.without_duration += u64::from(node.kind == kind::COMPUTE);
                    return Ok(nothing);
                }
                let is_host = node.attribute("is_cpu_op").and_then(Value::number) == Some(1);
                let cpu = if is_host { cpu::HOST } else { cpu::GPU };
                let work = Work::Calc { ns: node.duration_micros.saturating_mul(1000) };
                Ok(Node { work, cpu, nic: 0 })
            }
            kind::SEND => {
                let (to, bytes) = (self.peer(node, "comm_dst", ranks)?, self.bytes(node)?);
                Ok(message(Work::Send { to, bytes, tag: self.tag(node)? }))
            }
            kind::RECEIVE => {
                let (from, bytes) = (self.peer(node, "comm_src", ranks)?, self.bytes(node)?);
                let (from, tag) = (Some(from), Some(self.tag(node)?));
                Ok(message(Work::Receive { from, bytes, tag }))
            }
            other => Err(self.wrong(node, format!("is of type {other}; types are 1 to 7"))),
        }
    }

    fn bytes(&self, node: &messages::Node) -> Result<u64, TraceError> {
        self.number(node, "comm_size")
    }

    fn peer(&self, node: &messages::Node, name: &str, ranks: u32) -> Result<Rank, TraceError> {
        let peer = self.number(node, name)?;
        let known = u32::try_from(peer).ok().filter(|peer| *peer < ranks);
        known.map(Rank).ok_or_else(|| {
            let problem = format!(
                "has {name} {peer}, and there are files of {ranks} ranks; give those of all ranks"
            );
            self.wrong(node, problem)
        })
    }

    fn tag(&self, node: &messages::Node) -> Result<u32, TraceError> {
        let tag = match node.attribute("comm_tag") {
            Some(_) => self.number(node, "comm_tag")?,
            None => 0,
        };
        let known = u32::try_from(tag).ok().filter(|tag| *tag < COLLECTIVES);
        known.ok_or_else(|| {
            self.wrong(node, format!("has comm_tag {tag}; the highest is {}", COLLECTIVES - 1))
        })
    }
}

/// Adds a rank's part of a collective. Returns what begins and what ends it.
fn expand(draft: &mut Draft, collective: &Collective<'_>, rank: u32) -> (u32, u32) {
    let nothing = Node { work: Work::Calc { ns: 0 }, cpu: cpu::NONE, nic: 0 };
    let begin = draft.add(nothing);
    let own = collective.members.partition_point(|member| *member < rank);
    let last = collective.expand(draft, own, begin);
    if last.is_empty() {
        return (begin, begin);
    }
    let end = draft.add(nothing);
    last.into_iter().for_each(|node| draft.starts_after(end, node));
    (begin, end)
}

#[cfg(test)]
mod tests;
