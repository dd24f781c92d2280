//! A deadlock is a cycle of buffers each of which waits for credits only the next one can free.
//!
//! Without virtual output queues every buffer is first-in-first-out, so it waits for one other at
//! most: the wait-for graph is a function and its cycles are found in one pass (Dally and Seitz,
//! IEEE ToC C-36(5), 1987, for why a cycle is what to look for). A head waits for the far buffer of
//! its lane if the packet whose turn it is there lacks credits, itself or another: the turn holds
//! the lane.
//!
//! A head that waits for room in an output buffer waits for the far buffer too, if the packet at
//! the front of that one lacks credits: what is in between belongs to one output and lane.
//!
//! Buffers are numbered by partition, port and lane, which is the order of switches and ports
//! however they are divided.

use crate::cabling::Numbering;
use crate::fleet::Crew;
use crate::network::HomeIndex;
use crate::outcome::WaitingBuffer;
use crate::packet::{PacketIndex, UNROUTED};
use crate::port::PortIndex;
use crate::queue::{Address, Kind};
use crate::view::PartitionView;
use serde::{Deserialize, Serialize};

/// No buffer.
const NONE: u32 = u32::MAX;

/// What a head wants: an output port, counted from 0, and a lane there; and the buffer it waits
/// for, `NONE` if it does not.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Wait {
    output: u8,
    output_vl: u8,
    on: u32,
}

/// The partitions of this process, the number of the first, and what buffers are numbered by.
struct Buffers<'a, 'b> {
    partitions: &'a mut [&'b mut dyn PartitionView],
    lanes: usize,
    first: usize,
    numbering: &'a Numbering,
    crew: &'a Crew,
}

/// The cycle that begins with the smallest (port, lane), if there is any. Everything before `now`
/// has happened, and heads that are ready by then are looked at. Only a network that holds packets
/// need be asked. All processes ask at the same point of a run; these partitions, from number
/// `first` on, are those of this one.
pub(crate) fn find(
    partitions: &mut [&mut dyn PartitionView],
    first: usize,
    (crew, numbering): (&Crew, &Numbering),
    now: u64,
) -> Option<Vec<WaitingBuffer>> {
    partitions.iter_mut().for_each(|partition| partition.come_to(now));
    let lanes = partitions[0].net().lanes();
    let mut buffers = Buffers { partitions, lanes, first, numbering, crew };
    if buffers.partitions[0].has_voqs() {
        buffers.find_among_voqs()
    } else {
        buffers.find_among_fifos()
    }
}

impl Buffers<'_, '_> {
    fn count(&self) -> usize {
        self.numbering.ports() as usize * self.lanes
    }

    /// By buffer: what its head wants; nothing if it is empty.
    fn find_among_fifos(&mut self) -> Option<Vec<WaitingBuffer>> {
        let mut own: Vec<(u32, Wait)> = Vec::new();
        self.each_input(|buffers, (partition, home), port, at| {
            let net = buffers.partitions[partition].net();
            if net.head(port, at) == PacketIndex::NIL {
                return;
            }
            let (output, output_vl) = net.wants(port, at);
            if output == UNROUTED.0 {
                return;
            }
            let on = buffers.far((partition, home), output, output_vl);
            let buffer = buffers.number(partition, port, at);
            own.push((buffer, Wait { output, output_vl, on }));
        });
        let mut waits: Vec<Option<Wait>> = vec![None; self.count()];
        for (buffer, wait) in self.crew.all(own).into_iter().flatten() {
            waits[buffer as usize] = Some(wait);
        }
        let next = |at: u32| waits[at as usize].map_or(NONE, |wait| wait.on);
        let start = first_cycle(waits.len() as u32, next)?;
        let mut cycle = vec![start];
        let mut at = next(start);
        while at != start {
            cycle.push(at);
            at = next(at);
        }
        let waits = |buffer: u32| waits[buffer as usize];
        Some(self.describe(cycle, |buffer| waits(buffer).map(|w| (w.output, w.output_vl))))
    }

