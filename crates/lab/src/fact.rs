//! What a reader is told of a variant.

use serde::{Deserialize, Serialize};

/// A labelled fact about a variant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// What it is about.
    pub label: String,
    /// What is the case.
    pub value: String,
}
