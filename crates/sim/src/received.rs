//! What ports have received. A cable loses nothing, so that is what its other end has transmitted,
//! less what is on its way to a switch: found at the end, because counting every arrival would take
//! one more cache line each.

use crate::across::Across;
use crate::packet::PacketIndex;
use crate::port::PortIndex;
use crate::queue::{Address, Kind};
use crate::recorder::octets;
use crate::view::PartitionView;
use std::ops::Range;

/// Octets and packets that the ports of a partition, number `number` of those here, have received,
/// by port.
pub(crate) fn received(
    partitions: &[&dyn PartitionView],
    own: &Range<usize>,
    number: usize,
    across: &Across,
) -> Vec<(u64, u64)> {
    let net = partitions[number].net();
    let of = |(at, peer): (u32, Address)| {
        if peer == Address::NIL {
            return (0, 0);
        }
        let (there, address) = match net.far_end(peer) {
            Some(far) if !own.contains(&(far.partition as usize)) => {
                let address = partitions[number].address(PortIndex(at));
                return across.there(own.start + number, address).transmitted;
            }
            Some(far) => (partitions[far.partition as usize - own.start].net(), far.address),
            None => (net, peer),
        };
        there.recorder().transmitted(there.port_at(address))
    };
    let ports = (0..net.ports()).map(|port| (port, net.peer(PortIndex(port))));
    let mut received: Vec<_> = ports.map(of).collect();
    for event in net.queue().remaining().filter(|event| event.kind == Kind::Arrive) {
        let PortIndex(port) = net.port_at(event.address);
        let (sum, packets) = received[port as usize];
        let octets = octets(&net.packets()[PacketIndex(event.packet)]);
        assert!(sum >= octets && packets > 0, "what is on its way was transmitted");
        received[port as usize] = (sum - octets, packets - 1);
    }
    received
}
