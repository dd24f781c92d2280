//! Texts from outside made safe to show on a terminal.

use std::borrow::Cow;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelt_out() {
        assert_eq!(visible("\u{1b}]0;x\u{7}"), "\\u001b]0;x\\u0007");
        assert_eq!(visible("a\nb\tc\r"), "a\\u000ab\\u0009c\\u000d");
        assert_eq!(visible_lines("a\nb\tc\r"), "a\nb\tc\\u000d");
        assert_eq!(visible("\u{202e}cod.exe\u{2066}\u{feff}"), "\\u202ecod.exe\\u2066\\ufeff");
        assert_eq!(visible("\u{7f}\u{9b}\u{200b}\u{e0041}"), "\\u007f\\u009b\\u200b\\udb40\\udc41");
    }

    #[test]
    fn what_can_be_read_stays() {
        for text in ["", "H1 → H4, 5 µs ± 3 %", "北京 Ωm é \"q\" \\u001b"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
