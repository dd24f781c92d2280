//! A source whose backlog is bounded: while a host has so many messages under way, its open-loop
//! traffic stands still.
//!
//! An open loop that offers more than the fabric takes piles up messages to whoever is slow, and
//! sends to everybody else what is left of its time: the mix that leaves the host is no longer the
//! one that was asked for. Here the next message is drawn when there is room for it, so that what
//! leaves has that mix, and one hot destination holds up all that its senders do.

use crate::{Event, Handle, Hints, OpenLoop, Op, RankProgram};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

/// Open-loop traffic of a host with at most so many messages posted and not complete, each posted
/// by a process of its own: an RC message is complete with its last ACK, a UD message when its last
/// packet has left.
pub struct Bounded {
    source: OpenLoop,
    /// Messages under way, by the process that posted them.
    posts: Vec<Option<Handle>>,
    state: State,
}

/// What the program waits for.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// The time of its next message, or nothing yet.
    Time,
    /// To hear of the message that this process has posted.
    Post(u8),
    /// For room, since a point in time, ps.
    Room(u64),
}

#[derive(Serialize, Deserialize)]
struct Moving {
    source: Saved,
    posts: Vec<Option<Handle>>,
    state: State,
}

const OF: &str = "bounded source";
const VERSION: u16 = 1;

impl Bounded {
    /// Most messages that may be under way: each has a CPU stream of its own.
    pub const BACKLOG_MAX: u32 = 255;

    /// The traffic of `source` with up to `backlog` messages under way, 1 to
    /// [`BACKLOG_MAX`](Self::BACKLOG_MAX).
    pub fn new(source: OpenLoop, backlog: u32) -> Self {
        let posts = vec![None; backlog.clamp(1, Self::BACKLOG_MAX) as usize];
        Bounded { source, posts, state: State::Time }
    }

    /// Takes note of what happened.
    fn hear(&mut self, now: u64, event: Event) {
        match (self.state, event) {
            (State::Post(at), Event::Posted(handle)) => {
                if let Some(post) = self.posts.get_mut(usize::from(at)) {
                    *post = Some(handle);
                }
            }
            (State::Room(since), Event::Completed(over)) => {
                let is_over = |post: &&mut Option<Handle>| **post == Some(over.handle);
                if let Some(post) = self.posts.iter_mut().find(is_over) {
                    *post = None;
                }
                self.source.stand(since, now);
            }
            _ => {}
        }
        self.state = State::Time;
    }
}

