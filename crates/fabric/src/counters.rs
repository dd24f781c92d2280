//! PMA counters of a fabric's ports as `ibqueryerrors --counters` of infiniband-diags prints them,
//! and which hosts they say are busy.
//!
//! ```text
//! Data Counters for 0x200000 "leaf one"
//!    GUID 0x200000 port 1: [PortXmitData == 1440 (5.625KB)] [PortRcvData == 1440 (5.625KB)]
//! ```
//! GUIDs are those of nodes. PortXmitData counts 4 octets (IBA vol. 1, 16.1.3.5, and 16.1.4.11 for
//! the 64-bit one that is printed).

use crate::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Guid, quoted};
use std::collections::BTreeMap;

/// PortXmitData by node GUID and port number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters(BTreeMap<(Guid, u8), u64>);

/// Why a file of counters cannot be read, or two do not go together.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CountersError {
    /// A line is not as the tool writes it.
    #[error("{file}:{line}: {what}; give what `ibqueryerrors --counters` prints")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// No port is in it.
    #[error("{0}: has no PortXmitData of any port; give what `ibqueryerrors --counters` prints")]
    Empty(String),
    /// A counter went back.
    #[error(
        "port {port} of {guid} counted {before} and later {after}: counters were cleared between \
         the two readings, or the readings are the wrong way round"
    )]
    Back {
        /// The node.
        guid: Guid,
        /// Its port.
        port: u8,
        /// Of the first reading.
        before: u64,
        /// Of the second.
        after: u64,
    },
    /// More than the link can have sent.
    #[error(
        "port {port} of {guid} counted {sent} words of 4 octets, more than its link takes in \
         {seconds} s; give the seconds between the readings, or since counters were cleared"
    )]
    TooMuch {
        /// The switch.
        guid: Guid,
        /// Its port.
        port: u8,
        /// PortXmitData.
        sent: u64,
        /// In which time.
        seconds: f64,
    },
}

/// Share of a link's rate from which a time must be wrong: readings of ports are some time apart.
const SHARE_MAX: f64 = 1.1;

/// How busy the way to a host is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Busy {
    /// The host's port.
    pub end: Endpoint,
    /// What its switch sent there, as a share of the data rate of the link, 0 to 1.
    pub share: f64,
}

