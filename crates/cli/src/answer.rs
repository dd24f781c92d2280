//! What a command has to say: one text for stdout and how it turned out.

use crate::failure::Failure;
use serde::Serialize;
use serde_json::{Map, Value, json};

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
            Verdict::Interrupted => 4,
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
}

impl Answer {
    /// What was asked for, as text.
    pub fn text(text: String) -> Self {
        Answer { verdict: Verdict::Done, text }
    }

    /// One JSON document; see [`document`].
    pub fn json(schema: &str, fields: Value) -> Self {
        Answer { verdict: Verdict::Done, text: document(schema, fields) }
    }

    /// The same answer with another verdict.
    pub fn with(self, verdict: Verdict) -> Self {
        Answer { verdict, ..self }
    }
}

/// A JSON document with `schema` and `clearlane` (the version) before the fields of an object.
pub fn document(schema: &str, fields: Value) -> String {
    let mut whole = Map::new();
    whole.insert("schema".into(), json!(schema));
    whole.insert("clearlane".into(), json!(env!("CARGO_PKG_VERSION")));
    match fields {
        Value::Object(fields) => whole.extend(fields),
        other => {
            whole.insert("value".into(), other);
        }
    }
    format!("{:#}\n", Value::Object(whole))
}

/// Any of the library's records as JSON.
pub fn value(record: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(record).map_err(|e| Failure::Internal(e.to_string()))
}
