//! What it is: fabrics built from a short text such as `torus:4x4x4,hosts=2`. One builder a file,
//! one line in [`ALL`].
//!
//! Switches come before adapters, both in the order of their numbers; links are in the order a
//! reader of the written file meets them. The order of the adapters is the rank order: hosts of the
//! first switch first, but with rails the adapters of the first host first. GUIDs are deterministic
//! and from a prefix of our own: the bytes `0a c1 ea`, whose first byte says "locally administered"
//! (IEEE 802, 8.2), then `51` for a switch or `ca` for an adapter, 24 bits of index and 8 zero
//! bits, to which a port adds its number.

mod arguments;
mod chain;
mod dragonfly;
mod fat_tree;
mod hypercube;
mod hyperx;
mod lattice;
mod leaf_spine;
mod mesh;
mod plan;
mod rail_optimised;
mod ring;
mod star;
mod tofu;
mod torus;
mod xgft;

pub(crate) use plan::numbered;

use crate::wording::nearest;
use crate::{Fabric, FabricError};
use clearlane_ib::quoted;

/// The most nodes a builder makes: 2^20, far above what a subnet can address.
pub const NODES_MAX: u64 = 1 << 20;

/// A builder.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What comes before the colon.
    pub name: &'static str,
    /// One line on what is built.
    pub summary: &'static str,
    /// Parameters with their ranges.
    pub parameters: &'static str,
    /// A specification that builds.
    pub example: &'static str,
    /// Where it was published; empty for what everybody knows.
    pub reference: &'static str,
    /// Builds from what comes after the colon.
    pub build: fn(&str) -> Result<Fabric, TopologyError>,
}

/// All builders.
pub static ALL: &[Entry] = &[
    star::ENTRY,
    chain::ENTRY,
    ring::ENTRY,
    mesh::ENTRY,
    torus::ENTRY,
    xgft::ENTRY,
    fat_tree::ENTRY,
    leaf_spine::ENTRY,
    rail_optimised::ENTRY,
    hypercube::ENTRY,
    hyperx::ENTRY,
    dragonfly::ENTRY,
    tofu::ENTRY,
];

/// Why a specification does not build.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TopologyError {
    /// No builder has this name.
    #[error("no topology is named {name}{nearest}; known are {known}")]
    UnknownName {
        /// The name, quoted.
        name: String,
        /// The nearest name, as the end of the sentence.
        nearest: String,
        /// All names.
        known: String,
    },
    /// The builder has no such option.
    #[error("topology {topology} has no option {option}{nearest}; it takes {known}")]
    UnknownOption {
        /// The builder.
        topology: &'static str,
        /// The option, quoted.
        option: String,
        /// The nearest option, as the end of the sentence.
        nearest: String,
        /// All options.
        known: String,
    },
    /// A value is missing, unreadable or out of range.
    #[error("topology {topology}: {key} is {value}, but must be {expected}")]
    Value {
        /// The builder.
        topology: &'static str,
        /// What the value is for.
        key: String,
        /// The value, quoted.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// More nodes than a builder makes.
    #[error("topology {topology} would have {nodes} nodes; the most is {NODES_MAX}, build smaller")]
    TooLarge {
        /// The builder.
        topology: &'static str,
        /// How many nodes it would have.
        nodes: u64,
    },
    /// A switch with more ports than InfiniBand numbers.
    #[error(
        "topology {topology}: a {switch} switch would need {ports} ports, but has 1 to 254; \
         use more levels or fewer links"
    )]
    TooManyPorts {
        /// The builder.
        topology: &'static str,
        /// Which kind of switch.
        switch: String,
        /// How many ports it would need.
        ports: u64,
    },
    /// The plan contradicts itself; a builder's fault.
    #[error("topology {topology}: {source}")]
    Fabric {
        /// The builder.
        topology: &'static str,
        /// What contradicts.
        source: FabricError,
    },
}

