//! At a switch output: packets are marked by the queue.

use crate::marker::{Departing, Marker, OutputQueue};
use crate::mechanisms::fraction::Fraction;
use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};

const OF_MARKER: &str = "dcqcn marker";
const VERSION: u16 = 1;

/// The congestion point: random early detection on the queue as it is. It has no state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Red {
    pub(super) kmin: Bytes,
    pub(super) kmax: Bytes,
    pub(super) pmax: Fraction,
}

impl Marker for Red {
    fn on_changed(&mut self, _now: Picoseconds, _queue: &OutputQueue) {}

    fn mark(
        &mut self,
        _now: Picoseconds,
        queue: &OutputQueue,
        _packet: &Departing,
        draw: u64,
    ) -> bool {
        if queue.queued <= self.kmin {
            return false;
        }
        if queue.queued > self.kmax {
            return true;
        }
        // draw / 2^64 < pmax · (queued - kmin) / (kmax - kmin), multiplied out.
        let chance = u128::from(self.pmax.units()) << 32;
        let above = u128::from(queue.queued.0 - self.kmin.0);
        u128::from(draw) * u128::from(self.kmax.0 - self.kmin.0) < chance * above
    }

    fn idle_up_to(&self) -> Option<Bytes> {
        Some(self.kmin)
    }

    fn save(&self) -> Saved {
        Saved::new(OF_MARKER, VERSION, &())
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        saved.state(OF_MARKER, VERSION)
    }
}
