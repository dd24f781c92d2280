//! Ranks that go through steps, in each of which they send to one rank and receive from one: most
//! algorithms of collectives are lists of such steps.

use super::{Group, rounds, several};
use crate::{Event, Filter, Handle, Hints, Op, Rank, RankProgram};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

/// What one rank does in a step: it has a receive posted before it sends, and goes on when both are
/// complete, as MPI_Sendrecv does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) to: Rank,
    pub(super) from: Rank,
    /// Payload sent.
    pub(super) bytes: u64,
}

/// The steps of an algorithm, as one rank goes through them.
pub(super) trait Steps: Send {
    /// Its name, by which its states are known.
    const NAME: &'static str;
    /// How many there are.
    fn count(&self) -> u32;
    /// One of them.
    fn step(&self, number: u32) -> Step;
}

/// One rank of an algorithm, which goes through its steps so many times.
pub(super) struct Exchange<S> {
    steps: S,
    group: u16,
    rounds: u32,
    moving: Moving,
}

/// What is saved of it: the algorithm does not change.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Moving {
    rounds_left: u32,
    /// The step, less than their count.
    number: u32,
    receive: Handle,
    doing: Doing,
}

/// Version of the layout of `Moving`.
const VERSION: u16 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Doing {
    Receive,
    Send,
    Wait,
}

/// The ranks of an algorithm: `of` has the steps of one of so many.
pub(super) fn ranks<S: Steps + 'static>(
    group: &Group,
    repeated: u32,
    of: impl Fn(u32, u32) -> S,
) -> Result<Vec<Box<dyn RankProgram>>, String> {
    let (rounds, ranks) = (rounds(repeated)?, several(group.ranks)?);
    let rank = |rank: u32| -> Box<dyn RankProgram> {
        Box::new(Exchange::new(of(rank, ranks), group.group, rounds))
    };
    Ok((0..ranks).map(rank).collect())
}

impl<S: Steps> Exchange<S> {
    /// A rank that has not begun.
    pub(super) fn new(steps: S, group: u16, rounds: u32) -> Self {
        let (receive, doing) = (Handle(0), Doing::Receive);
        let moving = Moving { rounds_left: rounds, number: 0, receive, doing };
        Exchange { steps, group, rounds, moving }
    }

    fn next(&mut self) {
        let moving = &mut self.moving;
        moving.number += 1;
        if moving.number == self.steps.count() {
            (moving.number, moving.rounds_left) = (0, moving.rounds_left - 1);
        }
    }
}

impl<S: Steps> RankProgram for Exchange<S> {
    fn step(&mut self, _: Picoseconds, event: Event) -> Op {
        if self.moving.rounds_left == 0 || self.steps.count() == 0 {
            return Op::Done;
        }
        let Step { to, from, bytes } = self.steps.step(self.moving.number);
        let (tag, moving) = (self.moving.number, &mut self.moving);
        match (moving.doing, event) {
            (Doing::Send, Event::Posted(receive)) => {
                (moving.receive, moving.doing) = (receive, Doing::Wait);
                let (group, hints) = (self.group, Hints::default());
                Op::Send { dst: to, bytes, tag, context: 0, group, tracked: true, hints }
            }
            (Doing::Wait, Event::Posted(send)) => {
                moving.doing = Doing::Receive;
                let both = [moving.receive, send];
                self.next();
                Op::WaitAll(Box::new(both))
            }
            _ => {
                moving.doing = Doing::Send;
                let filter = Filter { source: Some(from), tag: Some(tag), context: 0 };
                Op::Recv { filter, stream: 0 }
            }
        }
    }

    fn save(&self) -> Option<Saved> {
        Some(Saved::new(S::NAME, VERSION, &self.moving))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let moving: Moving = saved.state(S::NAME, VERSION)?;
        let is_step = moving.number == 0 || moving.number < self.steps.count();
        // Between rounds, and after the last, it is at its first step.
        let is_over = moving.rounds_left == 0 && moving.number > 0;
        if moving.rounds_left > self.rounds || !is_step || is_over {
            return Err(StateError::Damaged(S::NAME));
        }
        self.moving = moving;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Who sends how much to whom in a step, over all ranks; every message has its receive.
    pub(crate) fn messages<S: Steps>(ranks: &[S], number: u32) -> Vec<(u32, u32, u64)> {
        let steps: Vec<Step> = ranks.iter().map(|steps| steps.step(number)).collect();
        for (rank, step) in steps.iter().enumerate() {
            let back = steps[step.to.0 as usize].from;
            assert_eq!(back.0 as usize, rank, "step {number}: nobody receives from {rank}");
        }
        let message = |(rank, step): (usize, &Step)| (rank as u32, step.to.0, step.bytes);
        steps.iter().enumerate().map(message).collect()
    }
}
