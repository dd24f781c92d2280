//! GOAL as LogGOPSim keeps it, written by its `txt2bin` (github.com/spcl/LogGOPSim, Parser.hpp).
//!
//! Little-endian, without padding. A file: u64 4223; u32 ranks; u8 highest CPU; u8 highest port;
//! of each rank u64 begin and u64 end of its block, both from byte 8 on; the blocks. A block: u32
//! nodes; u32 roots; the number of each root, u32; the nodes; the dependents of all nodes, each a
//! u32. A node, 39 bytes: u32 how many it waits for; u8 1 (send), 2 (receive) or 3 (work); u32
//! peer; u64 bytes or ns; u32 tag; u8 CPU; u8 port; u32 how many wait for its end, u32 the place of
//! the first of them; the same of those that wait for its beginning. A peer or tag of 2^32 − 1 is
//! any.
//!
//! Counts are looked at before anything is made of their size, blocks may not overlap and no more
//! dependents are taken than there are: a trace takes a few times the bytes of its file.

use super::{Draft, Node, Place, Trace, TraceError, Work};
use crate::Rank;

const MAGIC: u64 = 4223;

/// What LogGOPSim makes of it where it has used the file as its memory (`--save-mem`).
const INVALIDATED: u64 = 2342;

const NODE_BYTES: u64 = 39;

/// Where places in the file are counted from.
const ORIGIN: u64 = 8;

/// What stands for any.
const ANY: u32 = u32::MAX;

/// Whether a file is one of these.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|first| {
        let magic = u64::from_le_bytes(*first);
        magic == MAGIC || magic == INVALIDATED
    })
}

/// Reads a file; `name` is what errors call it by.
pub(super) fn read(bytes: &[u8], name: &str) -> Result<Trace, TraceError> {
    let mut cursor = Cursor { bytes, at: 0, end: bytes.len() as u64 };
    let drafts = file(&mut cursor).map_err(|(place, problem)| {
        TraceError::new(name, place.unwrap_or(Place::Byte(cursor.at)), problem)
    })?;
    Trace::new(drafts, name)
}

/// A place, if it is not where the reader is, and what is wrong there.
type Wrong = (Option<Place>, String);

/// Reads one number after another.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: u64,
    /// Where what is read has to end; within the file.
    end: u64,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let at = self.at as usize;
        let found = self.bytes[..self.end as usize].get(at..).and_then(|rest| rest.first_chunk());
        let Some(found) = found else {
            return Err((None, "ends too soon; get the whole file".into()));
        };
        self.at += N as u64;
        Ok(*found)
    }

    fn byte(&mut self) -> Result<u8, Wrong> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u32, Wrong> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, Wrong> {
        self.take().map(u64::from_le_bytes)
    }

    /// Whether there is room for so many of so many bytes.
    fn has(&self, count: u64, of: u64) -> bool {
        count.checked_mul(of).is_some_and(|bytes| bytes <= self.end - self.at)
    }
}

fn file(cursor: &mut Cursor<'_>) -> Result<Vec<Draft>, Wrong> {
    if cursor.long()? == INVALIDATED {
        let problem = "used up by a run of LogGOPSim with --save-mem; make it anew with txt2bin";
        return Err((Some(Place::Byte(0)), problem.into()));
    }
    let ranks = cursor.short()?;
    // The highest CPU and port follow from the nodes.
    cursor.take::<2>()?;
    if !cursor.has(ranks.into(), 16) {
        return Err((
            None,
            format!("{ranks} ranks, for which the file is too short; get it whole"),
        ));
    }
    let table: Vec<(u64, u64)> =
        (0..ranks).map(|_| Ok((cursor.long()?, cursor.long()?))).collect::<Result<_, Wrong>>()?;
    let (mut drafts, whole) = (Vec::with_capacity(table.len()), cursor.end);
    let mut free = cursor.at;
    for (rank, (begin, end)) in (0..).zip(table) {
        let place = |at: u64| at.checked_add(ORIGIN).filter(|at| *at <= whole);
        match (place(begin), place(end)) {
            (Some(begin), Some(end)) if free <= begin && begin <= end => {
                (cursor.at, cursor.end, free) = (begin, end, end);
            }
            _ => {
                let problem = format!(
                    "bytes {begin} to {end}, which overlap others or are not in the file; get it \
                     anew"
                );
                return Err((Some(Place::Rank(rank)), problem));
            }
        }
        drafts.push(block(cursor, rank)?);
    }
    if free < whole {
        let problem = format!("{} bytes behind the last rank; get the file anew", whole - free);
        return Err((Some(Place::Byte(free)), problem));
    }
    Ok(drafts)
}

/// The dependents of a node: how many wait for its end or its beginning, and where the first is.
type Dependents = (u32, u32);

