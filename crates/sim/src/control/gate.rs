//! Switch outputs and lanes as markers see them.

use super::Mechanisms;
use crate::Parameters;
use crate::network::{Kind, Network};
use crate::port_set::PortSet;
use clearlane_congestion::{Departing, Marker, Output, OutputQueue};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds, VirtualLane};

/// One switch output and lane.
struct Gate {
    queue: OutputQueue,
    markers: Vec<Box<dyn Marker>>,
    draws: Stream,
}

/// All of them, by port and lane; ports of adapters have none.
pub(crate) struct Gates(Vec<Gate>);

impl Gates {
    pub(crate) fn new<B: PortSet, const V: usize>(
        mechanisms: &Mechanisms,
        network: &Network<B, V>,
        parameters: &Parameters,
        packet_max: u32,
    ) -> Self {
        let ports = 0..network.hosts_at;
        let gate = |(port, lane): (u32, u8)| {
            let record = &network.ports[port as usize];
            let end = network.places.end(port);
            let output = Output {
                node: end.node.0,
                port: end.port.value(),
                lane: VirtualLane::new(lane).unwrap_or_default(),
                faces_adapter: network.classes[usize::from(record.class)].kind == Kind::Exit,
                buffer: parameters.buffer,
                packet_max,
            };
            let entity =
                u64::from(end.node.0) << 16 | u64::from(output.port) << 8 | u64::from(lane);
            Gate {
                queue: OutputQueue { queued: Bytes(0), starved: false },
                markers: mechanisms.all().filter_map(|m| m.marker(&output)).collect(),
                draws: Stream::new(mechanisms.seed, "marking", entity),
            }
        };
        Gates(ports.flat_map(|port| (0..V as u8).map(move |lane| (port, lane))).map(gate).collect())
    }

    pub(crate) fn queued(&mut self, now: u64, gate: u32, bytes: u16) {
        let gate = &mut self.0[gate as usize];
        gate.queue.queued.0 += u64::from(bytes);
        for marker in &mut gate.markers {
            marker.on_changed(Picoseconds(now), &gate.queue);
        }
    }

    /// A packet waits elsewhere from now on.
    pub(crate) fn left(&mut self, now: u64, gate: u32, bytes: u16) {
        let gate = &mut self.0[gate as usize];
        gate.queue.queued.0 -= u64::from(bytes);
        for marker in &mut gate.markers {
            marker.on_changed(Picoseconds(now), &gate.queue);
        }
    }

    pub(crate) fn starved(&mut self, gate: u32) {
        self.0[gate as usize].queue.starved = true;
    }

    /// A packet departs. Returns whether it is marked, if it `may` be.
    pub(crate) fn departed(&mut self, now: u64, gate: u32, bytes: u16, may: bool) -> bool {
        let gate = &mut self.0[gate as usize];
        gate.queue.queued.0 -= u64::from(bytes);
        let mut marked = false;
        for marker in &mut gate.markers {
            marker.on_changed(Picoseconds(now), &gate.queue);
            if may {
                let packet = Departing { bytes: bytes.into() };
                let draw = gate.draws.bits();
                marked |= marker.mark(Picoseconds(now), &gate.queue, &packet, draw);
            }
        }
        gate.queue.starved = false;
        marked
    }
}
