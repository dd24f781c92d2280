//! Processes that simulate one run together, each the partitions that are its own.
//!
//! All they need of each other is one operation: each hands a byte string to each and takes one
//! from each. Sums, least values and results are made of it.

use crate::barrier::{Awaited, Barrier};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Processes of equal standing, numbered from 0. They call [`Fleet::exchange`] equally often.
pub trait Fleet: Send + Sync {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many there are, at least 1.
    fn size(&self) -> usize;

    /// Hands `sent[i]` to process i and returns, by process, what each has handed to this one. It
    /// returns when all have called it. Where a process is lost it does not return.
    fn exchange(&self, sent: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
}

/// The fleet of a run as its parts use it: none, for a process alone, costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Crew(Option<Arc<dyn Fleet>>);

impl Crew {
    /// A fleet of one is none.
    pub(crate) fn of(fleet: Option<Arc<dyn Fleet>>) -> Self {
        Crew(fleet.filter(|fleet| fleet.size() > 1))
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn rank(&self) -> usize {
        self.0.as_ref().map_or(0, |fleet| fleet.rank())
    }

    pub(crate) fn size(&self) -> usize {
        self.0.as_ref().map_or(1, |fleet| fleet.size())
    }

    /// The partitions of a process, of `count`: shares differ by one at most.
    pub(crate) fn share(&self, count: usize, rank: usize) -> Range<usize> {
        let size = self.size();
        rank * count / size..(rank + 1) * count / size
    }

    /// The process that has a partition, of `count`.
    pub(crate) fn holder(&self, count: usize, partition: usize) -> usize {
        let mut ranks = 0..self.size();
        ranks.find(|rank| self.share(count, *rank).contains(&partition)).unwrap_or(0)
    }

    /// By process, what each has for this one.
    pub(crate) fn to_each<T: Serialize + DeserializeOwned>(&self, sent: Vec<T>) -> Vec<T> {
        let Some(fleet) = &self.0 else { return sent };
        let sent = sent.iter().map(encoded).collect();
        fleet.exchange(sent).iter().map(|bytes| decoded(bytes)).collect()
    }

    /// By process, what each has.
    pub(crate) fn all<T: Serialize + DeserializeOwned>(&self, own: T) -> Vec<T> {
        let Some(fleet) = &self.0 else { return vec![own] };
        let bytes = encoded(&own);
        let sent = vec![bytes; fleet.size()];
        fleet.exchange(sent).iter().map(|bytes| decoded(bytes)).collect()
    }

    /// By process, what each has: at process 0. Nothing at the others.
    pub(crate) fn to_first<T: Serialize + DeserializeOwned>(&self, own: T) -> Vec<T> {
        let Some(fleet) = &self.0 else { return vec![own] };
        let mut sent = vec![Vec::new(); fleet.size()];
        sent[0] = encoded(&own);
        let received = fleet.exchange(sent);
        match fleet.rank() {
            0 => received.iter().map(|bytes| decoded(bytes)).collect(),
            _ => Vec::new(),
        }
    }

    /// The least of what all have.
    pub(crate) fn least(&self, own: u64) -> u64 {
        self.all(own).into_iter().min().unwrap_or(own)
    }

    /// The most of what all have.
    pub(crate) fn most(&self, own: u64) -> u64 {
        self.all(own).into_iter().max().unwrap_or(own)
    }
}

/// What processes of one program tell each other has no form that cannot be written.
fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("what processes tell each other can be written")
}

/// They are of one version: what one wrote the others read.
fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect("all processes of a run are of one version")
}

/// Threads of this process that stand for processes.
struct Thread {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    barrier: Barrier,
    /// By (from, to).
    strings: Vec<Mutex<Vec<u8>>>,
}

/// Processes that are threads of this one, each to be used by a thread of its own: for tests.
pub fn fleet_of_threads(count: usize) -> Vec<Arc<dyn Fleet>> {
    let count = count.max(1);
    let strings = (0..count * count).map(|_| Mutex::default()).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shared = Arc::new(Shared { barrier: Barrier::new(count, cores), strings });
    let thread = |rank| -> Arc<dyn Fleet> { Arc::new(Thread { rank, shared: shared.clone() }) };
    (0..count).map(thread).collect()
}

impl Drop for Thread {
    /// One that has panicked is not waited for.
    fn drop(&mut self) {
        drop(Awaited(&self.shared.barrier));
    }
}

impl Fleet for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.strings.len().isqrt()
    }

    fn exchange(&self, sent: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let size = self.size();
        let place = |from: usize, to: usize| {
            let place = &self.shared.strings[from * size + to];
            place.lock().unwrap_or_else(PoisonError::into_inner)
        };
        for (to, bytes) in sent.into_iter().enumerate() {
            *place(self.rank, to) = bytes;
        }
        self.shared.barrier.wait();
        let received = (0..size).map(|from| std::mem::take(&mut *place(from, self.rank))).collect();
        // Nobody writes again before all have read.
        self.shared.barrier.wait();
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_what_each_has_for_it() {
        let threads = fleet_of_threads(3).into_iter().map(|fleet| {
            std::thread::spawn(move || {
                let rank = fleet.rank();
                let crew = Crew::of(Some(fleet));
                let got = crew.to_each((0..3).map(|to| (rank, to)).collect());
                assert_eq!(got, [(0, rank), (1, rank), (2, rank)]);
                assert_eq!((crew.least(rank as u64 + 5), crew.most(rank as u64)), (5, 2));
                let first = crew.to_first(rank.to_string());
                assert_eq!(first, if rank == 0 { vec!["0", "1", "2"] } else { vec![] });
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn partitions_are_shared_without_a_gap() {
        let crew = Crew::of(fleet_of_threads(3).pop());
        for count in 3..20 {
            let shares: Vec<usize> = (0..3).flat_map(|rank| crew.share(count, rank)).collect();
            assert_eq!(shares, (0..count).collect::<Vec<_>>());
            for partition in 0..count {
                assert!(crew.share(count, crew.holder(count, partition)).contains(&partition));
            }
        }
    }
}
