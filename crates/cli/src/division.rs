//! How runs are divided, in a sentence: what was asked for, and what there is to divide.

use crate::table::count;
use clearlane_lab::Begun;

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub threads: usize,
    /// Forced: whether a fabric has work for them or not.
    pub partitions: Option<usize>,
}

impl Asked {
    /// Threads of each run on a machine of so many cores: unless parts are forced, no more than
    /// those.
    pub fn threads_on(&self, cores: usize) -> usize {
        match self.partitions {
            None => self.threads.min(cores),
            Some(_) => self.threads,
        }
    }

    /// How a run is divided, and why not otherwise, on a machine of so many cores. Nothing if
    /// nothing was asked for.
    pub fn sentence(&self, run: &Begun, cores: usize) -> Option<String> {
        if self.threads == 1 && self.partitions.unwrap_or(1) == 1 {
            return None;
        }
        let parts = count(run.division.partitions, "partition", "partitions");
        let threads = count(run.division.threads, "thread", "threads");
        let instead = if run.division.threads < self.threads {
            format!(", not {}", self.threads)
        } else {
            String::new()
        };
        let why = self.why(run, cores).map_or(String::new(), |why| format!(": {why}"));
        Some(format!("each run in {parts} on {threads}{instead}{why}"))
    }

    /// Why a run has less than was asked for, or is slower than it might be.
    fn why(&self, run: &Begun, cores: usize) -> Option<String> {
        let (division, switches) = (run.division, count(run.switches, "switch", "switches"));
        let machine = count(cores, "core", "cores");
        let wanted = self.partitions.unwrap_or(self.threads);
        let few = format!("its fabric keeps {} busy", count(run.worth(), "thread", "threads"));
        if division.partitions < wanted && division.partitions == run.switches {
            return Some(format!("its fabric has {switches}, and none is divided"));
        }
        match self.partitions {
            None if division.threads == self.threads => None,
            None if cores < run.worth() => Some(format!("this machine has {machine}")),
            None => Some(few),
            Some(_) if division.threads > cores => {
                Some(format!("no faster than on fewer, because this machine has {machine}"))
            }
            Some(_) if division.threads > run.worth() => {
                Some(format!("no faster than on fewer, because {few}"))
            }
            Some(_) if division.threads < self.threads => {
                Some("a thread serves one partition at least".to_owned())
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_lab::Division;

    /// On a machine of two cores.
    fn sentence(
        (threads, forced): (usize, Option<usize>),
        (partitions, got): (usize, usize),
        (switches, cable_ends): (usize, usize),
    ) -> String {
        let division = Division { partitions, threads: got };
        let run = Begun { division, switches, cable_ends, earlier: 0.0, earlier_hops: 0 };
        Asked { threads, partitions: forced }.sentence(&run, 2).unwrap_or_default()
    }

    #[test]
    fn a_division_is_told_with_the_reason_where_it_is_less_or_slower() {
        let (small, large) = ((64, 320), (4096, 28_672));
        for (asked, got, fabric, told) in [
            ((1, None), (1, 1), small, ""),
            ((1, Some(1)), (1, 1), small, ""),
            ((2, None), (2, 2), large, "2 partitions on 2 threads"),
            ((1, Some(3)), (3, 1), small, "3 partitions on 1 thread"),
            (
                (2, None),
                (1, 1),
                small,
                "1 partition on 1 thread, not 2: its fabric keeps 1 thread busy",
            ),
            (
                (4, None),
                (2, 2),
                (1000, 4000),
                "2 partitions on 2 threads, not 4: its fabric keeps 2 threads busy",
            ),
            (
                (4, None),
                (2, 2),
                large,
                "2 partitions on 2 threads, not 4: this machine has 2 cores",
            ),
            (
                (2, None),
                (1, 1),
                (1, 9000),
                "1 partition on 1 thread, not 2: its fabric has 1 switch, and none is divided",
            ),
            (
                (1, Some(3)),
                (2, 1),
                (2, 20),
                "2 partitions on 1 thread: its fabric has 2 switches, and none is divided",
            ),
            (
                (2, Some(2)),
                (2, 2),
                small,
                "2 partitions on 2 threads: no faster than on fewer, because its fabric \
                 keeps 1 thread busy",
            ),
            (
                (4, Some(4)),
                (4, 4),
                large,
                "4 partitions on 4 threads: no faster than on fewer, because this machine \
                 has 2 cores",
            ),
            (
                (2, Some(1)),
                (1, 1),
                large,
                "1 partition on 1 thread, not 2: a thread serves one partition at least",
            ),
        ] {
            let told = match told {
                "" => String::new(),
                told => format!("each run in {told}"),
            };
            assert_eq!(sentence(asked, got, fabric), told);
        }
    }

    #[test]
    fn no_more_threads_are_taken_than_there_are_cores_unless_parts_are_forced() {
        let threads = |partitions| Asked { threads: 4, partitions }.threads_on(2);
        assert_eq!([threads(None), threads(Some(4))], [2, 4]);
    }
}
