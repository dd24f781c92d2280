//! Texts from outside as messages repeat them: quoted, and kept short.

use std::borrow::Cow;

/// The most characters of a text from outside that a message repeats: a NodeDescription is shown
/// whole (IBA vol. 1, 14.2.5.2).
pub const SHOWN_CHARS_MAX: usize = 64;

/// The most characters of a name or a value from a file that are kept for tables and reports. A
/// NodeDescription has 64 bytes (IBA vol. 1, 14.2.5.2); name maps and captures may say more.
pub const KEPT_CHARS_MAX: usize = 255;

/// Text from outside as a message repeats it: its first 64 characters on one line, `…` for the
/// rest. A name, a key or a path without blanks stands like this in a sentence.
pub fn short(text: &str) -> String {
    let (beginning, rest) = beginning(text, SHOWN_CHARS_MAX);
    let mut out = String::new();
    for c in beginning.chars() {
        match c {
            // They act on nothing.
            '\'' | '"' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out + rest
}

/// Text from outside in double quotes, cut as [`short`] does, for what may hold blanks.
pub fn quoted(text: &str) -> String {
    let (beginning, rest) = beginning(text, SHOWN_CHARS_MAX);
    format!("{beginning:?}{rest}")
}

/// Text from outside in backticks, cut as [`short`] does, for words of an experiment and its like.
pub fn ticked(text: &str) -> String {
    format!("`{}`", short(text))
}

/// A text of at most so many characters, without its middle where it is longer: of an error the
/// beginning says what is wrong, and the end what to do.
pub fn within(text: &str, chars_max: usize) -> Cow<'_, str> {
    let cut = |chars: usize| text.char_indices().nth(chars).map(|(at, _)| at);
    if cut(chars_max).is_none() {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (chars_max * 2 / 3, chars_max - chars_max * 2 / 3 - 1);
    let tail = text.char_indices().rev().take(tail).last().map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..cut(head).unwrap_or(0)], &text[tail..]))
}

/// At most so many characters of the beginning, and `…` if there are more.
fn beginning(text: &str, chars_max: usize) -> (&str, &'static str) {
    match text.char_indices().nth(chars_max) {
        Some((cut, _)) => (&text[..cut], "…"),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_repeats_is_short_and_on_one_line() {
        assert_eq!(short("host's \"b\"\n\u{1b}"), "host's \"b\"\\n\\u{1b}");
        assert_eq!(quoted("a\n\"b\""), r#""a\n\"b\"""#);
        assert_eq!(ticked("5 parsecs"), "`5 parsecs`");
        assert_eq!(short(&"é".repeat(64)), "é".repeat(64));
        assert_eq!(short(&"é".repeat(65)), "é".repeat(64) + "…");
        let long = "\u{202e}".repeat(10 << 20);
        for shown in [short(&long), quoted(&long), ticked(&long)] {
            assert!(shown.contains('…') && shown.len() < 600, "{shown}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_loses_its_middle() {
        assert_eq!(within("abcdefghij", 10), "abcdefghij");
        assert_eq!(within("abcdefghijk", 10), "abcdef…ijk");
        assert_eq!(within("", 0), "");
        for chars_max in 1..20 {
            let shown = within("ääääääääääääääääääääö", chars_max);
            assert_eq!(shown.chars().count(), chars_max, "{shown}");
        }
        let long = within(&"→".repeat(1 << 20), 4000).into_owned();
        assert_eq!(long.chars().count(), 4000);
    }
}
