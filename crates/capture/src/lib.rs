//! Captures of InfiniBand and RoCE: files read and written, packets dissected, flows found in them.
//!
//! Data flows one way: a file hands out [`Record`](files::Record)s, `link` takes off what lies
//! around a packet, `dissect` reads its headers, [`Analysis`] counts it under its flow.

#![forbid(unsafe_code)]

pub mod files;

mod analysis;
mod captures;
mod clocks;
mod dissect;
mod endpoint;
mod flow;
mod found;
pub mod judge;
mod link;
mod sequence;
mod slices;
pub mod write;

pub use analysis::{Analysis, CANDIDATES_MAX, FLOWS_MAX, Others, PointCounts};
pub use captures::{Analysed, Capture, CaptureError, Options, Point, Source, Tell, analyse};
pub use clocks::{Clock, ClockKnown};
pub use dissect::{Carrier, Crcs, Dissected, Other, Packet, Role, Truth};
pub use endpoint::Endpoint;
pub use flow::{Counts, FlowKey, Slice};
pub use found::{Feedback, Found, FoundFlow, Gaps};
pub use link::dissect;
pub use sequence::SequenceCounts;
pub use slices::{Grid, SLICES_MAX};
