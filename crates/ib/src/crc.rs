//! The two CRCs that a packet ends with (IBA vol. 1, 7.8).
//!
//! The invariant CRC holds from end to end: what switches and routers may change is taken for ones.
//! The variant CRC holds for one link and covers all of a packet before it.

use crc::{Algorithm, Crc, Table};
use crc32fast::Hasher;

/// The variant CRC: CRC-16 of generator 0x100B, bits reflected (IBA vol. 1, 7.8.2).
const VARIANT: Algorithm<u16> = Algorithm {
    width: 16,
    poly: 0x100b,
    init: 0xffff,
    refin: true,
    refout: true,
    xorout: 0xffff,
    // Of "123456789", bit by bit.
    check: VARIANT_CHECK,
    residue: 0,
};
const VARIANT_CHECK: u16 = 0x0a3d;
static VARIANT_TABLE: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&VARIANT);

const LRH: usize = crate::Lrh::BYTES;
const GRH: usize = crate::Grh::BYTES;
const BTH: usize = crate::Bth::BYTES;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// Byte of a BTH with FECN, BECN and six reserved bits (IBA vol. 1, 7.8.1).
const MARKS: usize = 4;

/// The variant CRC of a packet, of its bytes from the LRH to the invariant CRC, both included. Its
/// lower byte goes first.
pub fn variant(bytes: &[u8]) -> u16 {
    VARIANT_TABLE.checksum(bytes)
}

/// A variant CRC under way: of the bytes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant(u16);

impl Variant {
    /// Of these bytes, the first of a packet.
    pub fn of(bytes: &[u8]) -> Self {
        Variant(!variant(bytes))
    }

    /// With these bytes behind.
    pub fn and(self, bytes: &[u8]) -> Self {
        // The register is reflected; what a digest begins with is not.
        let mut digest = VARIANT_TABLE.digest_with_initial(self.0.reverse_bits());
        digest.update(bytes);
        Variant(!digest.finalize())
    }

    /// The CRC.
    pub const fn finish(self) -> u16 {
        !self.0
    }
}

/// Bytes that are in many packets, and what they do to a variant CRC: looked up instead of
/// computed, as a CRC is linear.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariantOfSame {
    /// What the bytes make of nothing.
    own: u16,
    /// What becomes of each half of the register after as many bytes of zeros.
    shifted: [Vec<u16>; 2],
}

impl VariantOfSame {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let own = Variant(0).and(bytes).0;
        let bits: Vec<u16> = (0..16).map(|bit| Variant(1 << bit).and(bytes).0 ^ own).collect();
        let half = |from: usize| {
            let of = |byte: usize| {
                let set = (0..8).filter(|bit| byte >> bit & 1 == 1);
                set.fold(0, |sum, bit| sum ^ bits[from + bit])
            };
            (0..256).map(of).collect()
        };
        VariantOfSame { own, shifted: [half(0), half(8)] }
    }

    /// A CRC under way with these bytes behind.
    pub fn after(&self, before: Variant) -> Variant {
        let [low, high] = before.0.to_le_bytes().map(usize::from);
        Variant(self.own ^ self.shifted[0][low] ^ self.shifted[1][high])
    }
}

/// The invariant CRC of a packet without a GRH, of its bytes from the LRH to the last one before
/// the CRC. Its lowest byte goes first. Nothing if they end within the BTH.
pub fn invariant_local(bytes: &[u8]) -> Option<u32> {
    let mut head: [u8; LRH + BTH] = *bytes.first_chunk()?;
    // The lane is the link's.
    head[0] |= 0xf0;
    head[LRH + MARKS] = 0xff;
    Some(of(&head, &bytes[head.len()..]))
}

/// The invariant CRC of a packet with a GRH, of InfiniBand or RoCE v1, of its bytes from the GRH to
/// the last one before the CRC. Nothing if they end within the BTH.
pub fn invariant_global(bytes: &[u8]) -> Option<u32> {
    let mut head: [u8; GRH + BTH] = *bytes.first_chunk()?;
    vary_version_6(&mut head);
    head[GRH + MARKS] = 0xff;
    Some(of_global(&head, &bytes[head.len()..]))
}

/// The invariant CRC of a packet of RoCE v2, of its bytes from the IP header of either version to
/// the last one before the CRC (annex A17.3.2). Nothing if they end within the BTH.
pub fn invariant_ip(bytes: &[u8]) -> Option<u32> {
    match bytes.first()? >> 4 {
        4 => {
            let options = usize::from(bytes[0] & 0xf).checked_sub(5)? * 4;
            let mut ip: [u8; IPV4] = *bytes.first_chunk()?;
            // DSCP and ECN, time to live, header checksum.
            (ip[1], ip[8], ip[10], ip[11]) = (0xff, 0xff, 0xff, 0xff);
            let (options, rest) = bytes[IPV4..].split_at_checked(options)?;
            let mut hasher = unknown_local();
            hasher.update(&ip);
            hasher.update(options);
            datagram(hasher, rest)
        }
        6 => {
            let mut ip: [u8; IPV6] = *bytes.first_chunk()?;
            vary_version_6(&mut ip);
            let mut hasher = unknown_local();
            hasher.update(&ip);
            datagram(hasher, &bytes[IPV6..])
        }
        _ => None,
    }
}

