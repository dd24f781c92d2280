//! A fabric named on the command line: a file of the site or a topology to build.

use crate::failure::Failure;
use crate::files;
use clap::Args;
use clearlane_fabric::formats::{self, Oddity, Problem};
use clearlane_fabric::{Fabric, NodeNameMap, topologies};
use clearlane_lab::FABRIC_BYTES_MAX;
use std::path::{Path, PathBuf};

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
    if name.is_empty() {
        let line =
            "the name of the fabric is empty; name a file or a topology such as fat-tree:648";
        return Err(Failure::Input(line.into()));
    }
    let path = Path::new(name);
    if !path.exists() && is_bare(name) && !is_specification(name) {
        return Err(Failure::Input(unknown(name)));
    }
    if path.exists() || !is_specification(name) {
        return read(path);
    }
    let fabric = topologies::build(name).map_err(Failure::input)?;
    Ok(Site { fabric, oddities: Vec::new(), name: name.to_owned() })
}

/// Where the names of nodes are from that the fabric itself calls otherwise.
#[derive(Args, Clone, Debug, Default)]
pub struct Names {
    /// Names of nodes by GUID, as `ibnetdiscover --node-name-map` takes them
    #[arg(long, value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
}

/// The same for reports: with the names of a map, and the GUID behind a name that several nodes
/// have.
pub fn open_named(name: &str, names: &Names) -> Result<Site, Failure> {
    let mut site = open(name)?;
    names.apply(&mut site.fabric, name)?;
    site.fabric.tell_apart();
    Ok(site)
}

impl Names {
    /// Gives nodes of the fabric of this name their names. Fails if the map has none of them.
    pub fn apply(&self, fabric: &mut Fabric, name: &str) -> Result<(), Failure> {
        let Some(path) = &self.node_name_map else { return Ok(()) };
        let text = files::read(path, FABRIC_BYTES_MAX)?;
        let map = NodeNameMap::read(&text, &path.display().to_string());
        if map.map_err(Failure::input)?.apply(fabric) == 0 {
            let path = path.display();
            let line = format!("{path} names no node of {name}; give the map of this fabric");
            return Err(Failure::Input(line));
        }
        Ok(())
    }
}

/// Reads a fabric file.
pub fn read(path: &Path) -> Result<Site, Failure> {
    let name = path.display().to_string();
    let text = files::read(path, FABRIC_BYTES_MAX)?;
    let reading = formats::read(&text, &name).map_err(|error| {
        let is_table = clearlane_subnet::formats::read(&text, &name).is_ok();
        match (is_table, &error.problem) {
            (true, Problem::UnknownFormat { .. }) => Failure::Input(format!(
                "{name} has forwarding tables and no cables; name the fabric file first, and this \
                 one behind --lft"
            )),
            _ => Failure::input(error),
        }
    })?;
    Ok(Site { fabric: reading.fabric, oddities: reading.oddities, name })
}

/// Whether a text is neither a path nor has an ending: a file or a topology, either misspelt.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '.', ':'])
}

fn unknown(name: &str) -> String {
    let names = || topologies::ALL.iter().map(|entry| entry.name);
    let near = clearlane_ib::nearest(name, names());
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    let known = names().collect::<Vec<_>>().join(", ");
    format!("{name} is neither a file nor a topology{near}; known are {known}")
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
        assert_eq!(
            unknown("tours").split("; known").next(),
            Some("tours is neither a file nor a topology; did you mean torus?")
        );
        assert!(!["site.topo", "a/b:c", "net"].iter().any(|name| is_specification(name)));
    }
}
