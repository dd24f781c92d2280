//! Programs of ranks from traces.

mod traces;
