//! What is to happen at times that are known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Kind of an event, in the order in which events of one instant are served: a rank is stepped when
/// it has heard all that there is to hear.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A message has come whole: its number.
    Arrived(u32),
    /// A message has left for good: its number.
    Sent(u32),
    /// A message is ready to leave: its number.
    Ready(u32),
    /// The time of a rank has come: its place.
    Step(u32),
}

/// Events by time, then kind, then number.
#[derive(Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, Event)>>,
}

impl Events {
    pub(crate) fn push(&mut self, time: u64, event: Event) {
        self.heap.push(Reverse((time, event)));
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time, _))| *time)
    }

    /// The next one that is due by `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Event> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, event))| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_stepped_last_of_an_instant() {
        let mut events = Events::default();
        let all = [
            (5, Event::Step(0)),
            (5, Event::Arrived(7)),
            (4, Event::Step(9)),
            (5, Event::Ready(1)),
            (5, Event::Sent(3)),
            (5, Event::Arrived(2)),
        ];
        all.iter().for_each(|(time, event)| events.push(*time, *event));
        assert_eq!(events.next(), Some(4));
        assert_eq!(events.pop(3), None);
        let order: Vec<_> = std::iter::from_fn(|| events.pop(5)).collect();
        let expected = [
            Event::Step(9),
            Event::Arrived(2),
            Event::Arrived(7),
            Event::Sent(3),
            Event::Ready(1),
            Event::Step(0),
        ];
        assert_eq!(order, expected);
    }
}
