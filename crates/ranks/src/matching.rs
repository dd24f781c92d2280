//! Two-sided messages meet their receives: a message the oldest receive that takes it, a receive
//! the first message it takes (MPI 4.1, 3.5: messages of one source and context do not overtake
//! each other).
//!
//! What waits is found by what it can be asked for, so that no list is searched. A filter has one
//! of four shapes: it names source and tag, one of them, or neither. A message looks at the first
//! receive of each shape, a receive at the first message of its own.

use crate::few::Few;
use crate::requests::{Doing, Requests, State};
use crate::transport::Envelope;
use clearlane_workload::{Filter, Handle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const SHAPES: usize = 4;

/// What filters of one shape can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    context: u16,
    source: Option<u32>,
    tag: Option<u32>,
}

impl Key {
    fn of(filter: &Filter) -> Self {
        let source = filter.source.map(|source| source.0);
        Key { context: filter.context, source, tag: filter.tag }
    }

    /// What a filter of `shape` asks for that takes a message.
    fn to(envelope: &Envelope, shape: usize) -> Self {
        Key {
            context: envelope.context,
            source: (shape & 1 == 0).then_some(envelope.source.0),
            tag: (shape & 2 == 0).then_some(envelope.tag),
        }
    }

    fn shape(&self) -> usize {
        usize::from(self.source.is_none()) | usize::from(self.tag.is_none()) << 1
    }
}

/// Neighbours in a list, `NIL` at its ends.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

const NIL: u32 = u32::MAX;

impl Link {
    const NONE: Link = Link { before: NIL, after: NIL };
}

/// First and last of each list.
type Lists = Few<Key, (u32, u32)>;

/// Something that waits in lists.
trait Waits {
    /// Its place in the list of filters of this shape.
    fn link(&mut self, shape: usize) -> &mut Link;
}

/// Adds a record to the end of a list.
fn append<T: Waits>(lists: &mut Lists, records: &mut slab::Slab<T>, key: Key, id: u32) {
    let shape = key.shape();
    let before = match lists.get_mut(&key) {
        Some((_, last)) => std::mem::replace(last, id),
        None => {
            lists.insert(key, (id, id));
            NIL
        }
    };
    *records[id as usize].link(shape) = Link { before, after: NIL };
    if before != NIL {
        records[before as usize].link(shape).after = id;
    }
}

/// Takes a record out of a list; one that is empty is forgotten.
fn unlink<T: Waits>(lists: &mut Lists, records: &mut slab::Slab<T>, key: Key, id: u32) {
    let shape = key.shape();
    let Link { before, after } = std::mem::replace(records[id as usize].link(shape), Link::NONE);
    if before != NIL {
        records[before as usize].link(shape).after = after;
    }
    if after != NIL {
        records[after as usize].link(shape).before = before;
    }
    let Some(ends) = lists.get_mut(&key) else { return };
    match (before, after) {
        (NIL, NIL) => _ = lists.remove(&key),
        (NIL, after) => ends.0 = after,
        (before, NIL) => ends.1 = before,
        _ => {}
    }
}

/// A receive without a message.
#[derive(Debug)]
struct Posted {
    handle: Handle,
    /// Its place among all receives.
    order: u64,
    link: Link,
}

impl Waits for Posted {
    fn link(&mut self, _: usize) -> &mut Link {
        &mut self.link
    }
}

/// A message without a receive.
#[derive(Debug)]
struct Unexpected {
    envelope: Envelope,
    /// Its place among all messages.
    order: u64,
    /// By shape.
    links: [Link; SHAPES],
}

impl Waits for Unexpected {
    fn link(&mut self, shape: usize) -> &mut Link {
        &mut self.links[shape]
    }
}

/// What waits at one rank to be matched.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    receives: slab::Slab<Posted>,
    by_filter: Lists,
    /// Receives waiting, by shape.
    waiting: [u32; SHAPES],
    /// Receives ever waited.
    receives_ever: u64,
    messages: slab::Slab<Unexpected>,
    by_message: Lists,
    /// Shapes by which messages can be found: those that somebody has asked by.
    indexed: [bool; SHAPES],
    /// Messages ever unexpected.
    messages_ever: u64,
}

/// What is saved of it, each list in the order of waiting: which lists there were to find them by
/// shows in nothing.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedMatching {
    /// Receives; what they take their requests know.
    receives: Vec<Handle>,
    messages: Vec<Envelope>,
}

