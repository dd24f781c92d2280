//! Text files: the one place where they are read.

use crate::LabError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Read at a time: what is no text is noticed soon.
const PART: usize = 1 << 20;
/// What some editors begin a text in UTF-8 with; it says nothing.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What gzip begins its files with (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text of a file of at most `bytes_max` bytes, without a byte order mark. One that gzip has
/// packed is unpacked, whatever its name. Fails at once on what is no text, such as an endless
/// device.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::other("the name is empty, name a file"));
    }
    unpacked(File::open(path)?, bytes_max)
}

/// The bytes of a file that is not packed, at most so many.
pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, LabError> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    let fault = |source| LabError::Read { path: path.to_owned(), source };
    read.map_err(fault)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("is larger than the {} MiB that are read", bytes_max >> 20);
        return Err(fault(io::Error::other(text)));
    }
    Ok(bytes)
}

/// The text of what may be packed.
fn unpacked(mut file: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut first = Vec::new();
    file.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
    let is_packed = first == GZIP;
    let whole = io::Cursor::new(first).chain(file);
    match is_packed {
        true => from(MultiGzDecoder::new(whole), bytes_max),
        false => from(whole, bytes_max),
    }
}

/// The same with the error of an experiment's file.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<String, LabError> {
    read_text(path, bytes_max).map_err(|source| LabError::Read { path: path.to_owned(), source })
}

fn from(mut file: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut sound = 0;
    loop {
        let part = file.by_ref().take(PART as u64).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            let text = format!("is larger than the {} MiB that are read", bytes_max >> 20);
            return Err(io::Error::other(text));
        }
        sound += match std::str::from_utf8(&bytes[sound..]) {
            Ok(text) => text.len(),
            // A character may be cut by the end of a part, but not by that of the file.
            Err(error) if error.error_len().is_none() && part > 0 => error.valid_up_to(),
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        };
        // No text has it, and an endless device may have nothing else.
        if bytes[bytes.len() - part..].contains(&0) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if part == 0 {
            break;
        }
    }
    let mut text = String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(from(&b"\xef\xbb\xbfschema = 1\n"[..], 100).unwrap(), "schema = 1\n");
        assert_eq!(from(&b"a\xef\xbb\xbf"[..], 100).unwrap(), "a\u{feff}");
        assert_eq!(from(&b""[..], 100).unwrap(), "");
    }

    #[test]
    fn what_gzip_packed_is_unpacked_and_bounded() {
        let packed = |text: &str| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            packer.write_all(text.as_bytes()).unwrap();
            packer.finish().unwrap()
        };
        let twice = [packed("\u{feff}Switch"), packed(" 4")].concat();
        assert_eq!(unpacked(&twice[..], 100).unwrap(), "Switch 4");
        let large = packed(&"x".repeat(5 << 20));
        let error = unpacked(&large[..], 4 << 20).unwrap_err().to_string();
        assert_eq!(error, "is larger than the 4 MiB that are read");
        for cut in [3, 10, large.len() - 4] {
            assert!(unpacked(&large[..cut], 8 << 20).is_err(), "{cut}");
        }
        for plain in ["", "a", "ab"] {
            assert_eq!(unpacked(plain.as_bytes(), 9).unwrap(), plain);
        }
    }

    #[test]
    fn characters_may_be_cut_by_parts_but_not_by_the_end() {
        let text = "x".repeat(PART - 1) + "\u{2192}" + &"y".repeat(PART);
        assert_eq!(from(text.as_bytes(), 1 << 30).unwrap(), text);
        let cut = &text.as_bytes()[..PART];
        assert_eq!(from(cut, 1 << 30).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(from(&b"\xff"[..], 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_never_ends_is_given_up_soon() {
        for endless in [0, 0xff] {
            let error = from(io::repeat(endless), u64::MAX).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        let error = from(io::repeat(b'y'), 4 << 20).unwrap_err().to_string();
        assert_eq!(error, "is larger than the 4 MiB that are read");
    }
}
