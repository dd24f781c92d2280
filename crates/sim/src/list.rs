//! Lists threaded through records by a `next` field: a queue costs eight bytes and no allocation.

use crate::records::{RecordIndex, Records};

/// A record that can be in one list at a time.
pub(crate) trait Linked<I> {
    /// The record after this one.
    fn next(&mut self) -> &mut I;
}

/// The first and the last record of a list; `tail` means nothing when it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<I> {
    pub(crate) head: I,
    tail: I,
}

impl<I: RecordIndex + From<u32> + PartialEq> List<I> {
    /// A list without records.
    #[inline(always)]
    pub(crate) fn empty() -> Self {
        List { head: I::from(u32::MAX), tail: I::from(u32::MAX) }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == I::from(u32::MAX)
    }

    /// Its last record.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<I>
    where
        I: Copy,
    {
        (!self.is_empty()).then_some(self.tail)
    }

    #[inline(always)]
    pub(crate) fn push_back<T: Linked<I>>(&mut self, records: &mut Records<I, T>, id: I) {
        *records[id].next() = I::from(u32::MAX);
        let last = std::mem::replace(&mut self.tail, id);
        if self.is_empty() {
            self.head = id;
        } else {
            *records[last].next() = id;
        }
    }

    #[inline(always)]
    pub(crate) fn push_front<T: Linked<I>>(&mut self, records: &mut Records<I, T>, id: I) {
        *records[id].next() = self.head;
        if self.is_empty() {
            self.tail = id;
        }
        self.head = id;
    }

    #[inline(always)]
    pub(crate) fn pop_front<T: Linked<I>>(&mut self, records: &mut Records<I, T>) -> Option<I> {
        let id = self.head;
        if self.is_empty() {
            return None;
        }
        self.head = std::mem::replace(records[id].next(), I::from(u32::MAX));
        Some(id)
    }
}
