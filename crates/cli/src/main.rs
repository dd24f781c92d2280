//! Clearlane's command line.
fn main() {}
