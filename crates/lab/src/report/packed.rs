//! Long rows of numbers as text: little-endian, deflated (RFC 1951), in base64. The page unpacks
//! them with `web/src/packed.ts`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::io::Write;

/// Numbers of one size; the page knows from the place which.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Packed(String);

impl Packed {
    /// Shares 0..1 in steps of 1/255; a share that is not zero never becomes zero.
    pub(super) fn shares(values: impl Iterator<Item = f64>) -> Self {
        let byte = |share: f64| match share {
            share if share <= 0.0 => 0,
            share => (share.min(1.0) * 255.0).round().max(1.0) as u8,
        };
        Packed::of(values.map(byte).collect())
    }

    /// Values 0..`top` in steps of `top`/65535.
    pub(super) fn scaled(values: impl Iterator<Item = f64>, top: f64) -> Self {
        let scale = if top > 0.0 { 65535.0 / top } else { 0.0 };
        let word = |value: f64| (value.max(0.0) * scale).round().min(65535.0) as u16;
        Packed::of(values.flat_map(|value| word(value).to_le_bytes()).collect())
    }

    /// Whole numbers.
    pub(super) fn whole(values: impl Iterator<Item = u32>) -> Self {
        Packed::of(values.flat_map(u32::to_le_bytes).collect())
    }

    fn of(bytes: Vec<u8>) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(8));
        // Writing into memory cannot fail; an empty row would be noticed by its length.
        let deflated = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        Packed(STANDARD.encode(deflated.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn bytes(packed: &Packed) -> Vec<u8> {
        let deflated = STANDARD.decode(&packed.0).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(&deflated[..]).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_packed_comes_out() {
        let shares = Packed::shares([0.0, 1e-9, 0.5, 1.0, 1.2].into_iter());
        assert_eq!(bytes(&shares), [0, 1, 128, 255, 255]);
        let scaled = Packed::scaled([0.0, 5.0, 10.0, -1.0].into_iter(), 10.0);
        assert_eq!(bytes(&scaled), [0, 0, 0, 128, 255, 255, 0, 0]);
        assert_eq!(bytes(&Packed::whole([258, 0].into_iter())), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&Packed::scaled([1.0].into_iter(), 0.0)), [0, 0]);
    }
}
