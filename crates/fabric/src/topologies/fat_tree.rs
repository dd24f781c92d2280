//! The full fat trees of two catalogue switches, by their number of hosts.

use super::arguments::Arguments;
use super::xgft::Tree;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `fat-tree:648`.
pub(super) const ENTRY: Entry = Entry {
    name: "fat-tree",
    summary: "full-bisection fat tree: 648 (2 levels, 36 ports), 3456 (3 levels, 24 ports) or \
              11664 hosts (3 levels, 36 ports)",
    parameters: "fat-tree:n, n = 648, 3456 or 11664 hosts; taper=1 divides the uplinks of a leaf, \
                 any divisor of them; speed=4xQDR",
    example: "fat-tree:648",
    reference: "Leiserson, \"Fat-trees\", IEEE Trans. Computers 34(10), 1985",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["taper"])?;
    let (half, levels) = match arguments.values.as_str() {
        "648" => (18, 2),
        "3456" => (12, 3),
        "11664" => (18, 3),
        other => {
            let expected = "648, 3456 or 11664; use xgft for other sizes";
            return Err(arguments.wrong("hosts", other, expected));
        }
    };
    let taper = arguments.option_number("taper", 1, 1..=half)?;
    if half % taper != 0 {
        let expected = format!("a divisor of {half}, the uplinks of a leaf");
        return Err(arguments.wrong("taper", &taper.to_string(), &expected));
    }
    let mut children = vec![half; levels];
    children[levels - 1] = 2 * half;
    let mut parents = vec![half; levels];
    (parents[0], parents[1]) = (1, half / taper);
    let tree = Tree {
        topology: ENTRY.name,
        children,
        parents,
        parallel: vec![1; levels],
        radix: 2 * half,
    };
    tree.build(arguments.rate()?)
}
