//! What several processes keep of a run: each a file with its part, and in place of the state a
//! list that names them. The list is written when all parts are there; parts that no list names are
//! nothing.

use clearlane_ib::Saved;
use serde::{Deserialize, Serialize};

/// How the list is called among saved states.
const LIST: &str = "parts of several processes";
/// Version of its layout.
const VERSION: u16 = 1;
/// How the file of a part ends.
const PART: &str = ".part";

/// The parts of a run that were kept at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Parts {
    /// How often the run had been kept by several processes, this time included.
    pub(super) generation: u64,
    /// How many processes there were, each with a part.
    pub(super) processes: usize,
}

impl Parts {
    /// The list, as it stands in place of the state.
    pub(super) fn list(self) -> Saved {
        Saved::new(LIST, VERSION, &self)
    }

    /// Those that a state names, if it is a list.
    pub(super) fn named(state: &Saved) -> Option<Self> {
        state.state(LIST, VERSION).ok()
    }

    /// What a part of a run is called, where the run itself is called `job`.
    pub(super) fn name(self, job: &str, rank: usize) -> String {
        format!("{job}.{}-{rank}", self.generation)
    }
}

/// The file of a part of this name.
pub(super) fn part_file(part: &str) -> String {
    format!("{part}{PART}")
}

/// The run that the file of a part belongs to, and the generation, if it is called like one.
pub(super) fn part_of(file: &str) -> Option<(&str, u64)> {
    let (job, numbers) = file.strip_suffix(PART)?.rsplit_once('.')?;
    let (generation, rank) = numbers.split_once('-')?;
    rank.parse::<u32>().ok()?;
    Some((job, generation.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_told_from_a_state() {
        let parts = Parts { generation: 3, processes: 4 };
        assert_eq!(Parts::named(&parts.list()), Some(parts));
        assert_eq!(Parts::named(&Saved::new("simulation", VERSION, &parts)), None);
    }

    #[test]
    fn the_file_of_a_part_says_whose_it_is() {
        let parts = Parts { generation: 3, processes: 4 };
        assert_eq!(part_of(&part_file(&parts.name("0-1-alone", 2))), Some(("0-1-alone", 3)));
        for theirs in ["0-1.state", "0-1.part", "0-1.3.part", "0-1.3-x.part", "0-1.-.part"] {
            assert_eq!(part_of(theirs), None, "{theirs}");
        }
    }
}
