//! The rate that a host's policy holds all its senders to a network to.

use crate::order::Carrier;
use clearlane_ib::BitsPerSecond;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What may be sent ahead, ns of the rate: what a sleeping thread misses.
const BURST_NS: u64 = 2_000_000;

/// A token bucket by virtual scheduling (ITU-T I.371, GCRA), shared by threads.
#[derive(Debug)]
pub struct Bucket {
    rate: BitsPerSecond,
    /// When all that was let through is carried at the rate.
    carried_ns: AtomicU64,
}

/// Bytes of a packet on the wire, at most: Ethernet frames of 1,500 B with their gap and preamble
/// (IEEE 802.3: 38 B), IPv6 (40 B), and TCP with a time stamp (32 B) or UDP (8 B). A small packet
/// is a frame of its own.
pub fn on_the_wire(bytes: u32, carrier: Carrier) -> u32 {
    let head = match carrier {
        Carrier::Tcp => 40 + 32,
        Carrier::Udp => 40 + 8,
    };
    let frames = bytes.div_ceil(1500 - head).max(1);
    bytes.saturating_add(frames.saturating_mul(38 + head))
}

impl Bucket {
    /// Of this rate, at least 1 bit/s.
    pub fn new(rate: BitsPerSecond) -> Self {
        Bucket { rate: BitsPerSecond(rate.0.max(1)), carried_ns: AtomicU64::new(0) }
    }

    /// Its rate.
    pub fn rate(&self) -> BitsPerSecond {
        self.rate
    }

    /// Lets `bytes` through now, or says when to ask again.
    pub fn take(&self, bytes: u32, now_ns: u64) -> Result<(), u64> {
        let picobits = u128::from(bytes) * 8 * 1_000_000_000;
        let takes = u64::try_from(picobits.div_ceil(self.rate.0.into())).unwrap_or(u64::MAX);
        let earliest = |carried: u64| carried.saturating_sub(BURST_NS);
        let taken = self.carried_ns.fetch_update(SeqCst, SeqCst, |carried| {
            (earliest(carried) <= now_ns).then(|| carried.max(now_ns).saturating_add(takes))
        });
        taken.map(|_| ()).map_err(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_count_and_those_of_small_packets_most() {
        assert_eq!(on_the_wire(24, Carrier::Tcp), 24 + 110);
        assert_eq!(on_the_wire(24, Carrier::Udp), 24 + 86);
        assert_eq!(on_the_wire(16 << 10, Carrier::Tcp), (16 << 10) + 12 * 110);
    }

    #[test]
    fn it_lets_its_rate_through_whoever_asks() {
        // 1 Gb/s for 100 ms are 12.5 MB; the burst is 2 ms, and a packet.
        let bucket = Bucket::new(BitsPerSecond(1_000_000_000));
        let (mut sent, mut now) = (0u64, 5_000_000_000);
        let end = now + 100_000_000;
        while now < end {
            match bucket.take(2048, now) {
                Ok(()) => sent += 2048,
                Err(later) => {
                    assert!(later > now);
                    now = later;
                }
            }
        }
        assert!((12_500_000..12_500_000 + 250_000 + 4096).contains(&sent), "{sent}");
        assert_eq!(Bucket::new(BitsPerSecond(0)).rate(), BitsPerSecond(1));
    }
}