/// The block of a rank, from where the cursor is to its end.
fn block(cursor: &mut Cursor<'_>, rank: u32) -> Result<Draft, Wrong> {
    let short = |what: u32, name: &str| {
        let problem = format!("{what} {name}, for which its part is too short; get the file anew");
        (Some(Place::Rank(rank)), problem)
    };
    let (nodes, roots) = (cursor.short()?, cursor.short()?);
    if !cursor.has(roots.into(), 4) {
        return Err(short(roots, "roots"));
    }
    cursor.at += 4 * u64::from(roots);
    if !cursor.has(nodes.into(), NODE_BYTES) {
        return Err(short(nodes, "nodes"));
    }
    let mut draft = Draft::default();
    let mut waits = Vec::with_capacity(nodes as usize);
    let mut dependents: Vec<[Dependents; 2]> = Vec::with_capacity(nodes as usize);
    for number in 0..nodes {
        waits.push(cursor.short()?);
        draft.add(node(cursor, rank, number)?);
        let mut pair = || Ok((cursor.short()?, cursor.short()?));
        dependents.push([pair()?, pair()?]);
    }
    let first = cursor.at;
    let mut left = (cursor.end - first) / 4;
    for (number, both) in (0..).zip(&dependents) {
        for (kind, (count, begin)) in (0..).zip(both) {
            // Each dependent is one node's, so that a file is not read more than once.
            let Some(rest) = left.checked_sub((*count).into()) else {
                let problem = "more nodes wait for others than the file lists; get it anew";
                return Err((Some(Place::Node(rank, number)), problem.into()));
            };
            left = rest;
            cursor.at = first + 4 * u64::from(*begin);
            if *count > 0 && !(cursor.at <= cursor.end && cursor.has((*count).into(), 4)) {
                let problem = "nodes wait for it that the file does not list; get it anew";
                return Err((Some(Place::Node(rank, number)), problem.into()));
            }
            for _ in 0..*count {
                let other = cursor.short()?;
                let Some(waits) = waits.get_mut(other as usize).filter(|waits| **waits > 0) else {
                    let problem = format!("node {other} waits for it and does not say so");
                    return Err((Some(Place::Node(rank, number)), problem));
                };
                *waits -= 1;
                match kind {
                    0 => draft.starts_after(other, number),
                    _ => draft.starts_after_start(other, number),
                }
            }
        }
    }
    match (0..).zip(&waits).find(|(_, waits)| **waits > 0) {
        Some((number, waits)) => {
            let problem = format!("waits for {waits} nodes more than there are; get the file anew");
            Err((Some(Place::Node(rank, number)), problem))
        }
        None => Ok(draft),
    }
}

