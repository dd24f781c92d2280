//! What it is: the DOT language of Graphviz, to draw a fabric with `dot`, `neato` or `sfdp`.
//!
//! Source: graphviz.org/doc/info/lang.html. A node carries `kind` (switch or adapter), `guid`,
//! `ports` and, where it is known, `lid`; a cable its ports as labels of its ends, `link_width` and
//! `link_speed` (`width` alone would be the inches of a box). The end farther from the hosts comes
//! first, so that `dot` draws a tree with its leaves below.

use super::Entry;
use crate::structure;
use crate::{Endpoint, Fabric, Node};
use std::fmt::Write as _;

/// The format's entry.
pub(super) const ENTRY: Entry = Entry {
    name: "dot",
    summary: "drawing for Graphviz: nodes, cables, ports and speeds in the DOT language",
    endings: &["dot", "gv"],
    reader: None,
    write: Some(write),
};

/// Writing to a `String` cannot fail, so results of `write!` are dropped.
fn write(fabric: &Fabric) -> String {
    let mut text = String::from("// Written by Clearlane.\ngraph fabric {\n");
    for (index, node) in fabric.nodes().iter().enumerate() {
        let (kind, shape) =
            if node.is_switch() { ("switch", "box") } else { ("adapter", "ellipse") };
        let (label, guid, ports) = (label(&node.name), node.guid, node.port_count());
        let _ = write!(text, "  n{index} [label=\"{label}\" shape={shape} kind={kind} ");
        let _ = write!(text, "guid=\"{guid}\" ports={ports}");
        if let Some(lid) = lid(node) {
            let _ = write!(text, " lid={lid}");
        }
        text.push_str("]\n");
    }
    let levels = structure::levels(fabric);
    let height = |end: Endpoint| levels[end.node.index()].map_or(0, |level| level + 1);
    for link in fabric.links() {
        let upside = height(link.a) < height(link.b);
        let (tail, head) = if upside { (link.b, link.a) } else { (link.a, link.b) };
        let _ = writeln!(
            text,
            "  n{} -- n{} [taillabel=\"{}\" headlabel=\"{}\" link_width=\"{}\" link_speed={}]",
            tail.node.0, head.node.0, tail.port, head.port, link.width, link.speed
        );
    }
    text.push_str("}\n");
    text
}

/// The base LID of a switch, or of an adapter's first port that has one.
pub(super) fn lid(node: &Node) -> Option<u16> {
    node.ports.iter().find_map(|port| port.lid).map(|lid| lid.value())
}

/// A name between the quotes of a label, where a backslash begins an escape and an ampersand an
/// entity.
fn label(name: &str) -> String {
    let mut label = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => label.push_str("\\\""),
            '\\' => label.push_str("\\\\"),
            '&' => label.push_str("&amp;"),
            c if c.is_control() => label.push(' '),
            c => label.push(c),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::build;
    use crate::{LinkId, NodeId};
    use clearlane_ib::{Lid, LinkSpeed, LinkWidth};

    #[test]
    fn a_small_tree_reads_well() {
        let mut fabric = build("leaf-spine:leaves=1,hosts=2,spines=1").unwrap();
        fabric.node_mut(NodeId(0)).ports[0].lid = Lid::new(7);
        fabric.node_mut(NodeId(3)).name = "a \"b\\n\" & c".into();
        fabric.set_speed(LinkId(2), LinkWidth::X1, LinkSpeed::Fdr10);
        let guid = "guid=\"0x0ac1ea";
        assert_eq!(
            write(&fabric),
            format!(
                "\
// Written by Clearlane.
graph fabric {{
  n0 [label=\"leaf00\" shape=box kind=switch {guid}5100000000\" ports=3 lid=7]
  n1 [label=\"spine00\" shape=box kind=switch {guid}5100000100\" ports=1]
  n2 [label=\"host0000\" shape=ellipse kind=adapter {guid}ca00000000\" ports=1]
  n3 [label=\"a \\\"b\\\\n\\\" &amp; c\" shape=ellipse kind=adapter {guid}ca00000100\" ports=1]
  n0 -- n2 [taillabel=\"1\" headlabel=\"1\" link_width=\"4x\" link_speed=QDR]
  n0 -- n3 [taillabel=\"2\" headlabel=\"1\" link_width=\"4x\" link_speed=QDR]
  n1 -- n0 [taillabel=\"1\" headlabel=\"3\" link_width=\"1x\" link_speed=FDR10]
}}
"
            )
        );
    }
}
