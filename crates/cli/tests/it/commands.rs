//! The binary as a person calls it: what it prints, what it writes, how it ends.

pub mod binary;
mod calibrate;
mod captures;
mod control;
mod errors;
mod experiments;
mod fabric;
mod hostile;
mod long_words;
mod names;
mod overwriting;
mod reference;
mod robustness;
mod site_files;
mod stopping;
mod tables;
mod tune;
