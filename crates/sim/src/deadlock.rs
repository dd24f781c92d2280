//! A deadlock is a cycle of buffers each of which waits for credits only the next one can free.
//!
//! Every buffer is first-in-first-out, so it waits for one other buffer at most: the wait-for graph
//! is a function and its cycles are found in one pass (Dally and Seitz, IEEE ToC C-36(5), 1987, for
//! why a cycle is what to look for). A head waits for the far buffer of its lane if the packet
//! whose turn it is there lacks credits, itself or another: the turn holds the lane.

use crate::engine::Engine;
use crate::forward::Forwarder;
use crate::network::{Kind, NEVER, NIL};
use crate::observe::Observer;
use crate::outcome::WaitingBuffer;
use crate::port_set::PortSet;
use crate::switch::Candidate;

const UNSEEN: u32 = 0;
const DONE: u32 = u32::MAX;

/// The cycle that begins with the smallest (port, lane), if there is any.
pub(crate) fn find<F: Forwarder, O: Observer, B: PortSet, const V: usize>(
    engine: &Engine<F, O, B, V>,
) -> Option<Vec<WaitingBuffer>> {
    if engine.in_flight() == 0 {
        return None;
    }
    let buffers = engine.hosts_at as usize * V;
    let mut colour = vec![UNSEEN; buffers];
    for start in 0..buffers {
        // Walk until a buffer that does not wait, one seen on an earlier walk, or our own trail.
        let (mut at, trail) = (start, start as u32 + 1);
        let end = loop {
            if colour[at] != UNSEEN {
                break at;
            }
            colour[at] = trail;
            match next(engine, at) {
                Some(to) => at = to,
                None => break at,
            }
        };
        if colour[end] == trail && next(engine, end).is_some() {
            return Some(describe(engine, end));
        }
        let mut at = start;
        while colour[at] == trail {
            colour[at] = DONE;
            match next(engine, at) {
                Some(to) => at = to,
                None => break,
            }
        }
    }
    None
}

/// The buffer that the head of this one waits for: the far one of its lane, if the packet whose
/// turn it is lacks credits and none that would do are under way.
fn next<F: Forwarder, O: Observer, B: PortSet, const V: usize>(
    engine: &Engine<F, O, B, V>,
    buffer: usize,
) -> Option<usize> {
    let (index, at) = ((buffer / V) as u32, buffer % V);
    let input = &engine.ports[index];
    if input.head[at] == NIL {
        return None;
    }
    let (output, lane) = (input.base(index) + u32::from(input.output[at]), input.lane[at]);
    let record = &engine.ports[output];
    if engine.classes[u32::from(record.class)].kind == Kind::Exit {
        // A host drains whatever happens.
        return None;
    }
    let Candidate::Ready { credits: need, .. } = engine.candidate(output, lane) else {
        return None;
    };
    let enough =
        record.credits[usize::from(lane)] >= need || engine.credits_at(output, lane, need) != NEVER;
    (!enough).then(|| record.peer as usize * V + usize::from(lane))
}

/// The cycle through `buffer`, turned so that its smallest member comes first.
fn describe<F: Forwarder, O: Observer, B: PortSet, const V: usize>(
    engine: &Engine<F, O, B, V>,
    buffer: usize,
) -> Vec<WaitingBuffer> {
    let mut cycle = vec![buffer];
    let mut at = buffer;
    while let Some(to) = next(engine, at) {
        if to == buffer {
            break;
        }
        cycle.push(to);
        at = to;
    }
    let smallest = (0..cycle.len()).min_by_key(|index| cycle[*index]).unwrap_or(0);
    cycle.rotate_left(smallest);
    let name = |buffer: usize| {
        let (index, at) = ((buffer / V) as u32, buffer % V);
        let input = &engine.ports[index];
        WaitingBuffer {
            switch: engine.places.name(index).to_string(),
            port: engine.places.end(index).port.value(),
            vl: at as u8,
            output: input.output[at] + 1,
            output_vl: input.lane[at],
        }
    };
    cycle.into_iter().map(name).collect()
}
