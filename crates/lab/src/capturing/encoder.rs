//! Simulated packets with the headers that real ones have.
//!
//! The simulator knows hosts, flow groups and paths where real packets have queue pairs; numbers
//! are made of them, alike at every port. A connection's packets are numbered from a PSN of its
//! own, as adapters do. What a message's place in it is, First to Only, is told by the packets
//! before it at the same port, so a capture is right from the beginning of a run on.

use crate::prepare::Prepared;
use clearlane_capture::write::{Extended, Frame};
use clearlane_ib::random::Stream;
use clearlane_ib::{
    Aeth, Bth, Deth, Lid, Opcode, Psn, QueuePairNumber, Reth, ServiceLevel, VirtualLane, wire,
};
use clearlane_sim::{Forwarding, PacketKind, Read, Tapped};
use clearlane_workload::{Rank, Transport};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt::Write;

/// The partition that every port is in (IBA vol. 1, 10.9.1.2).
const DEFAULT_P_KEY: u16 = 0xffff;
/// Numbers of datagrams' queue pairs begin here; 0 and 1 are the subnet's management.
const DATAGRAM_FIRST: u32 = 0x10;
/// Those of connections begin here.
const CONNECTION_FIRST: u32 = 0x1_0000;
const NUMBERS: u32 = 1 << 24;
/// Keys are whatever the two sides have agreed on.
const Q_KEY: u32 = 0x1111_1111;
const R_KEY: u32 = 0x2222_2222;

/// A connection's half: which host, towards whom, in which group, on which path, sending or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Half {
    host: u32,
    peer: u32,
    group: u16,
    path: u16,
    sends: bool,
}

/// What was seen of a connection at a port.
#[derive(Clone, Default)]
struct Seen {
    /// A message has begun and not ended.
    open: bool,
    /// The same of the responses to an RDMA READ.
    response_open: bool,
    /// The last packets of messages that are not acknowledged yet; a READ is by its response.
    last: VecDeque<u32>,
    /// Messages acknowledged.
    complete: u32,
}

impl Seen {
    /// What the receiver has completed when it acknowledges this number.
    fn acknowledged(&mut self, psn: u32) -> u32 {
        while self.last.front().is_some_and(|last| psn.wrapping_sub(*last) < 1 << 31) {
            self.last.pop_front();
            self.complete = self.complete.wrapping_add(1);
        }
        self.complete
    }

    /// A message is to be acknowledged. Where answers take another way, nobody does it.
    fn ends(&mut self, psn: u32) {
        if self.last.len() == UNACKNOWLEDGED_MAX {
            self.last.pop_front();
            self.complete = self.complete.wrapping_add(1);
        }
        self.last.push_back(psn);
    }
}

/// Messages that a connection has under way, at most; older ones are taken for acknowledged.
const UNACKNOWLEDGED_MAX: usize = 1024;

pub(super) struct Encoder {
    seed: u64,
    /// By LID: the rank and the path; by rank number where forwarding is by rule.
    owners: Vec<Option<(u32, u16)>>,
    by_rule: bool,
    /// By host: its address.
    addresses: Vec<(u16, u16)>,
    transports: Vec<Transport>,
    paths: u32,
    seen: FxHashMap<(u32, u8, bool, Half), Seen>,
    first_psns: FxHashMap<Half, u32>,
    comment: String,
    /// What the first number is that a mechanism shows of a flow.
    state_name: &'static str,
}

impl Encoder {
    /// For the packets of a variant. Fails if its hosts have no LIDs.
    pub(super) fn of(prepared: &Prepared, seed: u64) -> Result<Self, String> {
        let count = prepared.hosts.count();
        let mut owners = Vec::new();
        let mut addresses = Vec::new();
        let mut paths = 1;
        let by_rule = match prepared.forwarding() {
            Forwarding::Tables(subnet) => {
                owners.resize(subnet.lids.table_len(), None);
                for rank in 0..count as u32 {
                    for end in prepared.hosts.ports(Rank(rank)) {
                        // Every port that carries traffic has one: it is routed to.
                        let Some((base, lmc)) = subnet.lids.base(*end) else { continue };
                        paths = paths.max(u32::from(lmc.lids()));
                        for offset in 0..lmc.lids() {
                            owners[usize::from(base.value() + offset)] = Some((rank, offset));
                        }
                        if addresses.len() == rank as usize {
                            addresses.push((base.value(), lmc.lids()));
                        }
                    }
                }
                false
            }
            _ => {
                let most = usize::from(Lid::MAX.value());
                if prepared.hosts.all_ports().len() > most {
                    return Err(format!(
                        "--capture: {count} hosts have no LIDs, which end at {most}; capture a \
                         smaller fabric"
                    ));
                }
                let mut number = 0;
                for rank in 0..count as u32 {
                    for place in 0..prepared.hosts.ports(Rank(rank)).len() {
                        number += 1;
                        if place == 0 {
                            addresses.push((number, 1));
                        }
                        owners.push(Some((rank, 0)));
                    }
                }
                true
            }
        };
        let groups = prepared.queue_pairs.groups(&prepared.groups);
        Ok(Encoder {
            seed,
            owners,
            by_rule,
            addresses,
            transports: groups.iter().map(|group| group.transport).collect(),
            paths,
            seen: FxHashMap::default(),
            first_psns: FxHashMap::default(),
            comment: String::new(),
            state_name: match prepared.control.names().contains(&"iba-cc") {
                true => "CCTI",
                false => "state",
            },
        })
    }

