//! A plan's fabric as network namespaces of this machine: a namespace for each host and switch, a
//! pair of virtual Ethernet ports for each cable, shaped to its rate. Agents run in the hosts;
//! their controller has a network of its own, as management has.

mod built;
mod cores;
mod layout;
mod members;

pub use built::{BuildError, Built, must_work, prefix, scratch, sweep, within};
pub use cores::Cores;
pub use layout::{HostPlace, Layout, LayoutError, Queue};
pub use members::{Members, members};