/// A node from its kind to its port.
fn node(cursor: &mut Cursor<'_>, rank: u32, number: u32) -> Result<Node, Wrong> {
    let (kind, peer, size) = (cursor.byte()?, cursor.short()?, cursor.long()?);
    let (tag, cpu, nic) = (cursor.short()?, cursor.byte()?, cursor.byte()?);
    let known = |value: u32| (value != ANY).then_some(value);
    let work = match kind {
        1 => Work::Send { to: Rank(peer), bytes: size, tag },
        2 => Work::Receive { from: known(peer).map(Rank), bytes: size, tag: known(tag) },
        3 => Work::Calc { ns: size },
        other => {
            let problem = format!("kind {other}; kinds are 1 (send), 2 (receive) and 3 (work)");
            return Err((Some(Place::Node(rank, number)), problem));
        }
    };
    Ok(Node { work, cpu, nic })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{calc, receive, send, traces};
    use super::super::{Draft, Until};
    use super::*;
    use proptest::prelude::*;

    /// As txt2bin writes it.
    fn write(trace: &Trace) -> Vec<u8> {
        let (mut table, mut blocks) = (Vec::new(), Vec::new());
        let begin = 6 + 16 * u64::from(trace.ranks());
        for rank in (0..trace.ranks()).map(Rank) {
            table.extend((begin + blocks.len() as u64).to_le_bytes());
            block(trace, rank, &mut blocks);
            table.extend((begin + blocks.len() as u64).to_le_bytes());
        }
        let ranks = trace.ranks().to_le_bytes();
        [&MAGIC.to_le_bytes()[..], &ranks, &[0; 2], &table, &blocks].concat()
    }

    fn block(trace: &Trace, rank: Rank, out: &mut Vec<u8>) {
        let waits = trace.waits_for(rank);
        let roots: Vec<u32> = (0..).zip(&waits).filter(|(_, w)| **w == 0).map(|(n, _)| n).collect();
        out.extend(trace.count(rank).to_le_bytes());
        out.extend((roots.len() as u32).to_le_bytes());
        roots.iter().for_each(|root| out.extend(root.to_le_bytes()));
        let mut dependents: Vec<u32> = Vec::new();
        for (number, node) in (0..).zip(trace.nodes(rank)) {
            let any = |value: Option<u32>| value.unwrap_or(ANY);
            let (kind, peer, size, tag) = match node.work {
                Work::Send { to, bytes, tag } => (1, to.0, bytes, tag),
                Work::Receive { from, bytes, tag } => {
                    (2, any(from.map(|from| from.0)), bytes, any(tag))
                }
                Work::Calc { ns } => (3, 0, ns, 0),
            };
            out.extend(waits[number as usize].to_le_bytes());
            out.push(kind);
            out.extend(peer.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend(tag.to_le_bytes());
            out.extend([node.cpu, node.nic]);
            for kind in [Until::Finished, Until::Started] {
                let first = dependents.len();
                let of = trace.dependents(rank, number).filter(|(_, until)| *until == kind);
                dependents.extend(of.map(|(other, _)| other));
                out.extend(((dependents.len() - first) as u32).to_le_bytes());
                out.extend((first as u32).to_le_bytes());
            }
        }
        dependents.iter().for_each(|node| out.extend(node.to_le_bytes()));
    }

    /// Two ranks, of which the first works, sends and works again.
    fn two() -> Vec<u8> {
        let (mut first, mut second) = (Draft::default(), Draft::default());
        let nodes = [calc(5, 1), Node { nic: 1, ..send(1, 9, 3) }, calc(6, 0)];
        nodes.iter().for_each(|node| _ = first.add(*node));
        first.starts_after(1, 0);
        first.starts_after_start(2, 1);
        second.add(receive(0, 9, 3));
        write(&Trace::new(vec![first, second], "x").unwrap())
    }

    /// Where the block of the first rank begins, and its nodes.
    const BLOCK: usize = 8 + 6 + 32;
    const NODES: usize = BLOCK + 8 + 4;

    /// What is said if a byte is another.
    fn said(at: usize, byte: u8) -> String {
        let mut bytes = two();
        assert_ne!(bytes[at], byte);
        bytes[at] = byte;
        Trace::read(&bytes, "x").expect_err("it is refused").to_string()
    }

    #[test]
    fn damage_is_named_with_its_place() {
        assert!(Trace::read(&two(), "x").is_ok());
        assert_eq!(
            said(11, 1),
            "x: byte 0xe: 16777218 ranks, for which the file is too short; get it whole"
        );
        assert_eq!(
            said(14, 0),
            "x: rank 0: bytes 0 to 175, which overlap others or are not in the file; get it anew"
        );
        assert_eq!(
            said(BLOCK, 4),
            "x: rank 0: 4 nodes, for which its part is too short; get the file anew"
        );
        assert_eq!(
            said(BLOCK + 7, 1),
            "x: rank 0: 16777217 roots, for which its part is too short; get the file anew"
        );
        assert_eq!(
            said(NODES + 4, 7),
            "x: rank 0, node 0: kind 7; kinds are 1 (send), 2 (receive) and 3 (work)"
        );
        assert_eq!(
            said(NODES, 1),
            "x: rank 0, node 0: waits for 1 nodes more than there are; get the file anew"
        );
        assert_eq!(
            said(NODES + 39, 0),
            "x: rank 0, node 0: node 1 waits for it and does not say so"
        );
        assert_eq!(
            said(NODES + 23, 4),
            "x: rank 0, node 0: more nodes wait for others than the file lists; get it anew"
        );
        assert_eq!(
            said(NODES + 27, 9),
            "x: rank 0, node 0: nodes wait for it that the file does not list; get it anew"
        );
        assert_eq!(
            said(NODES + 2 * 39 + 39, 9),
            "x: rank 0, node 0: node 9 waits for it and does not say so"
        );
        assert_eq!(said(NODES + 39 + 5, 7), "x: rank 0, node 1: no rank 7; ranks are 0 to 1");
        let bytes = [&INVALIDATED.to_le_bytes()[..], &two()[8..]].concat();
        let used = Trace::read(&bytes, "x").unwrap_err().to_string();
        assert_eq!(
            used,
            "x: byte 0x0: used up by a run of LogGOPSim with --save-mem; make it anew with txt2bin"
        );
        let longer = Trace::read(&[two(), vec![0; 3]].concat(), "x").unwrap_err().to_string();
        assert!(longer.ends_with(": 3 bytes behind the last rank; get the file anew"), "{longer}");
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_refused() {
        for length in 8..two().len() {
            let error = Trace::read(&two()[..length], "x").expect_err("it is cut off").to_string();
            assert!(error.starts_with("x: "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(trace in traces()) {
            prop_assert_eq!(Trace::read(&write(&trace), "x").unwrap(), trace);
        }

        #[test]
        fn a_damaged_file_is_a_trace_or_an_error_of_one_line(
            trace in traces(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        ) {
            let mut bytes = write(&trace);
            for (at, byte) in damage {
                let at = 8 + at.index(bytes.len() - 8);
                bytes[at] = byte;
            }
            if let Err(error) = Trace::read(&bytes, "x") {
                let error = error.to_string();
                prop_assert!(!error.contains('\n') && error.starts_with("x: "), "{error:?}");
            }
        }
    }
}
