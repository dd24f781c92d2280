//! Which host a person means who writes a name, a GUID or a LID.

use crate::{Guid, Lid, nearest, ticked, visible};

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

/// Which of the hosts a text means, by its place: a whole name first, then a GUID (`0x…`, or 16
/// digits), a LID (`21` or `0x15`), and the first word of a name, since ibnetdiscover appends the
/// adapter (`node019 HCA-1`). Fails if there is none, or several.
pub fn identify<'a>(
    text: &str,
    hosts: impl Iterator<Item = Identity<'a>> + Clone,
) -> Result<usize, IdentityError> {
    let (guid, lid) = (as_guid(text), as_lid(text));
    let is_named = |host: &Identity<'_>| host.name == text || plain(host) == text;
    let by_guid = |host: &Identity<'_>| guid.is_some_and(|guid| host.guids.contains(&guid));
    let by_lid = |host: &Identity<'_>| lid.is_some() && host.lid == lid;
    let by_word = |host: &Identity<'_>| host.name.split_whitespace().next() == Some(text);
    let ways: [&dyn Fn(&Identity<'_>) -> bool; 4] = [&is_named, &by_guid, &by_lid, &by_word];
    for is_meant in ways {
        let mut meant = hosts.clone().enumerate().filter(|(_, host)| is_meant(host));
        if let Some((place, host)) = meant.next() {
            return match meant.count() {
                0 => Ok(place),
                others => Err(IdentityError::Ambiguous {
                    text: ticked(text),
                    count: others + 1,
                    example: host.guids[0],
                }),
            };
        }
    }
    let first_word = |name: &'a str| name.split_whitespace().next().unwrap_or(name);
    let near = nearest(text, hosts.flat_map(|host| [host.name, first_word(host.name)]));
    let near =
        near.map_or(String::new(), |near| format!(", the nearest name is `{}`", visible(near)));
    Err(IdentityError::Unknown { text: ticked(text), near })
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
