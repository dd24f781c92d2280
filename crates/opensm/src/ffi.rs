//! What the C shim calls, declared in `plugin/clearlane.h`. The only unsafe code: pointers become
//! slices and texts here, and nothing else is done with them.
//!
//! Every call checks its pointers and lengths and ends with a value; a panic becomes
//! [`FAULT`], with what was routed before left as it is. OpenSM asks for SLs from several threads
//! while nobody routes; a lock holds that, whoever calls.

use crate::discovered::{Discovered, DiscoveredCable, DiscoveredNode, DiscoveredPort};
use crate::engine::{Engine, Told};
use crate::folder;
use crate::options::{Arbitration, Mode, Options};
use clearlane_ib::{Guid, visible};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{PoisonError, RwLock};

/// Done.
pub const DONE: c_int = 0;
/// It could not be done, and a line said why.
pub const FAILED: c_int = -1;
/// No such node or port, or nothing is routed yet.
pub const UNKNOWN: c_int = -2;
/// The array has no room for the largest LID.
pub const TOO_SHORT: c_int = -3;
/// A null pointer or a length that cannot be.
pub const BAD_CALL: c_int = -4;
/// A fault of clearlane.
pub const FAULT: c_int = -5;

/// Most entries of a list: more ports than a subnet has LIDs, on nodes of 254 ports.
const ENTRIES_MAX: usize = 1 << 24;

/// Takes a line for the log: where to, whether it is a fault, the line.
pub type Say = Option<unsafe extern "C" fn(*mut c_void, c_int, *const c_char)>;

/// What `struct clearlane` is.
pub struct Handle(RwLock<Engine>);

/// The log of a call.
#[derive(Clone, Copy)]
struct Log {
    say: Say,
    place: *mut c_void,
}

impl Log {
    fn line(self, is_fault: bool, text: &str) {
        let Some(say) = self.say else { return };
        // Whatever stood in a file ends up here.
        let Ok(line) = CString::new(visible(text).into_owned()) else { return };
        // SAFETY: the caller of the C interface gives a function for this place; the line lives
        // until it returns.
        unsafe { say(self.place, c_int::from(is_fault), line.as_ptr()) }
    }

    fn all(self, told: &[Told]) {
        told.iter().for_each(|told| self.line(told.is_fault, &told.text));
    }
}

/// Runs a call; a panic is answered with `fault`.
fn guarded<T>(fault: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(fault)
}

/// A list of the caller; nothing if it cannot be one.
///
/// # Safety
/// `first` points to `count` entries that nobody changes during the call, or is null.
unsafe fn list<'a, T>(first: *const T, count: usize) -> Option<&'a [T]> {
    match (first.is_null(), count) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        _ if count > ENTRIES_MAX || !first.is_aligned() => None,
        // SAFETY: not null, aligned, and of the length that the caller promises.
        _ => Some(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// An engine that does what the text of `event_plugin_options` says, null being an empty one. Null
/// if the text is wrong, which is said.
///
/// # Safety
/// `options` is null or ends with a NUL; `say` can be called with `log`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_new(
    options: *const c_char,
    say: Say,
    log: *mut c_void,
) -> *mut Handle {
    let log = Log { say, place: log };
    guarded(std::ptr::null_mut(), || {
        let text = match options.is_null() {
            true => String::new(),
            // SAFETY: not null, and the caller promises the NUL.
            false => unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned(),
        };
        match Options::parse(&text) {
            Ok(options) => Box::into_raw(Box::new(Handle(RwLock::new(Engine::new(options))))),
            Err(error) => {
                log.line(true, &error.to_string());
                std::ptr::null_mut()
            }
        }
    })
}

/// Ends an engine; null is none.
///
/// # Safety
/// `handle` is null, or from [`clearlane_new`] and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_delete(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: the caller promises that it is ours and the last use.
        guarded((), || drop(unsafe { Box::from_raw(handle) }));
    }
}

/// Chooses tables for the fabric of the lists, and says what and why. [`DONE`], [`FAILED`] if no
/// tables are good, [`BAD_CALL`] or [`FAULT`].
///
/// # Safety
/// `handle` is null or from [`clearlane_new`], lists have as many entries as said, and `say` can be
/// called with `log`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_route(
    handle: *mut Handle,
    nodes: *const DiscoveredNode,
    node_count: usize,
    ports: *const DiscoveredPort,
    port_count: usize,
    cables: *const DiscoveredCable,
    cable_count: usize,
    has_lanes: c_int,
    say: Say,
    log: *mut c_void,
) -> c_int {
    let log = Log { say, place: log };
    let done = guarded(FAULT, || {
        // SAFETY: as the caller promises.
        let handle = unsafe { handle.as_ref() };
        // SAFETY: as the caller promises.
        let nodes = unsafe { list(nodes, node_count) };
        // SAFETY: as the caller promises.
        let ports = unsafe { list(ports, port_count) };
        // SAFETY: as the caller promises.
        let cables = unsafe { list(cables, cable_count) };
        let (Some(handle), Some(nodes), Some(ports), Some(cables)) = (handle, nodes, ports, cables)
        else {
            return BAD_CALL;
        };
        route(handle, nodes, ports, cables, has_lanes != 0, log)
    });
    if done == FAULT {
        let text = "a fault of clearlane: routing ended early; OpenSM keeps what the switches have";
        log.line(true, text);
    }
    done
}

