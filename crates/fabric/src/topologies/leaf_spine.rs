//! Two levels of switches, every leaf joined to every spine.

use super::arguments::Arguments;
use super::xgft::Tree;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `leaf-spine:leaves=36,hosts=18,spines=18`.
pub(super) const ENTRY: Entry = Entry {
    name: "leaf-spine",
    summary: "two levels, every leaf joined to every spine, any ratio of hosts to uplinks",
    parameters: "leaves=36, 1 to 254; hosts=18 on each leaf, 1 to 253; spines=18, 1 to 253; \
                 parallel=1 cables between a leaf and a spine, 1 to 253; speed=4xQDR",
    example: "leaf-spine:leaves=6,hosts=4,spines=2,parallel=2",
    reference: "",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["leaves", "hosts", "spines", "parallel"])?;
    if !arguments.values.is_empty() {
        return Err(arguments.wrong("value", &arguments.values, "empty; write leaves=4,hosts=4,…"));
    }
    let leaves = arguments.option_number("leaves", 36, 1..=254)?;
    let hosts = arguments.option_number("hosts", 18, 1..=253)?;
    let spines = arguments.option_number("spines", 18, 1..=253)?;
    let parallel = arguments.option_number("parallel", 1, 1..=253)?;
    let tree = Tree {
        topology: ENTRY.name,
        children: vec![hosts, leaves],
        parents: vec![1, spines],
        parallel: vec![1, parallel],
        radix: 0,
    };
    tree.build(arguments.rate()?)
}
