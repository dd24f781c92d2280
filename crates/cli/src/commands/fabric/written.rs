//! How a command ends that writes a fabric.

use super::show;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::files;
use crate::site::Site;
use clearlane_fabric::formats;
use serde_json::json;
use std::path::Path;

/// Writes the fabric as a netlist, unless it is a dry run, and says so.
pub fn fabric(site: &Site, output: &Path, dry: bool, json: bool) -> Result<Answer, Failure> {
    if !dry {
        files::write(output, formats::write(&site.fabric).as_bytes())?;
    }
    if json {
        let mut fields = show::fields(site);
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
