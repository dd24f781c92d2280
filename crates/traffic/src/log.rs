//! The log of a connection's packets at one end: when each was sent or received, and its bytes.
//! A record takes two or three bytes: the time since the record before it, as LEB128, with a bit
//! that says whether the packet has another length than the one before, and one that says whether
//! it is not the next of its connection.

/// Most bytes of a record: three LEB128, of 66, 32 and 64 bits.
pub const RECORD_BYTES_MAX: usize = 10 + 5 + 10;
/// Bytes of one number.
const NUMBER_BYTES_MAX: usize = 10;

/// A packet as a log has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Logged {
    /// Its number on its connection.
    pub sequence: u64,
    /// When, ns of the host's clock.
    pub ns: u64,
    /// Bytes of the packet.
    pub bytes: u32,
}

/// Why bytes are no log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogError {
    /// The last record is not whole.
    #[error("a log of packets ends within a record")]
    Cut,
    /// A number that no record has.
    #[error("a log of packets has a time or length beyond range at byte {0}")]
    Range(usize),
}

/// Makes the bytes of records.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    last: Option<Logged>,
}

impl Logged {
    /// Of the record that comes next, if nothing is out of the ordinary.
    fn following(before: Option<Logged>) -> Logged {
        match before {
            None => Logged::default(),
            Some(before) => Logged { sequence: before.sequence.wrapping_add(1), ..before },
        }
    }
}

impl Encoder {
    /// Adds a record. Times do not run backwards: one that does counts as the one before.
    pub fn push(&mut self, record: Logged, out: &mut Vec<u8>) {
        let usual = Logged::following(self.last);
        let delta = record.ns.saturating_sub(usual.ns);
        let (differs, jumps) = (record.bytes != usual.bytes, record.sequence != usual.sequence);
        leb128(u128::from(delta) << 2 | u128::from(differs) << 1 | u128::from(jumps), out);
        if differs {
            leb128(record.bytes.into(), out);
        }
        if jumps {
            leb128(record.sequence.wrapping_sub(usual.sequence).into(), out);
        }
        self.last = Some(Logged { ns: usual.ns + delta, ..record });
    }
}

fn leb128(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads records from bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    last: Option<Logged>,
    /// A record that has begun.
    begun: Vec<u8>,
    /// Bytes of records that were whole.
    at: usize,
}

impl Decoder {
    /// Hands out the records that are whole with these bytes.
    pub fn read(&mut self, bytes: &[u8], mut found: impl FnMut(Logged)) -> Result<(), LogError> {
        let joined;
        let mut rest = match self.begun.is_empty() {
            true => bytes,
            false => {
                self.begun.extend_from_slice(bytes);
                joined = std::mem::take(&mut self.begun);
                &joined
            }
        };
        while let Some((record, length)) = self.record(rest)? {
            self.last = Some(record);
            self.at += length;
            rest = &rest[length..];
            found(record);
        }
        self.begun = rest.to_vec();
        Ok(())
    }

    /// Fails if a record has begun and not ended.
    pub fn end(&self) -> Result<(), LogError> {
        if self.begun.is_empty() { Ok(()) } else { Err(LogError::Cut) }
    }

    fn record(&self, bytes: &[u8]) -> Result<Option<(Logged, usize)>, LogError> {
        let range = LogError::Range(self.at);
        let usual = Logged::following(self.last);
        let Some((first, mut length)) = number(bytes, range)? else { return Ok(None) };
        let delta = u64::try_from(first >> 2).map_err(|_| range)?;
        let ns = usual.ns.checked_add(delta).ok_or(range)?;
        let mut record = Logged { ns, ..usual };
        if first & 2 != 0 {
            let Some((number, more)) = number(&bytes[length..], range)? else { return Ok(None) };
            record.bytes = u32::try_from(number).map_err(|_| range)?;
            length += more;
        }
        if first & 1 != 0 {
            let Some((number, more)) = number(&bytes[length..], range)? else { return Ok(None) };
            let jump = u64::try_from(number).map_err(|_| range)?;
            record.sequence = usual.sequence.wrapping_add(jump);
            length += more;
        }
        Ok(Some((record, length)))
    }
}

/// A number and its bytes; nothing if it is not whole.
fn number(bytes: &[u8], range: LogError) -> Result<Option<(u128, usize)>, LogError> {
    let mut number = 0u128;
    for (at, byte) in bytes.iter().take(NUMBER_BYTES_MAX).enumerate() {
        number |= u128::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((number, at + 1)));
        }
    }
    if bytes.len() >= NUMBER_BYTES_MAX { Err(range) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            steps in prop::collection::vec((0u64..1 << 40, 24u32..200_000, any::<bool>()), 0..50),
            first in any::<u32>(),
            cut in 1usize..20,
        ) {
            let mut ns = u64::from(first);
            let (mut records, mut sequence) = (Vec::new(), 0u64);
            for (delta, bytes, jumps) in steps {
                ns += delta;
                // Some are lost, and some come after later ones.
                let step = if jumps { (delta % 7).wrapping_neg() } else { 1 };
                sequence = sequence.wrapping_add(step);
                records.push(Logged { sequence, ns, bytes });
            }
            let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
            records.iter().for_each(|record| encoder.push(*record, &mut bytes));
            let (mut decoder, mut read) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                decoder.read(piece, |record| read.push(record)).unwrap();
            }
            prop_assert_eq!(decoder.end(), Ok(()));
            prop_assert_eq!(read, records);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5),
        ) {
            let mut decoder = Decoder::default();
            for piece in pieces {
                if decoder.read(&piece, |_| {}).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn equal_packets_at_one_microsecond_take_two_bytes_each() {
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        for at in 0..1000 {
            encoder.push(Logged { sequence: at, ns: at * 1000, bytes: 2048 }, &mut bytes);
        }
        assert_eq!(bytes.len(), 1 + 2 + 999 * 2);
    }

    #[test]
    fn a_log_that_is_cut_is_told() {
        let mut decoder = Decoder::default();
        decoder.read(&[0x80], |_| {}).unwrap();
        assert_eq!(decoder.end(), Err(LogError::Cut));
        assert_eq!(Decoder::default().read(&[0xff; 15], |_| {}), Err(LogError::Range(0)));
    }
}
