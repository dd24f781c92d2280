//! The allocator of this program: the system's, with a look at what is left of memory before it is
//! taken, and one line where it is refused instead of the words of the standard library.
//!
//! An allocator is an unsafe trait. There is no safe hook for memory that is refused. All that is
//! done is to hand on.

use super::keeper;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes that a thread takes before it says so.
const TOLD: usize = 1 << 20;
/// The system maps blocks of this size by themselves. Such a block grows without a copy.
const MAPPED: usize = 64 << 20;
/// Alignment of all that the system hands out. A block with a wider one is copied as it grows.
const ALIGNED: usize = 16;

thread_local! {
    /// Bytes that this thread has taken since it last told the keeper.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, watched.
pub struct Allocator;

/// Counts bytes that a thread is about to take. A list has `list` bytes then; 0 for what is none.
#[inline]
fn take(bytes: usize, list: usize) {
    let taken = TAKEN.get() + bytes;
    match taken < TOLD {
        true => TAKEN.set(taken),
        false => {
            TAKEN.set(0);
            keeper::taken(taken, list);
        }
    }
}

/// Counts bytes of a new block. A large one is a table of fixed size. Lists begin small and grow.
#[inline]
fn take_new(bytes: usize) {
    take(bytes, if bytes < MAPPED { bytes } else { 0 });
}

/// Hands on the system's block, or tells the keeper that the system refused so many bytes.
#[inline]
fn given(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        keeper::refused(bytes);
    }
    block
}

// SAFETY: all of it is the system's allocator, called as this one is called.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take_new(layout.size());
        // SAFETY: as above.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take_new(layout.size());
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        match bytes.checked_sub(layout.size()) {
            None => {}
            Some(more) if layout.size() >= MAPPED && layout.align() <= ALIGNED => take(more, bytes),
            Some(_) => take(bytes, bytes),
        }
        // SAFETY: as above.
        given(unsafe { System.realloc(block, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= TOLD {
            keeper::freed(layout.size());
        }
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