impl RankProgram for Bounded {
    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        self.hear(now.0, event);
        match self.source.due() {
            None => return Op::Done,
            Some(due) if due > now => return Op::WaitUntil(due),
            Some(_) => {}
        }
        let Some(free) = self.posts.iter().position(Option::is_none) else {
            self.state = State::Room(now.0);
            return Op::WaitAny(self.posts.iter().flatten().copied().collect());
        };
        match self.source.step(now, Event::Elapsed) {
            Op::Offer { dst, bytes, group, .. } => {
                self.state = State::Post(free as u8);
                let hints = Hints { stream: free as u8 + 1, ..Hints::default() };
                Op::Put { dst, bytes, group, tracked: true, hints }
            }
            // It was drawn to be no message.
            other => other,
        }
    }

    fn upcoming(&self) -> Option<(crate::Rank, u16)> {
        self.source.upcoming()
    }

    fn save(&self) -> Option<Saved> {
        let (source, posts) = (self.source.save()?, self.posts.clone());
        Some(Saved::new(OF, VERSION, &Moving { source, posts, state: self.state }))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let Moving { source, posts, state } = saved.state(OF, VERSION)?;
        let fits = match state {
            State::Post(at) => posts.get(usize::from(at)) == Some(&None),
            State::Room(_) => posts.iter().all(Option::is_some),
            State::Time => true,
        };
        if posts.len() != self.posts.len() || !fits {
            return Err(StateError::Damaged(OF));
        }
        self.source.load(&source)?;
        (self.posts, self.state) = (posts, state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Arrivals, Class, Completion, Demand, FlowGroup, Offered, PatternSpec, Rank, Ranks,
        SizeDistribution, Transport,
    };
    use clearlane_ib::{Bytes, LinkRate, LinkSpeed, LinkWidth};
    use std::sync::Arc;

    const STOP: u64 = 1_000_000_000;

    fn program(load: f64, start: u64, backlog: u32) -> Bounded {
        let ranks = Ranks::named((0..9).map(|rank| format!("host{rank}")));
        let group = FlowGroup {
            name: "all".into(),
            class: Class::Background,
            senders: (0..9).map(Rank).collect(),
            transport: Transport::Rc,
            demand: Demand::OpenLoop(Arc::new(Offered {
                destinations: PatternSpec::to_anybody().build(&ranks, None).unwrap(),
                sizes: SizeDistribution::Fixed(Bytes(2048)),
                load,
                arrivals: Arrivals::Periodic,
                start: Picoseconds(start),
                stop: Picoseconds(STOP),
            })),
            sl: None,
        };
        let rate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        let source = OpenLoop::new(Rank(3), &[group], rate, |_| (2048, 26), 1);
        Bounded::new(source, backlog)
    }

    /// Plays the fabric: each message takes `span`, one after the other. Posts by time, and the
    /// most that were under way.
    fn play(program: &mut Bounded, span: u64) -> (Vec<u64>, usize) {
        let (mut now, mut posts, mut most) = (0, Vec::new(), 0);
        let mut under_way: Vec<(u64, Handle)> = Vec::new();
        let mut event = Event::Start;
        loop {
            let saved = program.save().unwrap();
            program.load(&saved).unwrap();
            match program.step(Picoseconds(now), event) {
                Op::Put { tracked: true, .. } => {
                    let handle = Handle(posts.len() as u32);
                    let begin = under_way.last().map_or(now, |(end, _)| now.max(*end));
                    under_way.push((begin + span, handle));
                    most = most.max(under_way.len());
                    posts.push(now);
                    event = Event::Posted(handle);
                    now += 1;
                }
                Op::WaitUntil(time) => {
                    (now, event) = (time.0, Event::Elapsed);
                    under_way.retain(|(end, _)| *end > now);
                    for post in &mut program.posts {
                        let known = |handle| under_way.iter().any(|(_, of)| Some(*of) == handle);
                        if !known(*post) {
                            *post = None;
                        }
                    }
                }
                Op::WaitAny(handles) => {
                    assert_eq!(handles.len(), under_way.len());
                    let (end, handle) = under_way.remove(0);
                    now = now.max(end);
                    event = Event::Completed(Completion { handle, received: None });
                }
                Op::Done => return (posts, most),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_slow_fabric_is_never_given_more_than_the_backlog() {
        for backlog in [1, 4] {
            let (posts, most) = play(&mut program(1.0, 0, backlog), 3_000_000);
            assert_eq!(most, backlog as usize);
            // One message for each that is done, until the traffic stops.
            let expected = STOP as usize / 3_000_000 + backlog as usize;
            assert!(posts.len().abs_diff(expected) <= 1, "{} {expected}", posts.len());
            assert!(posts.iter().all(|post| *post < STOP));
        }
    }

    #[test]
    fn a_fast_fabric_does_not_slow_the_source_down() {
        let gap = 2_074.0 * 250.0 / 0.5;
        let (posts, most) = play(&mut program(0.5, 40_000_000, 2), 300_000);
        assert_eq!(most, 1);
        let expected = (STOP - 40_000_000) as f64 / gap;
        assert!((posts.len() as f64 - expected).abs() <= 2.0, "{} {expected}", posts.len());
        assert!(posts[0] >= 40_000_000);
    }
}
