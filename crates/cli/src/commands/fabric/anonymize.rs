//! `clearlane fabric anonymize`: a site's files under made-up names, to give away.

use super::written;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::files;
use crate::site::{self, Site};
use crate::writing::Writing;
use clap::Args;
use clearlane_fabric::anonymize::{Naming, anonymize};
use clearlane_fabric::formats;
use clearlane_lab::{TABLE_BYTES_MAX, Unfinished};
use serde_json::json;
use std::iter::once;
use std::path::{Path, PathBuf};

/// What to rename.
#[derive(Args, Debug)]
#[command(after_help = "Cables, ports, LIDs, vendor and device ids stay; names and GUIDs go.\n\n\
    Examples:\n  clearlane fabric anonymize site.topo -o away.topo\n  \
    clearlane fabric anonymize site.topo --lft site.lft -o away.topo --lft-out away.lft")]
pub struct Arguments {
    /// Fabric file
    fabric: PathBuf,
    /// Forwarding tables of the same site; they get the same new names
    #[arg(long, value_name = "FILE", requires = "lft_out")]
    lft: Option<PathBuf>,
    /// Fabric file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Forwarding table file to write
    #[arg(long, value_name = "FILE", requires = "lft")]
    lft_out: Option<PathBuf>,
    /// Derive the names from this secret instead of the order, so that files of different days get
    /// the same names
    #[arg(long, value_name = "TEXT")]
    salt: Option<String>,
    #[command(flatten)]
    writing: Writing,
}

/// Renames and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    let inputs = paths(&arguments.fabric, arguments.lft.as_ref());
    let outputs = paths(&arguments.output, arguments.lft_out.as_ref());
    arguments.writing.files(&outputs, &inputs)?;
    let known = site::read(&arguments.fabric)?;
    let naming = arguments.salt.clone().map_or(Naming::Order, Naming::Hash);
    let (fabric, aliases) = anonymize(&known.fabric, &naming).map_err(Failure::input)?;
    let site = Site { fabric, oddities: Vec::new(), name: known.name };
    let mut out = vec![(arguments.output.as_path(), formats::write(&site.fabric).into_bytes())];
    if let (Some(lft), Some(lft_out)) = (&arguments.lft, &arguments.lft_out) {
        out.push((lft_out, aliases.rename_dump(&files::read(lft, TABLE_BYTES_MAX)?).into_bytes()));
    }
    if !arguments.writing.dry_run {
        files::write_all(&out, unfinished)?;
    }
    if json {
        let names: Vec<_> = out.iter().map(|(path, _)| path.display().to_string()).collect();
        let fields = json!({ "written": !arguments.writing.dry_run, "files": names });
        return Ok(Answer::json("clearlane-anonymize/1", fields));
    }
    let mut text = written::line(&site, &arguments.output, arguments.writing.dry_run);
    if let Some(lft_out) = &arguments.lft_out {
        let would = if arguments.writing.dry_run { "would write " } else { "" };
        let lft_out = lft_out.display();
        text.push_str(&format!("{would}{lft_out}: forwarding tables under the same names\n"));
    }
    Ok(Answer::text(text))
}

fn paths<'a>(fabric: &'a Path, tables: Option<&'a PathBuf>) -> Vec<&'a Path> {
    once(fabric).chain(tables.map(PathBuf::as_path)).collect()
}
