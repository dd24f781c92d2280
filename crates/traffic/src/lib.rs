//! CTBG, the centrally controlled traffic generator: agents on hosts send what a plan says, which
//! is an experiment of the simulator; a controller starts them together, and collects when each
//! packet was sent and received. After Cao et al., "Research on Observation Mechanism for
//! Congestion Control in InfiniBand Network Based on ibdump" (2012), 3.1. Theirs has no security;
//! what ours has is in `docs/traffic.md`.

#![forbid(unsafe_code)]

mod admission;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
pub mod agent;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
pub mod audit;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
pub mod channel;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
pub mod clock;
pub mod consent;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
pub mod controller;
#[expect(clippy::disallowed_methods, reason = "real disks take real time")]
pub mod disk;
pub mod enrolment;
pub mod frame;
pub mod keys;
pub mod log;
pub mod mechanisms;
pub mod message;
pub mod name;
pub mod order;
pub mod packet;
pub mod policy;
pub mod results;
pub mod sender;
mod small_file;
pub mod testbed;
mod text;
pub mod tls;
#[expect(clippy::disallowed_methods, reason = "real hosts have real time")]
mod unproven;
