//! Keeps the process from being killed for its memory: whoever would take the last of it, in
//! whatever command and phase, ends the process in one line, and nothing half-written stays.
//!
//! It is looked at what is left as often as half of it may have been taken meanwhile, and now and
//! then besides, because what was taken is filled later.

use super::limits::Limits;
use super::{Room, system};
use crate::failure::Failure;
use crate::terminal;
use clearlane_lab::Unfinished;
use signal_hook::low_level;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// The keeper of the process. It is a global, because an allocator is handed nothing.
static KEEPER: OnceLock<Keeper> = OnceLock::new();
/// The largest block that was asked for, in bytes.
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

/// The exit code of a machine that refuses.
const REFUSED: i32 = 5;
/// Reserve of each limit: this part of what it left at first, and at most `KEPT_MAX` bytes.
const KEPT_PART: u64 = 12;
const KEPT_MAX: u64 = 512 << 20;
/// The least that may be taken between two looks.
const BUDGET_MIN: u64 = 1 << 20;
/// Longest pause between two looks, and bytes that no machine fills in a millisecond.
const LOOKED_AT_MS: u64 = 50;
const FILLED_A_MS: u64 = 8 << 20;
/// Time that a thread waits for another to end the process.
const WAITED: Duration = Duration::from_secs(5);
/// Given back before the end is told, which takes some.
const SPARE_BYTES: usize = 1 << 20;

struct Keeper {
    limits: Limits,
    unfinished: Unfinished,
    /// Bytes that are kept of each limit, by its name.
    kept: Mutex<BTreeMap<String, u64>>,
    /// Bytes taken since the last look, and those after which comes the next.
    taken: AtomicU64,
    budget: AtomicU64,
    spare: Mutex<Vec<u8>>,
    is_ending: AtomicBool,
}

/// Begins to look after memory. Fails if no thread can be started.
pub fn start(unfinished: &Unfinished) -> Result<(), Failure> {
    let keeper = Keeper {
        limits: Limits::found(&system),
        unfinished: unfinished.clone(),
        kept: Mutex::default(),
        taken: AtomicU64::new(0),
        budget: AtomicU64::new(0),
        // Filled, so that it is there.
        spare: Mutex::new(black_box(vec![1; SPARE_BYTES])),
        is_ending: AtomicBool::new(false),
    };
    let keeper = KEEPER.get_or_init(|| keeper);
    let watch = || {
        loop {
            let pause_ms = (keeper.look(0) / FILLED_A_MS).clamp(1, LOOKED_AT_MS);
            thread::park_timeout(Duration::from_millis(pause_ms));
        }
    };
    thread::Builder::new().spawn(watch).map_err(|_| Failure::no_thread())?;
    Ok(())
}

/// The largest block so far: a list that is full and doubled takes as much at once as it has.
pub fn largest() -> u64 {
    LARGEST.load(Ordering::Relaxed) as u64
}

/// Notes, for the allocator, that a thread takes so many bytes, the last of them for a block.
#[cold]
pub fn taken(bytes: usize, block: usize) {
    LARGEST.fetch_max(block, Ordering::Relaxed);
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
        low_level::exit(REFUSED);
    }
    let bytes = bytes as u64;
    // The system does not say which limit it was. Most likely the one that leaves least.
    let rooms = || keeper.limits.rooms(&system).into_iter();
    keeper.end(|| {
        let least = rooms().min_by_key(|room| room.left);
        let of = least.map_or_else(|| "memory".to_owned(), |room| room.of);
        format!("{of} is full, and {} MiB more are needed", bytes.div_ceil(1 << 20))
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
            match room.left.checked_sub(bytes + self.kept_of(&room)) {
                Some(left) => least = least.min(left),
                None => self.end(|| format!("{} is nearly full", room.of)),
            }
        }
        self.taken.store(0, Ordering::Relaxed);
        self.budget.store((least / 2).max(BUDGET_MIN), Ordering::Relaxed);
        DOES.set(Does::Work);
        least
    }

    fn kept_of(&self, room: &Room) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&room.of) {
            Some(bytes) => *bytes,
            None => {
                let bytes = (room.left / KEPT_PART).min(KEPT_MAX);
                kept.insert(room.of.clone(), bytes);
                bytes
            }
        }
    }

    /// Says why, takes away what is unfinished, and ends.
    fn end(&self, why: impl FnOnce() -> String) {
        DOES.set(Does::Ends);
        if self.is_ending.swap(true, Ordering::SeqCst) {
            // Another thread does, unless it waits for what this one has.
            thread::park_timeout(WAITED);
            low_level::exit(REFUSED);
        }
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        let lead = if terminal::is_watched() { "\n" } else { "" };
        let remedy = "take a smaller fabric, a shorter run or fewer at a time, or allow more";
        terminal::remark(&format!("{lead}clearlane: {}; {remedy}", why()));
        self.unfinished.try_take_away();
        low_level::exit(REFUSED);
    }
}