impl Counters {
    /// Reads what the tool printed; `file` is for errors.
    pub fn read(text: &str, file: &str) -> Result<Self, CountersError> {
        let mut counters = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("GUID ") else { continue };
            let error = |what: String| CountersError::Line {
                file: quoted(file).trim_matches('"').to_owned(),
                line: index + 1,
                what,
            };
            let Some((port, values)) = rest.split_once(':') else {
                return Err(error(format!("{} has no counters", quoted(rest.trim()))));
            };
            let (guid, port) = port
                .split_once(" port ")
                .ok_or_else(|| error(format!("{} names no port", quoted(port))))?;
            // "port ALL" is the sum of the others.
            if port.trim() == "ALL" {
                continue;
            }
            let hex = guid.trim().strip_prefix("0x").and_then(|hex| Guid::from_hex(hex).ok());
            let guid = hex.ok_or_else(|| error(format!("{} is no GUID", quoted(guid))))?;
            let number = port.trim().parse();
            let port: u8 = number.map_err(|_| error(format!("{} is no port", quoted(port))))?;
            let sent = values.split('[').find_map(|value| value.strip_prefix("PortXmitData == "));
            if let Some(sent) = sent {
                // A number that is cut off would be taken for a small one.
                if !sent.contains(']') {
                    return Err(error("the line is cut off".into()));
                }
                let digits = sent.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                let what = || format!("{} is no number", quoted(digits));
                let sent = digits.parse().map_err(|_| error(what()))?;
                counters.insert((guid, port), sent);
            }
        }
        match counters.is_empty() {
            true => Err(CountersError::Empty(quoted(file).trim_matches('"').to_owned())),
            false => Ok(Counters(counters)),
        }
    }

    /// What was counted since an earlier reading; ports that are not in it are left out. Fails
    /// where a counter went back.
    pub fn since(&self, earlier: &Counters) -> Result<Counters, CountersError> {
        let difference = |(key, after): (&(Guid, u8), &u64)| {
            let before = *earlier.0.get(key)?;
            let (guid, port) = *key;
            Some(match after.checked_sub(before) {
                Some(sent) => Ok((*key, sent)),
                None => Err(CountersError::Back { guid, port, before, after: *after }),
            })
        };
        self.0.iter().filter_map(difference).collect::<Result<_, _>>().map(Counters)
    }

    /// How busy the way to every host was in so many seconds, in the order of the fabric; hosts
    /// whose switch has no counters are left out. Fails where more was counted than a link takes.
    pub fn to_hosts(&self, fabric: &Fabric, seconds: f64) -> Result<Vec<Busy>, CountersError> {
        let mut hosts = Vec::new();
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            for (port, link, peer) in fabric.neighbours(node) {
                let guid = fabric.node(peer.node).guid;
                if let Some(sent) = self.0.get(&(guid, peer.port.value())) {
                    let rate = fabric.link(link).rate().bits_per_second().0 as f64;
                    let share = *sent as f64 * 32.0 / (rate * seconds);
                    if share > SHARE_MAX {
                        let (port, sent) = (peer.port.value(), *sent);
                        return Err(CountersError::TooMuch { guid, port, sent, seconds });
                    }
                    hosts.push(Busy { end: Endpoint { node, port }, share });
                }
            }
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies;
    use proptest::prelude::*;

    const PRINTED: &str = "Data Counters for 0x200000 \"leaf one\"\n   GUID 0x200000 port ALL: \
        [PortXmitData == 9 (9.000B)]\n   GUID 0x200000 port 1: [PortRcvPkts == 3 (3.000)] \
        [PortXmitData == 1440 (5.625KB)] [PortRcvData == 7 (7.000B)]\n   GUID 0x200000 port 2: \
        [PortXmitData == 0 (0.000B)]\n\n## Summary: 3 nodes checked\n";

    #[test]
    fn what_ibqueryerrors_prints_is_read() {
        let counters = Counters::read(PRINTED, "c").unwrap();
        let expected = [((Guid(0x200000), 1), 1440), ((Guid(0x200000), 2), 0)];
        assert_eq!(counters, Counters(expected.into_iter().collect()));
        let later = Counters::read(&PRINTED.replace("1440", "2000"), "c").unwrap();
        assert_eq!(later.since(&counters).unwrap().0[&(Guid(0x200000), 1)], 560);
        let back = counters.since(&later).unwrap_err().to_string();
        assert!(back.starts_with("port 1 of 0x0000000000200000 counted 2000 and later 1440"));
    }

    #[test]
    fn the_way_to_a_host_is_as_busy_as_what_its_switch_sent() {
        let fabric = topologies::build("star:2").unwrap();
        let switch = fabric.ids(NodeKind::Switch).next().unwrap();
        let hosts: Vec<Endpoint> = fabric.neighbours(switch).map(|(_, _, host)| host).collect();
        let port = fabric.peer(hosts[1]).unwrap().port;
        let rate = fabric.link(fabric.link_at(hosts[1]).unwrap()).rate().bits_per_second().0;
        // Half of what two seconds take, in words of 32 bits.
        let counted = [((fabric.node(switch).guid, port.value()), rate / 32)];
        let counters = Counters(counted.into_iter().collect());
        let busy = counters.to_hosts(&fabric, 2.0).unwrap();
        assert_eq!((busy.len(), busy[0].end), (1, hosts[1]));
        assert!((busy[0].share - 0.5).abs() < 1e-6, "{busy:?}");
        let said = counters.to_hosts(&fabric, 0.5).unwrap_err().to_string();
        assert!(said.contains("more than its link takes in 0.5 s"), "{said}");
    }

    #[test]
    fn lines_that_are_not_of_the_tool_are_errors() {
        let said = |text: &str| Counters::read(text, "c").unwrap_err().to_string();
        assert!(said("").starts_with("c: has no PortXmitData"));
        assert!(said("GUID 0x1 port 300: [PortXmitData == 1]").starts_with("c:1: \"300\" is no"));
        assert!(said("\n GUID x port 1: []").starts_with("c:2: \"x\" is no GUID"));
        assert!(said("GUID 0x1 port 1: [PortXmitData == x]").contains("is no number"));
        assert!(said("GUID 0x1 port 1: [PortXmitData == 14").contains("is cut off"));
        assert!(said("GUID 0x1 port 1").contains("has no counters"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(GUID |0x1| port |[:=\\[\\] 0-9a-zA-Z\n]){0,60}") {
            if let Err(error) = Counters::read(&text, "f") {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
