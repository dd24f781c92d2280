//! Two ranks that answer each other: the latency of one message at a time.

use crate::{Event, Op, Rank, RankProgram};
use clearlane_ib::Picoseconds;

/// One side of a ping-pong. The lower rank begins; a round is a message each way.
pub struct PingPong {
    peer: Rank,
    bytes: u64,
    group: u16,
    sends_left: u32,
    receives_left: u32,
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    Send,
    Recv,
    Wait,
}

impl PingPong {
    /// The side of `rank`; both sides must be given the same size and number of rounds.
    pub fn new(rank: Rank, peer: Rank, bytes: u64, group: u16, rounds: u32) -> Self {
        let next = if rank < peer { Next::Send } else { Next::Recv };
        PingPong { peer, bytes, group, sends_left: rounds, receives_left: rounds, next }
    }
}

impl RankProgram for PingPong {
    fn step(&mut self, _: Picoseconds, event: Event) -> Op {
        match (self.next, event) {
            (Next::Send, _) if self.sends_left > 0 => {
                self.sends_left -= 1;
                self.next = Next::Recv;
                let (dst, bytes, group) = (self.peer, self.bytes, self.group);
                Op::Send { dst, bytes, tag: 0, group, tracked: false }
            }
            (Next::Recv, _) if self.receives_left > 0 => {
                self.receives_left -= 1;
                self.next = Next::Wait;
                Op::Recv { src: self.peer, tag: 0 }
            }
            (Next::Wait, Event::Posted(receive)) => {
                self.next = Next::Send;
                Op::Wait(receive)
            }
            _ => Op::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handle;

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
                        Event::Completed(handle)
                    }
                    Op::Done => break,
                    other => panic!("{other:?}"),
                };
            }
            assert_eq!((sends, receives, order[0]), (3, 3, first));
        }
    }
}
