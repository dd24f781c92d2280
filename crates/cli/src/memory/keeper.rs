//! Ends the process in one line before the kernel kills it for its memory, in whatever command and
//! phase. Nothing half-written stays.
//!
//! Limits are read again whenever half of what was left may have been allocated, and every 50 ms at
//! the latest, because pages are filled after they are allocated.

use super::limits::{Limits, own_bytes};
use super::{Room, aborts, system};
use crate::exit_codes::REFUSED;
use crate::failure::Failure;
use crate::terminal;
use clearlane_lab::Unfinished;
use signal_hook::low_level;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// The keeper of the process. It is a global, because an allocator is handed nothing.
static KEEPER: OnceLock<Keeper> = OnceLock::new();
/// The largest list since the largest one was freed, in bytes.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DOES: Cell<Does> = const { Cell::new(Does::Work) };
}

/// State of a thread. A thread that looks or ends takes memory itself, and must not look again.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Work,
    Looks,
    Ends,
}

/// Reserve of each limit: this part of what it left at first, and at most `KEPT_MAX` bytes.
const KEPT_PART: u64 = 12;
const KEPT_MAX: u64 = 512 << 20;
/// A process that has less than this part of what a limit left at first, and less than `OWN_MAX`
/// bytes, is not what has filled it: its end would help nobody.
const OWN_PART: u64 = 4;
const OWN_MAX: u64 = 256 << 20;
/// The least that may be taken between two looks.
const BUDGET_MIN: u64 = 1 << 20;
/// Longest pause between two looks, and bytes that no machine fills in a millisecond.
const LOOKED_AT_MS: u64 = 50;
const FILLED_A_MS: u64 = 8 << 20;
/// A thread waits so often, and each time so long, for another to end the process.
const WAITS: usize = 50;
const WAITED: Duration = Duration::from_millis(100);
/// Pause between two looks at whether the keeper has begun.
const BEGIN_PAUSE: Duration = Duration::from_millis(10);
/// Remedy that a user is told of where memory is full.
const REMEDY: &str = "take a smaller fabric, a shorter run or fewer at a time, or allow more";
/// Given back before the end is told, which takes some.
const SPARE_BYTES: usize = 4 << 20;

struct Keeper {
    limits: Limits,
    unfinished: Unfinished,
    /// Bytes that each limit left at first, by its name.
    first: Mutex<BTreeMap<String, u64>>,
    /// Bytes taken since the last look, and those after which comes the next.
    taken: AtomicU64,
    budget: AtomicU64,
    spare: Mutex<Vec<u8>>,
    is_ending: AtomicBool,
}

/// Begins to look after memory, and after aborts. Fails if no thread can be started, or if aborts
/// cannot be caught.
pub fn start(unfinished: &Unfinished) -> Result<(), Failure> {
    let failed = |error| Failure::Machine(format!("cannot catch signals: {error}"));
    aborts::catch().map_err(failed)?;
    let keeper = Keeper {
        limits: Limits::found(&system),
        unfinished: unfinished.clone(),
        first: Mutex::default(),
        taken: AtomicU64::new(0),
        budget: AtomicU64::new(0),
        // Filled, so that it is there.
        spare: Mutex::new(black_box(vec![1; SPARE_BYTES])),
        is_ending: AtomicBool::new(false),
    };
    let keeper = KEEPER.get_or_init(|| keeper);
    let (begun, begins) = channel();
    let watch = move || {
        // The thread that starts the keeper waits for this.
        let _ = begun.send(());
        loop {
            if aborts::are_seen() {
                keeper.end(|| {
                    let remedy = "if a limit of memory is set (ulimit -v), allow more";
                    format!("aborted by a library or from outside (SIGABRT); {remedy}")
                });
            }
            let pause_ms = (keeper.look(0) / FILLED_A_MS).clamp(1, LOOKED_AT_MS);
            thread::park_timeout(Duration::from_millis(pause_ms));
        }
    };
    thread::Builder::new().spawn(watch).map_err(|_| Failure::no_thread())?;
    // A thread that aborts as it begins never says that it has begun.
    while begins.recv_timeout(BEGIN_PAUSE).is_err() {
        if aborts::are_seen() {
            return Err(Failure::no_thread());
        }
    }
    Ok(())
}