impl Matching {
    /// A receive is posted: the first message it takes, or it waits for one.
    pub(crate) fn receive(&mut self, filter: Filter, handle: Handle) -> Option<Envelope> {
        if let Some(id) = self.first(&filter) {
            return Some(self.take(id));
        }
        self.await_message(filter, handle);
        None
    }

    fn await_message(&mut self, filter: Filter, handle: Handle) {
        let order = self.receives_ever;
        self.receives_ever += 1;
        let id = self.receives.insert(Posted { handle, order, link: Link::NONE }) as u32;
        let key = Key::of(&filter);
        append(&mut self.by_filter, &mut self.receives, key, id);
        self.waiting[key.shape()] += 1;
    }

    /// A message has come: the oldest receive that takes it, or it waits for one.
    pub(crate) fn arrive(&mut self, envelope: Envelope) -> Option<Handle> {
        let mut oldest: Option<(u64, Key, u32)> = None;
        for shape in 0..SHAPES {
            if self.waiting[shape] == 0 {
                continue;
            }
            let key = Key::to(&envelope, shape);
            let Some((first, _)) = self.by_filter.get(&key) else { continue };
            let order = self.receives[*first as usize].order;
            if oldest.is_none_or(|(known, ..)| order < known) {
                oldest = Some((order, key, *first));
            }
        }
        let Some((_, key, id)) = oldest else {
            self.keep(envelope);
            return None;
        };
        unlink(&mut self.by_filter, &mut self.receives, key, id);
        self.waiting[key.shape()] -= 1;
        Some(self.receives.remove(id as usize).handle)
    }

    /// The first message that a filter takes; it stays.
    pub(crate) fn probe(&mut self, filter: &Filter) -> Option<Envelope> {
        self.first(filter).map(|id| self.messages[id as usize].envelope)
    }

    fn first(&mut self, filter: &Filter) -> Option<u32> {
        let key = Key::of(filter);
        if !self.indexed[key.shape()] {
            self.index(key.shape());
        }
        self.by_message.get(&key).map(|(first, _)| *first)
    }

    /// Makes all messages that wait known to filters of a shape.
    fn index(&mut self, shape: usize) {
        self.indexed[shape] = true;
        let mut all: Vec<_> =
            self.messages.iter().map(|(id, waits)| (waits.order, id as u32)).collect();
        all.sort_unstable();
        for (_, id) in all {
            let key = Key::to(&self.messages[id as usize].envelope, shape);
            append(&mut self.by_message, &mut self.messages, key, id);
        }
    }

    fn keep(&mut self, envelope: Envelope) {
        let order = self.messages_ever;
        self.messages_ever += 1;
        let links = [Link::NONE; SHAPES];
        let id = self.messages.insert(Unexpected { envelope, order, links }) as u32;
        for shape in (0..SHAPES).filter(|shape| self.indexed[*shape]) {
            let key = Key::to(&envelope, shape);
            append(&mut self.by_message, &mut self.messages, key, id);
        }
    }

    fn take(&mut self, id: u32) -> Envelope {
        let envelope = self.messages[id as usize].envelope;
        for shape in (0..SHAPES).filter(|shape| self.indexed[*shape]) {
            let key = Key::to(&envelope, shape);
            unlink(&mut self.by_message, &mut self.messages, key, id);
        }
        self.messages.remove(id as usize);
        envelope
    }

