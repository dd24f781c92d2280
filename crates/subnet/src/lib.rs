//! What a subnet manager computes: LIDs, forwarding tables, SL2VL, VL arbitration and the SL of a
//! path; and the checkers that prove the result sane.

#![forbid(unsafe_code)]

mod adaptive;
pub mod check;
pub mod engines;
pub mod formats;
mod graph;
pub mod lanes;
mod lid;
mod path_sl;
mod tables;

pub use adaptive::AdaptiveGroups;
pub use engines::Datelines;
pub use lid::{LidError, LidMap, LidOwner};
pub use path_sl::{HostGroups, PathSl};
pub use tables::{ForwardingTables, SlToVl, SlToVlTable, Subnet, VlArbitration, VlWeight};
