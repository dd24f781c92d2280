//! Text files: the one place where they are read.

use crate::LabError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Read at a time: what is no text is noticed soon.
const PART: usize = 1 << 20;
/// What some editors begin a text in UTF-8 with; it says nothing.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of a file of at most `bytes_max` bytes, without a byte order mark. Fails at once on
/// what is no text, such as an endless device.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::other("the name is empty, name a file"));
    }
    from(File::open(path)?, bytes_max)
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

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(from(&b"\xef\xbb\xbfschema = 1\n"[..], 100).unwrap(), "schema = 1\n");
        assert_eq!(from(&b"a\xef\xbb\xbf"[..], 100).unwrap(), "a\u{feff}");
        assert_eq!(from(&b""[..], 100).unwrap(), "");
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
