//! Hosts by number or by name, as experiment files refer to them.

use crate::Rank;
use serde::Deserialize;

/// A host as a file names it: its rank or its node description.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum HostRef {
    /// Rank, from 0.
    Number(u32),
    /// Name of the adapter node.
    Name(String),
}

/// The hosts of a run in rank order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranks {
    names: Vec<String>,
}

impl Ranks {
    /// Ranks named in order.
    pub fn new(names: Vec<String>) -> Self {
        Ranks { names }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// The name of a rank.
    pub fn name(&self, rank: Rank) -> &str {
        self.names.get(rank.0 as usize).map_or("?", String::as_str)
    }

    /// The rank a file means. The error names the nearest host.
    pub fn resolve(&self, host: &HostRef) -> Result<Rank, String> {
        match host {
            HostRef::Number(number) if *number < self.count() => Ok(Rank(*number)),
            HostRef::Number(number) => Err(format!(
                "there is no rank {number}; ranks are 0 to {}",
                self.count().max(1) - 1
            )),
            HostRef::Name(name) => {
                let exact = |known: &String| {
                    // ibnetdiscover appends the adapter ("node019 HCA-1"); the host's name will do.
                    known == name || known.split_whitespace().next() == Some(name)
                };
                match self.names.iter().position(exact) {
                    Some(rank) => Ok(Rank(rank as u32)),
                    None => Err(self.unknown(name)),
                }
            }
        }
    }

    fn unknown(&self, name: &str) -> String {
        let near = clearlane_ib::nearest(name, self.names.iter().map(String::as_str));
        let name = quote(name);
        match near {
            Some(near) => format!("there is no host {name}; the nearest name is `{near}`"),
            None => format!("there is no host {name}; the fabric has {} hosts", self.count()),
        }
    }
}

/// A word of a file, fit to be quoted in one line.
pub(crate) fn quote(word: &str) -> String {
    let short: String = word.chars().take(60).collect();
    let dots = if short.len() < word.len() { "…" } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}
