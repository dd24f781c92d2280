//! How much memory is left, and a thread that stops runs before there is none.
//!
//! Whatever limits this process counts: what the machine has available, every level of control
//! groups (version 1 and 2, as of a batch job or a container), and `ulimit -v` and `-d`.

mod groups;

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
    /// Bytes in lists and the like, where address space is limited and not what is filled of it.
    mapped: Option<u64>,
}

/// Reads a file of the system; nothing if it is not there.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

fn system(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Three quarters of what the tightest limit leaves: the rest is for what grows less. Nothing where
/// the system does not say.
pub fn free_bytes() -> Option<u64> {
    rooms(&system).iter().map(|room| room.left).min().map(|left| left / 4 * 3)
}

/// What every limit leaves.
fn rooms(read: Read<'_>) -> Vec<Room> {
    let mut rooms = groups::rooms(read);
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    if let Some(left) = kilobytes(&meminfo, "MemAvailable:") {
        rooms.push(Room { of: "the machine's memory".into(), left, mapped: None });
    }
    let limits = read("/proc/self/limits").unwrap_or_default();
    let status = read("/proc/self/status").unwrap_or_default();
    for (limit, used, of) in [
        ("Max address space", "VmSize:", "the address space (ulimit -v)"),
        ("Max data size", "VmData:", "the data segment (ulimit -d)"),
    ] {
        if let (Some(limit), Some(used)) = (soft(&limits, limit), kilobytes(&status, used)) {
            let left = limit.saturating_sub(used);
            // What the allocator keeps free for each thread is in VmSize and not in VmData.
            let mapped = kilobytes(&status, "VmData:");
            rooms.push(Room { of: of.into(), left, mapped });
        }
    }
    rooms
}

/// `MemAvailable:  1234 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit in `Max address space  1000000  unlimited  bytes`; nothing if there is none.
fn soft(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
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
            // A list that is full is doubled, which takes as much address space at once as it has;
            // of memory, only what is filled counts.
            let grown = room.mapped.unwrap_or(0).saturating_sub(first.mapped.unwrap_or(0));
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
    /// Raises `halt` once memory is nearly full.
    pub fn start(halt: &Arc<AtomicBool>) -> Self {
        Self::over(halt, || rooms(&system))
    }

    fn over(halt: &Arc<AtomicBool>, look: impl Fn() -> Vec<Room> + Send + 'static) -> Self {
        let short = Arc::new(OnceLock::new());
        let (stop, stopped) = channel();
        let (halt, told) = (Arc::clone(halt), Arc::clone(&short));
        let mut judge = Judge::default();
        let thread = std::thread::spawn(move || {
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
        });
        Guard { short, stop: Some(stop), thread: Some(thread) }
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

    /// A system of these files.
    pub fn files<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    const MIB: u64 = 1 << 20;

    fn room(left: u64, mapped: Option<u64>) -> Room {
        Room { of: "it".into(), left: left * MIB, mapped: mapped.map(|mapped| mapped * MIB) }
    }

    #[test]
    fn the_systems_words_are_read() {
        let of = |text| kilobytes(text, "MemAvailable:");
        assert_eq!(of("MemTotal: 9 kB\nMemAvailable:    123 kB\n"), Some(125_952));
        assert_eq!(of("MemTotal: 9 kB\n"), None);
        assert_eq!(of("MemAvailable: many\n"), None);
        let limits = "Limit   Soft Limit  Hard Limit  Units\n\
            Max data size       unlimited   unlimited   bytes\n\
            Max address space   1073741824  unlimited   bytes\n";
        assert_eq!(soft(limits, "Max address space"), Some(1 << 30));
        assert_eq!(soft(limits, "Max data size"), None);
        assert_eq!(soft("", "Max data size"), None);
    }

    #[test]
    fn every_limit_there_is_counts() {
        let limits = "Max address space 9000000 9000000 bytes\nMax data size 500000 5 bytes\n";
        let texts = [
            ("/proc/meminfo", "MemAvailable: 4000 kB\n"),
            ("/proc/self/limits", limits),
            ("/proc/self/status", "VmSize:\t 2000 kB\nVmData:\t 1000 kB\n"),
        ];
        let system = files(&texts);
        let left: Vec<_> =
            rooms(&system).into_iter().map(|r| (r.of, r.left, r.mapped.unwrap_or(0))).collect();
        assert_eq!(
            left,
            [
                ("the machine's memory".into(), 4_096_000, 0),
                ("the address space (ulimit -v)".into(), 6_952_000, 1_024_000),
                // Less than is in use already.
                ("the data segment (ulimit -d)".into(), 0, 1_024_000),
            ]
        );
        assert_eq!(rooms(&files(&[])), []);
    }

    #[test]
    fn memory_is_short_when_an_eighth_is_left_and_address_space_when_it_cannot_double() {
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(800, None)]), None);
        assert_eq!(judge.short(vec![room(101, None)]), None);
        assert_eq!(judge.short(vec![room(99, None)]), Some("it".into()));
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(800, Some(200))]), None);
        assert_eq!(judge.short(vec![room(460, Some(540))]), None);
        assert_eq!(judge.short(vec![room(440, Some(560))]), Some("it".into()));
        // Of a large machine no more than a gigabyte is kept.
        let mut judge = Judge::default();
        assert_eq!(judge.short(vec![room(100 << 10, None)]), None);
        assert_eq!(judge.short(vec![room(1025, None)]), None);
        assert_eq!(judge.short(vec![room(1023, None)]), Some("it".into()));
    }

    #[test]
    fn the_guard_says_which_limit_and_raises_the_flag() {
        let halt = Arc::new(AtomicBool::new(false));
        let (left, looked) = (Arc::new(AtomicU64::new(800)), Arc::new(AtomicU64::new(0)));
        let (now, count) = (Arc::clone(&left), Arc::clone(&looked));
        let guard = Guard::over(&halt, move || {
            count.fetch_add(1, Ordering::SeqCst);
            vec![room(now.load(Ordering::SeqCst), None)]
        });
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
