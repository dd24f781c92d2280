//! Long texts broken into lines.

use std::borrow::Cow;
use textwrap::{Options, WordSplitter};

/// Breaks a text between words into lines of at most `columns`, as a terminal counts them. Flags
/// and names stay whole: a longer word has a line of its own. Nothing but spaces has no lines.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let options = Options::new(columns).break_words(false);
    let options = options.word_splitter(WordSplitter::NoHyphenation);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return Vec::new();
    }
    textwrap::wrap(&words, options).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("enormous a", 4), ["enormous", "a"]);
        assert_eq!(wrap(" ", 4), [] as [&str; 0]);
        assert_eq!(wrap("no\n  --fail-fast x–y ∞", 6), ["no", "--fail-fast", "x–y ∞"]);
        // Two columns each.
        assert_eq!(wrap("節点 節点", 8), ["節点", "節点"]);
    }
}
