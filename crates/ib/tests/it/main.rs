//! Headers and their bytes.

mod headers;
