//! CTBG, the centrally controlled traffic generator: agents on hosts send what a plan says, which is
//! an experiment of the simulator; a controller starts them together, and collects when each packet
//! was sent and received. After Cao et al., "Research on Observation Mechanism for Congestion Control
//! in InfiniBand Network Based on ibdump" (2012), 3.1; its control is secured as theirs is not.

#![forbid(unsafe_code)]

pub mod agent;
pub mod audit;
pub mod channel;
pub mod clock;
pub mod consent;
pub mod controller;
pub mod enrolment;
pub mod frame;
pub mod keys;
pub mod log;
pub mod message;
pub mod name;
pub mod order;
pub mod packet;
pub mod policy;
pub mod results;
pub mod sender;
pub mod testbed;
mod text;
pub mod tls;
