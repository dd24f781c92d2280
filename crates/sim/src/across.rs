//! What is known of a cut cable at its other end, which another process has: asked for at the end
//! of a run only.

use crate::fleet::Crew;
use crate::mail::FarEnd;
use crate::port::PortIndex;
use crate::queue::Address;
use crate::view::PartitionView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Of a port of another process.
#[derive(Serialize, Deserialize)]
pub(crate) struct There {
    /// By lane: credits that packets in its buffer, or on their way to it, take.
    pub(crate) occupied: Vec<u32>,
    /// Octets and packets it has transmitted.
    pub(crate) transmitted: (u64, u64),
}

/// By the end here: what is at the end there. Empty for a process alone.
#[derive(Default)]
pub(crate) struct Across(BTreeMap<(u32, Address), There>);

impl Across {
    /// Of these partitions, the first of which has number `first`. `occupied` has credits by
    /// partition, port and lane. All processes ask at the same point of the run.
    pub(crate) fn of(
        partitions: &[&dyn PartitionView],
        own: &Range<usize>,
        (crew, count): (&Crew, usize),
        occupied: &[Vec<u32>],
    ) -> Self {
        if crew.is_alone() {
            return Across::default();
        }
        let mut told: Vec<Vec<(FarEnd, There)>> = (0..crew.size()).map(|_| Vec::new()).collect();
        for (partition, occupied) in partitions.iter().zip(occupied) {
            let net = partition.net();
            for at in (0..net.ports()).map(PortIndex) {
                let peer = net.peer(at);
                let peer = (peer != Address::NIL).then(|| net.far_end(peer)).flatten();
                let Some(far) = peer.filter(|far| !own.contains(&(far.partition as usize))) else {
                    continue;
                };
                let lanes = net.lanes();
                let there = There {
                    occupied: occupied[at.0 as usize * lanes..][..lanes].to_vec(),
                    transmitted: net.recorder().transmitted(at),
                };
                told[crew.holder(count, far.partition as usize)].push((far, there));
            }
        }
        let heard = crew.to_each(told).into_iter().flatten();
        Across(heard.map(|(end, there)| ((end.partition, end.address), there)).collect())
    }

    /// What is at the other end of the cable at `address` of a partition here. Panics if nobody has
    /// told of it: both ends of a cable name each other.
    pub(crate) fn there(&self, partition: usize, address: Address) -> &There {
        let there = self.0.get(&(partition as u32, address));
        there.expect("both ends of a cable name each other")
    }
}
