//! Vectors the hot loop indexes by numbers that were made from their own length.
//!
//! A packet-hop takes some thirty such accesses, and checking each costs a sixth of all
//! instructions. The checks are there in every build with debug assertions, which all tests are.

use std::ops::{Index, IndexMut};

/// A vector indexed by `u32` without a bounds check in release builds.
///
/// Whoever makes an index owes it: port numbers stem from [`Network`](crate::network::Network),
/// which connects only ports it has made, and packets from [`Engine::admit`]; the tables that
/// choose output ports are checked against the fabric before the run.
///
/// [`Engine::admit`]: crate::engine::Engine::admit
#[derive(Clone, Debug)]
pub(crate) struct Records<T>(Vec<T>);

impl<T> Records<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn push(&mut self, record: T) {
        self.0.push(record);
    }

    /// `count` records from `first` on.
    pub(crate) fn slice(&self, first: u32, count: u32) -> &[T] {
        &self.0[first as usize..][..count as usize]
    }

    /// Asks the processor to fetch the first `LINES` cache lines of a record. Any index will do.
    #[inline(always)]
    pub(crate) fn prefetch<const LINES: usize>(&self, index: u32) {
        let record = self.0.as_ptr().wrapping_add(index as usize).cast::<u8>();
        for line in 0..LINES {
            prefetch(record.wrapping_add(64 * line));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch never faults, whatever the address, and has no visible effect.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch(_: *const u8) {}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records(Vec::new())
    }
}

impl<T> From<Vec<T>> for Records<T> {
    fn from(records: Vec<T>) -> Self {
        Records(records)
    }
}

impl<T> Index<u32> for Records<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.0.len(), "record {index} of {}", self.0.len());
        // SAFETY: see the type; debug builds check.
        unsafe { self.0.get_unchecked(index as usize) }
    }
}

impl<T> IndexMut<u32> for Records<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        debug_assert!((index as usize) < self.0.len(), "record {index} of {}", self.0.len());
        // SAFETY: see the type; debug builds check.
        unsafe { self.0.get_unchecked_mut(index as usize) }
    }
}