/// From the UDP header on.
fn datagram(mut hasher: Hasher, bytes: &[u8]) -> Option<u32> {
    let mut head: [u8; UDP + BTH] = *bytes.first_chunk()?;
    // The checksum.
    (head[6], head[7], head[UDP + MARKS]) = (0xff, 0xff, 0xff);
    hasher.update(&head);
    hasher.update(&bytes[head.len()..]);
    Some(hasher.finalize())
}

/// Traffic class, flow label and hop limit of an IPv6 header or a GRH, which is one in form.
fn vary_version_6(head: &mut [u8]) {
    head[0] |= 0x0f;
    head[1..4].fill(0xff);
    head[7] = 0xff;
}

fn of(head: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(head);
    hasher.update(rest);
    hasher.finalize()
}

fn of_global(head: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = unknown_local();
    hasher.update(head);
    hasher.update(rest);
    hasher.finalize()
}

/// Whoever routes makes a new LRH: eight bytes of ones stand for it.
fn unknown_local() -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&[0xff; LRH]);
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variant_crc_is_that_of_its_generator() {
        // Bit by bit, as the clause says it.
        let slow = |bytes: &[u8]| {
            let mut crc = 0xffff_u16;
            for byte in bytes {
                crc ^= u16::from(*byte);
                for _ in 0..8 {
                    crc = if crc & 1 == 1 { crc >> 1 ^ 0xd008 } else { crc >> 1 };
                }
            }
            !crc
        };
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 9, 15, 16, 17, 256] {
            assert_eq!(variant(&bytes[..length]), slow(&bytes[..length]), "{length}");
        }
        assert_eq!(variant(b"123456789"), VARIANT_CHECK);
    }

    #[test]
    fn bytes_that_are_looked_up_do_what_bytes_that_are_computed_do() {
        let bytes: Vec<u8> = (0..=255).chain(0..99).collect();
        for split in [1, 20, 36, 200] {
            let (head, rest) = bytes.split_at(split);
            let whole = Variant::of(head).and(rest);
            assert_eq!(whole.finish(), variant(&bytes));
            assert_eq!(VariantOfSame::of(rest).after(Variant::of(head)), whole);
        }
        let nothing = VariantOfSame::of(&[]);
        assert_eq!(nothing.after(Variant::of(b"x")), Variant::of(b"x"));
    }

    /// What links and switches may change in a packet of each kind changes no invariant CRC; any
    /// other bit does.
    #[test]
    fn only_what_may_vary_is_left_out() {
        type Of = fn(&[u8]) -> Option<u32>;
        type Varies = Vec<(usize, u8)>;
        let mut ipv4 = vec![0x11; 20 + 8 + 12 + 5];
        ipv4[0] = 0x45;
        let mut ipv6 = vec![0x11; 40 + 8 + 12 + 5];
        ipv6[0] = 0x61;
        let kinds: [(Of, Vec<u8>, Varies); 4] = [
            (invariant_local, vec![0x11; 8 + 12 + 5], vec![(0, 0xf0), (12, 0xff)]),
            (
                invariant_global,
                vec![0x11; 40 + 12 + 5],
                vec![(0, 0x0f), (1, 0xff), (2, 0xff), (3, 0xff), (7, 0xff), (44, 0xff)],
            ),
            (
                invariant_ip,
                ipv4,
                vec![(1, 255), (8, 255), (10, 255), (11, 255), (26, 255), (27, 255), (32, 255)],
            ),
            (
                invariant_ip,
                ipv6,
                vec![
                    (0, 0x0f),
                    (1, 255),
                    (2, 255),
                    (3, 255),
                    (7, 255),
                    (46, 255),
                    (47, 255),
                    (52, 255),
                ],
            ),
        ];
        for (kind, (crc, packet, varies)) in kinds.into_iter().enumerate() {
            let whole = crc(&packet);
            for place in 0..packet.len() {
                for bit in 0..8 {
                    // Another version or header length of IP is another packet.
                    if kind > 1 && place == 0 && (bit > 3 || kind == 2) {
                        continue;
                    }
                    let mut other = packet.clone();
                    other[place] ^= 1 << bit;
                    let free = varies.iter().any(|(at, mask)| *at == place && mask >> bit & 1 == 1);
                    assert_eq!(crc(&other) == whole, free, "kind {kind}, byte {place}, bit {bit}");
                }
            }
            assert_eq!(crc(&packet[..packet.len() - 6]), None, "kind {kind}");
        }
    }
}
