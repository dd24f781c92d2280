//! The physics, asserted at the end of every run in every build: a violation is a fault of this
//! program and must not become a result.

use crate::across::Across;
use crate::fleet::Crew;
use crate::outcome::Totals;
use crate::packet::{ACK, CNP, HELD, PacketIndex};
use crate::port::PortIndex;
use crate::queue::{Address, Kind};
use crate::switch::BufferedLane;
use crate::view::PartitionView;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Packets in partitions by kind.
#[derive(Default, Serialize, Deserialize)]
struct Packets {
    data: u64,
    acks: u64,
    cnps: u64,
    /// ACKs that have not been injected yet.
    acks_waiting: u64,
}

impl Packets {
    fn add(&mut self, other: &Packets) {
        let Packets { data, acks, cnps, acks_waiting } = other;
        self.data += data;
        self.acks += acks;
        self.cnps += cnps;
        self.acks_waiting += acks_waiting;
    }
}

/// Some of the partitions of a run, which other processes may have the rest of.
struct Part<'a> {
    partitions: &'a [&'a dyn PartitionView],
    own: Range<usize>,
    /// By partition, port and lane: credits that packets take.
    occupied: Vec<Vec<u32>>,
    across: Across,
}

/// Credits in hand + credits under way + packets in the far buffer or on their way to it = size of
/// that buffer, for every link and lane; packets injected = delivered + in the network. Panics with
/// the place if not. `totals` are those of all processes, of which each asks at the same point;
/// these partitions are those of this one, `own` by number. Returns what is at the other ends of
/// cables between processes.
pub(crate) fn audit(
    partitions: &[&dyn PartitionView],
    own: Range<usize>,
    (crew, count): (&Crew, usize),
    totals: &Totals,
) -> Across {
    let (part, packets) = counted(partitions, own, (crew, count));
    if let Err(broken) = broken(&part, &packets, totals) {
        panic!("{broken}");
    }
    part.across
}

/// What is to be looked at here, and the packets of all processes.
fn counted<'a>(
    partitions: &'a [&'a dyn PartitionView],
    own: Range<usize>,
    (crew, count): (&Crew, usize),
) -> (Part<'a>, Packets) {
    let mut packets = Packets::default();
    let occupied: Vec<Vec<u32>> =
        partitions.iter().map(|partition| occupied(*partition, &mut packets)).collect();
    let across = Across::of(partitions, &own, (crew, count), &occupied);
    let mut all = Packets::default();
    crew.all(packets).iter().for_each(|packets| all.add(packets));
    (Part { partitions, own, occupied, across }, all)
}

/// Audits a state that comes from outside; `None` if an invariant does not hold.
pub(crate) fn examine(
    partitions: &[&dyn PartitionView],
    own: Range<usize>,
    (crew, count): (&Crew, usize),
    totals: &Totals,
) -> Option<()> {
    let (part, packets) = counted(partitions, own, (crew, count));
    broken(&part, &packets, totals).ok()
}

fn broken(part: &Part<'_>, packets: &Packets, totals: &Totals) -> Result<(), String> {
    let (t, p) = (totals, packets);
    let conserved = |what: &str, injected: u64, delivered: u64, here: u64| match delivered
        .checked_add(here)
        == Some(injected)
    {
        true => Ok(()),
        false => Err(format!(
            "{what} are conserved: {injected} injected, {delivered} delivered, {here} here"
        )),
    };
    conserved("data packets", t.packets_injected, t.packets_delivered, p.data)?;
    conserved("acknowledgements", t.acks_injected, t.acks_delivered, p.acks)?;
    conserved("notification packets", t.cnps_injected, t.cnps_delivered, p.cnps)?;
    if p.acks_waiting + p.acks + t.acks_delivered > t.packets_injected {
        return Err("an ack per packet at most".into());
    }
    for (number, partition) in part.partitions.iter().enumerate() {
        audit_credits(part, number)?;
        audit_output_buffers(*partition)?;
    }
    Ok(())
}

