//! The exit codes, in one place: help, man page and reference say what is written here.

/// Interrupted.
pub const INTERRUPTED: u8 = 4;
/// The machine refused, or a fault of clearlane.
pub const REFUSED: u8 = 5;

/// What each exit code means.
pub const ALL: &[(u8, &str)] = &[
    (0, "done; for `check`: sane"),
    (1, "`check` or `diagnose` found a fault; an agent gave `traffic status` or `stop` no answer"),
    (2, "bad command line, file or value"),
    (3, "a simulated deadlock"),
    (INTERRUPTED, "interrupted; partial results are marked so"),
    (REFUSED, "disk or memory full, output not writable, or a fault of clearlane"),
];

/// A line for each.
pub fn lines() -> String {
    ALL.iter().map(|(code, meaning)| format!("  {code}  {meaning}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Verdict;
    use crate::failure::Failure;

    #[test]
    fn every_way_to_end_is_in_the_list_and_in_the_architecture() {
        let verdicts = [Verdict::Done, Verdict::BadNews, Verdict::Deadlock, Verdict::Interrupted];
        let failures = [Failure::Input(String::new()), Failure::Machine(String::new())];
        let mut codes: Vec<u8> = verdicts.map(Verdict::code).to_vec();
        codes.extend(failures.iter().map(Failure::code));
        codes.sort_unstable();
        assert_eq!(codes, ALL.iter().map(|(code, _)| *code).collect::<Vec<_>>());
        let page = include_str!("../../../ARCHITECTURE.md");
        for (code, meaning) in ALL {
            assert!(page.contains(&format!("| {code} | {meaning} |")), "{code}");
        }
    }
}