    /// Addresses and names of the hosts, in the syntax of `/etc/hosts`.
    pub(super) fn names(&self, prepared: &Prepared) -> String {
        let mut text = String::from("# addresses of the capture and names of the hosts\n");
        for (rank, (base, lids)) in self.addresses.iter().enumerate() {
            let node = prepared.hosts.end(Rank(rank as u32)).node;
            // In quotes, as names may have blanks; a quote would end them.
            let name = prepared.fabric.node(node).name.replace('"', "'");
            for lid in *base..base.saturating_add(*lids) {
                let [high, low] = lid.to_be_bytes();
                // Nothing can go wrong in writing to a text.
                let _ = writeln!(text, "{lid} \"{name}\"\n10.0.{high}.{low} \"{name}\"");
            }
        }
        text
    }

    /// The packet as a frame; nothing of one whose ends are unknown.
    pub(super) fn frame(&mut self, tapped: &Tapped) -> Option<Frame> {
        let (from, to) = (self.owner(tapped.slid)?, self.owner(tapped.dlid)?);
        let group = tapped.group;
        let transport = self.transports.get(usize::from(group)).copied()?;
        let is_back = matches!(tapped.kind, PacketKind::Ack | PacketKind::Cnp)
            || tapped.read == Read::Response;
        // The connection is that of the side that posted the request.
        let path = if is_back { to.1 } else { from.1 };
        let (sender, receiver) = if is_back { (to.0, from.0) } else { (from.0, to.0) };
        let half = Half { host: sender, peer: receiver, group, path, sends: true };
        let other = Half { host: receiver, peer: sender, group, path, sends: false };
        let is_datagram = transport == Transport::Ud;
        let destination = match (is_datagram, is_back) {
            (true, _) => self.datagrams(group),
            (false, true) => self.number(&half),
            (false, false) => self.number(&other),
        };
        let (opcode, extended) = self.operation(tapped, &half);
        // The simulator's responses to a READ have no AETH: theirs comes on top.
        let extended_bytes = match tapped.read {
            Read::Response => 0,
            _ => extended.bytes_len(),
        };
        let header = wire::LRH + wire::BTH + wire::CRCS + extended_bytes;
        let psn = match tapped.kind {
            PacketKind::Cnp => Psn::default(),
            PacketKind::UdData => psn(tapped.psn),
            _ => psn(tapped.psn.wrapping_add(self.first_psn(&half))),
        };
        Some(Frame {
            lane: VirtualLane::new(tapped.vl)?,
            service_level: ServiceLevel::new(tapped.sl)?,
            slid: self.lid(tapped.slid)?,
            dlid: self.lid(tapped.dlid)?,
            bth: Bth {
                opcode,
                solicited_event: false,
                // Migrated, the state of a connection that has no other path.
                migration: tapped.kind != PacketKind::Cnp,
                pad: Default::default(),
                version: Default::default(),
                p_key: DEFAULT_P_KEY,
                fecn: tapped.fecn,
                becn: tapped.becn,
                destination,
                ack_request: tapped.kind == PacketKind::RcData && tapped.last && !is_back,
                psn,
            },
            extended,
            payload_bytes: u32::from(tapped.bytes).saturating_sub(header) as u16,
        })
    }

    /// What is known of a packet besides its bytes; empty if nothing.
    pub(super) fn comment(&mut self, tapped: &Tapped) -> &str {
        let path = match self.paths > 1 {
            true => self.owner(tapped.dlid).map(|(_, path)| u64::from(path)),
            false => None,
        };
        let known = [
            ("queue", tapped.queued, " B"),
            (self.state_name, tapped.state, ""),
            ("path", path, ""),
        ];
        self.comment.clear();
        for (what, value, unit) in known {
            let Some(value) = value else { continue };
            let gap = if self.comment.is_empty() { "" } else { ", " };
            // Not `write!`: each packet has a comment, and formatting showed in the profile.
            let mut digits = itoa::Buffer::new();
            for part in [gap, what, " ", digits.format(value), unit] {
                self.comment.push_str(part);
            }
        }
        &self.comment
    }

