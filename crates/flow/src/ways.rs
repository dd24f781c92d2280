//! Ways that messages have taken lately. A long message takes the same two ways four times (RTS,
//! READ, payload, FIN): they are found once, and what passes within a slice of time is noted down
//! at once.

use crate::links::{LinkNumber, Links};
use crate::messages::Ends;
use crate::recorder::Amount;
use crate::routes::Routes;

/// Ways kept for each port of a host: its own to others, and as many again.
const FOR_EACH_PORT: usize = 4;
/// Fewest and most in all.
const LEAST: usize = 1 << 10;
const MOST: usize = 1 << 20;

/// A way from port to port.
#[derive(Clone)]
pub(crate) struct Way {
    ends: Ends,
    /// The channels, that of the source first.
    pub(crate) channels: Vec<LinkNumber>,
    /// Whether they lead to the destination.
    pub(crate) arrives: bool,
    /// What has passed and is not noted down, …
    pub(crate) passed: Amount,
    /// … and a time in the slice in which it all has.
    pub(crate) when: u64,
}

impl Way {
    /// How many switches it goes past.
    pub(crate) fn switches(&self) -> u64 {
        self.channels.len() as u64 - 1
    }
}

/// A place for each way, which several ways share.
pub(crate) struct Ways {
    all: Vec<Way>,
}

impl Ways {
    /// None, for so many ports.
    pub(crate) fn new(ports: usize) -> Self {
        let places = (FOR_EACH_PORT * ports).next_power_of_two().clamp(LEAST, MOST);
        let ends = Ends { from: u32::MAX, to: u32::MAX, path: 0 };
        let (channels, passed) = (Vec::new(), Amount::default());
        Ways { all: vec![Way { ends, channels, arrives: false, passed, when: 0 }; places] }
    }

    /// The place of a way, found anew unless it was the last one there. Tells of what has passed by
    /// that one.
    pub(crate) fn find(
        &mut self,
        (routes, links): (&Routes, &Links),
        ends: Ends,
        note: impl FnOnce(&Way),
    ) -> usize {
        // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
        let key = u64::from(ends.from) << 32 | u64::from(ends.to) ^ u64::from(ends.path) << 24;
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = hash as usize & (self.all.len() - 1);
        let way = &mut self.all[at];
        if way.ends != ends {
            if way.passed.packets > 0 {
                note(way);
            }
            (way.ends, way.passed) = (ends, Amount::default());
            way.channels.clear();
            way.channels.push(links.injection[ends.from as usize]);
            way.arrives = routes.walk(ends.from, ends.to, ends.path, &mut way.channels);
        }
        at
    }

    pub(crate) fn get(&self, at: usize) -> &Way {
        &self.all[at]
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut Way {
        &mut self.all[at]
    }

    /// All that have something to be noted down.
    pub(crate) fn unnoted(&self) -> impl Iterator<Item = &Way> {
        self.all.iter().filter(|way| way.passed.packets > 0)
    }
}
