//! What every fuzz target holds a reader to: no panic, errors of one short line, and what is read
//! comes back from our own writer as it was.

use clearlane_fabric::formats::{self, FormatError, Reading};
use clearlane_fabric::{Fabric, Link, NodeId, structure, topologies};
use clearlane_ib::{Guid, Lid, Lmc, PortNumber};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{RouteOptions, route};
use std::borrow::Cow;
use std::fmt::Display;

/// The name that files go under in errors.
pub const FILE: &str = "file";

/// The longest error: a few quoted names with the sentence around them.
const ERROR_CHARS_MAX: usize = 1_000;

/// An input as the text a reader gets; bytes that are no UTF-8 never reach one.
pub fn text(data: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(data)
}

/// Holds an error to its form: one line, and short whatever was read.
pub fn refused(error: &dyn Display) {
    let error = error.to_string();
    one_line(&error);
    assert!(!error.is_empty() && error.chars().count() <= ERROR_CHARS_MAX, "{error}");
}

/// Holds what is printed to one line.
pub fn one_line(text: &str) {
    assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
}

/// A small routed subnet that tables are put onto: two leaves, two spines, four hosts, LIDs 1 to 8.
pub fn subnet() -> (Fabric, Subnet) {
    let fabric = topologies::build("leaf-spine:leaves=2,hosts=2,spines=2").expect("it builds");
    let subnet = route("min-hop", &fabric, &RouteOptions::default()).expect("it routes");
    (fabric, subnet)
}

/// Reads a text as a fabric, and holds reader, writers and what recovers structure to their word.
pub fn fabric_file(data: &[u8], read: fn(&str, &str) -> Result<Reading, FormatError>) {
    let text = text(data);
    let reading = match read(&text, FILE) {
        Ok(reading) => reading,
        Err(error) => return refused(&error),
    };
    let lines = text.lines().count().max(1);
    for odd in &reading.oddities {
        one_line(&odd.to_string());
        assert!(1 <= odd.line && odd.line <= odd.last_line && odd.last_line <= lines, "{odd}");
    }
    comes_back(&reading.fabric);
    for entry in formats::ALL {
        entry.write.map(|write| write(&reading.fabric));
    }
    structure::levels(&reading.fabric);
    if let Err(error) = structure::tree(&reading.fabric) {
        refused(&error);
    }
    if let Err(error) = structure::grid(&reading.fabric) {
        refused(&error);
    }
}

/// Writes a fabric as a netlist and reads it: everything a netlist can carry is as it was.
pub fn comes_back(fabric: &Fabric) {
    let reading = formats::read(&formats::write(fabric), FILE).expect("what is written is read");
    assert_eq!(carried(&reading.fabric), carried(fabric));
    let again = formats::read(&formats::write(&reading.fabric), FILE).expect("read before");
    assert!(again.fabric == reading.fabric, "a netlist written twice differs");
}

/// One node as a netlist carries it: kind, GUIDs, ids, name, what its port 0 is, ports with LIDs.
type Carried = (bool, Guid, Guid, u32, u32, String, bool, Vec<(Guid, Option<Lid>, Lmc)>);

/// What a netlist carries of a fabric, cables in a fixed order.
fn carried(fabric: &Fabric) -> (Vec<Carried>, Vec<Link>) {
    let nodes = (0..fabric.nodes().len()).map(|index| {
        let node = fabric.node(NodeId(index as u32));
        // An adapter's port without cable is not listed.
        let ports = node.ports.iter().enumerate().map(|(number, port)| {
            let listed = if node.is_switch() { number == 0 } else { port.link.is_some() };
            if listed { (port.guid, port.lid, port.lmc) } else { Default::default() }
        });
        (
            node.is_switch(),
            node.guid,
            node.system_guid,
            node.vendor,
            node.device,
            // The format has no escape for a quote.
            node.name.replace('"', "'"),
            node.enhanced_port0,
            ports.collect(),
        )
    });
    let mut links = fabric.links().to_vec();
    for link in &mut links {
        (link.a, link.b) = (link.a.min(link.b), link.a.max(link.b));
    }
    links.sort_by_key(|link| link.a);
    (nodes.collect(), links)
}

/// All ports of a number, 0 being a switch's own.
pub fn ports(last: u8) -> impl Iterator<Item = PortNumber> + Clone {
    (0..=last).filter_map(PortNumber::new)
}
