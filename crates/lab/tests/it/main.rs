//! Experiments from their text to their results.

mod checkpoints;
mod control;
mod dead_pairs;
mod doubling;
mod errors;
mod features;
mod flow_mode;
mod jobs;
mod keys;
mod language;
mod mechanisms;
mod moved;
mod opensm_conf;
mod over_time;
mod pacing;
mod picture;
mod policy;
mod programs;
mod renumbering;
mod runs;
mod sweeps;
mod vftree;
