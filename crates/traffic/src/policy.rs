//! What a host allows, written by its administrator. No message changes it.

use crate::text::{of_toml, one_line};
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, quoted};
use ipnet::IpNet;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The policy that an agent begins with: loopback alone.
pub const DEFAULT: &str = include_str!("policy.toml");

/// What a host allows.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Limits of all flows together.
    pub limits: Limits,
    /// Networks, in the order of the file; the first that has an address counts.
    pub networks: Vec<Network>,
}

/// Limits of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time, sent and received.
    pub connections: u32,
    /// How long senders send.
    pub duration: Picoseconds,
    /// Bytes sent in a run.
    pub sent: Bytes,
    /// Bytes of logs.
    pub logs: Bytes,
}

/// A network with which data may be exchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// Its addresses.
    pub network: IpNet,
    /// Whether this host may send there.
    pub send: bool,
    /// Whether it takes data from there.
    pub receive: bool,
    /// Rate of all that is sent there, headers of frames with it; nothing is no limit, which only
    /// loopback may have.
    pub rate: Option<BitsPerSecond>,
    /// Ports that may be sent to, from the first to the last; nothing is any.
    pub ports: Option<(u16, u16)>,
    /// Whether UDP is allowed.
    pub udp: bool,
}

/// Why a policy cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

/// Why a policy does not allow something; with the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Denied(pub String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    limits: LimitsTable,
    #[serde(default)]
    network: Vec<NetworkTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    connections: u32,
    duration: String,
    sent: String,
    logs: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkTable {
    network: String,
    #[serde(default)]
    send: bool,
    #[serde(default)]
    receive: bool,
    rate: Option<String>,
    ports: Option<(u16, u16)>,
    #[serde(default)]
    udp: bool,
}

fn quantity<T: FromStr>(key: &str, text: &str) -> Result<T, PolicyError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| PolicyError(one_line(&format!("{key}: {error}"))))
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let file: File =
            toml::from_str(text).map_err(|error| PolicyError(of_toml(text, &error)))?;
        let LimitsTable { connections, duration, sent, logs } = file.limits;
        let limits = Limits {
            connections,
            duration: quantity("limits.duration", &duration)?,
            sent: quantity("limits.sent", &sent)?,
            logs: quantity("limits.logs", &logs)?,
        };
        let networks = file.network.into_iter().map(Network::read).collect::<Result<_, _>>()?;
        Ok(Policy { limits, networks })
    }
}

impl Network {
    fn read(table: NetworkTable) -> Result<Self, PolicyError> {
        let NetworkTable { network: text, send, receive, rate, ports, udp } = table;
        let wrong =
            |problem: &str| PolicyError(one_line(&format!("network {} {problem}", quoted(&text))));
        let network: IpNet = text
            .parse()
            .map_err(|_| wrong("is none; write it as \"10.1.0.0/16\" or \"fd00::/8\""))?;
        let rate = rate.map(|rate| quantity("network.rate", &rate)).transpose()?;
        if send && rate.is_none() && !is_loopback(&network) {
            return Err(wrong("may be sent to at any rate; set rate, as rate = \"1 Gb/s\""));
        }
        if rate == Some(BitsPerSecond(0)) {
            return Err(wrong("has a rate of 0; write send = false"));
        }
        if ports.is_some_and(|(first, last)| first > last) {
            return Err(wrong(
                "has no port from its first to its last; write ports = [7448, 7480]",
            ));
        }
        if ports.is_some() && udp {
            return Err(wrong("has ports and UDP, whose ports are any; leave one of them out"));
        }
        Ok(Network { network, send, receive, rate, ports, udp })
    }
}

fn is_loopback(network: &IpNet) -> bool {
    network.network().is_loopback() && network.broadcast().is_loopback()
}

impl Policy {
    /// The network of an address that data may be sent to.
    pub fn may_send(&self, to: SocketAddr, udp: bool) -> Result<&Network, Denied> {
        let network = self.network(to.ip(), udp, |network| network.send, "send to")?;
        match network.ports.filter(|(first, last)| !(*first..=*last).contains(&to.port())) {
            None => Ok(network),
            Some((first, last)) => Err(Denied(format!(
                "may not send to {to}: the host's policy.toml allows ports {first} to {last} \
                 there; have the receiver's agent listen at one of them with --data"
            ))),
        }
    }

    /// The network of an address that data may be taken from.
    pub fn may_receive(&self, from: IpAddr, udp: bool) -> Result<&Network, Denied> {
        self.network(from, udp, |network| network.receive, "receive from")
    }

    fn network(
        &self,
        address: IpAddr,
        udp: bool,
        allows: impl Fn(&Network) -> bool,
        verb: &str,
    ) -> Result<&Network, Denied> {
        // An IPv4-mapped IPv6 address is judged as the IPv4 address (RFC 4291, 2.5.5.2).
        let address = address.to_canonical();
        let denied = |why: &str| Err(Denied(format!("may not {verb} {address}: {why}")));
        let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_multicast() || address.is_unspecified() || is_broadcast {
            return denied("it is no address of one host");
        }
        let of = self.networks.iter().find(|network| network.network.contains(&address));
        let Some(network) = of.filter(|network| allows(network)) else {
            return denied("the host's policy.toml has no network that allows it");
        };
        let bare = network.network;
        if bare.prefix_len() < bare.max_prefix_len() - 1
            && (address == bare.broadcast() || address == bare.network())
            && address.is_ipv4()
            && !address.is_loopback()
        {
            return denied("it is the network's own or broadcast address");
        }
        if udp && !network.udp {
            return denied("the host's policy.toml does not allow UDP there (udp = true)");
        }
        Ok(network)
    }

