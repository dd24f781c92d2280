//! `clearlane fabric build`: a topology as a netlist or a drawing.

use super::written::{self, Format};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::site::Site;
use crate::writing::Writing;
use clap::Args;
use clearlane_fabric::topologies;
use clearlane_lab::Unfinished;
use std::path::PathBuf;

/// What to build.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  clearlane fabric build fat-tree:648 -o fabric.topo\n  \
    clearlane fabric build torus:4x4x4,hosts=2,speed=4xEDR -o torus.topo\n  \
    clearlane fabric build dragonfly:a=4,p=2,h=2 -o dragonfly.dot\n\n\
    Topologies: see `clearlane list topologies` and `clearlane explain torus`")]
pub struct Arguments {
    /// Topology with its parameters
    #[arg(value_name = "SPEC")]
    topology: String,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    writing: Writing,
}

/// Builds and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    arguments.writing.files(&[&arguments.output], &[])?;
    let fabric = topologies::build(&arguments.topology).map_err(Failure::input)?;
    let site = Site { fabric, oddities: Vec::new(), name: arguments.topology.clone() };
    let (output, dry) = (&arguments.output, arguments.writing.dry_run);
    written::fabric(&site, output, &arguments.format, (dry, json), unfinished)
}