    /// The opcode of a packet, and what follows its BTH.
    fn operation(&mut self, tapped: &Tapped, half: &Half) -> (Opcode, Extended) {
        let place = (tapped.node, tapped.port, tapped.granted, *half);
        match (tapped.kind, tapped.read) {
            (PacketKind::Cnp, _) => (Opcode::CNP, Extended::None),
            (PacketKind::UdData, _) => {
                let source = self.datagrams(tapped.group);
                (Opcode::UD_SEND_ONLY, Extended::Deth(Deth { q_key: Q_KEY, source }))
            }
            (PacketKind::Ack, _) => {
                // Messages that were seen leave on the way there are those that come back here.
                let there = (tapped.node, tapped.port, !tapped.granted, *half);
                let seen = self.seen.get_mut(&there);
                let complete = seen.map_or(0, |seen| seen.acknowledged(tapped.psn));
                (Opcode::RC_ACKNOWLEDGE, Extended::Aeth(aeth(complete)))
            }
            (PacketKind::RcData, Read::Request(bytes)) => {
                self.seen.entry(place).or_default().ends(tapped.psn);
                let dma_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                let reth = Reth { virtual_address: 0, r_key: R_KEY, dma_bytes };
                (Opcode::RC_RDMA_READ_REQUEST, Extended::Reth(reth))
            }
            (PacketKind::RcData, Read::Response) => self.response(tapped, half),
            (PacketKind::RcData, Read::Not) => {
                let seen = self.seen.entry(place).or_default();
                let first = !std::mem::replace(&mut seen.open, !tapped.last);
                if tapped.last {
                    seen.ends(tapped.psn);
                }
                let opcode = match (first, tapped.last) {
                    (true, true) => Opcode::RC_SEND_ONLY,
                    (true, false) => Opcode::RC_SEND_FIRST,
                    (false, false) => Opcode::RC_SEND_MIDDLE,
                    (false, true) => Opcode::RC_SEND_LAST,
                };
                (opcode, Extended::None)
            }
        }
    }

    /// A response to an RDMA READ: its place in it, and what was completed with it.
    fn response(&mut self, tapped: &Tapped, half: &Half) -> (Opcode, Extended) {
        let place = (tapped.node, tapped.port, tapped.granted, *half);
        let open = &mut self.seen.entry(place).or_default().response_open;
        let first = !std::mem::replace(open, !tapped.last);
        let opcode = match (first, tapped.last) {
            (true, true) => Opcode::RC_RDMA_READ_RESPONSE_ONLY,
            (true, false) => Opcode::RC_RDMA_READ_RESPONSE_FIRST,
            (false, false) => Opcode::RC_RDMA_READ_RESPONSE_MIDDLE,
            (false, true) => Opcode::RC_RDMA_READ_RESPONSE_LAST,
        };
        if opcode.extended().aeth.is_none() {
            return (opcode, Extended::None);
        }
        // The request went the other way.
        let there = (tapped.node, tapped.port, !tapped.granted, *half);
        let complete = self.seen.get_mut(&there).map_or(0, |seen| {
            let request = seen.last.front().copied().filter(|_| tapped.last);
            request.map_or(seen.complete, |request| seen.acknowledged(request))
        });
        (opcode, Extended::Aeth(aeth(complete)))
    }

    /// Rank and path that a LID stands for.
    fn owner(&self, lid: u32) -> Option<(u32, u16)> {
        *self.owners.get(lid as usize)?
    }

    fn lid(&self, lid: u32) -> Option<Lid> {
        let number = u16::try_from(lid).ok()?;
        Lid::new(if self.by_rule { number.checked_add(1)? } else { number })
    }

    /// The queue pair of a host for the datagrams of a group.
    fn datagrams(&self, group: u16) -> QueuePairNumber {
        let number = DATAGRAM_FIRST + u32::from(group) % (CONNECTION_FIRST - DATAGRAM_FIRST);
        QueuePairNumber::new(number).unwrap_or_default()
    }

    /// The number of a connection's half at its host; in runs with more than fit, two may be one.
    fn number(&self, half: &Half) -> QueuePairNumber {
        let groups = self.transports.len() as u32;
        let place = half.peer.wrapping_mul(groups).wrapping_add(u32::from(half.group));
        let place = place.wrapping_mul(self.paths).wrapping_add(u32::from(half.path));
        let place = place.wrapping_mul(2).wrapping_add(u32::from(!half.sends));
        let number = CONNECTION_FIRST + place % (NUMBERS - CONNECTION_FIRST - 1);
        QueuePairNumber::new(number).unwrap_or_default()
    }

    /// The number of a connection's first packet.
    fn first_psn(&mut self, half: &Half) -> u32 {
        if let Some(known) = self.first_psns.get(half) {
            return *known;
        }
        let entity = u64::from(half.host) << 40
            ^ u64::from(half.peer) << 16
            ^ u64::from(half.group) << 8
            ^ u64::from(half.path);
        let first = Stream::new(self.seed, "starting PSN", entity).bits() as u32;
        self.first_psns.insert(*half, first);
        first
    }
}

fn psn(number: u32) -> Psn {
    Psn::new(number & Psn::MAX.value()).unwrap_or_default()
}

fn aeth(messages: u32) -> Aeth {
    Aeth { syndrome: Aeth::ACK, msn: psn(messages) }
}
