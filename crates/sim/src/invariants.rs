//! The physics, asserted at the end of every run in every build: a violation is a fault of this
//! program and must not become a result.

use crate::engine::{ARRIVE, DELIVER, Engine};
use crate::forward::Forwarder;
use crate::network::{ACK, NIL, RING};
use crate::observe::Observer;

impl<F: Forwarder, O: Observer, const V: usize, const W: usize> Engine<F, O, V, W> {
    /// Credits in hand + credits under way + packets in the far buffer or on their way to it =
    /// size of that buffer, for every link and lane; packets injected = delivered + in the network.
    pub(crate) fn audit(&self) {
        let mut occupied = vec![0u64; self.ports.len() * V];
        let (mut data, mut acks) = (0u64, 0u64);
        let mut count = |id: u32| {
            let packet = &self.packets[id as usize];
            if packet.flags & ACK == 0 {
                data += 1
            } else {
                acks += 1
            }
            u64::from(packet.credits)
        };
        for event in self.wheel.remaining() {
            let buffer = (event.key >> 6) as usize * V + (event.key & 15) as usize;
            match event.key >> 4 & 3 {
                ARRIVE => occupied[buffer] += count(event.packet),
                // Ejected already: its credits are on their way back.
                DELIVER => {
                    count(event.packet);
                }
                _ => {}
            }
        }
        for (index, port) in self.ports.iter().enumerate() {
            for (lane, input) in port.input.iter().enumerate() {
                let mut id = input.head;
                while id != NIL {
                    occupied[index * V + lane] += count(id);
                    id = self.packets[id as usize].next;
                }
            }
        }
        let waiting: u64 = self.adapters.iter().flat_map(|a| &a.acks).map(|q| q.len() as u64).sum();
        let t = &self.totals;
        assert_eq!(t.packets_injected, t.packets_delivered + data, "data packets are conserved");
        assert_eq!(t.acks_injected, t.acks_delivered + acks, "acknowledgements are conserved");
        assert!(
            waiting + acks + t.acks_delivered <= t.packets_injected,
            "an ack per packet at most"
        );
        self.audit_credits(&occupied);
    }

    fn audit_credits(&self, occupied: &[u64]) {
        for (index, port) in self.ports.iter().enumerate() {
            for (lane, out) in port.out.iter().enumerate() {
                let mut credits = u64::from(out.credits);
                for step in 0..out.pending {
                    let entry = out.ring[usize::from(out.first + step) % RING];
                    credits += entry & 0xffff;
                }
                let further = self.overflow.get(&(index as u32, lane as u8));
                credits += further.into_iter().flatten().map(|entry| entry & 0xffff).sum::<u64>();
                let far = match port.peer {
                    NIL => 0,
                    peer => occupied[peer as usize * V + lane],
                };
                let end = &self.ends[index];
                assert_eq!(
                    credits + far,
                    u64::from(self.capacity),
                    "credits of {}[{}] VL{lane} are conserved",
                    self.names[end.node.index()],
                    end.port,
                );
            }
        }
    }
}
