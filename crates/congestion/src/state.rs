//! State that outlives a process: versioned, so that a later program refuses what it cannot read.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The state of a marker, notifier or reactor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// Whose it is: the mechanism's name and the part, such as `iba-cc reactor`.
    pub of: String,
    /// Version of its layout.
    pub version: u16,
    /// The state itself, in postcard's wire format.
    pub bytes: Vec<u8>,
}

/// Why a state cannot be taken up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StateError {
    /// It is another part's, or of another version.
    #[error(
        "state of `{found}`, version {found_version}, where `{wanted}`, version {wanted_version}, \
         is needed; run from the beginning"
    )]
    Foreign {
        /// Whose it is.
        found: String,
        /// Its version.
        found_version: u16,
        /// Whose is needed.
        wanted: &'static str,
        /// The version that is needed.
        wanted_version: u16,
    },
    /// Its bytes are not what they say.
    #[error("state of `{0}` is damaged; run from the beginning")]
    Damaged(&'static str),
}

impl Saved {
    /// Keeps `state`.
    pub fn new<T: Serialize>(of: &'static str, version: u16, state: &T) -> Self {
        // Only maps of unknown length and failing `Serialize` implementations are refused.
        let bytes = postcard::to_allocvec(state).unwrap_or_default();
        Saved { of: of.to_owned(), version, bytes }
    }

    /// Gives it back. Fails if it was kept by another part or version, or is damaged.
    pub fn state<T: DeserializeOwned>(
        &self,
        of: &'static str,
        version: u16,
    ) -> Result<T, StateError> {
        if (self.of.as_str(), self.version) != (of, version) {
            return Err(StateError::Foreign {
                found: self.of.clone(),
                found_version: self.version,
                wanted: of,
                wanted_version: version,
            });
        }
        postcard::from_bytes(&self.bytes).map_err(|_| StateError::Damaged(of))
    }
}
