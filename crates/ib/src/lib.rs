//! The vocabulary of InfiniBand and the sizes of its headers.
//!
//! Every quantity that could be confused with another one is a type of its own. This crate
//! does no I/O and knows nothing of fabrics, tables or events.

mod address;
mod lane;
mod link;
mod nearest;
mod quantity;
pub mod random;
pub mod wire;

pub use address::{Guid, Lid, Lmc, PortNumber};
pub use lane::{ServiceLevel, VirtualLane};
pub use link::{LinkRate, LinkSpeed, LinkWidth};
pub use nearest::nearest;
pub use quantity::{BitsPerSecond, Bytes, Picoseconds, QuantityError};
