//! What captures show, in words, tables, files and a page: who is congested, who contributes, who
//! suffers; and records of flows, whatever saw them, laid over each other.

#![forbid(unsafe_code)]

mod names;
mod overlay;
mod page;
mod series;
mod summary;
mod table;
mod verdict;
mod words;

pub use names::Names;
pub use overlay::{Overlay, Record};
pub use page::page;
pub use series::series;
pub use summary::summary;
pub use table::{TableOptions, table};
pub use verdict::{remarks, verdict};
