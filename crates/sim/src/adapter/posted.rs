//! Messages posted and not yet ready: software overhead.
//!
//! They join their send queues in the order of being ready, and of those ready at one time in that
//! of being posted. Most are posted in this order, to a list. One that is ready before another that
//! was posted earlier overtakes it: an answer to an RDMA READ takes no CPU, and several ranks may
//! be at one host.

use super::message::{Message, MessageIndex};
use super::{Adapters, SlotIndex};
use crate::list::List;
use crate::model::{Model, Reactors};
use crate::network::NetworkOf;
use crate::port::PortIndex;
use std::collections::BTreeMap;

/// Messages that are ready before the last one of their slot's list, by slot and time. Each is
/// taken before that last one, so a slot whose list is empty has none.
pub(super) type Overtaking = BTreeMap<(u32, u64), List<MessageIndex>>;

impl<M: Model, const V: usize> Adapters<M, V> {
    /// Whether a message that is ready at `now` has to wait for its port's turn, because others
    /// are ready that were posted before.
    #[inline(always)]
    pub(super) fn is_any_ready(&self, now: u64, slot: u32) -> bool {
        !self.adapters[SlotIndex(slot)].posted.is_empty()
            && self.first_posted(slot).is_some_and(|(ready, _)| ready <= now)
    }

    /// Has a message, or one of its stripes, wait for the software overhead to be over.
    #[inline(always)]
    pub(super) fn post_stripe(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        message: Message,
    ) {
        let ready = message.ready();
        self.backlog.joins(slot, message.lane);
        let id = self.messages.insert(message);
        self.keep_posted(slot, id, ready);
        if ready <= net.now {
            net.touch(port);
        } else {
            net.wake(port, ready);
        }
    }

    /// Puts a message where it is found when it is ready.
    #[inline(always)]
    pub(super) fn keep_posted(&mut self, slot: u32, id: MessageIndex, ready: u64) {
        let list = &mut self.adapters[SlotIndex(slot)].posted;
        match list.last().is_some_and(|last| self.messages[last].ready() > ready) {
            false => list.push_back(self.messages.all_mut(), id),
            true => self.overtake(slot, id, ready),
        }
    }

    /// Puts one beside the list that is ready before the last one there.
    #[inline(never)]
    fn overtake(&mut self, slot: u32, id: MessageIndex, ready: u64) {
        let list = self.overtaking.entry((slot, ready)).or_insert_with(List::empty);
        list.push_back(self.messages.all_mut(), id);
    }

    /// Messages whose software overhead is over join their send queues.
    #[inline(always)]
    pub(super) fn take_ready(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex) {
        while let Some((ready, overtakes)) = self.first_posted(slot) {
            if ready > net.now {
                net.wake(port, ready);
                return;
            }
            let id = match overtakes {
                false => self.adapters[SlotIndex(slot)].posted.pop_front(self.messages.all_mut()),
                true => self.take_overtaking(slot, ready),
            };
            let Some(id) = id else { return };
            let message = self.messages[id];
            if !M::Reactors::ON && self.leaves_at_once(net, slot, port, &message) {
                self.send_at_once(net, slot, port, &message);
                self.backlog.leaves(slot, message.lane);
                self.messages.remove(id);
            } else {
                self.enqueue(net.now, slot, id);
            }
        }
    }

    /// When the first message of a slot is ready, and whether it overtakes others.
    #[inline(always)]
    fn first_posted(&self, slot: u32) -> Option<(u64, bool)> {
        let head = self.adapters[SlotIndex(slot)].posted.head;
        if head == MessageIndex::NIL {
            return None;
        }
        let ready = self.messages[head].ready();
        match self.overtaking.is_empty() {
            true => Some((ready, false)),
            false => Some(self.first_of_both(slot, ready)),
        }
    }

    /// The same, if the first of the list is ready then. Of those ready at one time the ones in
    /// the list were posted first.
    #[inline(never)]
    fn first_of_both(&self, slot: u32, ready: u64) -> (u64, bool) {
        match self.overtaking.range((slot, 0)..(slot, ready)).next() {
            Some(((_, earlier), _)) => (*earlier, true),
            None => (ready, false),
        }
    }

    /// Takes the first of those that overtake and are ready then.
    #[inline(never)]
    fn take_overtaking(&mut self, slot: u32, ready: u64) -> Option<MessageIndex> {
        let list = self.overtaking.get_mut(&(slot, ready))?;
        let id = list.pop_front(self.messages.all_mut());
        if list.is_empty() {
            self.overtaking.remove(&(slot, ready));
        }
        id
    }

    /// The messages of a slot in the order in which they will be ready.
    pub(super) fn all_posted(&self, slot: u32) -> Vec<MessageIndex> {
        let overtaking = self.overtaking.range((slot, 0)..=(slot, u64::MAX)).map(|(_, list)| list);
        let lists = std::iter::once(&self.adapters[SlotIndex(slot)].posted).chain(overtaking);
        let mut all: Vec<_> = lists.flat_map(|list| self.messages_of(list)).collect();
        all.sort_by_key(|id| self.messages[*id].ready());
        all
    }
}
