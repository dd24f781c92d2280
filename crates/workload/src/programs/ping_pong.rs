//! Two ranks that answer each other: the latency of one message at a time.

use super::{Entry, Group, Program, size};
use crate::{Event, Filter, Gap, Hints, Op, Rank, RankProgram};
use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

pub(super) const ENTRY: Entry = Entry {
    name: "ping-pong",
    summary: "two ranks answer each other; half of a round is what MPI benchmarks call latency",
    parameters: "size: 0 B to 1 GiB; rounds: 1 to 1000000",
    example: "program = { kind = \"ping-pong\", size = \"8 B\", rounds = 100 }",
    reference: "Intel MPI Benchmarks, PingPong",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Payload of a message.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// Messages each way.
    pub rounds: u32,
}

impl Program for Params {
    /// Messages one after another, two a round.
    fn operations(&self) -> u64 {
        2 * u64::from(self.rounds)
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String> {
        if group.ranks != 2 {
            return Err(format!("takes 2 ranks, not {}", group.ranks));
        }
        let (bytes, rounds) = (self.size.0, super::rounds(self.rounds)?);
        let side = |rank: u32| -> Box<dyn RankProgram> {
            let side = PingPong::new(Rank(rank), Rank(1 - rank), bytes, group.group, rounds);
            // It has no steps and no timetable: a gap is one for all.
            Box::new(side.paced(group.pacing.gap(Rank(rank), 0, 0, 1)))
        };
        Ok(vec![side(0), side(1)])
    }
}

/// One side of a ping-pong. The lower rank begins; a round is a message each way.
pub struct PingPong {
    peer: Rank,
    bytes: u64,
    group: u16,
    rounds: u32,
    gap: Gap,
    moving: Moving,
}

/// What is saved of it.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Moving {
    sends_left: u32,
    receives_left: u32,
    next: Next,
}

/// Version of the layout of `Moving`.
const VERSION: u16 = 1;

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Next {
    Send,
    Recv,
    Wait,
}

impl PingPong {
    /// The side of `rank`; both sides must be given the same size and number of rounds.
    pub fn new(rank: Rank, peer: Rank, bytes: u64, group: u16, rounds: u32) -> Self {
        let next = if rank < peer { Next::Send } else { Next::Recv };
        let moving = Moving { sends_left: rounds, receives_left: rounds, next };
        PingPong { peer, bytes, group, rounds, gap: Gap(0), moving }
    }

    /// The same with so much idle time after each packet.
    pub fn paced(self, gap: Gap) -> Self {
        PingPong { gap, ..self }
    }
}

impl RankProgram for PingPong {
    fn takes_one_way(&self) -> bool {
        true
    }

    fn step(&mut self, _: Picoseconds, event: Event) -> Op {
        let moving = &mut self.moving;
        match (moving.next, event) {
            (Next::Send, _) if moving.sends_left > 0 => {
                moving.sends_left -= 1;
                moving.next = Next::Recv;
                let (dst, bytes, group) = (self.peer, self.bytes, self.group);
                let hints = Hints { gap: self.gap, ..Hints::default() };
                Op::Send { dst, bytes, tag: 0, context: 0, group, tracked: false, hints }
            }
            (Next::Recv, _) if moving.receives_left > 0 => {
                moving.receives_left -= 1;
                moving.next = Next::Wait;
                let filter = Filter { source: Some(self.peer), tag: Some(0), context: 0 };
                Op::Recv { filter, stream: 0 }
            }
            (Next::Wait, Event::Posted(receive)) => {
                moving.next = Next::Send;
                Op::Wait(receive)
            }
            _ => Op::Done,
        }
    }

    fn save(&self) -> Option<Saved> {
        Some(Saved::new(ENTRY.name, VERSION, &self.moving))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let moving: Moving = saved.state(ENTRY.name, VERSION)?;
        if moving.sends_left.max(moving.receives_left) > self.rounds {
            return Err(StateError::Damaged(ENTRY.name));
        }
        self.moving = moving;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completion, Handle};

    #[test]
    fn both_sides_send_and_receive_each_round_once() {
        for (rank, first) in [(0, "send"), (1, "recv")] {
            let mut side = PingPong::new(Rank(rank), Rank(1 - rank), 8, 0, 3);
            let (mut sends, mut receives, mut event) = (0, 0, Event::Start);
            let mut order = Vec::new();
            loop {
                event = match side.step(Picoseconds(0), event) {
                    Op::Send { .. } => {
                        sends += 1;
                        order.push("send");
                        Event::Posted(Handle(1))
                    }
                    Op::Recv { .. } => {
                        receives += 1;
                        order.push("recv");
                        Event::Posted(Handle(2))
                    }
                    Op::Wait(handle) => {
                        assert_eq!(handle, Handle(2));
                        Event::Completed(Completion { handle, received: None })
                    }
                    Op::Done => break,
                    other => panic!("{other:?}"),
                };
            }
            assert_eq!((sends, receives, order[0]), (3, 3, first));
        }
    }
}
