//! A fabric named on the command line: a file of the site or a topology to build.

use crate::failure::Failure;
use crate::files;
use clearlane_fabric::formats::{self, Oddity};
use clearlane_fabric::{Fabric, topologies};
use std::path::Path;

/// A fabric and where it came from.
#[derive(Debug)]
pub struct Site {
    /// The cables.
    pub fabric: Fabric,
    /// What was odd in the file; nothing for a built fabric.
    pub oddities: Vec<Oddity>,
    /// The file or the specification, as given.
    pub name: String,
}

/// Reads the file of that name or, where there is none, builds the topology of that name.
pub fn open(name: &str) -> Result<Site, Failure> {
    let path = Path::new(name);
    if path.exists() || !is_specification(name) {
        return read(path);
    }
    let fabric = topologies::build(name).map_err(Failure::input)?;
    Ok(Site { fabric, oddities: Vec::new(), name: name.to_owned() })
}

/// Reads a fabric file.
pub fn read(path: &Path) -> Result<Site, Failure> {
    let name = path.display().to_string();
    let reading = formats::read(&files::read(path)?, &name).map_err(Failure::input)?;
    Ok(Site { fabric: reading.fabric, oddities: reading.oddities, name })
}

/// Whether a text means a topology rather than a file: `torus:4x4`, or a builder's bare name.
fn is_specification(name: &str) -> bool {
    let (head, arguments) = name.split_once(':').map_or((name, None), |(a, b)| (a, Some(b)));
    let known = topologies::ALL.iter().any(|entry| entry.name == head);
    known || (arguments.is_some() && !name.contains(['/', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_topologies_are_told_apart() {
        assert!(["torus:4x4", "star", "tours:8"].iter().all(|name| is_specification(name)));
        assert!(!["site.topo", "a/b:c", "net"].iter().any(|name| is_specification(name)));
    }
}
