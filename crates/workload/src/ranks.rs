//! Hosts by number, name, GUID or LID, as experiment files refer to them.

use crate::Rank;
use clearlane_ib::{Guid, Identities, Identity, Lid};
use serde::Deserialize;
use std::sync::OnceLock;

/// A host as a file names it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum HostRef {
    /// Rank, from 0.
    Number(u32),
    /// Name, GUID or LID, as [`identify`] takes them.
    Name(String),
}

/// A host in rank order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name; where several have one, followed by a space and a GUID.
    pub name: String,
    /// Node GUID and GUID of its first port; 0 where not known.
    pub guids: [Guid; 2],
    /// LID of that port in the fabric's file, if it has one.
    pub lid: Option<Lid>,
}

impl Host {
    /// A host of which the name is known and nothing else.
    pub fn named(name: impl Into<String>) -> Self {
        Host { name: name.into(), guids: [Guid(0); 2], lid: None }
    }

    fn identity(&self) -> Identity<'_> {
        Identity { name: &self.name, guids: self.guids, lid: self.lid }
    }
}

/// The hosts of a run in rank order.
#[derive(Clone, Debug)]
pub struct Ranks {
    hosts: Vec<Host>,
    /// Made when a host is first named.
    identities: OnceLock<Identities>,
}

/// Whether they are the same hosts; the index follows from them.
impl PartialEq for Ranks {
    fn eq(&self, other: &Self) -> bool {
        self.hosts == other.hosts
    }
}

impl Eq for Ranks {}

impl Ranks {
    /// These hosts, in order.
    pub fn new(hosts: Vec<Host>) -> Self {
        Ranks { hosts, identities: OnceLock::new() }
    }

    /// Hosts of these names, in order.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        Ranks::new(names.into_iter().map(Host::named).collect())
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// The name of a rank.
    pub fn name(&self, rank: Rank) -> &str {
        self.hosts.get(rank.0 as usize).map_or("?", |host| host.name.as_str())
    }

    /// Whether no host is meant, rather than one or several.
    pub fn lacks(&self, host: &HostRef) -> bool {
        let HostRef::Name(text) = host else { return false };
        self.identities().lacks(text)
    }

    /// The rank a file means. The error names the nearest host.
    pub fn resolve(&self, host: &HostRef) -> Result<Rank, String> {
        match host {
            HostRef::Number(number) if *number < self.count() => Ok(Rank(*number)),
            HostRef::Number(number) => Err(format!(
                "there is no rank {number}; ranks are 0 to {}",
                self.count().max(1) - 1
            )),
            HostRef::Name(text) => {
                let found = self.identities().find(text, self.hosts.iter().map(Host::identity));
                found.map(|rank| Rank(rank as u32)).map_err(|error| error.to_string())
            }
        }
    }

    fn identities(&self) -> &Identities {
        self.identities.get_or_init(|| Identities::of(self.hosts.iter().map(Host::identity)))
    }
}
