//! The physics, asserted at the end of every run in every build: a violation is a fault of this
//! program and must not become a result.

use crate::model::Model;
use crate::outcome::Totals;
use crate::packet::{ACK, CNP, PacketIndex};
use crate::partition::Partition;

use crate::port::PortIndex;
use crate::queue::{Address, Kind};

/// Packets in one partition by kind.
#[derive(Default)]
struct Packets {
    data: u64,
    acks: u64,
    cnps: u64,
    /// ACKs that have not been injected yet.
    acks_waiting: u64,
}

/// Credits in hand + credits under way + packets in the far buffer or on their way to it = size of
/// that buffer, for every link and lane; packets injected = delivered + in the network. Panics with
/// the place if not.
pub(crate) fn audit<M: Model, const V: usize>(partitions: &[Partition<M, V>], totals: &Totals) {
    let mut packets = Packets::default();
    let occupied: Vec<Vec<u32>> =
        partitions.iter().map(|partition| occupied(partition, &mut packets)).collect();
    let (t, p) = (totals, &packets);
    assert_eq!(t.packets_injected, t.packets_delivered + p.data, "data packets are conserved");
    assert_eq!(t.acks_injected, t.acks_delivered + p.acks, "acknowledgements are conserved");
    assert_eq!(t.cnps_injected, t.cnps_delivered + p.cnps, "notification packets are conserved");
    let acks = p.acks_waiting + p.acks + t.acks_delivered;
    assert!(acks <= t.packets_injected, "an ack per packet at most");
    for (number, partition) in partitions.iter().enumerate() {
        audit_credits(partitions, number, partition, &occupied);
    }
}

/// Credits that packets take by port and lane, those on their way to a buffer included.
fn occupied<M: Model, const V: usize>(
    partition: &Partition<M, V>,
    packets: &mut Packets,
) -> Vec<u32> {
    let net = &partition.net;
    let mut occupied = vec![0u32; net.ports.len() * V];
    let mut count = |id: PacketIndex| {
        let packet = &net.packets[id];
        *match packet.flags & (ACK | CNP) {
            0 => &mut packets.data,
            ACK => &mut packets.acks,
            _ => &mut packets.cnps,
        } += 1;
        u32::from(packet.credits)
    };
    for event in net.queue.remaining() {
        let id = PacketIndex(event.packet);
        match event.kind {
            Kind::Arrive => {
                let buffer = net.port_at(event.address).0 as usize * V + usize::from(event.lane);
                occupied[buffer] += count(id);
            }
            // Ejected already: its credits are on their way back.
            Kind::Deliver => _ = count(id),
            Kind::Wake | Kind::Step => {}
        }
    }
    for (index, port) in net.ports.iter().enumerate() {
        for (lane, of) in port.lanes.iter().enumerate() {
            occupied[index * V + lane] += net.chain(of.head).map(&mut count).sum::<u32>();
        }
    }
    let switches = &partition.switches;
    for (index, voq) in switches.voqs.iter().enumerate() {
        let credits: u32 = net.chain(voq.head).map(&mut count).sum();
        occupied[index / switches.radix as usize] += credits;
    }
    let (acks_waiting, early) = partition.adapters.beside_the_network(net);
    early.into_iter().for_each(|id| _ = count(id));
    packets.acks_waiting += acks_waiting;
    occupied
}

fn audit_credits<M: Model, const V: usize>(
    partitions: &[Partition<M, V>],
    number: usize,
    partition: &Partition<M, V>,
    occupied: &[Vec<u32>],
) {
    let net = &partition.net;
    for (index, port) in net.ports.iter().enumerate() {
        let at = PortIndex(index as u32);
        for (lane, of) in port.lanes.iter().enumerate() {
            let mut credits = u64::from(of.credits);
            let returns = port.ring(lane as u8).iter();
            credits += returns.map(|entry| u64::from(entry.credits())).sum::<u64>();
            let further = net.overflow.get(&(at, lane as u8)).into_iter().flatten();
            credits += further.map(|entry| u64::from(entry.credits())).sum::<u64>();
            if port.peer != Address::NIL {
                let (there, address) = match net.far_end(port.peer) {
                    Some(far) => (far.partition as usize, far.address),
                    None => (number, port.peer),
                };
                let far = partitions[there].net.port_at(address);
                credits += u64::from(occupied[there][far.0 as usize * V + lane]);
            }
            assert_eq!(
                credits,
                u64::from(net.links.capacity),
                "credits of {}[{}] VL{lane} are conserved",
                partition.places.name(at),
                partition.places.end(at).port,
            );
        }
    }
}