/// Bytes of the largest list. When it is full and doubled, it takes as much at once as it has.
pub fn largest() -> u64 {
    LARGEST.load(Ordering::Relaxed) as u64
}

/// Notes, for the allocator, that a block of so many bytes is freed.
pub fn freed(block: usize) {
    if LARGEST.load(Ordering::Relaxed) == block {
        LARGEST.store(0, Ordering::Relaxed);
    }
}

/// Notes, for the allocator, that a thread takes so many bytes, and that a list has `list` bytes.
#[cold]
pub fn taken(bytes: usize, list: usize) {
    LARGEST.fetch_max(list, Ordering::Relaxed);
    let Some(keeper) = KEEPER.get() else { return };
    let before = keeper.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    let is_due = before + bytes as u64 >= keeper.budget.load(Ordering::Relaxed);
    if is_due && DOES.get() == Does::Work {
        keeper.look(bytes as u64);
    }
}

/// Ends the process, for the allocator, because the system has not got so many bytes.
#[cold]
pub fn refused(bytes: usize) {
    let Some(keeper) = KEEPER.get() else { return };
    if DOES.get() == Does::Ends {
        low_level::exit(REFUSED.into());
    }
    let bytes = bytes as u64;
    // The system does not say which limit it was. Most likely the one that leaves least.
    let rooms = || keeper.limits.rooms(&system).into_iter();
    keeper.end(|| {
        let least = rooms().min_by_key(|room| room.left);
        let of = least.map_or_else(|| "memory".to_owned(), |room| room.of);
        format!("{of} is full, and {} MiB more are needed; {REMEDY}", bytes.div_ceil(1 << 20))
    });
}

impl Keeper {
    /// Ends the process where so many bytes more would take the last of what a limit leaves.
    /// Returns how many bytes the tightest limit leaves beside them.
    fn look(&self, bytes: u64) -> u64 {
        DOES.set(Does::Looks);
        let rooms = self.limits.filled(&system);
        let mut least = u64::MAX;
        for room in rooms {
            let first = self.first_of(&room);
            let kept = (first / KEPT_PART).min(KEPT_MAX);
            match room.left.checked_sub(bytes + kept) {
                Some(left) => least = least.min(left),
                None if own_bytes(&system) + bytes < (first / OWN_PART).min(OWN_MAX) => {}
                None => self.end(|| format!("{} is nearly full; {REMEDY}", room.of)),
            }
        }
        self.taken.store(0, Ordering::Relaxed);
        self.budget.store((least / 2).max(BUDGET_MIN), Ordering::Relaxed);
        DOES.set(Does::Work);
        least
    }

    fn first_of(&self, room: &Room) -> u64 {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        match first.get(&room.of) {
            Some(bytes) => *bytes,
            None => {
                first.insert(room.of.clone(), room.left);
                room.left
            }
        }
    }

    /// Says why and what to do, takes away what is unfinished, and ends.
    fn end(&self, why: impl FnOnce() -> String) {
        DOES.set(Does::Ends);
        if self.is_ending.swap(true, Ordering::SeqCst) {
            // Another thread does, unless it waits for what this one has.
            (0..WAITS).for_each(|_| thread::park_timeout(WAITED));
            low_level::exit(REFUSED.into());
        }
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        let lead = if terminal::is_watched() { "\n" } else { "" };
        terminal::last_remark(&format!("{lead}clearlane: {}", why()));
        self.unfinished.take_away();
        low_level::exit(REFUSED.into());
    }
}
