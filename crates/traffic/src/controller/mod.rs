//! The controller: brings agents to one clock, gives them their orders, starts them together, and
//! collects what they noted.

mod collect;
mod inventory;
mod link;
mod orders;
mod run;

pub use inventory::{INVENTORY_FILE, Inventory, InventoryError, Known};
pub use link::{Link, LinkError};
pub use orders::{Ordered, orders};
pub use run::{Clocks, Host, Kept, KeptLog, Options, Record, RunError, Watch, run};
