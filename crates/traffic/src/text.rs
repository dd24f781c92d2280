//! Bytes as text in messages and tokens, base64 without padding, safe in file names and commands
//! (RFC 4648, section 5); and texts from outside in errors.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clearlane_ib::{visible, within};

/// The text of bytes.
pub fn to_text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a text; nothing if it is none.
pub fn of_text(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Most characters of an error that repeats what came from outside.
const SHOWN_MAX: usize = 300;

/// What somebody else's words are in an error: one line, and short.
pub fn one_line(text: &str) -> String {
    within(&visible(&within(text, SHOWN_MAX)), SHOWN_MAX).into_owned()
}

/// A fault of a TOML file, with its line.
pub fn of_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    one_line(&format!("line {line}: {}", error.message()))
}
