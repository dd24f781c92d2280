//! The answer in a few lines: what is wrong, who suffers, what would help.

use serde::Serialize;

/// A line: what kind of statement it is, and the statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Line {
    /// Such as `fault`, `victims` or `next`.
    pub label: &'static str,
    /// One sentence without a full stop.
    pub text: String,
}

/// A fact that the lines are drawn from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Found {
    /// What kind of fact it is.
    pub fact: &'static str,
    /// One sentence without a full stop.
    pub text: String,
    /// Where else the same is, one line each.
    pub more: Vec<String>,
}

/// A verdict; whoever asks the question makes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verdict {
    /// Whether no fault was found.
    pub healthy: bool,
    /// At most [`Verdict::LINES_MAX`] lines; the first is the cause.
    pub lines: Vec<Line>,
    /// Everything that was found, the worst first.
    pub facts: Vec<Found>,
}

impl Verdict {
    /// The most lines there are.
    pub const LINES_MAX: usize = 6;
}
