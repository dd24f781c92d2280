//! What it is: the levels of a tree and the coordinates of a grid, recovered from cables and port
//! numbers alone, so that they hold for a built fabric, for one read from a file and for one whose
//! names were changed.
//!
//! Convention of a grid (that of the torus and mesh builders): dimension d leaves a switch by
//! port 2d + 1 towards +1 and by port 2d + 2 towards -1; hosts sit on the ports after the last
//! dimension.

mod grid;
mod levels;

pub use grid::{Grid, grid};
pub use levels::{Tree, levels, tree};

/// Why a fabric is not the structure asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StructureError {
    /// There is nothing to take a structure from.
    #[error("the fabric has no {what}, so it has neither levels nor coordinates")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// A switch that no host can reach has no level.
    #[error("not a tree: no host reaches switch {switch}; remove it or reconnect it")]
    NoHostReaches {
        /// Name of the switch.
        switch: String,
    },
    /// A cable that a tree does not have.
    #[error(
        "not a tree: cable {cable} joins levels {a} and {b}; cables of a tree join neighbouring \
         levels"
    )]
    NotBetweenLevels {
        /// The cable, as `leaf00[1]-leaf01[1]`.
        cable: String,
        /// Level of its one end.
        a: u32,
        /// Level of its other end.
        b: u32,
    },
    /// A cable whose ports do not follow the convention.
    #[error(
        "not a grid: cable {cable} joins ports {a} and {b}; dimension d of a grid joins port \
         2d + 1 to port 2d + 2"
    )]
    NotAlongDimension {
        /// The cable.
        cable: String,
        /// Port of its one end.
        a: u8,
        /// Port of its other end.
        b: u8,
    },
    /// A host where a dimension's cable belongs.
    #[error("not a grid: a host sits on {port}, but ports 1 to {last} belong to the dimensions")]
    HostOnDimension {
        /// The switch port, as `sw-0-0[1]`.
        port: String,
        /// The last port of the last dimension.
        last: u32,
    },
    /// The switches fall apart.
    #[error("not a grid: cables do not lead from switch {from} to switch {to}")]
    Apart {
        /// A switch.
        from: String,
        /// One that it cannot reach.
        to: String,
    },
    /// Two switches come to lie on the same place.
    #[error("not a grid: switches {first} and {second} have the same coordinates {coordinates:?}")]
    SamePlace {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
        /// Where both are.
        coordinates: Vec<u32>,
    },
    /// Too many places are empty for the sizes to be certain.
    #[error(
        "not a grid: {switches} switches in {dimensions} leave most places empty, so the sizes \
         are not certain"
    )]
    Sparse {
        /// How many switches there are.
        switches: usize,
        /// The sizes found, as `4x4`.
        dimensions: String,
    },
}
