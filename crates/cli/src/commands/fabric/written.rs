//! How a command ends that writes a fabric.

use super::show;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::files;
use crate::site::Site;
use clap::Args;
use clearlane_fabric::{Fabric, formats};
use serde_json::json;
use std::path::Path;

/// How the file is written.
#[derive(Args, Debug)]
pub struct Format {
    /// Format of the file; without it, the one its name ends with, else an ibnetdiscover netlist
    #[arg(long, value_name = "NAME", value_parser = written_format)]
    format: Option<formats::Entry>,
}

impl Format {
    /// Name and writer of the format for a file of this name.
    fn of(&self, output: &Path) -> (&'static str, fn(&Fabric) -> String) {
        let ending = output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let told = formats::ALL.iter().find(|entry| !ending.is_empty() && entry.ending == ending);
        let entry = self.format.as_ref().or(told);
        let known = entry.and_then(|entry| Some((entry.name, entry.write?)));
        known.unwrap_or((formats::ibnetdiscover::ENTRY.name, formats::write))
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

/// Writes the fabric, unless it is a dry run, and says so.
pub fn fabric(
    site: &Site,
    output: &Path,
    format: &Format,
    dry: bool,
    json: bool,
) -> Result<Answer, Failure> {
    let (name, write) = format.of(output);
    if !dry {
        files::write(output, write(&site.fabric).as_bytes())?;
    }
    if json {
        let mut fields = show::fields(site);
        fields["format"] = json!(name);
        fields["written"] = json!(!dry);
        fields["file"] = json!(output.display().to_string());
        return Ok(Answer::json("clearlane-fabric/1", fields));
    }
    Ok(Answer::text(line(site, output, dry)))
}

/// `fabric.topo: 648 hosts, …`, or what would be.
pub fn line(site: &Site, output: &Path, dry: bool) -> String {
    let would = if dry { "would write " } else { "" };
    format!("{would}{}: {}\n", output.display(), site.fabric.summary())
}
