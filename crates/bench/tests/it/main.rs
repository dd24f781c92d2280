//! The program of the benchmark as a person calls it.

mod table;