    /// What it allows, a line each.
    pub fn in_words(&self) -> Vec<String> {
        let line = |network: &Network| {
            let verb = match (network.send, network.receive) {
                (true, true) => "send to and receive from",
                (true, false) => "send to",
                (false, true) => "receive from",
                (false, false) => "nothing with",
            };
            let rate = match network.rate {
                Some(rate) => format!(", at most {rate}"),
                None => String::new(),
            };
            let carrier = if network.udp { "TCP and UDP" } else { "TCP" };
            let ports = match network.ports {
                Some((first, last)) => format!(", to ports {first} to {last}"),
                None => String::new(),
            };
            format!("{verb} {}: {carrier}{ports}{rate}", network.network)
        };
        let Limits { connections, duration, sent, logs } = self.limits;
        let limits =
            format!("{connections} connections, {duration}, {sent} sent and {logs} of logs a run");
        self.networks.iter().map(line).chain([limits]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn port(text: &str) -> SocketAddr {
        SocketAddr::new(address(text), 7448)
    }

    #[test]
    fn ports_that_are_not_listed_are_refused() {
        let text = DEFAULT.to_owned()
            + "[[network]]\nnetwork = \"10.1.0.0/16\"\nsend = true\nrate = \"1 Gb/s\"\n"
            + "ports = [7440, 7449]\n";
        let policy: Policy = text.parse().unwrap();
        assert!(policy.may_send(port("10.1.2.3"), false).is_ok());
        let other = SocketAddr::new(address("10.1.2.3"), 22);
        let why = policy.may_send(other, false).unwrap_err().to_string();
        assert!(why.contains("allows ports 7440 to 7449 there"), "{why}");
        let words = policy.in_words().join("; ");
        assert!(words.contains("10.1.0.0/16: TCP, to ports 7440 to 7449, at most"), "{words}");
        let wrong = text.replace("[7440, 7449]", "[7449, 7440]").parse::<Policy>();
        assert!(wrong.unwrap_err().to_string().contains("no port from its first"));
    }

    #[test]
    fn by_default_nothing_but_loopback_is_reached() {
        let policy: Policy = DEFAULT.parse().unwrap();
        for loopback in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(policy.may_send(port(loopback), false).is_ok(), "{loopback}");
            assert!(policy.may_receive(address(loopback), false).is_ok(), "{loopback}");
            assert!(policy.may_send(port(loopback), true).is_err(), "UDP to {loopback}");
        }
        for other in ["10.0.0.1", "8.8.8.8", "fe80::1", "0.0.0.0", "::", "::ffff:10.0.0.1"] {
            assert!(policy.may_send(port(other), false).is_err(), "{other}");
            assert!(policy.may_receive(address(other), false).is_err(), "{other}");
        }
    }

    #[test]
    fn addresses_of_many_hosts_are_refused_whatever_is_listed() {
        let text = DEFAULT.to_owned()
            + "[[network]]\nnetwork = \"0.0.0.0/0\"\nsend = true\nrate = \"1 Gb/s\"\n"
            + "[[network]]\nnetwork = \"::/0\"\nsend = true\nrate = \"1 Gb/s\"\n";
        let policy: Policy = text.parse().unwrap();
        assert!(policy.may_send(port("10.1.2.3"), false).is_ok());
        assert!(policy.may_receive(address("10.1.2.3"), false).is_err());
        for many in ["224.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1", "::"] {
            assert!(policy.may_send(port(many), false).is_err(), "{many}");
        }
    }

    #[test]
    fn the_broadcast_address_of_a_listed_network_is_refused() {
        let text = DEFAULT.to_owned()
            + "[[network]]\nnetwork = \"10.1.0.0/16\"\nsend = true\nrate = \"1 Gb/s\"\n";
        let policy: Policy = text.parse().unwrap();
        assert!(policy.may_send(port("10.1.255.254"), false).is_ok());
        assert!(policy.may_send(port("10.1.255.255"), false).is_err());
        assert!(policy.may_send(port("10.1.0.0"), false).is_err());
    }

    #[test]
    fn faults_are_told_with_a_remedy() {
        let with = |more: &str| (DEFAULT.to_owned() + more).parse::<Policy>().unwrap_err();
        let error = with("[[network]]\nnetwork = \"10.0.0.0/8\"\nsend = true\n").to_string();
        assert!(error.ends_with("set rate, as rate = \"1 Gb/s\""), "{error}");
        let error = with("[[network]]\nnetwork = \"ten\"\n").to_string();
        assert!(error.starts_with("network \"ten\" is none"), "{error}");
        let error = with("speed = 1\n").to_string();
        assert!(error.starts_with("line "), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}", cut in 0usize..2000) {
            let _ = text.parse::<Policy>();
            let cut = DEFAULT.char_indices().map(|(at, _)| at).take_while(|at| *at <= cut).last();
            let _ = DEFAULT[..cut.unwrap_or(0)].parse::<Policy>();
        }
    }
}
