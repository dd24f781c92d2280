//! Memory that is left, and the guards that stop this process before there is none.
//!
//! Whatever limits this process counts: what the machine has available, every level of control
//! groups (version 1 and 2, as of a batch job or a container), and `ulimit -v` and `-d`. A run is
//! asked to stop while there is enough to say at which load it grew; whatever would take the last
//! of it is ended by the `keeper`.

#[expect(unsafe_code, reason = "registering a handler of signals is unsafe")]
mod aborts;
#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
mod allocator;
mod groups;
mod keeper;
mod limits;

pub use allocator::Allocator;
pub use keeper::start as keep;

use limits::Limits;

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often memory is looked at: a core fills some 50 MB meanwhile.
const LOOKED_AT: Duration = Duration::from_millis(50);
/// The most that is kept for finishing.
const RESERVE_MAX: u64 = 1 << 30;

/// What one limit leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// What is limited, as the subject of a sentence.
    of: String,
    /// Bytes that may still be taken.
    left: u64,
    /// Bytes that may be asked for at once: what is in lists, where a full one is doubled.
    doubled: u64,
}

/// Reads a file of the system; `None` if it is not there.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

fn system(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Three quarters of what the tightest limit leaves: the rest is for what grows less. `None` where
/// the system does not say.
pub fn free_bytes() -> Option<u64> {
    let rooms = Limits::found(&system).rooms(&system);
    rooms.iter().map(|room| room.left).min().map(|left| left / 4 * 3)
}

/// Judges what is left by what was left at first.
#[derive(Default)]
struct Judge {
    first: BTreeMap<String, Room>,
}

impl Judge {
    /// The limit that is nearly reached, if one is.
    fn short(&mut self, rooms: Vec<Room>) -> Option<String> {
        let short = |room: Room| {
            let first = self.first.entry(room.of.clone()).or_insert_with(|| room.clone());
            let reserve = (first.left / 8).min(RESERVE_MAX);
            // A list that is full is doubled, which takes as much at once as it has.
            let grown = room.doubled.saturating_sub(first.doubled);
            (room.left < reserve + grown).then_some(room.of)
        };
        rooms.into_iter().filter_map(short).next()
    }
}

/// Looks at what memory is left until it is dropped.
pub struct Guard {
    short: Arc<OnceLock<String>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Raises `halt` once memory is nearly full. Fails if no thread can be started.
    pub fn start(halt: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let limits = Limits::found(&system);
        Self::over(halt, move || limits.rooms(&system))
    }

    fn over(
        halt: &Arc<AtomicBool>,
        look: impl Fn() -> Vec<Room> + Send + 'static,
    ) -> Result<Self, Failure> {
        let short = Arc::new(OnceLock::new());
        let (stop, stopped) = channel();
        let (halt, told) = (Arc::clone(halt), Arc::clone(&short));
        let mut judge = Judge::default();
        let watch = move || {
            loop {
                if let Some(of) = judge.short(look()) {
                    // Only the first to fill is told.
                    let _ = told.set(of);
                    halt.store(true, Ordering::SeqCst);
                    return;
                }
                if stopped.recv_timeout(LOOKED_AT) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().spawn(watch).map_err(|_| Failure::no_thread())?;
        Ok(Guard { short, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it says which limit is nearly reached.
    pub fn short(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.short)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that only looks has nothing to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const MIB: u64 = 1 << 20;

    fn room(left: u64, doubled: u64) -> Room {
        Room { of: "it".into(), left: left * MIB, doubled: doubled * MIB }
    }

    #[test]
    fn memory_is_short_when_an_eighth_is_left_or_a_list_cannot_double() {
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(800, 0)]), None);
        assert_eq!(judge.short(vec![room(101, 0)]), None);
        assert_eq!(judge.short(vec![room(99, 0)]), Some("it".into()));
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(800, 200)]), None);
        assert_eq!(judge.short(vec![room(460, 540)]), None);
        assert_eq!(judge.short(vec![room(440, 560)]), Some("it".into()));
        // Of a large machine no more than a gigabyte is kept.
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(100 << 10, 0)]), None);
        assert_eq!(judge.short(vec![room(1025, 0)]), None);
        assert_eq!(judge.short(vec![room(1023, 0)]), Some("it".into()));
    }

    #[test]
    fn the_guard_says_which_limit_and_raises_the_flag() {
        let halt = Arc::new(AtomicBool::new(false));
        let (left, looked) = (Arc::new(AtomicU64::new(800)), Arc::new(AtomicU64::new(0)));
        let (now, count) = (Arc::clone(&left), Arc::clone(&looked));
        let guard = Guard::over(&halt, move || {
            count.fetch_add(1, Ordering::SeqCst);
            vec![room(now.load(Ordering::SeqCst), 0)]
        })
        .unwrap();
        while looked.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        assert!(guard.short().get().is_none() && !halt.load(Ordering::SeqCst));
        left.store(50, Ordering::SeqCst);
        while !halt.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert_eq!(guard.short().get().map(String::as_str), Some("it"));
    }
}
