//! The binary as a person calls it, and the style of the sources, executed.

mod commands;
mod tidy;
