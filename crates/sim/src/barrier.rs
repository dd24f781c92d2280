//! A barrier at which threads wait for each other after a window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Looks before a thread lets others have its core, and then before it sleeps. Windows of threads
/// that share the work well end within microseconds of each other; waiting for a thread that has
/// lost its core must not take the core of another.
const SPINS: u32 = 1000;
const YIELDS: u32 = 100;

/// A barrier for a fixed number of threads that is passed again and again.
pub(crate) struct Barrier {
    threads: usize,
    /// Looks before a thread sleeps: 0 if there are more threads than cores.
    looks: u32,
    arrived: AtomicUsize,
    passed: AtomicUsize,
    /// A thread has panicked and will not come.
    broken: AtomicBool,
    sleeping: Mutex<()>,
    woken: Condvar,
}

/// Held by a thread that others wait for: if it panics, they do not wait for good.
pub(crate) struct Awaited<'a>(pub(crate) &'a Barrier);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lock = self.0.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.broken.store(true, Ordering::Release);
            drop(lock);
            self.0.woken.notify_all();
        }
    }
}

impl Barrier {
    /// A barrier for so many threads on so many cores.
    pub(crate) fn new(threads: usize, cores: usize) -> Self {
        Barrier {
            threads,
            looks: if threads > cores { 0 } else { SPINS + YIELDS },
            arrived: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleeping: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Waits until all threads have come here. What any of them did before, all see after. Panics
    /// if one of them has panicked.
    pub(crate) fn wait(&self) {
        if self.threads == 1 {
            return;
        }
        let turn = self.passed.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            // Under the lock, so that a thread about to sleep has either seen it or is asleep.
            let lock = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
            self.passed.store(turn.wrapping_add(1), Ordering::Release);
            drop(lock);
            self.woken.notify_all();
            return;
        }
        let is_over = || {
            assert!(
                !self.broken.load(Ordering::Acquire),
                "another thread of this run has panicked"
            );
            self.passed.load(Ordering::Acquire) != turn
        };
        for look in 0..self.looks {
            if is_over() {
                return;
            }
            if look < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let mut lock = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_over() {
            lock = self.woken.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_thread_that_has_panicked() {
        let barrier = Barrier::new(2, 2);
        let both = std::thread::scope(|scope| {
            let fails = scope.spawn(|| {
                let _awaited = Awaited(&barrier);
                panic!("a fault");
            });
            let waits = scope.spawn(|| {
                let _awaited = Awaited(&barrier);
                barrier.wait();
            });
            [fails.join().is_err(), waits.join().is_err()]
        });
        assert_eq!(both, [true, true]);
    }

    #[test]
    fn nobody_is_ahead_by_more_than_a_turn() {
        let barrier = Barrier::new(4, 2);
        let turns: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for own in 0..4 {
                let (barrier, turns) = (&barrier, &turns);
                scope.spawn(move || {
                    for turn in 0..2000 {
                        turns[own].store(turn, Ordering::Relaxed);
                        barrier.wait();
                        let all = turns.iter().map(|turn| turn.load(Ordering::Relaxed));
                        assert!(all.into_iter().all(|other| other == turn || other == turn + 1));
                        barrier.wait();
                    }
                });
            }
        });
    }
}
