//! How runs are divided, in a sentence: what was asked for, what a fabric has work for.

use crate::table::count;
use clearlane_lab::Division;

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub threads: usize,
    pub partitions: Option<usize>,
}

impl Asked {
    /// How runs of a fabric of so many switches are divided, and why not otherwise, on a machine of
    /// so many cores. Nothing if nothing was asked for.
    pub fn sentence(&self, got: Division, switches: usize, cores: usize) -> Option<String> {
        if self.threads == 1 && self.partitions.is_none() {
            return None;
        }
        let parts = count(got.partitions, "partition", "partitions");
        let mut sentence = format!("each run in {parts} on {}", threads(got.threads));
        if let Some(why) = self.why_less(got, switches) {
            sentence.push_str(&why);
        } else if got.threads > cores {
            let cores = count(cores, "core", "cores");
            sentence.push_str(&format!(": this machine has {cores}, so they wait for each other"));
        }
        Some(sentence)
    }

    fn why_less(&self, got: Division, switches: usize) -> Option<String> {
        let wanted = self.partitions.unwrap_or(self.threads);
        let instead = match got.threads < self.threads {
            true => format!(", not {}", self.threads),
            false => String::new(),
        };
        let its = count(switches, "switch", "switches");
        if got.partitions < wanted {
            return Some(match got.partitions == switches {
                true => format!("{instead}: a fabric is cut between switches, and this has {its}"),
                false => format!(
                    "{instead}: a fabric of {its} would be slower on more; \
                     --partitions {wanted} divides it all the same"
                ),
            });
        }
        (!instead.is_empty()).then(|| format!("{instead}: a thread serves one partition or more"))
    }
}

fn threads(number: usize) -> String {
    count(number, "thread", "threads")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(asked: (usize, Option<usize>), got: (usize, usize), switches: usize) -> String {
        let (threads, partitions) = asked;
        let division = Division { partitions: got.0, threads: got.1 };
        let sentence = Asked { threads, partitions }.sentence(division, switches, 2);
        sentence.unwrap_or_default()
    }

    #[test]
    fn a_division_is_told_with_the_reason_where_it_is_less_than_was_asked_for() {
        for (asked, got, switches, told) in [
            ((1, None), (1, 1), 9, ""),
            ((2, None), (2, 2), 4096, "each run in 2 partitions on 2 threads"),
            ((1, Some(3)), (3, 1), 9, "each run in 3 partitions on 1 thread"),
            (
                (2, None),
                (1, 1),
                64,
                "each run in 1 partition on 1 thread, not 2: a fabric of 64 switches would be \
                 slower on more; --partitions 2 divides it all the same",
            ),
            (
                (2, Some(2)),
                (1, 1),
                1,
                "each run in 1 partition on 1 thread, not 2: a fabric is cut between switches, \
                 and this has 1 switch",
            ),
            (
                (4, Some(2)),
                (2, 2),
                64,
                "each run in 2 partitions on 2 threads, not 4: a thread serves one partition or \
                 more",
            ),
            (
                (4, None),
                (4, 4),
                4096,
                "each run in 4 partitions on 4 threads: this machine has 2 cores, so they wait \
                 for each other",
            ),
        ] {
            assert_eq!(sentence(asked, got, switches), told);
        }
    }
}