    /// Messages without a receive, in no order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Envelope> {
        self.messages.iter().map(|(_, waits)| &waits.envelope)
    }

    pub(crate) fn save(&self) -> SavedMatching {
        let mut receives: Vec<_> =
            self.receives.iter().map(|(_, posted)| (posted.order, posted.handle)).collect();
        receives.sort_unstable_by_key(|(order, _)| *order);
        let mut messages: Vec<_> =
            self.messages.iter().map(|(_, waits)| (waits.order, waits.envelope)).collect();
        messages.sort_unstable_by_key(|(order, _)| *order);
        SavedMatching {
            receives: receives.into_iter().map(|(_, handle)| handle).collect(),
            messages: messages.into_iter().map(|(_, envelope)| envelope).collect(),
        }
    }

    /// Nothing if a receive is there twice, is complete, or has met a message already.
    pub(crate) fn load(saved: SavedMatching, requests: &Requests) -> Option<Self> {
        let (mut matching, mut known) = (Matching::default(), BTreeSet::new());
        for handle in saved.receives {
            let request = requests.get(handle)?;
            let waits = request.state == State::Pending && request.met.is_none();
            let Doing::Receive(filter) = request.doing else { return None };
            if !waits || !known.insert(handle) {
                return None;
            }
            matching.await_message(filter, handle);
        }
        saved.messages.into_iter().for_each(|envelope| matching.keep(envelope));
        Some(matching)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Kind;
    use clearlane_workload::Rank;
    use proptest::prelude::*;

    fn envelope(source: u32, tag: u32, context: u16, number: u32) -> Envelope {
        let (from, source, kind) = (source, Rank(source), Kind::Eager);
        Envelope { from, to: 0, source, tag, context, group: 0, bytes: 1, number, kind }
    }

    fn takes(filter: &Filter, envelope: &Envelope) -> bool {
        filter.context == envelope.context
            && filter.source.is_none_or(|source| source == envelope.source)
            && filter.tag.is_none_or(|tag| tag == envelope.tag)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Receive(Filter),
        Arrive(u32, u32, u16),
        Probe(Filter),
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let source = proptest::option::of((0..3u32).prop_map(Rank));
        (source, proptest::option::of(0..3u32), 0..2u16).prop_map(|(source, tag, context)| Filter {
            source,
            tag,
            context,
        })
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => filters().prop_map(Step::Receive),
            3 => (0..3u32, 0..3u32, 0..2u16).prop_map(|(s, t, c)| Step::Arrive(s, t, c)),
            1 => filters().prop_map(Step::Probe),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        /// The same pairs as by searching lists from the front.
        #[test]
        fn pairs_are_those_that_a_search_from_the_front_finds(steps in steps()) {
            let mut matching = Matching::default();
            let (mut receives, mut messages) = (Vec::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u32;
                match step {
                    Step::Receive(filter) => {
                        let first = messages.iter().position(|message| takes(&filter, message));
                        let expected = first.map(|index| messages.remove(index));
                        prop_assert_eq!(matching.receive(filter, Handle(number)), expected);
                        if expected.is_none() {
                            receives.push((filter, Handle(number)));
                        }
                    }
                    Step::Arrive(source, tag, context) => {
                        let message = envelope(source, tag, context, number);
                        let has = |(filter, _): &(Filter, Handle)| takes(filter, &message);
                        let oldest = receives.iter().position(has);
                        let expected = oldest.map(|index| receives.remove(index).1);
                        prop_assert_eq!(matching.arrive(message), expected);
                        if expected.is_none() {
                            messages.push(message);
                        }
                    }
                    Step::Probe(filter) => {
                        let first = messages.iter().find(|message| takes(&filter, message));
                        prop_assert_eq!(matching.probe(&filter), first.copied());
                    }
                }
            }
            prop_assert_eq!(matching.receives.len(), receives.len());
            prop_assert_eq!(matching.messages.len(), messages.len());
        }
    }

    /// With lists that are searched these would be some 10^12 steps each.
    #[test]
    fn a_million_unexpected_messages_are_received_in_any_order_without_a_search() {
        const MESSAGES: u32 = 1_000_000;
        for any_source in [false, true] {
            let mut matching = Matching::default();
            for tag in 0..MESSAGES {
                assert_eq!(matching.arrive(envelope(1, tag, 0, tag)), None);
            }
            for tag in (0..MESSAGES).rev() {
                let source = (!any_source).then_some(Rank(1));
                let filter = Filter { source, tag: Some(tag), context: 0 };
                let met = matching.receive(filter, Handle(0));
                assert_eq!(met.map(|envelope| envelope.number), Some(tag));
            }
            assert!(matching.messages.is_empty() && matching.by_message.iter().next().is_none());
        }
    }

    #[test]
    fn a_million_receives_meet_their_messages_in_any_order_without_a_search() {
        const RECEIVES: u32 = 1_000_000;
        let mut matching = Matching::default();
        for tag in 0..RECEIVES {
            let filter = Filter { source: None, tag: Some(tag), context: 0 };
            assert_eq!(matching.receive(filter, Handle(tag)), None);
        }
        for tag in (0..RECEIVES).rev() {
            assert_eq!(matching.arrive(envelope(1, tag, 0, tag)), Some(Handle(tag)));
        }
        assert!(matching.receives.is_empty() && matching.by_filter.iter().next().is_none());
    }
}
