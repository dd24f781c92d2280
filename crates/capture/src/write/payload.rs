//! Payload that frames are filled with.

use clearlane_ib::crc::{Variant, VariantOfSame};
use std::collections::BTreeMap;

/// Lengths that are remembered; messages end in few.
const KEPT_MAX: usize = 256;

/// Payload of one length, with its padding, and what it does to a variant CRC, which costs more to
/// compute than all the rest of a frame.
pub(super) struct Filled {
    /// The bytes, padding included.
    pub(super) bytes: Vec<u8>,
    variant: VariantOfSame,
}

impl Filled {
    fn of(payload: usize) -> Self {
        // Every byte tells its place, so that a reader that is off by one is seen.
        let padded = payload.next_multiple_of(4);
        let of = |at| if at < payload { at as u8 } else { 0 };
        let bytes: Vec<u8> = (0..padded).map(of).collect();
        Filled { variant: VariantOfSame::of(&bytes), bytes }
    }

    /// A variant CRC under way with these bytes behind.
    pub(super) fn after(&self, before: Variant) -> Variant {
        self.variant.after(before)
    }
}

/// Payloads by length.
#[derive(Default)]
pub(super) struct Payloads {
    known: BTreeMap<usize, Filled>,
}

impl Payloads {
    /// The payload of so many bytes.
    pub(super) fn of(&mut self, payload: usize) -> &Filled {
        if self.known.len() >= KEPT_MAX && !self.known.contains_key(&payload) {
            self.known.pop_first();
        }
        self.known.entry(payload).or_insert_with(|| Filled::of(payload))
    }
}