/// Credits that packets take by port and lane, those on their way to a buffer included.
fn occupied(partition: &dyn PartitionView, packets: &mut Packets) -> Vec<u32> {
    let (net, lanes) = (partition.net(), partition.net().lanes());
    let mut occupied = vec![0u32; net.ports() as usize * lanes];
    let mut count = |id: PacketIndex| {
        let packet = &net.packets()[id];
        *match packet.flags & (ACK | CNP) {
            0 => &mut packets.data,
            ACK => &mut packets.acks,
            _ => &mut packets.cnps,
        } += 1;
        u32::from(packet.credits)
    };
    for event in net.queue().remaining() {
        let id = PacketIndex(event.packet);
        match event.kind {
            Kind::Arrive => {
                let buffer =
                    net.port_at(event.address).0 as usize * lanes + usize::from(event.lane);
                occupied[buffer] += count(id);
            }
            // Its credits are on their way back, unless it has yet to be stored.
            Kind::Deliver => {
                let (credits, packet) = (count(id), &net.packets()[id]);
                if packet.flags & HELD != 0 {
                    let port = net.port_at(event.address);
                    occupied[port.0 as usize * lanes + usize::from(packet.route.1)] += credits;
                }
            }
            Kind::Wake | Kind::Step => {}
        }
    }
    for port in (0..net.ports()).map(PortIndex) {
        for lane in 0..lanes {
            let head = net.head(port, lane as u8);
            let credits: u32 = net.chain(head).map(&mut count).sum();
            occupied[port.0 as usize * lanes + lane] += credits;
        }
    }
    let (voqs, each) = partition.voqs();
    let [of_port, of_lane] = each.map(|count| count as usize);
    for (index, voq) in voqs.iter().enumerate() {
        let credits: u32 = net.chain(voq.head).map(&mut count).sum();
        let (port, lane) = (index / of_port, index % of_port / of_lane);
        occupied[port * lanes + lane] += credits;
    }
    for (port, id) in partition.unstored() {
        let lane = usize::from(net.packets()[id].route.1);
        occupied[port.0 as usize * lanes + lane] += count(id);
    }
    for lane in partition.behind().lanes {
        // They have left the buffers that other switches fill.
        net.chain(lane.head).for_each(|id| _ = count(id));
    }
    let (acks_waiting, early) = partition.beside_the_network();
    early.into_iter().for_each(|id| _ = count(id));
    packets.acks_waiting += acks_waiting;
    occupied
}

/// Credits at the far end of a port of a partition here, by lane.
fn far_occupied<'a>(part: &'a Part<'_>, number: usize, at: PortIndex) -> &'a [u32] {
    let Part { partitions, own, occupied, across } = part;
    let net = partitions[number].net();
    let peer = net.peer(at);
    let (there, address) = match net.far_end(peer) {
        Some(far) if !own.contains(&(far.partition as usize)) => {
            return &across.there(own.start + number, partitions[number].address(at)).occupied;
        }
        Some(far) => (far.partition as usize - own.start, far.address),
        None => (number, peer),
    };
    let (far, lanes) = (partitions[there].net().port_at(address).0 as usize, net.lanes());
    &occupied[there][far * lanes..][..lanes]
}

fn audit_credits(part: &Part<'_>, number: usize) -> Result<(), String> {
    let partition = part.partitions[number];
    let (net, places) = (partition.net(), partition.places());
    let capacity = u64::from(net.links().capacity);
    for at in (0..net.ports()).map(PortIndex) {
        let cabled = net.peer(at) != Address::NIL;
        let far = if cabled { far_occupied(part, number, at) } else { &[] };
        for lane in 0..net.lanes() {
            let there = far.get(lane).copied().unwrap_or(0);
            let credits = net.credits(at, lane as u8) + u64::from(there);
            if credits != capacity {
                let (name, end) = (places.name(at), places.end(at).port);
                return Err(format!(
                    "credits of {name}[{end}] VL{lane} are conserved: {credits} of {capacity}"
                ));
            }
        }
    }
    Ok(())
}

/// Room of an output buffer + packets in it + what is being sent from it = its size.
fn audit_output_buffers(partition: &dyn PartitionView) -> Result<(), String> {
    let (net, behind) = (partition.net(), partition.behind());
    let size = behind.size;
    for BufferedLane { port, lane, room, head } in behind.lanes {
        let queued: u32 = net.chain(head).map(|id| u32::from(net.packets()[id].credits)).sum();
        if room + queued != size {
            let (name, end) = (partition.places().name(port), partition.places().end(port).port);
            return Err(format!(
                "the output buffer of {name}[{end}] VL{lane} is conserved: {room} free and \
                 {queued} queued of {size}"
            ));
        }
    }
    Ok(())
}
