//! The cables: nodes, ports and links, the topologies they are built in and the files they are
//! written in. No LIDs are assigned here and nothing is routed; a file's LIDs are carried along.

#![forbid(unsafe_code)]

pub mod anonymize;
pub mod counters;
pub mod damage;
mod fabric;
pub mod formats;
mod names;
pub mod structure;
pub mod topologies;
mod wording;

pub use fabric::{
    Endpoint, Fabric, FabricError, Link, LinkId, Node, NodeId, NodeKind, Port, Summary,
};
pub use names::NodeNameMap;
