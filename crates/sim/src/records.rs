//! Records and the numbers they are known by.
//!
//! A packet-hop takes some thirty accesses by number, and checking each costs a sixth of all
//! instructions. So every kind of record has a kind of number of its own, which keeps kinds apart,
//! and who makes a number answers for its range: builds with debug assertions, which all tests are,
//! check every access, release builds none.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The number of a record.
pub(crate) trait RecordIndex: Copy {
    /// The same as a place in memory.
    fn place(self) -> usize;
}

/// Declares a kind of number. `NIL` is none of them.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// No record.
            #[allow(dead_code, reason = "some kinds always have one")]
            pub(crate) const NIL: Self = Self(u32::MAX);
        }

        impl From<u32> for $name {
            #[inline(always)]
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl crate::records::RecordIndex for $name {
            #[inline(always)]
            fn place(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use index;

/// A vector indexed by numbers of one kind, without a bounds check in release builds.
///
/// Whoever makes a number owes it: [`Records::push`] and the rooms that lay records out by a rule
/// (ports of a home, lanes of a port) make them, from their own lengths. What comes from outside is
/// checked before a run: tables and groups of outputs in `setup`, cables in `forward`.
#[derive(Clone, Debug)]
pub(crate) struct Records<I, T> {
    records: Vec<T>,
    of: PhantomData<fn(I)>,
}

impl<I: RecordIndex, T> Records<I, T> {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.records.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.records.iter_mut()
    }

    /// So many records from `first` on: one check for all of them.
    #[inline(always)]
    pub(crate) fn run(&self, first: I, records: u32) -> &[T] {
        &self.records[first.place()..first.place() + records as usize]
    }

    /// As many records as that, those that are new like `record`.
    pub(crate) fn resize(&mut self, records: usize, record: T)
    where
        T: Clone,
    {
        self.records.resize(records, record);
    }

    /// Moves all records so many places on, and lays `record` before them.
    pub(crate) fn make_room(&mut self, records: usize, record: T)
    where
        T: Clone,
    {
        self.records.splice(0..0, std::iter::repeat_n(record, records));
    }

    /// Adds a record; its place is the number it gets.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: T) -> usize {
        if self.records.len() == self.records.capacity() {
            self.grow();
        }
        self.records.push(record);
        self.records.len() - 1
    }

    /// Gives records half as much room again: twice as much would lie idle in large fabrics.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let records = self.records.len();
        let mut larger = room_for(records + (records / 2).max(16));
        larger.append(&mut self.records);
        self.records = larger;
    }

    /// The records as a plain vector.
    pub(crate) fn into_vec(self) -> Vec<T> {
        self.records
    }

    /// Asks the processor to fetch the cache line of a byte of a record. Any number will do.
    #[inline(always)]
    pub(crate) fn prefetch_at(&self, index: I, byte: usize) {
        let record = self.records.as_ptr().wrapping_add(index.place()).cast::<u8>();
        prefetch(record.wrapping_add(byte));
    }

    /// Asks the processor to fetch the first `LINES` cache lines of a record. Any number will do.
    #[inline(always)]
    pub(crate) fn prefetch<const LINES: usize>(&self, index: I) {
        let record = self.records.as_ptr().wrapping_add(index.place()).cast::<u8>();
        for line in 0..LINES {
            prefetch(record.wrapping_add(64 * line));
        }
    }
}

/// So many records that are all alike, on large pages where they take several.
pub(crate) fn blank<I: RecordIndex, T: Clone>(records: usize, record: T) -> Records<I, T> {
    let mut all = room_for(records);
    all.resize(records, record);
    all.into()
}

/// Room for so many records, on large pages where it takes several: large fabrics are bound by how
/// fast addresses are translated. Before the records are there, because pages are chosen as they
/// are first touched; a system that has no large pages changes nothing.
pub(crate) fn room_for<T>(records: usize) -> Vec<T> {
    const PAGE: usize = 2 << 20;
    let room = Vec::with_capacity(records);
    let begin = room.as_ptr() as usize;
    let (begin, end) = (begin.next_multiple_of(4096), (begin + records * size_of::<T>()) & !4095);
    if end >= begin + 2 * PAGE {
        advise_large_pages(begin, end - begin);
    }
    room
}

