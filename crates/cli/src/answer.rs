//! What a command has to say: one text for stdout and how it turned out.

use crate::exit_codes;
use crate::failure::Failure;
use serde::Serialize;
use serde_json::{Value, json};

/// How it turned out; the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Done; what was checked is sane.
    Done,
    /// Done, and the answer is bad news.
    BadNews,
    /// The simulated network deadlocked.
    Deadlock,
    /// Interrupted; what is there is marked as partial.
    Interrupted,
}

impl Verdict {
    /// The exit code of ARCHITECTURE.md.
    pub fn code(self) -> u8 {
        match self {
            Verdict::Done => 0,
            Verdict::BadNews => 1,
            Verdict::Deadlock => 3,
            Verdict::Interrupted => exit_codes::INTERRUPTED,
        }
    }
}

/// Text for stdout and the verdict.
#[derive(Debug)]
pub struct Answer {
    /// How it turned out.
    pub verdict: Verdict,
    /// What goes to stdout, with its last newline.
    pub text: String,
    /// Whether that is the content of a file.
    pub is_file: bool,
}

impl Answer {
    /// What was asked for, as text.
    pub fn text(text: String) -> Self {
        Answer { verdict: Verdict::Done, text, is_file: false }
    }

    /// The content of a file.
    pub fn file(text: String) -> Self {
        Answer { is_file: true, ..Answer::text(text) }
    }

    /// One JSON document; see [`document`].
    pub fn json(schema: &str, fields: Value) -> Self {
        Answer::text(document(schema, &fields))
    }

    /// The same answer with another verdict.
    pub fn with(self, verdict: Verdict) -> Self {
        Answer { verdict, ..self }
    }
}

/// A JSON document: `schema` and `clearlane` (the version), then the fields of an object.
pub fn document(schema: &str, fields: &Value) -> String {
    let head = format!(
        "{{\n  \"schema\": {},\n  \"clearlane\": {}",
        json!(schema),
        json!(env!("CARGO_PKG_VERSION"))
    );
    match format!("{fields:#}").strip_prefix("{\n") {
        Some(rest) => format!("{head},\n{rest}\n"),
        None => format!("{head}\n}}\n"),
    }
}

/// Any of the library's records as JSON.
pub fn value(record: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(record).map_err(|e| Failure::Internal(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_begins_with_its_schema_and_is_json() {
        for fields in [json!({}), json!({ "b": 1, "a": [2, { "c": "d" }] })] {
            let text = document("clearlane-test/1", &fields);
            assert!(text.starts_with("{\n  \"schema\": \"clearlane-test/1\",\n"), "{text}");
            let mut read: Value = serde_json::from_str(&text).unwrap();
            let whole = read.as_object_mut().unwrap();
            assert_eq!(whole.remove("schema").unwrap(), "clearlane-test/1");
            assert_eq!(whole.remove("clearlane").unwrap(), env!("CARGO_PKG_VERSION"));
            assert_eq!(read, fields);
        }
    }
}
