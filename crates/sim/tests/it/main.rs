//! Devices in motion: closed forms, credits, deadlock, and that the division of a run is not seen.

mod adapters;
mod closed_forms;
mod control;
mod credits;
mod crossbar;
mod deadlock;
mod ends;
mod grid;
#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../ranks/tests/it/support/mod.rs"]
mod ideal;
mod instances;
mod partitions;
mod programs;
mod ranks;
mod same_bytes;
mod support;
mod switches;
mod taps;
