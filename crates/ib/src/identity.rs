//! Which host a person means who writes a name, a GUID or a LID.

use crate::{Guid, Lid, nearest, ticked, visible};
use std::collections::BTreeMap;

/// What a host is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity<'a> {
    /// NodeDescription; where several hosts have one, followed by a space and a GUID.
    pub name: &'a str,
    /// Node GUID and GUID of its first port; 0 where not known.
    pub guids: [Guid; 2],
    /// LID of that port, if it has one.
    pub lid: Option<Lid>,
}

/// Why a text means no single host.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IdentityError {
    /// No host has this name, GUID or LID.
    #[error("there is no host {text}{near}; write the name, GUID or LID of a host")]
    Unknown {
        /// As written, safe to show.
        text: String,
        /// The nearest name, as the end of the clause.
        near: String,
    },
    /// Several hosts are meant.
    #[error("{count} hosts are named {text}; give the GUID of one, such as {example}")]
    Ambiguous {
        /// As written, safe to show.
        text: String,
        /// How many.
        count: usize,
        /// The node GUID of the first.
        example: Guid,
    },
}

/// Hosts that a text means in one way.
#[derive(Clone, Copy, Debug)]
struct Meant {
    /// Place and node GUID of the first.
    first: (usize, Guid),
    count: usize,
}

/// Index of hosts by everything that a text may mean.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// Whole names, and names without the GUID that tells hosts apart.
    names: BTreeMap<Box<str>, Meant>,
    guids: BTreeMap<Guid, Meant>,
    lids: BTreeMap<Lid, Meant>,
    /// First words of names.
    words: BTreeMap<Box<str>, Meant>,
}

impl Identities {
    /// Index of these hosts.
    pub fn of<'a>(hosts: impl Iterator<Item = Identity<'a>>) -> Self {
        let mut all = Identities::default();
        for (place, host) in hosts.enumerate() {
            let first = (place, host.guids[0]);
            let without = Some(plain(&host)).filter(|name| *name != host.name);
            for name in [Some(host.name), without].into_iter().flatten() {
                note(&mut all.names, name.into(), first);
            }
            let [node, port] = host.guids;
            for guid in [Some(node), Some(port).filter(|port| *port != node)].into_iter().flatten()
            {
                note(&mut all.guids, guid, first);
            }
            host.lid.into_iter().for_each(|lid| note(&mut all.lids, lid, first));
            let word = host.name.split_whitespace().next();
            word.into_iter().for_each(|word| note(&mut all.words, word.into(), first));
        }
        all
    }

    /// Finds the host that a text means. Returns its place. The text is compared with whole names
    /// first, then with GUIDs (`0x…`, or 16 digits), LIDs (`21` or `0x15`), and the first words of
    /// names, because ibnetdiscover appends the adapter (`node019 HCA-1`). Fails if no host is
    /// meant, or several. `hosts` are those of the index; an error names the nearest of them.
    pub fn find<'a>(
        &self,
        text: &str,
        hosts: impl Iterator<Item = Identity<'a>>,
    ) -> Result<usize, IdentityError> {
        match self.meant(text) {
            Some(Meant { first: (place, _), count: 1 }) => Ok(place),
            Some(Meant { first: (_, example), count }) => {
                Err(IdentityError::Ambiguous { text: ticked(text), count, example })
            }
            None => {
                let first_word = |name: &'a str| name.split_whitespace().next().unwrap_or(name);
                let near = nearest(text, hosts.flat_map(|host| [host.name, first_word(host.name)]));
                let near = near.map(|near| format!(", the nearest name is `{}`", visible(near)));
                Err(IdentityError::Unknown { text: ticked(text), near: near.unwrap_or_default() })
            }
        }
    }

    /// Whether a text means no host, rather than one or several.
    pub fn lacks(&self, text: &str) -> bool {
        self.meant(text).is_none()
    }

    fn meant(&self, text: &str) -> Option<Meant> {
        let by_guid = || self.guids.get(&as_guid(text)?);
        let by_lid = || self.lids.get(&as_lid(text)?);
        let named = self.names.get(text).or_else(by_guid).or_else(by_lid);
        named.or_else(|| self.words.get(text)).copied()
    }
}

fn note<K: Ord>(all: &mut BTreeMap<K, Meant>, key: K, first: (usize, Guid)) {
    all.entry(key).or_insert(Meant { first, count: 0 }).count += 1;
}

/// Finds one of the hosts as [`Identities::find`] does. For several texts, make the index once.
pub fn identify<'a>(
    text: &str,
    hosts: impl Iterator<Item = Identity<'a>> + Clone,
) -> Result<usize, IdentityError> {
    Identities::of(hosts.clone()).find(text, hosts)
}

/// A name without the GUID that tells it from others.
fn plain<'a>(host: &Identity<'a>) -> &'a str {
    match host.name.rsplit_once(" 0x") {
        Some((name, digits)) if Guid::from_hex(digits).is_ok_and(|g| host.guids.contains(&g)) => {
            name
        }
        _ => host.name,
    }
}

fn as_guid(text: &str) -> Option<Guid> {
    let is_whole = text.starts_with("0x") || text.len() == 16;
    Guid::from_hex(text).ok().filter(|guid| is_whole && guid.0 != 0)
}

fn as_lid(text: &str) -> Option<Lid> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Lid::new(number.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDS: [u64; 4] = [0x10, 0x20, 0x30, 0x40];
    const NAMES: [&str; 4] = ["io1 HCA-1", "io2 HCA-1", "twin 0x0030", "twin 0x0040"];

    fn meant(text: &str) -> Result<usize, String> {
        let host = |place: usize| Identity {
            name: NAMES[place],
            guids: [Guid(GUIDS[place]), Guid(GUIDS[place] + 1)],
            lid: Lid::new(place as u16 + 20),
        };
        identify(text, (0..4).map(host)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_host_is_known_by_name_guid_and_lid() {
        for text in ["io2 HCA-1", "io2", "0x20", "0x21", "0000000000000021", "21", "0x15"] {
            assert_eq!(meant(text), Ok(1), "{text}");
        }
        assert_eq!(meant("twin 0x0040"), Ok(3));
    }

    #[test]
    fn several_and_none_are_told_apart() {
        assert_eq!(
            meant("twin").unwrap_err(),
            "2 hosts are named `twin`; give the GUID of one, such as 0x0000000000000030"
        );
        assert_eq!(
            meant("io3").unwrap_err(),
            "there is no host `io3`, the nearest name is `io1`; write the name, GUID or LID of a \
             host"
        );
        assert!(meant("0x99").is_err() && meant("0").is_err() && meant("").is_err());
        assert!(meant(&"é".repeat(1 << 16)).unwrap_err().len() < 300);
    }
}
