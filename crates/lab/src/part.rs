//! What of a variant is simulated, and how the files of that are called.

/// What of a variant is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// The victims without the hot flows.
    Alone,
    /// The same without congestion mechanisms.
    Uncontrolled,
}

impl Part {
    pub(crate) const ALL: [Part; 3] = [Part::Whole, Part::Alone, Part::Uncontrolled];

    /// What stands behind the seed in the name of a run.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Part::Whole => "",
            Part::Alone => "-alone",
            Part::Uncontrolled => "-uncontrolled",
        }
    }
}
