//! Send queues: messages of a queue leave one after the other, and a port works on so many queues at
//! a time as it has engines; the others wait in line.

use crate::flows::FlowNumber;
use crate::messages::{Ends, Messages, NIL};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// What has a send queue of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct QueueKey {
    /// Of the one queue of a port whose messages all wait in line, all but its source is the same.
    pub(crate) ends: Ends,
    pub(crate) group: u16,
    /// Answers to RDMA READs wait apart from what else a connection sends.
    pub(crate) responses: bool,
}

/// What a queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It has nothing to send.
    Idle,
    /// It waits for an engine.
    InLine,
    /// Its first message is this flow.
    Leaving(FlowNumber),
}

/// One send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    key: QueueKey,
    pub(crate) state: State,
    head: u32,
    tail: u32,
}

/// A port of an adapter.
#[derive(Clone, Default)]
struct Port {
    /// Queues that it works on.
    busy: u32,
    /// Queues in line.
    line: VecDeque<u32>,
}

/// All send queues that have messages.
pub(crate) struct Queues {
    all: Vec<Queue>,
    free: Vec<u32>,
    by_key: FxHashMap<QueueKey, u32>,
    /// By port of a host.
    ports: Vec<Port>,
    /// Queues that a port works on at a time; nothing means all.
    engines: Option<u32>,
}

impl Queues {
    /// None, of so many ports.
    pub(crate) fn new(ports: usize, engines: Option<u32>) -> Self {
        let ports = vec![Port::default(); ports];
        Queues { all: Vec::new(), free: Vec::new(), by_key: FxHashMap::default(), ports, engines }
    }

    pub(crate) fn get(&self, queue: u32) -> &Queue {
        &self.all[queue as usize]
    }

    pub(crate) fn get_mut(&mut self, queue: u32) -> &mut Queue {
        &mut self.all[queue as usize]
    }

    /// The first message of a queue, if it has any.
    pub(crate) fn head(&self, queue: u32) -> Option<u32> {
        Some(self.all[queue as usize].head).filter(|head| *head != NIL)
    }

    /// A message joins its queue. Returns the queue.
    pub(crate) fn push(&mut self, key: QueueKey, messages: &mut Messages, message: u32) -> u32 {
        let number = match self.by_key.get(&key) {
            Some(number) => *number,
            None => {
                let queue = Queue { key, state: State::Idle, head: NIL, tail: NIL };
                let number = self.free.pop().unwrap_or(self.all.len() as u32);
                match self.all.get_mut(number as usize) {
                    Some(place) => *place = queue,
                    None => self.all.push(queue),
                }
                self.by_key.insert(key, number);
                number
            }
        };
        let queue = &mut self.all[number as usize];
        match queue.tail {
            NIL => queue.head = message,
            tail => messages.get_mut(tail).next = message,
        }
        queue.tail = message;
        number
    }

    /// The first message of a queue leaves it.
    pub(crate) fn pop(&mut self, queue: u32, messages: &Messages) {
        let queue = &mut self.all[queue as usize];
        queue.head = messages.get(queue.head).next;
        if queue.head == NIL {
            queue.tail = NIL;
        }
    }

    /// Has an idle queue worked on. False if no engine is free, and it waits in line.
    pub(crate) fn take_engine(&mut self, queue: u32) -> bool {
        let of = &mut self.all[queue as usize];
        let port = &mut self.ports[of.key.ends.from as usize];
        if self.engines.is_some_and(|engines| port.busy >= engines) {
            of.state = State::InLine;
            port.line.push_back(queue);
            return false;
        }
        port.busy += 1;
        true
    }

    /// Whether a queue whose message has left has to make way for others in line.
    pub(crate) fn makes_way(&self, queue: u32) -> bool {
        !self.ports[self.all[queue as usize].key.ends.from as usize].line.is_empty()
    }

    /// A queue is idle, and its engine free. Returns the first queue in line, now idle too.
    pub(crate) fn free_engine(&mut self, queue: u32) -> Option<u32> {
        let of = &mut self.all[queue as usize];
        of.state = State::Idle;
        let port = &mut self.ports[of.key.ends.from as usize];
        port.busy -= 1;
        let next = port.line.pop_front()?;
        self.all[next as usize].state = State::Idle;
        Some(next)
    }

    /// Lets an idle queue go that has no messages.
    pub(crate) fn let_go(&mut self, queue: u32) {
        self.by_key.remove(&self.all[queue as usize].key);
        self.free.push(queue);
    }
}
