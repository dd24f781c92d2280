//! State that outlives a process: versioned, so that a later program refuses what it cannot read.

use crate::visible;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The state of a part of a run: of a marker, a program, a rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// Whose it is, such as `iba-cc reactor` or `ping-pong`.
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
        "state of `{}`, version {found_version}, where `{wanted}`, version {wanted_version}, is \
         needed; run from the beginning",
        visible(found)
    )]
    Foreign {
        /// The part that it belongs to.
        found: String,
        /// Its version.
        found_version: u16,
        /// The part that is needed.
        wanted: &'static str,
        /// The version that is needed.
        wanted_version: u16,
    },
    /// What it is given to is never saved.
    #[error("nothing here takes up the state of `{}`; run from the beginning", visible(.0))]
    Unwanted(String),
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

    /// Gives it back. Fails if it was kept by another part or version, or is damaged. What it means
    /// is for the caller to check: any bytes that are a `T` give one.
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
        match postcard::take_from_bytes(&self.bytes) {
            Ok((state, [])) => Ok(state),
            _ => Err(StateError::Damaged(of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_to_its_own_part_and_version_only() {
        let saved = Saved::new("one", 1, &(7u32, "text"));
        assert_eq!(saved.state("one", 1), Ok((7u32, "text".to_owned())));
        let foreign = |of, version| saved.state::<(u32, String)>(of, version);
        assert!(matches!(foreign("one", 2), Err(StateError::Foreign { .. })));
        assert!(matches!(foreign("two", 1), Err(StateError::Foreign { .. })));
    }

    #[test]
    fn bytes_too_few_or_too_many_are_damage() {
        let mut saved = Saved::new("one", 1, &vec![1u64, 2, 3]);
        saved.bytes.push(0);
        assert_eq!(saved.state::<Vec<u64>>("one", 1), Err(StateError::Damaged("one")));
        saved.bytes.truncate(3);
        assert_eq!(saved.state::<Vec<u64>>("one", 1), Err(StateError::Damaged("one")));
        // A length beyond all that follows.
        saved.bytes = vec![0xff; 9];
        assert_eq!(saved.state::<Vec<u64>>("one", 1), Err(StateError::Damaged("one")));
    }

    #[test]
    fn what_a_foreign_state_says_of_itself_is_shown_on_one_line() {
        let saved = Saved { of: "a\nb".into(), version: 1, bytes: Vec::new() };
        let error = saved.state::<u8>("one", 1).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }
}
