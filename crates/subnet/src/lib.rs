//! What a subnet manager computes: LIDs, forwarding tables, SL2VL, VL arbitration and the SL of a
//! path; and the checkers that prove the result sane.

mod lid;
mod tables;

pub use lid::{LidMap, LidOwner};
pub use tables::{ForwardingTables, PathSl, SlToVl, SlToVlTable, Subnet, VlArbitration, VlWeight};
