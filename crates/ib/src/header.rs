//! What is wrong with the bytes of a header.

use std::fmt;

/// Why bytes are not the header they were taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderError {
    /// Fewer bytes than the header has.
    Short {
        /// The header.
        what: &'static str,
        /// Bytes it takes.
        needed: usize,
        /// Bytes that are there.
        got: usize,
    },
    /// A field holds what the header cannot have here.
    Field {
        /// The header.
        what: &'static str,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// A remedy.
        remedy: &'static str,
    },
}

impl HeaderError {
    /// The first `N` bytes. Fails if there are fewer; `what` is the header they are of.
    pub(crate) fn first<const N: usize>(
        what: &'static str,
        bytes: &[u8],
    ) -> Result<[u8; N], HeaderError> {
        let short = HeaderError::Short { what, needed: N, got: bytes.len() };
        bytes.first_chunk::<N>().copied().ok_or(short)
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Short { what, needed, got } => {
                write!(f, "{what} takes {needed} bytes and {got} are there; capture whole headers")
            }
            HeaderError::Field { what, field, value, remedy } => {
                write!(f, "{what} has {field} 0x{value:x}; {remedy}")
            }
        }
    }
}

impl std::error::Error for HeaderError {}