/// Builds what a specification such as `fat-tree:648,taper=2` says.
pub fn build(spec: &str) -> Result<Fabric, TopologyError> {
    let (name, arguments) = spec.split_once(':').unwrap_or((spec, ""));
    let name = name.trim();
    match ALL.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.build)(arguments),
        None => {
            let names = || ALL.iter().map(|entry| entry.name);
            Err(TopologyError::UnknownName {
                name: quoted(name),
                nearest: nearest(name, names()),
                known: names().collect::<Vec<_>>().join(", "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeId, NodeKind};
    use clearlane_ib::Guid;

    #[test]
    fn every_example_builds_and_names_are_unique() {
        for (index, entry) in ALL.iter().enumerate() {
            assert!(entry.example.starts_with(&format!("{}:", entry.name)), "{}", entry.name);
            let fabric = build(entry.example).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
            assert!(fabric.summary().adapters >= 2, "{}", entry.name);
            assert!(ALL[..index].iter().all(|other| other.name != entry.name));
            assert!(!entry.summary.is_empty() && !entry.parameters.is_empty());
        }
    }

    #[test]
    fn sizes_are_the_published_ones() {
        for (spec, sizes) in [
            ("star:8", "8 hosts, 1 switches, 8 cables: 8 × 4x QDR"),
            ("chain:4x2", "8 hosts, 4 switches, 11 cables: 11 × 4x QDR"),
            ("ring:6x1,speed=4xEDR", "6 hosts, 6 switches, 12 cables: 12 × 4x EDR"),
            ("mesh:8x8", "64 hosts, 64 switches, 176 cables: 176 × 4x QDR"),
            ("torus:4x4x4,hosts=4", "256 hosts, 64 switches, 448 cables: 448 × 4x QDR"),
            ("torus:2", "2 hosts, 2 switches, 4 cables: 4 × 4x QDR"),
            ("fat-tree:648", "648 hosts, 54 switches, 1296 cables: 1296 × 4x QDR"),
            ("fat-tree:648,taper=2", "648 hosts, 45 switches, 972 cables: 972 × 4x QDR"),
            ("fat-tree:3456", "3456 hosts, 720 switches, 10368 cables: 10368 × 4x QDR"),
            ("fat-tree:11664", "11664 hosts, 1620 switches, 34992 cables: 34992 × 4x QDR"),
            ("xgft:18,36;1,18", "648 hosts, 54 switches, 1296 cables: 1296 × 4x QDR"),
            ("xgft:2,4;2,2", "8 hosts, 12 switches, 32 cables: 32 × 4x QDR"),
            // 2^n switches, n 2^(n-1) cables between them.
            ("hypercube:10", "1024 hosts, 1024 switches, 6144 cables: 6144 × 4x QDR"),
            ("hypercube:3,hosts=4", "32 hosts, 8 switches, 44 cables: 44 × 4x QDR"),
            // The largest of its kind in the paper's Figure 5: 72 hosts; 36 * 3 / 2 + 36 cables.
            ("dragonfly:", "72 hosts, 36 switches, 162 cables: 162 × 4x QDR"),
            // N = ap(ah + 1): 16,512 hosts from 47-port switches.
            ("dragonfly:a=16,p=8,h=8", "16512 hosts, 2064 switches, 40248 cables: 40248 × 4x QDR"),
            // prod S switches, prod S * sum K(S - 1) / 2 cables between them.
            ("hyperx:4x4,hosts=4", "64 hosts, 16 switches, 112 cables: 112 × 4x QDR"),
            ("hyperx:4x3,hosts=2,parallel=1x2", "24 hosts, 12 switches, 66 cables: 66 × 4x QDR"),
            // 12 XYZ switches with ten links each.
            ("tofu:4x3x3", "432 hosts, 432 switches, 2592 cables: 2592 × 4x QDR"),
            ("tofu:1x1x1", "12 hosts, 12 switches, 36 cables: 36 × 4x QDR"),
            (
                "leaf-spine:leaves=4,hosts=6,spines=2,parallel=3",
                "24 hosts, 6 switches, 48 cables: 48 × 4x QDR",
            ),
        ] {
            assert_eq!(build(spec).unwrap().summary().to_string(), sizes, "{spec}");
        }
    }

    #[test]
    fn hosts_are_in_rank_order_and_named_so() {
        for entry in ALL {
            let fabric = build(entry.example).unwrap();
            let mut last = None;
            for id in fabric.ids(NodeKind::ChannelAdapter) {
                let (_, _, peer) = fabric.neighbours(id).next().unwrap();
                let at = (peer.node, peer.port);
                // Rails go host by host; `rail_optimised` has a test of its own.
                if entry.name == "rail-optimised" {
                    continue;
                }
                assert!(last.is_none_or(|last| last < at), "{}", fabric.node(id).name);
                last = Some(at);
            }
            let names: Vec<_> = fabric.nodes().iter().map(|node| &node.name).collect();
            let hosts: Vec<_> = names.iter().filter(|name| name.starts_with("host")).collect();
            assert!(hosts.is_sorted() && hosts.len() == fabric.summary().adapters);
        }
    }

    #[test]
    fn guids_are_ours_and_a_port_adds_its_number() {
        let fabric = build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
        assert_eq!(fabric.node(NodeId(1)).guid, Guid(0x0ac1_ea51_0000_0100));
        let host = fabric.node(NodeId(5));
        assert_eq!((host.name.as_str(), host.guid), ("host0000", Guid(0x0ac1_eaca_0000_0000)));
        assert_eq!(host.ports[1].guid, Guid(0x0ac1_eaca_0000_0001));
        assert_eq!(fabric.node(NodeId(1)).ports[0].guid, fabric.node(NodeId(1)).guid);
    }

    #[test]
    fn a_mistake_is_answered_with_the_remedy() {
        for (spec, words) in [
            ("tours:4", "no topology is named \"tours\"; did you mean \"torus\"?"),
            ("", "no topology is named \"\"; known are star, chain"),
            ("torus:4x4,host=2", "has no option \"host\"; did you mean \"hosts\"?"),
            ("torus:4x1", "size is \"1\", but must be 2 to 65536"),
            ("torus:2x2x2x2x2x2x2", "but must be 1 to 6 sizes"),
            ("torus:65536x65536", "the most is 1048576"),
            ("torus:4x4,hosts=251", "a grid switch would need 255 ports"),
            ("star:255", "hosts is \"255\", but must be 1 to 254"),
            ("star:", "hosts is \"\", but must be 1 to 254"),
            ("star:8,speed=4xFAST", "speed is \"4xFAST\", but must be a width and speed"),
            ("fat-tree:640", "hosts is \"640\", but must be 648, 3456 or 11664"),
            ("fat-tree:648,taper=5", "taper is \"5\", but must be a divisor of 18"),
            ("xgft:18,36;1", "but must be one w for each m"),
            ("xgft:400,2;1,1", "a leaf switch would need 401 ports"),
            ("xgft:2,2,2,2,2,2,2,2,2;1,1,1,1,1,1,1,1,1", "1 to 8 levels"),
            ("leaf-spine:4", "is \"4\", but must be empty"),
            ("chain:4", "is \"4\", but must be switches x hosts"),
            ("hypercube:20", "dimensions is \"20\", but must be 1 to 19"),
            ("hypercube:19,hosts=2", "would have 1572864 nodes; the most is 1048576"),
            ("dragonfly:4", "value is \"4\", but must be empty; write a=4,p=2"),
            ("dragonfly:a=4,h=2,g=10", "g is \"10\", but must be 2 to 9"),
            ("dragonfly:a=200,p=50,h=10,g=2", "a group switch would need 259 ports"),
            ("hyperx:4x1", "size is \"1\", but must be 2 to 254"),
            ("hyperx:4x4,parallel=1x1x1", "parallel is \"1x1x1\", but must be one number, or one"),
            ("hyperx:200x200", "a grid switch would need 399 ports"),
            ("tofu:3x2", "shape is \"3x2\", but must be 3 sizes"),
            ("tofu:3x2x2,mesh=a", "mesh is \"a\", but must be some of the letters x, y and z"),
            ("rail-optimised:rails=255", "rails is \"255\", but must be 1 to 254"),
            ("rail-optimised:units=100,rails=8", "a spine switch would need 1600 ports"),
            ("torus:4,hosts=1,hosts=2", "hosts is \"2\", but must be given once"),
            ("a\nb", "no topology is named \"a\\nb\""),
        ] {
            let error = build(spec).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{spec}: {error}");
        }
    }
}
