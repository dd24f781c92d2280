//! Who takes part: names of hosts, and roles. Both stand in certificates as one DNS name, such as
//! `h1.agent.clearlane.internal`, so that TLS itself checks them (RFC 5280, 4.2.1.6).

use clearlane_ib::quoted;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Under which names of certificates stand; `internal` is reserved for private use (ICANN, 2024).
const DOMAIN: &str = "clearlane.internal";
/// Longest name: a label of DNS has 63 octets at most.
const LONGEST: usize = 63;

/// The name of one who takes part, 1 to 63 characters: letters, digits, `-` and `_`. Case does not
/// matter, as in DNS; it is kept as written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// What a certificate allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Plans runs, starts and stops them.
    Controller,
    /// Sends and receives on a host.
    Agent,
    /// Asks how agents are, and changes nothing.
    Viewer,
}

/// Who somebody is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Identity {
    /// Name.
    pub name: Name,
    /// Role.
    pub role: Role,
}

/// Why a name is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is no name; use 1 to 63 letters, digits, - and _, beginning with a letter or digit")]
pub struct NameError(String);

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let outer = |c: char| c.is_ascii_alphanumeric();
        let fits = text.len() <= LONGEST
            && text.chars().all(inner)
            && text.starts_with(outer)
            && text.ends_with(outer);
        match fits {
            true => Ok(Name(text.to_owned())),
            false => Err(NameError(quoted(text))),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl Name {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the name of a host of a plan: the host's name, or the first word of it, as
    /// in `node07 mlx5_0`.
    pub fn is_of(&self, host: &str) -> bool {
        let first = host.split_whitespace().next().unwrap_or_default();
        self.0.eq_ignore_ascii_case(host) || self.0.eq_ignore_ascii_case(first)
    }

    fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.folded().cmp(&other.folded())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Controller, Role::Agent, Role::Viewer];

    /// The word in certificates and messages.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Controller => "controller",
            Role::Agent => "agent",
            Role::Viewer => "viewer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Identity {
    /// The DNS name of a certificate.
    pub fn dns(&self) -> String {
        format!("{}.{}.{DOMAIN}", self.name, self.role)
    }

    /// Whose certificate has this DNS name; nothing if it is none of ours.
    pub fn of_dns(dns: &str) -> Option<Self> {
        let (name, rest) = dns.split_once('.')?;
        let (role, domain) = rest.split_once('.')?;
        let role = Role::ALL.into_iter().find(|known| role.eq_ignore_ascii_case(known.word()))?;
        let name = name.parse().ok()?;
        domain.eq_ignore_ascii_case(DOMAIN).then_some(Identity { name, role })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_labels_of_dns() {
        for good in ["H1", "a", "node-07", "x_y", &"a".repeat(63)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "a.b", "../x", "a b", "é", &"a".repeat(64)] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_host_with_its_adapter() {
        let name: Name = "node07".parse().unwrap();
        assert!(name.is_of("NODE07") && name.is_of("node07 mlx5_0"));
        assert!(!name.is_of("node070") && !name.is_of("node08 node07") && !name.is_of(""));
    }

    proptest! {
        #[test]
        fn what_stands_in_a_certificate_is_who_it_is(name in "[a-z0-9][a-z0-9_-]{0,20}[a-z0-9]") {
            for role in Role::ALL {
                let who = Identity { name: name.parse().unwrap(), role };
                prop_assert_eq!(Identity::of_dns(&who.dns()), Some(who));
            }
        }

        #[test]
        fn any_dns_name_is_read_or_refused(dns in ".{0,80}") {
            if let Some(who) = Identity::of_dns(&dns) {
                prop_assert!(who.dns().eq_ignore_ascii_case(&dns));
            }
        }
    }
}
