//! What a program sends in each of its steps, over all of its ranks: what gaps and ideal times are
//! computed from. A step is made when it is asked for; the whole of an all-to-all never stands in
//! memory.

use crate::Rank;

/// A message of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Who sends it.
    pub from: Rank,
    /// Who receives it; never the sender.
    pub to: Rank,
    /// Payload.
    pub bytes: u64,
    /// The adapter's port that it is sent by, if the program asks for one.
    pub engine: Option<u8>,
    /// Its number among the messages of its sender in this step, less than [`Schedule::places`].
    pub place: u32,
}

/// The messages of a program, step by step, where they are known before it runs.
pub trait Schedule: Send + Sync {
    /// How many steps there are. Messages of one step may be under way at the same time.
    fn steps(&self) -> u32;

    /// How many messages a rank sends in a step, at most.
    fn places(&self, step: u32) -> u32;

    /// Puts the messages of a step in the place of what is in `into`, in an order that depends on
    /// nothing else.
    fn messages(&self, step: u32, into: &mut Vec<Planned>);
}
