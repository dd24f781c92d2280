//! How a command ends that writes a fabric.

use super::show;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::site::Site;
use crate::terminal;
use crate::writing;
use clap::Args;
use clearlane_fabric::{Fabric, formats};
use clearlane_lab::Unfinished;
use serde_json::json;
use std::path::Path;

/// How the file is written.
#[derive(Args, Debug)]
pub struct Format {
    /// Format of the file; without it, the one its name ends with, and for stdout (-) or a name
    /// without an ending an ibnetdiscover netlist
    #[arg(long, value_name = "NAME", value_parser = written_format)]
    format: Option<formats::Entry>,
}

/// Name and writer of a format.
type Writer = (&'static str, fn(&Fabric) -> String);

impl Format {
    /// Name and writer of the format for a file of this name. Fails on an ending that no format
    /// has: the file would not be what its name says.
    fn of(&self, output: &Path) -> Result<Writer, Failure> {
        let writer = |entry: &formats::Entry| Some((entry.name, entry.write?));
        let netlist: Writer = (formats::ibnetdiscover::ENTRY.name, formats::write);
        let (named, ending) = (self.format.as_ref(), output.extension());
        if let Some(known) = named.and_then(writer) {
            return Ok(known);
        }
        let Some(ending) = ending.map(|ending| ending.to_string_lossy()) else {
            return Ok(netlist);
        };
        let told = formats::ALL.iter().find(|entry| entry.endings.contains(&&*ending));
        told.and_then(writer).ok_or_else(|| {
            let endings = |of: &formats::Entry| {
                of.endings.iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" ")
            };
            let written = formats::ALL.iter().filter(|entry| entry.write.is_some());
            let known: Vec<_> = written.map(|e| format!("{} ({})", endings(e), e.name)).collect();
            let output = output.display();
            Failure::Input(format!(
                "{output}: no format that is written ends with .{ending}; known are {}; rename the \
                 file or name the format with --format",
                known.join(", ")
            ))
        })
    }
}

/// The format of this name, if it is written at all.
fn written_format(name: &str) -> Result<formats::Entry, String> {
    let written = || formats::ALL.iter().filter(|entry| entry.write.is_some());
    written().find(|entry| entry.name == name).copied().ok_or_else(|| {
        let names: Vec<_> = written().map(|entry| entry.name).collect();
        format!("write one of {}", names.join(", "))
    })
}

/// Writes the fabric, unless it is a dry run, and says so; to stdout it writes only the fabric.
pub fn fabric(
    site: &Site,
    output: &Path,
    format: &Format,
    (dry, json): (bool, bool),
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    let (name, write) = format.of(output)?;
    if let Some(answer) = writing::deliver(output, dry, json, unfinished, || write(&site.fabric))? {
        return Ok(answer);
    }
    if json {
        let mut fields = show::fields(site);
        fields["format"] = json!(name);
        fields["written"] = json!(!dry);
        fields["file"] = json!(output.display().to_string());
        return Ok(Answer::json("clearlane-fabric/1", fields));
    }
    let limits = if name == formats::ibnetdiscover::ENTRY.name {
        formats::ibnetdiscover::ibsim_limits(&site.fabric)
    } else {
        Vec::new()
    };
    limits.iter().for_each(|limit| terminal::remark(&format!("ibsim: {limit}")));
    Ok(Answer::text(line(site, output, dry)))
}

/// `fabric.topo: 648 hosts, …`, or what would be.
pub fn line(site: &Site, output: &Path, dry: bool) -> String {
    let would = if dry { "would write " } else { "" };
    format!("{would}{}: {}\n", output.display(), site.fabric.summary())
}
