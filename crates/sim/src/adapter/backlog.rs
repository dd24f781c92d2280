//! How many messages wait at each adapter on each lane, where open-loop traffic is bounded by it.
//!
//! An open loop that offers more than the fabric takes piles up messages to whoever is slow. With
//! a queue for each destination the others then pass these by, and the mix that leaves the host is
//! no longer the one that was asked for: a hot spot vanishes. With a bound, the messages that wait
//! on a lane have the mix that was drawn, because what is drawn for a full lane is left out
//! whatever it is for.

/// Messages that have not left whole, by slot and lane. Empty, and of no cost, without a bound.
#[derive(Default)]
pub(super) struct Backlog {
    most: u32,
    lanes: usize,
    waiting: Vec<u32>,
}

impl Backlog {
    /// Of so many slots with so many lanes; nothing is counted without a bound.
    pub(super) fn new(most: Option<u32>, slots: usize, lanes: usize) -> Self {
        match most {
            None => Backlog::default(),
            Some(most) => Backlog { most, lanes, waiting: vec![0; slots * lanes] },
        }
    }

    /// Whether there is a bound.
    #[inline(always)]
    pub(super) fn is_bounded(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn at(&mut self, slot: u32, lane: u8) -> &mut u32 {
        &mut self.waiting[slot as usize * self.lanes + usize::from(lane) % self.lanes]
    }

    /// Whether another message is left out.
    pub(super) fn is_full(&mut self, slot: u32, lane: u8) -> bool {
        let most = self.most;
        self.is_bounded() && *self.at(slot, lane) >= most
    }

    /// A message begins to wait.
    #[inline(always)]
    pub(super) fn joins(&mut self, slot: u32, lane: u8) {
        if self.is_bounded() {
            *self.at(slot, lane) += 1;
        }
    }

    /// A message has left whole.
    #[inline(always)]
    pub(super) fn leaves(&mut self, slot: u32, lane: u8) {
        if self.is_bounded() {
            *self.at(slot, lane) -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_of_a_slot_is_full_at_its_bound_and_others_are_not() {
        let mut backlog = Backlog::new(Some(2), 2, 3);
        backlog.joins(1, 2);
        assert!(!backlog.is_full(1, 2));
        backlog.joins(1, 2);
        assert!(backlog.is_full(1, 2));
        assert!(!backlog.is_full(1, 1) && !backlog.is_full(0, 2));
        backlog.leaves(1, 2);
        assert!(!backlog.is_full(1, 2));
    }

    #[test]
    fn without_a_bound_nothing_is_full() {
        let mut backlog = Backlog::new(None, 2, 3);
        (0..100).for_each(|_| backlog.joins(0, 0));
        assert!(!backlog.is_bounded() && !backlog.is_full(0, 0));
    }
}
