//! Proof that tables are sane: every host reaches every other, no cycle of channels can wait for
//! itself, how evenly the links are loaded, how different the paths of a pair are, and how many
//! paths cross each link. Each checker gives a report with its figures as fields; printed, most are
//! a few aligned lines.

mod arrivals;
mod balance;
mod credit_loop;
mod disjoint;
mod reachability;
mod usage;

pub use arrivals::Arrivals;
pub use balance::{
    Balance, BalanceOptions, Bisection, Permutations, Worst, balance, balance_told, bisection,
    shifts,
};
pub use credit_loop::{CreditLoop, CreditLoopReport, Waiting, credit_loop, credit_loop_on};
pub use disjoint::{Disjointness, PathClass, disjointness};
pub use reachability::{Fault, FaultKind, Hop, ReachabilityReport, reachability};
pub use usage::{Exposure, LostAt, Usage, exposure, usage};
