//! What it is: GraphML, the XML of graphs that NetworkX, Gephi, yEd and igraph read.
//!
//! Source: graphml.graphdrawing.org/primer. A node carries `name`, `kind` (switch or adapter),
//! `guid`, `ports` and, where it is known, `lid`; an edge `source_port`, `target_port`, `width` and
//! `speed`. Parallel cables are parallel edges, told apart by their ids.

use super::Entry;
use super::dot::lid;
use crate::Fabric;
use std::fmt::Write as _;

/// The format's entry.
pub(super) const ENTRY: Entry = Entry {
    name: "graphml",
    summary: "graph for NetworkX, Gephi, yEd: nodes, cables, ports and speeds in GraphML",
    endings: &["graphml"],
    reader: None,
    write: Some(write),
};

/// What nodes and edges carry: whose it is, its name and its type.
const KEYS: &[(&str, &str, &str)] = &[
    ("node", "name", "string"),
    ("node", "kind", "string"),
    ("node", "guid", "string"),
    ("node", "ports", "int"),
    ("node", "lid", "int"),
    ("edge", "source_port", "int"),
    ("edge", "target_port", "int"),
    ("edge", "width", "string"),
    ("edge", "speed", "string"),
];

/// Writing to a `String` cannot fail, so results of `write!` are dropped.
fn write(fabric: &Fabric) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- Written by Clearlane. -->\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    for (of, name, kind) in KEYS {
        let attributes = format!("for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"");
        let _ = writeln!(text, "  <key id=\"{name}\" {attributes}/>");
    }
    text.push_str("  <graph id=\"fabric\" edgedefault=\"undirected\">\n");
    for (index, node) in fabric.nodes().iter().enumerate() {
        let _ = write!(text, "    <node id=\"n{index}\">");
        datum(&mut text, "name", &plain(&node.name));
        datum(&mut text, "kind", if node.is_switch() { "switch" } else { "adapter" });
        datum(&mut text, "guid", &node.guid.to_string());
        datum(&mut text, "ports", &node.port_count().to_string());
        if let Some(lid) = lid(node) {
            datum(&mut text, "lid", &lid.to_string());
        }
        text.push_str("</node>\n");
    }
    for (index, link) in fabric.links().iter().enumerate() {
        let (source, target) = (link.a.node.0, link.b.node.0);
        let _ =
            write!(text, "    <edge id=\"e{index}\" source=\"n{source}\" target=\"n{target}\">");
        datum(&mut text, "source_port", &link.a.port.to_string());
        datum(&mut text, "target_port", &link.b.port.to_string());
        datum(&mut text, "width", &link.width.to_string());
        datum(&mut text, "speed", link.speed.name());
        text.push_str("</edge>\n");
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

fn datum(text: &mut String, key: &str, value: &str) {
    let _ = write!(text, "<data key=\"{key}\">{value}</data>");
}

/// A name as character data; what XML 1.0 (2.2) cannot carry becomes a blank.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;
    use crate::topologies::build;

    #[test]
    fn every_node_and_cable_is_an_element() {
        let mut fabric = build("star:2").unwrap();
        fabric.node_mut(NodeId(2)).name = "<a> & \"b\"\u{1}".into();
        let text = write(&fabric);
        let body: Vec<&str> = text.lines().skip_while(|line| !line.contains("<graph ")).collect();
        assert_eq!(
            body,
            [
                "  <graph id=\"fabric\" edgedefault=\"undirected\">",
                "    <node id=\"n0\"><data key=\"name\">leaf00</data><data key=\"kind\">switch\
                 </data><data key=\"guid\">0x0ac1ea5100000000</data><data key=\"ports\">2</data>\
                 </node>",
                "    <node id=\"n1\"><data key=\"name\">host0000</data><data key=\"kind\">adapter\
                 </data><data key=\"guid\">0x0ac1eaca00000000</data><data key=\"ports\">1</data>\
                 </node>",
                "    <node id=\"n2\"><data key=\"name\">&lt;a&gt; &amp; \"b\" </data><data \
                 key=\"kind\">adapter</data><data key=\"guid\">0x0ac1eaca00000100</data><data \
                 key=\"ports\">1</data></node>",
                "    <edge id=\"e0\" source=\"n0\" target=\"n1\"><data key=\"source_port\">1</data>\
                 <data key=\"target_port\">1</data><data key=\"width\">4x</data><data \
                 key=\"speed\">QDR</data></edge>",
                "    <edge id=\"e1\" source=\"n0\" target=\"n2\"><data key=\"source_port\">2</data>\
                 <data key=\"target_port\">1</data><data key=\"width\">4x</data><data \
                 key=\"speed\">QDR</data></edge>",
                "  </graph>",
                "</graphml>",
            ]
        );
        for (_, name, _) in KEYS {
            assert_eq!(text.matches(&format!("<key id=\"{name}\" ")).count(), 1);
        }
    }
}
