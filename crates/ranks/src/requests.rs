//! Operations under way at one rank, by the handle their program knows them by.

use crate::transport::Envelope;
use clearlane_workload::{Filter, Handle, Message, Rank};
use serde::{Deserialize, Serialize};

/// What an operation does, as far as anybody has to know who waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Doing {
    /// Sends a two-sided message.
    Send {
        /// To whom.
        to: Rank,
        /// With which tag.
        tag: u32,
        /// In which context.
        context: u16,
    },
    /// Receives a message.
    Receive(Filter),
    /// Writes to another rank's memory.
    Put {
        /// The rank that owns the memory.
        to: Rank,
    },
    /// Reads from another rank's memory.
    Get {
        /// The rank that owns the memory.
        from: Rank,
    },
    /// Works on a CPU stream.
    Work,
    /// Waits for a message without receiving it.
    Probe(Filter),
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum State {
    /// Something is missing.
    Pending,
    /// Complete. The CPU that asks for it is busy with it for `cost`, in ps.
    Done { cost: u64 },
}

/// An operation under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) doing: Doing,
    pub(crate) state: State,
    /// Whether its program waits for it sooner or later.
    pub(crate) tracked: bool,
    /// The CPU stream that is busy when it is complete.
    pub(crate) stream: u8,
    /// Whether the program waits for it now: what it waits for says so.
    #[serde(skip)]
    pub(crate) awaited: bool,
    /// What a receive has met.
    pub(crate) met: Option<Envelope>,
}

/// The operations of one rank.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By handle.
    all: Vec<Option<Request>>,
    /// Handles that are free again, the next one last.
    free: Vec<u32>,
}

/// What is saved of them: together their handles are 0 to n − 1. The order of the free ones decides
/// which handles come next.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedRequests {
    /// By handle.
    used: Vec<(u32, Request)>,
    free: Vec<u32>,
}

impl Requests {
    /// A new operation that is pending.
    #[inline]
    pub(crate) fn begin(&mut self, doing: Doing, tracked: bool, stream: u8) -> Handle {
        let state = State::Pending;
        let request = Request { doing, state, tracked, stream, awaited: false, met: None };
        if let Some(handle) = self.free.pop() {
            self.all[handle as usize] = Some(request);
            return Handle(handle);
        }
        self.all.push(Some(request));
        Handle(self.all.len() as u32 - 1)
    }

    /// The operation with this handle; nothing if the program made it up or has it no more.
    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&Request> {
        self.all.get(handle.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut Request> {
        self.all.get_mut(handle.0 as usize)?.as_mut()
    }

    /// Whether an operation is not complete yet.
    pub(crate) fn is_pending(&self, handle: Handle) -> bool {
        self.get(handle).is_some_and(|request| request.state == State::Pending)
    }

    /// Marks an operation as awaited, or not. Returns whether that is new.
    #[inline]
    pub(crate) fn mark(&mut self, handle: Handle, awaited: bool) -> bool {
        let request = self.get_mut(handle);
        request.is_some_and(|request| std::mem::replace(&mut request.awaited, awaited) != awaited)
    }

    /// The CPU has taken a complete operation in hand: it costs no more.
    #[inline]
    pub(crate) fn pay(&mut self, handle: Handle) {
        if let Some(request) = self.get_mut(handle) {
            request.state = State::Done { cost: 0 };
        }
    }

    /// The operation is over and its handle free. Returns what a receive has received.
    #[inline]
    pub(crate) fn end(&mut self, handle: Handle) -> Option<Message> {
        let request = self.all.get_mut(handle.0 as usize)?.take()?;
        self.free.push(handle.0);
        match request.doing {
            Doing::Receive(_) => request.met.map(|envelope| envelope.message()),
            _ => None,
        }
    }

    /// Where they lie.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[Option<Request>] {
        &self.all
    }

    /// All of them, by handle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &Request)> {
        let used = |(handle, request): (u32, _)| Some((Handle(handle), Option::as_ref(request)?));
        (0..).zip(&self.all).filter_map(used)
    }

    pub(crate) fn save(&self) -> SavedRequests {
        let used = self.iter().map(|(handle, request)| (handle.0, *request)).collect();
        SavedRequests { used, free: self.free.clone() }
    }

    /// Nothing if a handle is missing or there twice.
    pub(crate) fn load(saved: SavedRequests) -> Option<Self> {
        let SavedRequests { used, free } = saved;
        let count = used.len() + free.len();
        let (mut all, mut known) = (vec![None; count], vec![false; count]);
        let handles = used.iter().map(|(handle, _)| handle).chain(&free);
        for handle in handles {
            let known = known.get_mut(*handle as usize)?;
            if std::mem::replace(known, true) {
                return None;
            }
        }
        for (handle, request) in used {
            all[handle as usize] = Some(request);
        }
        Some(Requests { all, free })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_in_the_order_in_which_they_would_have_come() {
        let mut requests = Requests::default();
        let begin = |requests: &mut Requests| requests.begin(Doing::Work, true, 0).0;
        (0..6).for_each(|_| _ = begin(&mut requests));
        for handle in [4, 1, 3] {
            requests.end(Handle(handle));
        }
        let mut again = Requests::load(requests.save()).unwrap();
        let order: Vec<u32> = (0..5).map(|_| begin(&mut again)).collect();
        assert_eq!(order, [3, 1, 4, 6, 7]);
        assert_eq!(order, (0..5).map(|_| begin(&mut requests)).collect::<Vec<_>>());
    }

    #[test]
    fn handles_that_are_missing_or_there_twice_are_refused() {
        let mut requests = Requests::default();
        let handle = requests.begin(Doing::Work, true, 0);
        let request = *requests.get(handle).unwrap();
        let load = |used: &[u32], free: &[u32]| {
            let used = used.iter().map(|handle| (*handle, request)).collect();
            Requests::load(SavedRequests { used, free: free.to_vec() }).is_some()
        };
        assert!(load(&[], &[]) && load(&[1], &[2, 0]));
        assert!(!load(&[1], &[]) && !load(&[0], &[0]) && !load(&[0], &[u32::MAX]));
    }
}
