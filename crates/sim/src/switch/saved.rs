//! What switches know besides their ports, as it is kept.

use super::Switches;
use super::crossbar::SavedCrossbars;
use super::voq::{Voq, VoqIndex};
use crate::model::Model;
use crate::network::NetworkOf;
use crate::packet::PacketIndex;
use crate::port::PortIndex;
use crate::port_set::PortSet;
use crate::saved::{Parts, SavedPacket, Whole, holds};
use serde::{Deserialize, Serialize};

/// What the switches of a run know.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedSwitches {
    /// Flow-fair turns: the tag in service by output and lane, and of each source there.
    fair_now: Vec<(u32, u8, u64)>,
    fair: Vec<(u32, u8, u32, u64)>,
    /// By port; empty unless switches choose.
    backlog: Vec<u32>,
    /// Virtual output queues that hold something, in their order.
    voqs: Vec<SavedVoq>,
    crossbars: SavedCrossbars,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedVoq {
    port: u32,
    from: u8,
    output: u8,
    lane: u8,
    ready: u64,
    packets: Vec<SavedPacket>,
}

impl SavedSwitches {
    /// Adds what those of the next partition know.
    pub(crate) fn append(&mut self, mut next: SavedSwitches) {
        self.fair_now.append(&mut next.fair_now);
        self.fair.append(&mut next.fair);
        self.backlog.append(&mut next.backlog);
        self.voqs.append(&mut next.voqs);
        self.crossbars.append(next.crossbars);
    }

    /// Where packets that are in no lane of a port are, by port of the run, and where they are to
    /// go.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let of = |voq: &SavedVoq| {
            let port = voq.port;
            voq.packets.iter().map(move |packet| (port, packet.dlid)).collect::<Vec<_>>()
        };
        self.voqs.iter().flat_map(of).chain(self.crossbars.ways())
    }
}

impl<M: Model> Switches<M> {
    /// What these switches know.
    pub(crate) fn save_switches<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        whole: &Whole<'_>,
    ) -> SavedSwitches {
        let of = |port: PortIndex| whole.first.port + port.0;
        let mut saved = SavedSwitches {
            backlog: self.backlog.iter().copied().collect(),
            crossbars: self.save_crossbars(net, whole),
            ..Default::default()
        };
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for ((port, lane), tag) in &self.fair_now {
            saved.fair_now.push((of(*port), *lane, *tag));
        }
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for ((port, lane, source), tag) in &self.fair {
            saved.fair.push((of(*port), *lane, *source, *tag));
        }
        saved.fair_now.sort_unstable();
        saved.fair.sort_unstable();
        for (number, voq) in self.voqs.iter().enumerate() {
            if voq.head == PacketIndex::NIL {
                continue;
            }
            let (buffer, output) = (number / self.radix as usize, number % self.radix as usize);
            let lanes = self.lanes as usize;
            let (port, from) = (PortIndex((buffer / lanes) as u32), (buffer % lanes) as u8);
            let packets = net.chain(voq.head).map(|id| net.save_packet(id, whole)).collect();
            let (output, lane, ready) = (output as u8, voq.lane, voq.ready);
            saved.voqs.push(SavedVoq { port: of(port), from, output, lane, ready, packets });
        }
        saved
    }

    /// Whether packets in buffers know their outputs: a choice stands until it is taken.
    pub(crate) fn keeps_routes(&self) -> bool {
        self.has_voqs() || self.chooses()
    }

    /// Switches that are about to begin become what they were.
    pub(crate) fn load_switches<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        saved: &SavedSwitches,
        parts: &Parts<'_>,
    ) -> Option<()> {
        let ports = net.ports.len() as u32;
        let here = |port: u32| port.checked_sub(parts.first.port).filter(|port| *port < ports);
        for (port, lane, tag) in &saved.fair_now {
            if let Some(port) = here(*port) {
                self.fair_now.insert((PortIndex(port), *lane), *tag);
            }
        }
        for (port, lane, source, tag) in &saved.fair {
            if let Some(port) = here(*port) {
                self.fair.insert((PortIndex(port), *lane, *source), *tag);
            }
        }
        if self.chooses() {
            let backlog = saved.backlog.get(parts.first.port as usize..)?.get(..ports as usize)?;
            self.backlog = backlog.to_vec().into();
        }
        for voq in &saved.voqs {
            if let Some(port) = here(voq.port) {
                holds(self.has_voqs())?;
                self.load_voq(net, PortIndex(port), voq, parts)?;
            }
        }
        self.load_crossbars(net, &saved.crossbars, parts)
    }

    fn load_voq<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        saved: &SavedVoq,
        parts: &Parts<'_>,
    ) -> Option<()> {
        let home = net.home_of(port);
        let SavedVoq { from, output, lane, ready, .. } = *saved;
        holds(usize::from(from) < parts.lanes && usize::from(lane) < parts.lanes)?;
        let local = port.0 - home.first.0;
        holds(local < home.switch_ports.into() && u16::from(output) < home.switch_ports)?;
        holds(
            saved.packets.iter().all(|packet| {
                packet.route.0 == output && usize::from(packet.route.1) < parts.lanes
            }),
        )?;
        let (head, tail) = net.load_chain(&saved.packets, parts, true)??;
        let index: VoqIndex = self.voq(port, from.into(), output);
        holds(self.voqs[index].head == PacketIndex::NIL)?;
        let need = net.packets[head].credits;
        self.voqs[index] = Voq { ready, head, tail, need, lane };
        let out = &mut net.ports[home.first.plus(output.into())];
        out.waiting |= 1 << lane;
        out.lane_mut(lane).waiters.insert(local as u8);
        Some(())
    }
}
