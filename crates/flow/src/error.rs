//! Why a set-up cannot be simulated as flows.

/// Why a set-up cannot be simulated as flows.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// Neither can it as packets.
    #[error(transparent)]
    Setup(#[from] clearlane_sim::SetupError),
    /// What only packets have.
    #[error("flow mode has no {what}; leave it out or take mode = \"packets\"")]
    Packets {
        /// What it is.
        what: &'static str,
    },
}
