//! One switch and its hosts.

use super::arguments::Arguments;
use super::plan::{Plan, numbered, radix};
use super::{Entry, TopologyError};
use crate::Fabric;

/// `star:8`.
pub(super) const ENTRY: Entry = Entry {
    name: "star",
    summary: "one switch with n hosts",
    parameters: "star:n, n = 1 to 254 hosts; speed=4xQDR",
    example: "star:8",
    reference: "",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &[])?;
    let hosts = arguments.number("hosts", &arguments.values, 1..=254)?;
    let mut plan = Plan::new(ENTRY.name, u64::from(hosts) + 1)?;
    let switch = plan.switch("leaf00".into(), radix(ENTRY.name, "leaf", u64::from(hosts))?)?;
    for rank in 0..hosts {
        let host = plan.host(numbered("host", rank.into(), hosts.into(), 4), 1)?;
        plan.cable((host, 1), (switch, rank + 1));
    }
    plan.finish(arguments.rate()?)
}
