//! Collectives that have a size and are done so often: all but those that need to know more.

use super::exchange::{Collective, Steps};
use super::{once, size};
use clearlane_ib::Bytes;
use serde::Deserialize;
use std::marker::PhantomData;

/// The steps of a collective that a size says all of.
pub(super) trait Algorithm: Steps + Clone + 'static {
    /// The steps of one of so many ranks.
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self;

    /// The longest message, bytes; a bound of it where shares differ.
    fn longest(bytes: u64, _ranks: u32) -> u64 {
        bytes
    }

    /// Fails if it is none for so many ranks, in words that go on after its name.
    fn fits(_ranks: u32) -> Result<(), String> {
        Ok(())
    }
}

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct Sized<A> {
    /// Of what the collective is about.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
    #[serde(skip)]
    algorithm: PhantomData<fn() -> A>,
}

#[cfg(test)]
impl<A> Sized<A> {
    /// So much, so often.
    pub(super) const fn new(size: Bytes, rounds: u32) -> Self {
        Sized { size, rounds, algorithm: PhantomData }
    }
}

impl<A: Algorithm> Collective for Sized<A> {
    type Steps = A;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, ranks: u32) -> u64 {
        A::longest(self.size.0, ranks)
    }

    fn fits(&self, ranks: u32) -> Result<(), String> {
        A::fits(ranks)
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> A {
        A::of(rank, ranks, self.size.0)
    }
}
