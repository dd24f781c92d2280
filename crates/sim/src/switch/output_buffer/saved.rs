//! Buffers behind crossbars, as they are kept.

use super::OutputBuffers;
use crate::model::Model;
use crate::network::{Network, NetworkOf};
use crate::port::PortIndex;
use crate::port_set::PortSet;
use crate::saved::{Parts, SavedPacket, Whole, holds};
use crate::switch::Switches;
use crate::switch::crossbar::numbered;
use serde::{Deserialize, Serialize};

/// The buffers of an output. What is queued and how much room is left follow from the packets.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedOutputBuffer {
    taken_until: u64,
    sent: (u16, u8),
    turn: u8,
    /// By lane.
    packets: Vec<Vec<SavedPacket>>,
}

impl SavedOutputBuffer {
    /// Where the packets in it are to go.
    pub(crate) fn ways(&self) -> impl Iterator<Item = u32> + '_ {
        self.packets.iter().flatten().map(|packet| packet.dlid)
    }
}

impl OutputBuffers {
    /// All of them, by port.
    pub(crate) fn save<B: PortSet, const V: usize>(
        &self,
        net: &Network<B, V>,
        whole: &Whole<'_>,
    ) -> Vec<SavedOutputBuffer> {
        let save = |port: u32| {
            let of = self.outputs[PortIndex(port)];
            let packets = |lane: u8| {
                let head = self.head::<V>(PortIndex(port), lane);
                net.chain(head).map(|id| net.save_packet(id, whole)).collect()
            };
            SavedOutputBuffer {
                taken_until: of.taken_until,
                sent: of.sent,
                turn: of.turn,
                packets: (0..V as u8).map(packets).collect(),
            }
        };
        (0..self.outputs.len() as u32).map(save).collect()
    }
}

impl<M: Model> Switches<M> {
    /// The buffers of an output that are about to begin become what they were.
    pub(crate) fn load_behind<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        saved: &SavedOutputBuffer,
        parts: &Parts<'_>,
    ) -> Option<()> {
        let SavedOutputBuffer { taken_until, sent, turn, .. } = *saved;
        holds(usize::from(sent.1) < V && usize::from(turn) < V && saved.packets.len() == V)?;
        holds(saved.packets[parts.lanes..].iter().all(Vec::is_empty))?;
        let behind = &mut self.crossbars.behind;
        let of = &mut behind.outputs[port];
        (of.taken_until, of.sent, of.turn) = (taken_until, sent, turn);
        let sending = &mut behind.lanes[numbered::<V>(port, sent.1)].room;
        *sending = sending.checked_sub(sent.0.into())?;
        for (lane, packets) in (0..).zip(&saved.packets) {
            for packet in packets {
                let id = net.load_packet(packet, parts)?;
                let credits = u32::from(net.packets[id].credits);
                let behind = &mut self.crossbars.behind;
                let buffer = &mut behind.lanes[numbered::<V>(port, lane)];
                buffer.room = buffer.room.checked_sub(credits)?;
                buffer.queue.push_back(net.packets.all_mut(), id);
                behind.outputs[port].queued |= 1 << lane;
                net.ports[port].waiting |= 1 << lane;
            }
        }
        Some(())
    }
}
