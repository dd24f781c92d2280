//! The vocabulary of InfiniBand, and its headers: their sizes and, where it matters, their bytes.
//!
//! Every quantity that could be confused with another one is a type of its own. This crate
//! does no I/O and knows nothing of fabrics, tables or events.

#![forbid(unsafe_code)]

mod address;
mod bth;
mod cnp;
pub mod crc;
mod extended;
mod grh;
mod header;
mod identity;
mod lane;
mod link;
mod lrh;
mod nearest;
mod opcode;
mod quantity;
mod quoting;
pub mod random;
pub mod state;
mod visible;
pub mod wire;
mod wrapping;

pub use address::{Guid, Lid, Lmc, PortNumber};
pub use bth::{Bth, PadCount, Psn, QueuePairNumber, TransportVersion};
pub use cnp::{Cnp, CnpRoute};
pub use extended::{Acknowledged, Aeth, Deth, Reth};
pub use grh::Grh;
pub use header::HeaderError;
pub use identity::{Identities, Identity, IdentityError, identify};
pub use lane::{ServiceLevel, VirtualLane};
pub use link::{LinkRate, LinkSpeed, LinkWidth};
pub use lrh::Lrh;
pub use nearest::nearest;
pub use opcode::{Extended, Opcode, Service};
pub use quantity::{BitsPerSecond, Bytes, Picoseconds, QuantityError};
pub use quoting::{KEPT_CHARS_MAX, SHOWN_CHARS_MAX, quoted, short, ticked, within};
pub use state::{Saved, StateError};
pub use visible::{visible, visible_lines};
pub use wrapping::wrap;
