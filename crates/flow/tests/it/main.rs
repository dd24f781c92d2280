//! Flow mode beside closed forms and beside the packet simulator.

mod batching;
mod closed_forms;
mod ranks;
mod support;