fn route(
    handle: &Handle,
    nodes: &[DiscoveredNode],
    ports: &[DiscoveredPort],
    cables: &[DiscoveredCable],
    has_lanes: bool,
    log: Log,
) -> c_int {
    let mut engine = handle.0.write().unwrap_or_else(PoisonError::into_inner);
    let found = match Discovered::of(nodes, ports, cables) {
        Ok(found) => found,
        Err(error) => {
            log.line(true, &error.to_string());
            return FAILED;
        }
    };
    let files = match engine.options().mode {
        Mode::Files => folder::read(&engine.options().folder),
        Mode::VfTree => Ok(folder::Files::default()),
    };
    match engine.route(found, has_lanes, files) {
        Ok(told) => {
            log.all(&told);
            DONE
        }
        Err(error) => {
            log.line(true, &error.to_string());
            FAILED
        }
    }
}

/// Fills an array with the table of a switch: output port by LID, 255 where there is none. With a
/// null array it says whether it would. [`DONE`], [`UNKNOWN`], [`TOO_SHORT`], [`BAD_CALL`] or
/// [`FAULT`]; only [`DONE`] has changed the array.
///
/// # Safety
/// `handle` is null or from [`clearlane_new`]; `table` is null or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_table(
    handle: *const Handle,
    switch_guid: u64,
    table: *mut u8,
    length: usize,
) -> c_int {
    guarded(FAULT, || {
        // SAFETY: as the caller promises.
        let Some(handle) = (unsafe { handle.as_ref() }) else { return BAD_CALL };
        let engine = handle.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = engine.table(Guid(switch_guid)) else { return UNKNOWN };
        if length > ENTRIES_MAX {
            return BAD_CALL;
        }
        if row.len() > length {
            return TOO_SHORT;
        }
        if !table.is_null() {
            // SAFETY: not null, bytes are always aligned, and the caller promises the length.
            let table = unsafe { std::slice::from_raw_parts_mut(table, length) };
            table[..row.len()].copy_from_slice(row);
            table[row.len()..].fill(u8::MAX);
        }
        DONE
    })
}

/// The SL of a path, 0 to 15; `hint`, or 0 if that is none, where there is nothing better.
///
/// # Safety
/// `handle` is null or from [`clearlane_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_path_sl(
    handle: *const Handle,
    hint: u8,
    slid: u16,
    dlid: u16,
) -> u8 {
    let fallback = if hint < 16 { hint } else { 0 };
    guarded(fallback, || {
        // SAFETY: as the caller promises.
        let Some(handle) = (unsafe { handle.as_ref() }) else { return fallback };
        let engine = handle.0.read().unwrap_or_else(PoisonError::into_inner);
        engine.path_sl(fallback, slid, dlid)
    })
}

/// VL by SL at a port that has so many operational data VLs. [`DONE`], [`UNKNOWN`], [`BAD_CALL`] or
/// [`FAULT`]; only [`DONE`] has changed the array.
///
/// # Safety
/// `handle` is null or from [`clearlane_new`]; `vl_of_sl` is null or has room for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_lanes(
    handle: *const Handle,
    node_guid: u64,
    input: u8,
    output: u8,
    lanes: u8,
    vl_of_sl: *mut u8,
) -> c_int {
    guarded(FAULT, || {
        // SAFETY: as the caller promises.
        let Some(handle) = (unsafe { handle.as_ref() }) else { return BAD_CALL };
        if vl_of_sl.is_null() || lanes == 0 {
            return BAD_CALL;
        }
        let engine = handle.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = engine.lanes(Guid(node_guid), input, output) else { return UNKNOWN };
        let row = row.map(|lane| lane % lanes);
        // SAFETY: not null, and the caller promises 16 bytes.
        unsafe { std::slice::from_raw_parts_mut(vl_of_sl, 16) }.copy_from_slice(&row);
        DONE
    })
}

/// 1 if all lanes are to have the same weight, 0 if opensm.conf decides.
///
/// # Safety
/// `handle` is null or from [`clearlane_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearlane_equal_arbitration(handle: *const Handle) -> c_int {
    guarded(0, || {
        // SAFETY: as the caller promises.
        let Some(handle) = (unsafe { handle.as_ref() }) else { return 0 };
        let engine = handle.0.read().unwrap_or_else(PoisonError::into_inner);
        c_int::from(engine.options().arbitration == Arbitration::Equal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_call_alone() {
        assert_eq!(guarded(FAULT, || panic!("a fault of ours")), FAULT);
        assert_eq!(guarded(FAULT, || DONE), DONE);
    }
}
