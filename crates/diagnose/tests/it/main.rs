//! Sites with faults, and what the verdict says of them.

mod hot_hosts;
mod incidents;
mod site_files;