    /// With a queue per output a buffer is stuck only if all its queues are: first every buffer
    /// that can free space is struck out, until none is left; in what remains every way leads into
    /// a cycle.
    fn find_among_voqs(&mut self) -> Option<Vec<WaitingBuffer>> {
        let mut own: Vec<(u32, Wait)> = Vec::new();
        self.each_input(|buffers, (partition, home), port, at| {
            let buffer = buffers.number(partition, port, at);
            for (output, output_vl) in buffers.partitions[partition].wanted(port, at) {
                let on = buffers.far((partition, home), output, output_vl);
                own.push((buffer, Wait { output, output_vl, on }));
            }
        });
        let mut waits: Vec<Vec<Wait>> = vec![Vec::new(); self.count()];
        for (buffer, wait) in self.crew.all(own).into_iter().flatten() {
            waits[buffer as usize].push(wait);
        }
        let mut stuck: Vec<bool> = waits.iter().map(|queues| !queues.is_empty()).collect();
        // A packet on its way to a buffer may find a queue there that moves, and so free its space.
        let mut moving: Vec<u32> = Vec::new();
        for (number, partition) in self.partitions.iter().enumerate() {
            let net = partition.net();
            for event in net.queue().remaining().filter(|it| it.kind == Kind::Arrive) {
                moving.push(self.number(number, net.port_at(event.address), event.lane));
            }
        }
        for buffer in self.crew.all(moving).into_iter().flatten() {
            stuck[buffer as usize] = false;
        }
        loop {
            let blocked = |wait: &Wait| wait.on != NONE && stuck[wait.on as usize];
            let free = |buffer: &usize| stuck[*buffer] && !waits[*buffer].iter().all(blocked);
            let freed: Vec<usize> = (0..stuck.len()).filter(free).collect();
            if freed.is_empty() {
                break;
            }
            freed.into_iter().for_each(|buffer| stuck[buffer] = false);
        }
        let mut at = stuck.iter().position(|stuck| *stuck)? as u32;
        let mut trail = Vec::new();
        while !trail.contains(&at) {
            trail.push(at);
            // Stuck buffers have queues, and all of them wait for stuck buffers.
            at = waits[at as usize][0].on;
        }
        let first = trail.iter().position(|known| *known == at)?;
        let mut cycle = trail.split_off(first);
        let smallest = (0..cycle.len()).min_by_key(|index| cycle[*index]).unwrap_or(0);
        cycle.rotate_left(smallest);
        let wait = |buffer: u32| waits[buffer as usize].first();
        Some(self.describe(cycle, |buffer| wait(buffer).map(|w| (w.output, w.output_vl))))
    }

    /// Calls `look` with every input buffer of a switch: partition and home, port, lane.
    fn each_input(&mut self, mut look: impl FnMut(&mut Self, (usize, u32), PortIndex, u8)) {
        for partition in 0..self.partitions.len() {
            for home in 0..self.partitions[partition].net().homes().len() as u32 {
                let record = self.partitions[partition].net().homes()[HomeIndex(home)];
                for place in 0..u32::from(record.switch_ports) {
                    let port = record.first.plus(place);
                    (0..self.lanes as u8).for_each(|at| look(self, (partition, home), port, at));
                }
            }
        }
    }

    fn number(&self, partition: usize, port: PortIndex, lane: u8) -> u32 {
        let port = self.numbering.first_port(self.first + partition) + port.0;
        port * self.lanes as u32 + u32::from(lane)
    }

    /// The buffer at the far end of an output's lane, if the packet whose turn it is lacks credits
    /// and not enough are under way; else `NONE`.
    fn far(&mut self, (partition, home): (usize, u32), output: u8, lane: u8) -> u32 {
        let peer = self.partitions[partition].waits_for(home, output, lane);
        if peer == Address::NIL {
            return NONE;
        }
        let (partition, address) = match self.partitions[partition].net().far_end(peer) {
            Some(far) => (far.partition, far.address),
            None => ((self.first + partition) as u32, peer),
        };
        self.numbering.port(partition, address) * self.lanes as u32 + u32::from(lane)
    }

    /// Buffers and what their heads want, in words.
    fn describe(
        &self,
        cycle: Vec<u32>,
        wants: impl Fn(u32) -> Option<(u8, u8)>,
    ) -> Vec<WaitingBuffer> {
        // Each process names those that it has.
        let name = |(place, buffer): (usize, u32)| {
            let port = buffer / self.lanes as u32;
            let partition = self.numbering.partition(port);
            let own = self.partitions.get(partition.checked_sub(self.first)?)?;
            let port = PortIndex(port - self.numbering.first_port(partition));
            // Buffers in a cycle have heads.
            let (output, output_vl) = wants(buffer).unwrap_or_default();
            let named = WaitingBuffer {
                switch: own.places().name(port).to_string(),
                port: own.places().end(port).port.value(),
                vl: (buffer % self.lanes as u32) as u8,
                output: output + 1,
                output_vl,
            };
            Some((place, named))
        };
        let own: Vec<(usize, WaitingBuffer)> =
            cycle.into_iter().enumerate().filter_map(name).collect();
        let mut all = self.crew.all(own).concat();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, buffer)| buffer).collect()
    }
}

/// The smallest member of the first cycle found when starting from each of `count` in turn.
fn first_cycle(count: u32, next: impl Fn(u32) -> u32) -> Option<u32> {
    let mut seen = vec![NONE; count as usize];
    for start in 0..count {
        // Walk until what does not wait, was seen on an earlier walk, or is our own trail.
        let mut at = start;
        while at != NONE && seen[at as usize] == NONE {
            seen[at as usize] = start;
            at = next(at);
        }
        if at != NONE && seen[at as usize] == start && next(at) != NONE {
            let mut smallest = at;
            let mut other = next(at);
            while other != at {
                smallest = smallest.min(other);
                other = next(other);
            }
            return Some(smallest);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_and_trails_into_earlier_walks_are_none() {
        let find = |next: &[u32]| first_cycle(next.len() as u32, |at| next[at as usize]);
        assert_eq!(find(&[1, 2, NONE]), None);
        assert_eq!(find(&[NONE, 0, 1, 1]), None);
        assert_eq!(find(&[3, NONE, 4, 4, 3]), Some(3));
        assert_eq!(find(&[2, 2, 1]), Some(1));
        assert_eq!(find(&[0]), Some(0));
    }
}
