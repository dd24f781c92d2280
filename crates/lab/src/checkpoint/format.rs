//! A file with the state of a run: how it begins, by which version it was written, what was asked,
//! and a digest that tells if a byte is not what it was.

use clearlane_ib::Saved;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How a file begins; a later layout has another number.
const MAGIC: &str = "clearlane checkpoint 1\n";
/// What all of them have in common.
const ANY: &str = "clearlane checkpoint ";
const DIGEST: usize = 32;

/// Why a file is no checkpoint to go on from, as the end of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another program's file.
    Foreign,
    /// One of another version of clearlane.
    Version,
    /// Not all of it, or not as it was written.
    Torn,
    /// Another run's.
    Question,
}

impl Refusal {
    /// What is wrong and what to do.
    pub const fn problem(self) -> &'static str {
        match self {
            Refusal::Foreign => {
                "is no checkpoint of clearlane; run from the beginning with --force"
            }
            Refusal::Version => {
                "was written by another version of clearlane; resume with that one, or run from \
                 the beginning with --force"
            }
            Refusal::Torn => {
                "is damaged; delete it to start that run again, or start all runs again with \
                 --force"
            }
            Refusal::Question => {
                "belongs to another run: the experiment, or a file that it names, has changed; \
                 undo the change, or run from the beginning with --force"
            }
        }
    }
}

/// What a file holds besides its beginning.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    version: String,
    question: String,
    job: String,
    state: Saved,
}

/// A run's state as a file has it.
pub fn encode(question: &str, job: &str, state: Saved) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let kept = Kept { version, question: question.to_owned(), job: job.to_owned(), state };
    // Texts, numbers and bytes: nothing that could not be written.
    let body = postcard::to_allocvec(&kept).unwrap_or_default();
    let mut file = MAGIC.as_bytes().to_vec();
    file.extend_from_slice(&Sha256::digest(&body));
    file.extend_from_slice(&body);
    file
}

/// The state of a run in a file, if it is this run's.
pub fn decode(file: &[u8], question: &str, job: &str) -> Result<Saved, Refusal> {
    let kept = opened(file, question)?;
    if kept.job == job { Ok(kept.state) } else { Err(Refusal::Question) }
}

/// What a file holds, if it is of a run of this experiment.
pub(super) fn opened(file: &[u8], question: &str) -> Result<Kept, Refusal> {
    let Some(rest) = file.strip_prefix(MAGIC.as_bytes()) else {
        let is_begun = ANY.as_bytes().starts_with(file) || MAGIC.as_bytes().starts_with(file);
        return Err(match file.starts_with(ANY.as_bytes()) {
            true if !is_begun => Refusal::Version,
            _ if is_begun => Refusal::Torn,
            _ => Refusal::Foreign,
        });
    };
    let (digest, body) = rest.split_at_checked(DIGEST).ok_or(Refusal::Torn)?;
    if Sha256::digest(body).as_slice() != digest {
        return Err(Refusal::Torn);
    }
    let kept: Kept = postcard::from_bytes(body).map_err(|_| Refusal::Torn)?;
    if kept.version != env!("CARGO_PKG_VERSION") {
        return Err(Refusal::Version);
    }
    if kept.question == question { Ok(kept) } else { Err(Refusal::Question) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state() -> Saved {
        Saved::new("simulation", 1, &vec![7u64; 100])
    }

    #[test]
    fn a_file_gives_back_what_it_was_given() {
        let file = encode("what", "0-1", state());
        assert_eq!(decode(&file, "what", "0-1"), Ok(state()));
        assert_eq!(decode(&file, "other", "0-1"), Err(Refusal::Question));
        assert_eq!(decode(&file, "what", "0-2"), Err(Refusal::Question));
    }

    #[test]
    fn files_of_others_are_told_from_torn_ones() {
        let file = encode("what", "0-1", state());
        let later = [b"clearlane checkpoint 2\n", &file[MAGIC.len()..]].concat();
        assert_eq!(decode(&later, "what", "0-1"), Err(Refusal::Version));
        assert_eq!(decode(b"PAR1", "what", "0-1"), Err(Refusal::Foreign));
        assert_eq!(decode(b"", "what", "0-1"), Err(Refusal::Torn));
        for end in 0..file.len() {
            assert_eq!(decode(&file[..end], "what", "0-1"), Err(Refusal::Torn), "{end}");
        }
        let body = |version: &str| {
            let kept = Kept {
                version: version.into(),
                question: "what".into(),
                job: "0-1".into(),
                state: state(),
            };
            postcard::to_allocvec(&kept).unwrap()
        };
        let older = body("0.0.1");
        let older = [MAGIC.as_bytes(), &Sha256::digest(&older), &older].concat();
        assert_eq!(decode(&older, "what", "0-1"), Err(Refusal::Version));
    }

    proptest! {
        #[test]
        fn no_byte_can_change_unseen(at in 0usize..1000, to: u8) {
            let file = encode("what", "0-1", state());
            let mut changed = file.clone();
            let at = at % file.len();
            changed[at] = to;
            prop_assert_eq!(decode(&changed, "what", "0-1").is_ok(), to == file[at]);
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let digested = [MAGIC.as_bytes(), &Sha256::digest(&bytes), &bytes].concat();
            prop_assert!(decode(&bytes, "", "").is_err());
            let _ = decode(&digested, "", "");
        }
    }
}
