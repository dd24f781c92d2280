//! Flow mode: the same set-up as the packet simulator's, the same outcome, and messages that are
//! flows at max-min fair rates instead of packets (Bertsekas and Gallager, Data Networks, 2nd ed.,
//! 6.5.2). For scans that packets cannot afford.
//!
//! A message is a flow of wire bytes, headers included, over the links of its route; all flows
//! share all links max-min fairly, from one change to the next. There are no packets, buffers,
//! credits, lanes or windows: no head-of-line blocking, no deadlock of buffers, no ACK. So times are
//! bounds rather than predictions. What stays is what is above and beside that: ranks with their
//! overheads and protocols, routes, latencies, gaps, injection engines and the limits of hosts.
//!
//! Entry point: [`Simulation::new`] with a [`Setup`](clearlane_sim::Setup), then
//! [`Simulation::advance`] as often as wanted, then [`Simulation::finish`].
//!
//! Time is in integer picoseconds. Rates are `f64` with no other arithmetic than + − × ÷, which
//! IEEE 754 defines to the last bit, in an order that no hash decides: the same set-up gives the
//! same bytes everywhere.

#![forbid(unsafe_code)]

mod arriving;
mod backlog;
mod batching;
mod error;
mod events;
mod flows;
mod leaving;
mod links;
mod messages;
mod network;
mod queues;
mod rates;
mod recorder;
mod routes;
mod simulation;
mod slices;
mod ways;

pub use batching::Batching;
pub use error::SetupError;
pub use simulation::Simulation;
