//! The rules of ranks above an ideal fabric.

mod loggops;
mod rules;
mod saved;
mod support;
