//! What an agent is asked to do: a flow to send or to receive.

use crate::packet::{HEADER_BYTES, PACKET_BYTES_MAX};
use clearlane_ib::{BitsPerSecond, Bytes, LinkRate};
use clearlane_workload::SizeDistribution;
use serde::{Deserialize, Serialize};

/// Paths of a flow at most: the LIDs of a host with LMC 7.
pub const PATHS_MAX: u8 = 128;
/// Text of the names in an order at most.
const NAME_BYTES_MAX: usize = 256;
/// Sizes in a mix at most.
const MIX_MAX: usize = 64;

/// What data travels over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// TCP; over IPoIB it is TCP too.
    Tcp,
    /// UDP, after a TCP handshake with the same receiver.
    Udp,
}

/// When messages are posted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pace {
    /// The next when the one before has left: as fast as it goes.
    FullSpeed,
    /// At random times, as open-loop traffic of experiments.
    Poisson,
    /// At equal distances.
    Periodic,
    /// At equal distances after a ramp of so many ns.
    Ramp(u64),
}

/// Sizes of messages, as `clearlane_workload::SizeDistribution`, bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// Always the same.
    Fixed(u64),
    /// Uniform between two sizes, both included.
    Uniform(u64, u64),
    /// One of several, with weights.
    Mix(Vec<(u64, f64)>),
}

/// A flow: one sender, one receiver, one connection for each of its paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Number of its first connection in the run; those of its other paths follow.
    pub connection: u32,
    /// How many paths, 1 to [`PATHS_MAX`].
    pub paths: u8,
    /// Who sends, as the plan names the host.
    pub source: String,
    /// Who receives.
    pub destination: String,
    /// Flow group.
    pub group: String,
    /// TCP or UDP.
    pub carrier: Carrier,
    /// Bytes of a full packet, which is one write, 24 to [`PACKET_BYTES_MAX`].
    pub packet_bytes: u32,
    /// Sizes of messages.
    pub sizes: Sizes,
    /// When they are posted.
    pub pace: Pace,
    /// Offered load as a share of the link, 0 to 4; of no meaning at full speed.
    pub load: f64,
    /// Rate of the link that the load is a share of, bit/s.
    pub link_bps: u64,
    /// First instant a message may be posted, ns since the start of the run.
    pub start_ns: u64,
    /// No packet is sent from here on.
    pub stop_ns: u64,
    /// Seed of random draws.
    pub seed: u64,
    /// Congestion mechanisms: the table `[control]` of an experiment, every parameter spelt out;
    /// empty without any.
    pub control: String,
    /// Whether the receiver acknowledges, because there is a mechanism that may hear it.
    pub acks: bool,
}

/// Why an order cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct OrderError(pub String);

impl Order {
    /// Fails if a number is out of range.
    pub fn check(&self) -> Result<(), OrderError> {
        let fault = |problem: String| Err(OrderError(problem));
        if self.paths == 0 || self.paths > PATHS_MAX {
            return fault(format!("{} paths; a flow has 1 to {PATHS_MAX}", self.paths));
        }
        if self.connection.checked_add(self.paths.into()).is_none() {
            return fault(format!("{} is no number of a connection", self.connection));
        }
        if !(HEADER_BYTES as u32..=PACKET_BYTES_MAX).contains(&self.packet_bytes) {
            let bytes = self.packet_bytes;
            return fault(format!("packets of {bytes} B; they have 24 B to {PACKET_BYTES_MAX} B"));
        }
        if self.carrier == Carrier::Udp && self.packet_bytes > UDP_BYTES_MAX {
            let bytes = self.packet_bytes;
            return fault(format!("datagrams of {bytes} B; they have {UDP_BYTES_MAX} B at most"));
        }
        let names = [&self.source, &self.destination, &self.group];
        if let Some(name) = names.into_iter().find(|name| name.len() > NAME_BYTES_MAX) {
            return fault(format!("a name of {} B; {NAME_BYTES_MAX} are read", name.len()));
        }
        self.sizes().check().map_err(|error| OrderError(error.to_string()))?;
        if matches!(&self.sizes, Sizes::Mix(mix) if mix.len() > MIX_MAX) {
            return fault(format!("more than {MIX_MAX} sizes of messages"));
        }
        if !(self.load > 0.0 && self.load <= 4.0) {
            return fault(format!("a load of {}; it is above 0 and at most 4", self.load));
        }
        if self.link().is_none() {
            return fault(format!("a link of {} bit/s is none that is known", self.link_bps));
        }
        if !self.control.is_empty() && !self.acks {
            return fault("mechanisms without acknowledgements, which they hear".into());
        }
        if self.start_ns >= self.stop_ns || self.stop_ns > 1 << 50 {
            let (start, stop) = (self.start_ns, self.stop_ns);
            return fault(format!("sending from {start} ns to {stop} ns is no span of a run"));
        }
        Ok(())
    }

