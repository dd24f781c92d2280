//! The routing engine `clearlane` of a stock OpenSM: which forwarding tables, SLs of paths and
//! lanes are good for the fabric that OpenSM has discovered, from our files or computed at once.
//!
//! What decides is plain Rust that opens nothing and prints nothing; [`folder`] reads the files,
//! and [`ffi`] is the small C interface that the plug-in's shim (`plugin/clearlane.c`) calls.

#![deny(unsafe_code)]

pub mod discovered;
pub mod engine;
#[allow(unsafe_code)]
pub mod ffi;
pub mod folder;
mod judged;
pub mod options;
