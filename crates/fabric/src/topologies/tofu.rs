//! What it is: the 6-D mesh/torus of the K computer and its successors.
//!
//! Source: Ajima, Sumimoto, Shimizu, "Tofu: a 6D mesh/torus interconnect for exascale computers",
//! IEEE Computer 42(11), 2009; Ajima, Inoue, Hiramoto, Takagi, Shimizu, "The Tofu interconnect",
//! IEEE Micro 32(1), 2012. Units of 12 nodes, A×B×C = 2×3×2, stand at the points of an X×Y×Z torus;
//! nodes of the same place in neighbouring units are joined. B is a ring, A and C are single
//! cables, so a node has ten links: two each in X, Y, Z and B, one each in A and C.
//!
//! A node's router is a switch here and its processor the host on it. Ports are those of the grids:
//! X on 1 and 2, Y on 3 and 4, Z on 5 and 6, A on 7 or 8, B on 9 and 10, C on 11 or 12, hosts from
//! 13 on. X varies fastest in the order of the switches.

use super::arguments::Arguments;
use super::lattice::{LINKS, Lattice};
use super::{Entry, TopologyError};
use crate::Fabric;

/// `tofu:3x2x2`.
pub(super) const ENTRY: Entry = Entry {
    name: "tofu",
    summary: "6-D mesh/torus: units of 2 × 3 × 2 switches at the points of a 3-D torus",
    parameters: "tofu:XxYxZ, units in X, Y and Z, 1 to 65536; hosts=1 on each switch, 1 to 242; \
                 links=1 cables of a host, 1 to 8; \
                 mesh=xyz leaves the named ones of these three open, size 2 joined has two \
                 parallel cables; ports: X 1 2, Y 3 4, Z 5 6, A 7 8, B 9 10, C 11 12, then hosts; \
                 speed=4xQDR",
    example: "tofu:3x2x2",
    reference: "Ajima et al., \"Tofu: a 6D mesh/torus interconnect for exascale computers\", IEEE \
                Computer 42(11), 2009; \"The Tofu interconnect\", IEEE Micro 32(1), 2012",
    build,
};

/// Sizes of a unit, and which of its dimensions is a ring.
const UNIT: [(u32, bool); 3] = [(2, false), (3, true), (2, false)];

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["hosts", "links", "mesh"])?;
    let texts: Vec<&str> = arguments.values.split('x').take(4).collect();
    if texts.len() != 3 {
        return Err(arguments.wrong("shape", &arguments.values, "3 sizes, such as 3x2x2"));
    }
    let sizes: Result<Vec<u32>, TopologyError> =
        texts.iter().map(|text| arguments.number("size", text, 1..=65536)).collect();
    let open = arguments.option("mesh").unwrap_or("");
    let known = open.chars().all(|axis| "xyz".contains(axis));
    if !known || "xyz".chars().any(|axis| open.matches(axis).count() > 1) {
        return Err(arguments.wrong("mesh", open, "some of the letters x, y and z, once each"));
    }
    let hosts = arguments.option_number("hosts", 1, 1..=242)?;
    let links = arguments.option_number("links", 1, LINKS)?;
    let lattice = Lattice {
        topology: ENTRY.name,
        sizes: sizes?.into_iter().chain(UNIT.map(|(size, _)| size)).collect(),
        wraps: "xyz".chars().map(|c| !open.contains(c)).chain(UNIT.map(|(_, ring)| ring)).collect(),
        hosts,
        links,
        rate: arguments.rate()?,
    };
    lattice.build()
}

#[cfg(test)]
mod tests {
    use crate::topologies::build;
    use crate::{NodeId, NodeKind, structure};

    #[test]
    fn a_node_has_ten_links_and_its_host() {
        let fabric = build("tofu:4x3x3").unwrap();
        for id in fabric.ids(NodeKind::Switch) {
            let ports: Vec<u8> = fabric.neighbours(id).map(|(port, _, _)| port.value()).collect();
            let [a, c] = [3, 5].map(|axis| fabric.node(id).name.split('-').nth(axis + 1).unwrap());
            let (a, c) = (if a == "0" { 7 } else { 8 }, if c == "0" { 11 } else { 12 });
            assert_eq!(ports, [1, 2, 3, 4, 5, 6, a, 9, 10, c, 13], "{}", fabric.node(id).name);
        }
    }

    #[test]
    fn the_grid_of_six_dimensions_is_recovered() {
        let recovered = |spec: &str| {
            let fabric = build(spec).unwrap();
            let grid = structure::grid(&fabric).unwrap();
            let last = fabric.ids(NodeKind::Switch).last().unwrap();
            let name = grid.coords(last).unwrap().iter().map(u32::to_string).collect::<Vec<_>>();
            assert_eq!(fabric.node(last).name, format!("sw-{}", name.join("-")));
            (grid.dims, grid.wraps)
        };
        let rings = |xyz: [bool; 3]| [&xyz[..], &[false, true, false]].concat();
        assert_eq!(recovered("tofu:4x3x5"), (vec![4, 3, 5, 2, 3, 2], rings([true; 3])));
        assert_eq!(
            recovered("tofu:3x4x3,mesh=y"),
            (vec![3, 4, 3, 2, 3, 2], rings([true, false, true]))
        );
        // One unit: nothing to join in X, Y and Z.
        let unit = build("tofu:1x1x1").unwrap();
        assert_eq!(unit.neighbours(NodeId(0)).count(), 4 + 1);
        assert_eq!(recovered("tofu:1x1x1").0, [1, 1, 1, 2, 3, 2]);
    }
}