    /// The link that the load is a share of.
    pub fn link(&self) -> Option<LinkRate> {
        LinkRate::from_bits(BitsPerSecond(self.link_bps))
    }

    /// Sizes of messages.
    pub fn sizes(&self) -> SizeDistribution {
        match &self.sizes {
            Sizes::Fixed(bytes) => SizeDistribution::Fixed(Bytes(*bytes)),
            Sizes::Uniform(min, max) => {
                SizeDistribution::Uniform { min: Bytes(*min), max: Bytes(*max) }
            }
            Sizes::Mix(mix) => {
                let of = |(bytes, weight): &(u64, f64)| (Bytes(*bytes), *weight);
                SizeDistribution::Mix(mix.iter().map(of).collect())
            }
        }
    }

    /// The most it asks to send, bit/s; nothing at full speed.
    pub fn rate_asked(&self) -> Option<BitsPerSecond> {
        match self.pace {
            Pace::FullSpeed => None,
            _ => Some(BitsPerSecond((self.link_bps as f64 * self.load) as u64)),
        }
    }

    /// Numbers of its connections.
    pub fn connections(&self) -> std::ops::Range<u32> {
        self.connection..self.connection + u32::from(self.paths)
    }
}

/// A datagram that IPv4 carries.
pub const UDP_BYTES_MAX: u32 = 65_507;

impl From<&SizeDistribution> for Sizes {
    fn from(sizes: &SizeDistribution) -> Self {
        match sizes {
            SizeDistribution::Fixed(bytes) => Sizes::Fixed(bytes.0),
            SizeDistribution::Uniform { min, max } => Sizes::Uniform(min.0, max.0),
            SizeDistribution::Mix(mix) => {
                Sizes::Mix(mix.iter().map(|(bytes, weight)| (bytes.0, *weight)).collect())
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An order at full speed.
    pub(crate) fn order() -> Order {
        Order {
            connection: 0,
            paths: 1,
            source: "H1".into(),
            destination: "H4".into(),
            group: "all".into(),
            carrier: Carrier::Tcp,
            packet_bytes: 2048,
            sizes: Sizes::Fixed(65_536),
            pace: Pace::FullSpeed,
            load: 1.0,
            link_bps: 2_000_000_000,
            start_ns: 0,
            stop_ns: 1_000_000_000,
            seed: 1,
            control: String::new(),
            acks: false,
        }
    }

    #[test]
    fn orders_out_of_range_are_refused_in_words() {
        assert_eq!(order().check(), Ok(()));
        type Change = fn(&mut Order);
        let faults: [(Change, &str); 8] = [
            (|o| o.paths = 0, "0 paths"),
            (|o| o.connection = u32::MAX, "4294967295 is no number"),
            (|o| o.packet_bytes = 23, "packets of 23 B"),
            (|o| o.load = f64::NAN, "a load of NaN"),
            (|o| o.link_bps = 0, "a link of 0 bit/s"),
            (|o| o.stop_ns = 0, "sending from 0 ns to 0 ns"),
            (|o| o.sizes = Sizes::Fixed(0), "message size 0 B"),
            (|o| o.source = "x".repeat(300), "a name of 300 B"),
        ];
        for (change, problem) in faults {
            let mut order = order();
            change(&mut order);
            let error = order.check().unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
        let datagrams = Order { carrier: Carrier::Udp, packet_bytes: 70_000, ..order() };
        assert!(datagrams.check().is_err());
    }
}
