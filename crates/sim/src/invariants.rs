//! The physics, asserted at the end of every run in every build: a violation is a fault of this
//! program and must not become a result.

use crate::control::Control;
use crate::engine::{ARRIVE, DELIVER, Engine};
use crate::forward::Forwarder;
use crate::list::List;
use crate::network::{ACK, CNP, NIL, NO_RETURN};
use crate::observe::Observer;
use crate::port_set::PortSet;

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Credits in hand + credits under way + packets in the far buffer or on their way to it =
    /// size of that buffer, for every link and lane; packets injected = delivered + in the network.
    pub(crate) fn audit(&self) {
        let mut occupied = vec![0u32; self.ports.len() * V];
        let (mut data, mut acks, mut cnps) = (0u64, 0u64, 0u64);
        let mut count = |id: u32| {
            let packet = &self.packets[id];
            *match packet.flags & (ACK | CNP) {
                0 => &mut data,
                ACK => &mut acks,
                _ => &mut cnps,
            } += 1;
            u32::from(packet.credits)
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
            for (lane, head) in port.head.iter().enumerate() {
                occupied[index * V + lane] += self.chain(*head).map(&mut count).sum::<u32>();
            }
        }
        for (index, voq) in self.voqs.iter().enumerate() {
            let packets: u32 = self.chain(voq.head).map(&mut count).sum();
            occupied[index / self.radix as usize] += packets;
        }
        // Packets waiting for those they overtook have left the network and are not delivered.
        self.pairs.iter().flat_map(|pair| &pair.early).for_each(|id| _ = count(*id));
        if let Some(control) = self.control.get() {
            control.order.early().for_each(|id| _ = count(id));
        }
        let listed = self.adapters.iter().flat_map(|adapter| &adapter.acks);
        let is_ack = |id: &u32| self.packets[*id].flags & ACK != 0;
        let acks_of = |list: &List| self.chain(list.head).filter(is_ack).count() as u64;
        let waiting: u64 = listed.map(acks_of).sum();
        let t = &self.totals;
        assert_eq!(t.packets_injected, t.packets_delivered + data, "data packets are conserved");
        assert_eq!(t.acks_injected, t.acks_delivered + acks, "acknowledgements are conserved");
        assert_eq!(t.cnps_injected, t.cnps_delivered + cnps, "notification packets are conserved");
        assert!(
            waiting + acks + t.acks_delivered <= t.packets_injected,
            "an ack per packet at most"
        );
        self.audit_credits(&occupied);
    }

    /// The packets of a list from `head` on.
    fn chain(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |id: u32| (id != NIL).then_some(id);
        std::iter::successors(some(head), move |id| some(self.packets[*id].next))
    }

    fn audit_credits(&self, occupied: &[u32]) {
        for (index, port) in self.ports.iter().enumerate() {
            for lane in 0..V {
                let mut credits = u64::from(port.credits[lane]);
                let returns = port.ring[lane].iter().filter(|entry| **entry != NO_RETURN);
                credits += returns.map(|entry| entry & 0xffff).sum::<u64>();
                let further = self.overflow.get(&(index as u32, lane as u8));
                credits += further.into_iter().flatten().map(|entry| entry & 0xffff).sum::<u64>();
                let far = match port.peer {
                    NIL => 0,
                    peer => u64::from(occupied[peer as usize * V + lane]),
                };
                assert_eq!(
                    credits + far,
                    u64::from(self.capacity),
                    "credits of {}[{}] VL{lane} are conserved",
                    self.places.name(index as u32),
                    self.places.end(index as u32).port,
                );
            }
        }
    }
}
