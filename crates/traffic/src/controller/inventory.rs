//! The agents that a controller knows, and where they listen: `agents.toml` in its folder.

use crate::name::Name;
use crate::small_file::SmallFile;
use crate::text::of_toml;
use clearlane_lab::Unfinished;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What the file is called.
pub const INVENTORY_FILE: &str = "agents.toml";
/// A file that is read.
const BYTES_MAX: u64 = 16 << 20;

/// An agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its name.
    pub name: Name,
    /// Where it listens for controllers.
    pub address: SocketAddr,
}

/// The agents, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    #[serde(default)]
    agent: Vec<Known>,
}

/// Why an inventory is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InventoryError(pub String);

impl FromStr for Inventory {
    type Err = InventoryError;

    fn from_str(text: &str) -> Result<Self, InventoryError> {
        let inventory: Inventory =
            toml::from_str(text).map_err(|error| InventoryError(of_toml(text, &error)))?;
        let twice = |(at, known): &(usize, &Known)| {
            inventory.agent[..*at].iter().any(|other| other.name == known.name)
        };
        match inventory.agent.iter().enumerate().find(twice) {
            Some((_, known)) => {
                let name = &known.name;
                Err(InventoryError(format!("agent {name} is there twice; keep one")))
            }
            None => Ok(inventory),
        }
    }
}

impl Inventory {
    /// That of a controller's folder; nobody, if there is no file.
    pub fn read(folder: &Path) -> Result<Self, InventoryError> {
        let path = folder.join(INVENTORY_FILE);
        let fault = |problem: String| InventoryError(format!("{}: {problem}", path.display()));
        match SmallFile::open(&path, BYTES_MAX).and_then(SmallFile::text) {
            Err(error) if error.is_not_there() => Ok(Inventory::default()),
            Err(error) => Err(fault(error.to_string())),
            Ok(text) => text.parse().map_err(|InventoryError(problem)| fault(problem)),
        }
    }

    /// Puts it into a controller's folder, in place of what is there.
    pub fn write(&self, folder: &Path, unfinished: &Unfinished) -> io::Result<PathBuf> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        let path = folder.join(INVENTORY_FILE);
        let (aside, mut file) = unfinished.file(&path)?;
        file.write_all(text.as_bytes())?;
        unfinished.publish(vec![(aside, path.clone())]).map_err(|(_, error)| error)?;
        Ok(path)
    }

    /// Adds an agent, or puts its address right.
    pub fn set(&mut self, known: Known) {
        self.agent.retain(|other| other.name != known.name);
        self.agent.push(known);
        self.agent.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// All of them.
    pub fn all(&self) -> &[Known] {
        &self.agent
    }

    /// The agent of a host of a plan: the one of its whole name before one of its first word.
    pub fn of_host(&self, host: &str) -> Option<&Known> {
        let whole = self.agent.iter().find(|known| known.name.as_str().eq_ignore_ascii_case(host));
        whole.or_else(|| self.agent.iter().find(|known| known.name.is_of(host)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agents_are_found_by_the_names_of_hosts() {
        let text = "[[agent]]\nname = \"H1\"\naddress = \"127.0.0.1:7001\"\n\
                    [[agent]]\nname = \"n7\"\naddress = \"[::1]:7001\"\n";
        let inventory: Inventory = text.parse().unwrap();
        let name = |host| inventory.of_host(host).map(|known| known.name.as_str());
        assert_eq!(name("h1"), Some("H1"));
        assert_eq!(name("n7 mlx5_0"), Some("n7"));
        assert_eq!(name("n70"), None);
        assert_eq!(toml::to_string(&inventory).unwrap().parse(), Ok(inventory));
        let twice = format!("{text}{text}").parse::<Inventory>().unwrap_err().to_string();
        assert_eq!(twice, "agent H1 is there twice; keep one");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = text.parse::<Inventory>();
        }
    }
}
