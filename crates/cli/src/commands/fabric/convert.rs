//! `clearlane fabric convert`: a fabric in another format, to be read or drawn by other programs.

use super::written::{self, Format};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::site;
use crate::writing::Writing;
use clap::Args;
use clearlane_lab::Unfinished;
use std::path::{Path, PathBuf};

/// What to convert.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  clearlane fabric convert site.topo -o site.dot && \
    dot -Tsvg site.dot > site.svg\n  \
    clearlane fabric convert opensm-subnet.lst -o site.graphml\n  \
    clearlane fabric convert opensm-subnet.lst -o site.topo\n\n\
    Formats: see `clearlane list formats`")]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    writing: Writing,
}

/// Reads and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    arguments.writing.files(&[&arguments.output], &[Path::new(&arguments.fabric)])?;
    let site = site::open(&arguments.fabric)?;
    let (output, dry) = (&arguments.output, arguments.writing.dry_run);
    written::fabric(&site, output, &arguments.format, (dry, json), unfinished)
}
