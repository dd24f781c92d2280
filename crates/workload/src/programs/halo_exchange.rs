//! Neighbours on a grid: what stencils do between two sweeps over their cells.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, on_grid, once, size};
use crate::Rank;
use clearlane_ib::Bytes;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "halo-exchange",
    summary: "ranks stand on a grid, the first coordinate fastest, and each sends to its \
              neighbours in all dimensions and receives from them, at the same time",
    parameters: "size: to each neighbour, 0 B to 1 GiB; grid: ranks in each of 1 to 6 dimensions; \
                 periodic: whether the ends of a dimension are neighbours, true by default; \
                 rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"halo-exchange\", size = \"64 KiB\", grid = [2, 2], rounds = 2 }",
    reference: "Gropp, Lusk and Skjellum, Using MPI, chapter 4: exchange of ghost points",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// To each neighbour.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// Ranks in each dimension.
    pub grid: Vec<u32>,
    /// Whether the first and the last of a dimension are neighbours.
    #[serde(default = "yes")]
    pub periodic: bool,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

const fn yes() -> bool {
    true
}

impl Collective for Params {
    type Steps = Neighbours;
    type Shared = Arc<[u32]>;

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn fits(&self, ranks: u32) -> Result<(), String> {
        on_grid(&self.grid, ranks)
    }

    fn shared(&self, _: u32) -> Arc<[u32]> {
        self.grid.as_slice().into()
    }

    fn steps(&self, rank: u32, _: u32, grid: &Arc<[u32]>) -> Neighbours {
        let grid = Arc::clone(grid);
        Neighbours { rank, grid, periodic: self.periodic, bytes: self.size.0 }
    }
}

/// One rank's neighbours.
pub(super) struct Neighbours {
    rank: u32,
    grid: Arc<[u32]>,
    periodic: bool,
    bytes: u64,
}

impl Neighbours {
    /// The neighbour a step up or down in a dimension; nothing beyond an end and of a dimension
    /// of one.
    fn neighbour(&self, dimension: usize, up: bool) -> Option<Rank> {
        let k = self.grid[dimension];
        let stride: u32 = self.grid[..dimension].iter().product();
        let at = self.rank / stride % k;
        let (end, next) = match up {
            true => (at + 1 == k, (at + 1) % k),
            false => (at == 0, (at + k - 1) % k),
        };
        let is_one = k > 1 && (self.periodic || !end);
        is_one.then(|| Rank(self.rank - at * stride + next * stride))
    }
}

impl Steps for Neighbours {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        1
    }

    fn places(&self, _: u32) -> u32 {
        2 * self.grid.len() as u32
    }

    fn transfer(&self, _: u32, place: u32) -> Transfer {
        let (dimension, up) = (place as usize / 2, place.is_multiple_of(2));
        let to = self.neighbour(dimension, up).map(|to| (to, self.bytes));
        Transfer { to, from: self.neighbour(dimension, !up), engine: None }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages};
    use super::*;

    fn params(grid: &[u32], periodic: bool) -> Params {
        Params { size: Bytes(7), grid: grid.to_vec(), periodic, rounds: 1 }
    }

    #[test]
    fn grids_with_ends_have_fewer_neighbours() {
        assert_eq!(messages(&all(&params(&[3, 4], true), 12), 0).len(), 4 * 12);
        assert_eq!(messages(&all(&params(&[3, 4], false), 12), 0).len(), 2 * (2 * 4 + 3 * 3));
        // Two ranks of a dimension exchange by either of its ends.
        assert_eq!(messages(&all(&params(&[2, 1, 2], true), 4), 0).len(), 4 * 4);
    }

    #[test]
    fn a_grid_of_other_ranks_is_refused() {
        let said = params(&[3, 4], true).fits(13).unwrap_err();
        assert_eq!(said, "has a grid of 3×4 = 12 ranks, not 13");
        assert!(params(&[], true).fits(1).is_err() && params(&[1; 7], true).fits(1).is_err());
        assert!(params(&[1 << 20, 1 << 20], true).fits(12).is_err());
    }
}
