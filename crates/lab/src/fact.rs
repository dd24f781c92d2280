//! What a reader is told of a variant.

use serde::{Deserialize, Serialize};

/// A labelled fact about a variant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// Name of the property, such as "routing".
    pub label: String,
    /// Its value, in words.
    pub value: String,
}
