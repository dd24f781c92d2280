//! Lists threaded through records by a `next` field: a queue costs eight bytes and no allocation.

use crate::adapter::{Message, SendQueue};
use crate::network::{NIL, Packet};
use crate::records::Records;

/// A record that can be in one list at a time.
pub(crate) trait Linked {
    /// The record after this one.
    fn next(&mut self) -> &mut u32;
}

impl Linked for Packet {
    #[inline(always)]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for Message {
    #[inline(always)]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Linked for SendQueue {
    #[inline(always)]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// The first and the last record of a list; `tail` means nothing when it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NIL, tail: NIL };

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline(always)]
    pub(crate) fn push_back<T: Linked>(&mut self, records: &mut Records<T>, id: u32) {
        *records[id].next() = NIL;
        let last = std::mem::replace(&mut self.tail, id);
        if self.head == NIL {
            self.head = id;
        } else {
            *records[last].next() = id;
        }
    }

    #[inline(always)]
    pub(crate) fn push_front<T: Linked>(&mut self, records: &mut Records<T>, id: u32) {
        *records[id].next() = self.head;
        if self.head == NIL {
            self.tail = id;
        }
        self.head = id;
    }

    #[inline(always)]
    pub(crate) fn pop_front<T: Linked>(&mut self, records: &mut Records<T>) -> Option<u32> {
        let id = self.head;
        if id == NIL {
            return None;
        }
        self.head = std::mem::replace(records[id].next(), NIL);
        Some(id)
    }
}
