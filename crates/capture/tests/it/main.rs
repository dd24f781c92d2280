//! Captures in and out: what is read, found and written.

mod analysed;
mod real_captures;
mod recognised;
mod written;