#[cfg(target_os = "linux")]
fn advise_large_pages(begin: usize, bytes: usize) {
    // SAFETY: the range lies within one allocation; the advice changes how it is mapped and none
    // of its bytes.
    unsafe { libc::madvise(begin as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages(_: usize, _: usize) {}

/// Asks the processor to fetch all cache lines of a value somewhere in memory.
#[inline(always)]
pub(crate) fn prefetch_whole<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    for line in 0..size_of::<T>().div_ceil(64) {
        prefetch(first.wrapping_add(64 * line));
    }
}

/// Asks the processor to fetch the first cache lines of a value somewhere in memory.
#[inline(always)]
pub(crate) fn prefetch_value<T: ?Sized>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    for line in 0..3 {
        prefetch(first.wrapping_add(64 * line));
    }
}

/// Asks the processor to fetch the cache line of a place of a slice. Any place will do.
#[inline(always)]
pub(crate) fn prefetch_place<T>(values: &[T], place: usize) {
    prefetch(values.as_ptr().wrapping_add(place).cast());
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

impl<I, T> Default for Records<I, T> {
    fn default() -> Self {
        Records { records: Vec::new(), of: PhantomData }
    }
}

impl<I, T> From<Vec<T>> for Records<I, T> {
    fn from(records: Vec<T>) -> Self {
        Records { records, of: PhantomData }
    }
}

impl<I: RecordIndex, T> Index<I> for Records<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: I) -> &T {
        let place = index.place();
        debug_assert!(place < self.records.len(), "record {place} of {}", self.records.len());
        // SAFETY: numbers of this kind are places of these records, by the contract of the type.
        // That is no proof by types; every test checks it above.
        unsafe { self.records.get_unchecked(place) }
    }
}

impl<I: RecordIndex, T> IndexMut<I> for Records<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, index: I) -> &mut T {
        let place = index.place();
        debug_assert!(place < self.records.len(), "record {place} of {}", self.records.len());
        // SAFETY: as in `index`.
        unsafe { self.records.get_unchecked_mut(place) }
    }
}

/// Records that come and go: the places of those gone are used again, last out first in.
#[derive(Clone, Debug)]
pub(crate) struct Slab<I, T> {
    records: Records<I, T>,
    free: Vec<u32>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Slab { records: Records::default(), free: Vec::new() }
    }
}

impl<I: RecordIndex + From<u32>, T> Slab<I, T> {
    /// No records, but room for so many.
    pub(crate) fn with_room_for(records: usize) -> Self {
        Slab { records: room_for(records).into(), free: Vec::new() }
    }

    /// Takes a record in.
    #[inline(always)]
    pub(crate) fn insert(&mut self, record: T) -> I {
        match self.free.pop() {
            Some(place) => {
                self.records[I::from(place)] = record;
                I::from(place)
            }
            None => I::from(self.records.push(record) as u32),
        }
    }

    /// Lets a record go.
    #[inline(always)]
    pub(crate) fn remove(&mut self, index: I) {
        self.free.push(index.place() as u32);
    }

    /// How many records are in.
    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// The numbers of the records that are in, in their order.
    pub(crate) fn live(&self) -> impl Iterator<Item = I> + '_ {
        let mut gone = vec![false; self.records.len()];
        self.free.iter().for_each(|place| gone[*place as usize] = true);
        let here = gone.into_iter().enumerate().filter(|(_, gone)| !gone);
        here.map(|(place, _)| I::from(place as u32))
    }

    /// All records, those let go of as they were last.
    pub(crate) fn all(&self) -> &Records<I, T> {
        &self.records
    }

    /// All records, to be threaded into lists.
    #[inline(always)]
    pub(crate) fn all_mut(&mut self) -> &mut Records<I, T> {
        &mut self.records
    }
}

impl<I: RecordIndex, T> Index<I> for Slab<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: I) -> &T {
        &self.records[index]
    }
}

impl<I: RecordIndex, T> IndexMut<I> for Slab<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.records[index]
    }
}
