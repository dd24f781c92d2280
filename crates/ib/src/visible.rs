//! Texts on a terminal: those from outside made safe to show, what a message repeats of them kept
//! short, and long ones broken into lines.

use std::borrow::Cow;
use textwrap::{Options, WordSplitter};

/// Whether a character moves the cursor, reorders its neighbours or is not seen at all: control
/// characters, the bidirectional controls of Unicode (UAX #9) and what has no width.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text with every character that is hidden or acts written as TOML and JSON write it,
/// `\u001b`, and so on one line. In a JSON document the values stay what they are.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, "")
}

/// The same for a text of several lines, whose line feeds and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, "\n\t")
}

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

fn shown<'t>(text: &'t str, kept: &str) -> Cow<'t, str> {
    let acts = |c: char| is_hidden(c) && !kept.contains(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !acts(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Cow::Owned(out)
}

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

    #[test]
    fn what_acts_on_a_terminal_is_spelt_out() {
        assert_eq!(visible("\u{1b}]0;x\u{7}"), "\\u001b]0;x\\u0007");
        assert_eq!(visible("a\nb\tc\r"), "a\\u000ab\\u0009c\\u000d");
        assert_eq!(visible_lines("a\nb\tc\r"), "a\nb\tc\\u000d");
        assert_eq!(visible("\u{202e}cod.exe\u{2066}\u{feff}"), "\\u202ecod.exe\\u2066\\ufeff");
        assert_eq!(visible("\u{7f}\u{9b}\u{200b}\u{e0041}"), "\\u007f\\u009b\\u200b\\udb40\\udc41");
    }

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

    #[test]
    fn what_can_be_read_stays() {
        for text in ["", "H1 → H4, 5 µs ± 3 %", "北京 Ωm é \"q\" \\u001b"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
