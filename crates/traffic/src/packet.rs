//! What a packet is on a data connection: a header, and payload that nobody looks at. A packet is
//! one write of the sender, of the MTU's size unless it is the last of a message.

use crate::log::Logged;

/// Bytes of the header, which is the least size of a packet.
pub const HEADER_BYTES: usize = 24;
/// Largest packet.
pub const PACKET_BYTES_MAX: u32 = 1 << 20;

/// The header of a packet, little-endian on the wire: 4 bytes length, 4 bytes connection, 8 bytes
/// sequence number, 8 bytes send time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of the packet, with this header: [`HEADER_BYTES`] to [`PACKET_BYTES_MAX`].
    pub bytes: u32,
    /// Number of the connection in the run.
    pub connection: u32,
    /// Number of the packet on its connection, from 0.
    pub sequence: u64,
    /// When it was sent, ns of the sender's clock.
    pub sent_ns: u64,
}

/// Why bytes are no packets of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketError {
    /// A length that no packet has.
    #[error("a packet of {0} bytes; one has 24 to 1048576")]
    Length(u32),
    /// A packet of another connection.
    #[error("a packet of connection {found}, not {expected}")]
    Connection {
        /// What the header says.
        found: u32,
        /// What was agreed.
        expected: u32,
    },
    /// A packet out of order, which TCP excludes.
    #[error("packet {found} where {expected} was to come")]
    Sequence {
        /// What the header says.
        found: u64,
        /// What was to come.
        expected: u64,
    },
}

impl Header {
    /// What is noted of it at a time, ns.
    pub fn logged(&self, ns: u64) -> Logged {
        Logged { sequence: self.sequence, ns, bytes: self.bytes }
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.connection.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes
    }

    /// The header that these bytes are. Fails if no packet has its length.
    pub fn of_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, PacketError> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let header =
            Header { bytes: word(0), connection: word(4), sequence: long(8), sent_ns: long(16) };
        match (HEADER_BYTES as u32..=PACKET_BYTES_MAX).contains(&header.bytes) {
            true => Ok(header),
            false => Err(PacketError::Length(header.bytes)),
        }
    }
}

/// Finds the headers in the bytes of a connection, however they are cut into reads.
#[derive(Clone, Debug)]
pub struct Walker {
    connection: u32,
    next: u64,
    /// Bytes of a packet's rest that are still to come.
    rest: usize,
    /// A header that has begun.
    header: [u8; HEADER_BYTES],
    have: usize,
}

impl Walker {
    /// At the first byte of a connection of this number.
    pub fn new(connection: u32) -> Self {
        Walker { connection, next: 0, rest: 0, header: [0; HEADER_BYTES], have: 0 }
    }

    /// Goes on over the bytes that came next and hands out the headers that are complete with
    /// them. Fails on bytes that are no packets of this connection in order.
    pub fn walk(
        &mut self,
        mut bytes: &[u8],
        mut found: impl FnMut(Header),
    ) -> Result<(), PacketError> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let part = self.rest.min(bytes.len());
                self.rest -= part;
                bytes = &bytes[part..];
                continue;
            }
            let part = (HEADER_BYTES - self.have).min(bytes.len());
            self.header[self.have..self.have + part].copy_from_slice(&bytes[..part]);
            self.have += part;
            bytes = &bytes[part..];
            if self.have == HEADER_BYTES {
                let header = Header::of_bytes(&self.header)?;
                self.check(&header)?;
                self.next += 1;
                self.have = 0;
                self.rest = header.bytes as usize - HEADER_BYTES;
                found(header);
            }
        }
        Ok(())
    }

    fn check(&self, header: &Header) -> Result<(), PacketError> {
        let (expected, found) = (self.connection, header.connection);
        if found != expected {
            return Err(PacketError::Connection { found, expected });
        }
        let (expected, found) = (self.next, header.sequence);
        if found != expected {
            return Err(PacketError::Sequence { found, expected });
        }
        Ok(())
    }

    /// Whether the last packet is whole.
    pub fn is_between_packets(&self) -> bool {
        self.rest == 0 && self.have == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_are_found_however_the_stream_is_cut(
            sizes in prop::collection::vec(24u32..300, 0..20),
            cuts in prop::collection::vec(1usize..200, 1..60),
        ) {
            let header = |(at, bytes): (usize, &u32)| Header {
                bytes: *bytes, connection: 7, sequence: at as u64, sent_ns: at as u64 * 1000,
            };
            let sent: Vec<Header> = sizes.iter().enumerate().map(header).collect();
            let mut stream = Vec::new();
            for header in &sent {
                stream.extend(header.to_bytes());
                stream.resize(stream.len() + header.bytes as usize - HEADER_BYTES, 0xff);
            }
            let (mut walker, mut found, mut at) = (Walker::new(7), Vec::new(), 0);
            for cut in cuts.iter().cycle().take(stream.len() + 1) {
                let end = (at + cut).min(stream.len());
                walker.walk(&stream[at..end], |header| found.push(header)).unwrap();
                at = end;
            }
            prop_assert_eq!(found, sent);
            prop_assert!(walker.is_between_packets());
        }

        #[test]
        fn any_bytes_are_walked_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut walker = Walker::new(0);
            let _ = walker.walk(&bytes, |header| {
                assert!((24..=PACKET_BYTES_MAX).contains(&header.bytes));
            });
        }
    }

    #[test]
    fn strangers_are_refused() {
        let header = Header { bytes: 24, connection: 1, sequence: 0, sent_ns: 0 };
        let walk = |header: Header| Walker::new(1).walk(&header.to_bytes(), |_| {});
        assert_eq!(walk(header), Ok(()));
        let error = walk(Header { connection: 2, ..header }).unwrap_err();
        assert_eq!(error, PacketError::Connection { found: 2, expected: 1 });
        let error = walk(Header { sequence: 3, ..header }).unwrap_err();
        assert_eq!(error, PacketError::Sequence { found: 3, expected: 0 });
        assert_eq!(walk(Header { bytes: 23, ..header }), Err(PacketError::Length(23)));
    }
}
