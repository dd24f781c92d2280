//! From tables and service levels to files that a stock OpenSM takes: what changes and nothing
//! else, with the steps, what each disturbs, and the way back.
//!
//! OpenSM 3.3.23 is what files are for: `-R file` and a QoS policy express any service level by
//! group of source and group of destination, and one SL2VL for all ports. What needs more (an SL by
//! LID offset, SL2VL by ports) needs a routing engine of its own.

#![forbid(unsafe_code)]

mod clients;
mod conf;
mod lanes;
mod plan;
mod policy;
mod readme;
mod refusal;
mod remarks;

pub use clients::{CLIENTS, Client, client};
pub use conf::{Conf, Remark};
pub use plan::{Existing, File, Plan, Request};
pub use policy::{Policy, PolicyError};
pub use refusal::DeployError;
