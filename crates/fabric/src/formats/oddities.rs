//! Oddities of a file, in bounded memory: the first few of each kind by line, the rest as a count.
//! Without this bound, a file of alternating messages and blank lines would take many times its
//! size.

use super::{Oddity, OddityKind};
use std::collections::BTreeMap;

/// The most oddities of one kind that are listed one by one.
const LISTED_MAX: usize = 20;

/// Oddities as they are met, in any order.
#[derive(Default)]
pub(super) struct Oddities {
    kinds: BTreeMap<OddityKind, OfKind>,
}

#[derive(Default)]
struct OfKind {
    count: usize,
    last_line: usize,
    /// At least the first by line that are listed and the one after.
    first: Vec<Oddity>,
}

impl OfKind {
    /// Keeps the first by line; of the same line, those met first.
    fn settle(&mut self) {
        self.first.sort_by_key(|oddity| oddity.line);
        self.first.truncate(LISTED_MAX + 1);
    }
}

impl Oddities {
    pub(super) fn add(&mut self, oddity: Oddity) {
        let of_kind = self.kinds.entry(oddity.kind).or_default();
        of_kind.count += 1;
        of_kind.last_line = of_kind.last_line.max(oddity.last_line);
        of_kind.first.push(oddity);
        if of_kind.first.len() > 4 * LISTED_MAX {
            of_kind.settle();
        }
    }

    /// In the order of the lines; what is not listed is one entry at the first of its lines.
    pub(super) fn listed(self) -> Vec<Oddity> {
        let mut listed = Vec::new();
        for mut of_kind in self.kinds.into_values() {
            of_kind.settle();
            if let Some(rest) = of_kind.first.get_mut(LISTED_MAX) {
                let count = of_kind.count - LISTED_MAX;
                rest.text = format!("{count} more of the same kind, the first: {}", rest.text);
                rest.last_line = of_kind.last_line;
            }
            listed.append(&mut of_kind.first);
        }
        listed.sort_by_key(|oddity| (oddity.line, oddity.kind));
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(line: usize, kind: OddityKind) -> Oddity {
        Oddity { line, last_line: line, kind, text: format!("at {line}") }
    }

    #[test]
    fn the_first_by_line_are_listed_whatever_their_order() {
        let mut oddities = Oddities::default();
        for line in (1..=1_000).rev() {
            oddities.add(odd(line, OddityKind::Noise));
        }
        oddities.add(odd(3, OddityKind::OneSided));
        let listed = oddities.listed();
        assert_eq!(listed.len(), LISTED_MAX + 2);
        let texts: Vec<String> = listed[..4].iter().map(Oddity::to_string).collect();
        assert_eq!(texts, ["line 1: at 1", "line 2: at 2", "line 3: at 3", "line 3: at 3"]);
        assert_eq!(
            listed[LISTED_MAX + 1].to_string(),
            "lines 21 to 1000: 980 more of the same kind, the first: at 21"
        );
    }
}
