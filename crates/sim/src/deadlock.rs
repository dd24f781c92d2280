//! A deadlock is a cycle of buffers each of which waits for credits only the next one can free.
//!
//! Without virtual output queues every buffer is first-in-first-out, so it waits for one other at
//! most: the wait-for graph is a function and its cycles are found in one pass (Dally and Seitz,
//! IEEE ToC C-36(5), 1987, for why a cycle is what to look for). A head waits for the far buffer of
//! its lane if the packet whose turn it is there lacks credits, itself or another: the turn holds
//! the lane.

use crate::control::Control;
use crate::engine::{ARRIVE, Engine};
use crate::forward::Forwarder;
use crate::network::{Kind, NEVER, NIL};
use crate::observe::Observer;
use crate::outcome::WaitingBuffer;
use crate::port_set::PortSet;
use crate::switch::Candidate;

const UNSEEN: u32 = 0;
const DONE: u32 = u32::MAX;

/// The cycle that begins with the smallest (port, lane), if there is any.
pub(crate) fn find<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
) -> Option<Vec<WaitingBuffer>> {
    if engine.in_flight() == 0 {
        return None;
    }
    if F::VOQ {
        return find_among_voqs(engine);
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

/// The buffer that the head of this one waits for.
fn next<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
    buffer: usize,
) -> Option<usize> {
    let (index, at) = ((buffer / V) as u32, buffer % V);
    let input = &engine.ports[index];
    if input.head[at] == NIL {
        return None;
    }
    far(engine, input.base(index) + u32::from(input.output[at]), input.lane[at])
}

/// The far buffer of a lane of an output, if the packet whose turn it is lacks credits and none
/// that would do are under way.
fn far<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
    output: u32,
    lane: u8,
) -> Option<usize> {
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

/// With a queue per output a buffer is stuck only if all its queues are: first every buffer that
/// can free space is struck out, until none is left; in what remains every way leads into a cycle.
fn find_among_voqs<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
) -> Option<Vec<WaitingBuffer>> {
    let radix = engine.radix as usize;
    let buffers = engine.hosts_at as usize * V;
    // By buffer: the queues that hold packets, each with the buffer it waits for if it does.
    let queues = |buffer: usize| {
        let base = engine.ports[(buffer / V) as u32].base((buffer / V) as u32);
        (0..radix).filter_map(move |output| {
            let voq = &engine.voqs[(buffer * radix + output) as u32];
            let waits = || far(engine, base + output as u32, voq.lane);
            (voq.head != NIL).then(|| (output as u8, voq.lane, waits()))
        })
    };
    let waits: Vec<Vec<(u8, u8, Option<usize>)>> =
        (0..buffers).map(|buffer| queues(buffer).collect()).collect();
    let mut stuck: Vec<bool> = waits.iter().map(|queues| !queues.is_empty()).collect();
    // A packet on its way to a buffer may find a queue there that moves, and so free its space.
    for event in engine.wheel.remaining().filter(|event| event.key >> 4 & 3 == ARRIVE) {
        stuck[(event.key >> 6) as usize * V + (event.key & 15) as usize] = false;
    }
    loop {
        let free = |buffer: &usize| {
            let blocked = |to: &Option<usize>| to.is_some_and(|to| stuck[to]);
            stuck[*buffer] && waits[*buffer].iter().any(|(_, _, to)| !blocked(to))
        };
        let freed: Vec<usize> = (0..buffers).filter(free).collect();
        if freed.is_empty() {
            break;
        }
        freed.into_iter().for_each(|buffer| stuck[buffer] = false);
    }
    let mut at = stuck.iter().position(|stuck| *stuck)?;
    let mut trail = Vec::new();
    while !trail.contains(&at) {
        trail.push(at);
        // Stuck buffers have queues, and all of them wait for stuck buffers.
        at = waits[at][0].2?;
    }
    let first = trail.iter().position(|known| *known == at)?;
    let mut cycle = trail.split_off(first);
    let smallest = (0..cycle.len()).min_by_key(|index| cycle[*index]).unwrap_or(0);
    cycle.rotate_left(smallest);
    let name =
        |buffer: usize| waiting_buffer(engine, buffer, waits[buffer][0].0, waits[buffer][0].1);
    Some(cycle.into_iter().map(name).collect())
}

/// A buffer and what its head wants, in words.
fn waiting_buffer<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
    buffer: usize,
    output: u8,
    output_vl: u8,
) -> WaitingBuffer {
    let index = (buffer / V) as u32;
    WaitingBuffer {
        switch: engine.places.name(index).to_string(),
        port: engine.places.end(index).port.value(),
        vl: (buffer % V) as u8,
        output: output + 1,
        output_vl,
    }
}

/// The cycle through `buffer`, turned so that its smallest member comes first.
fn describe<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize>(
    engine: &Engine<F, O, C, B, V>,
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
        let (input, at) = (&engine.ports[(buffer / V) as u32], buffer % V);
        waiting_buffer(engine, buffer, input.output[at], input.lane[at])
    };
    cycle.into_iter().map(name).collect()
}
