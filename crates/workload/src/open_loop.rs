//! Open-loop traffic: messages are posted at times that do not depend on what the fabric does.

use crate::{Arrivals, Event, FlowGroup, Op, Rank, RankProgram};
use clearlane_ib::random::Stream;
use clearlane_ib::{LinkRate, Picoseconds};
use std::sync::Arc;

/// One rank's share of all open-loop flow groups.
pub struct OpenLoop {
    rank: Rank,
    sources: Sources,
}

enum Sources {
    /// Most ranks have one: it stands in the program itself.
    One(Source),
    /// Several, or none, and their turns.
    Several(Vec<Source>, Vec<Turn>),
}

/// When a source that has not ended has its turn, and its place among the sources: kept in this
/// order.
type Turn = (u64, u16);

struct Source {
    group: Arc<FlowGroup>,
    index: u16,
    stream: Stream,
    /// Picoseconds per wire byte at the group's load.
    pace: f64,
    next: u64,
    mtu: u32,
    header: u32,
    drawn: Drawn,
}

/// A message drawn before it is posted, so that its destination is known.
#[derive(Clone, Copy)]
struct Drawn {
    /// Nothing if it is drawn to be none.
    destination: Option<Rank>,
    bytes: u64,
    /// From its being posted to the next one.
    gap: u64,
}

impl OpenLoop {
    /// The program of `rank` in these groups, whose position in `groups` is the index messages are
    /// accounted to; give them as `Arc` where there are many ranks. `rate` is the rank's link,
    /// `mtu` the path MTU and `header(group)` the bytes a packet has besides payload. A rank that
    /// sends in no group is done at once.
    pub fn new<G: Clone + Into<Arc<FlowGroup>>>(
        rank: Rank,
        groups: &[G],
        rate: LinkRate,
        mtu: u32,
        header: impl Fn(&FlowGroup) -> u32,
        seed: u64,
    ) -> Self {
        let mut sources = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let group: Arc<FlowGroup> = group.clone().into();
            let weight = group.destinations.weight(rank);
            if weight <= 0.0 || group.senders.binary_search(&rank).is_err() {
                continue;
            }
            let entity = (index as u64) << 32 | u64::from(rank.0);
            let pace = f64::from(rate.femtoseconds_per_byte()) / 1000.0 / (group.load * weight);
            let mut source = Source {
                group: group.clone(),
                index: index as u16,
                stream: Stream::new(seed, "open loop", entity),
                pace,
                next: group.start.0,
                mtu,
                header: header(&group),
                drawn: Drawn { destination: None, bytes: 0, gap: 0 },
            };
            source.next = source.next.saturating_add(source.first_gap());
            source.draw(rank);
            sources.push(source);
        }
        let sources = match sources.pop() {
            Some(only) if sources.is_empty() => Sources::One(only),
            last => {
                sources.extend(last);
                let turn = |(place, source): (usize, &Source)| {
                    (!source.has_ended()).then_some((source.next, place as u16))
                };
                let mut turns: Vec<Turn> = sources.iter().enumerate().filter_map(turn).collect();
                turns.sort_unstable();
                Sources::Several(sources, turns)
            }
        };
        OpenLoop { rank, sources }
    }
}

impl Source {
    fn wire(&self, payload: u64) -> u64 {
        payload + payload.div_ceil(u64::from(self.mtu)) * u64::from(self.header)
    }

    /// Hosts of a periodic group start at different phases; one that is asked to load its link
    /// fully starts at once.
    fn first_gap(&mut self) -> u64 {
        match self.group.arrivals {
            Arrivals::Poisson => self.gap_after(self.mtu.into()),
            Arrivals::Periodic if self.group.load >= 1.0 => 0,
            Arrivals::Periodic => {
                let period = self.wire(self.mtu.into()) as f64 * self.pace;
                self.stream.below((period as u64).saturating_add(1))
            }
        }
    }

    fn gap_after(&mut self, payload: u64) -> u64 {
        let mean = self.wire(payload) as f64 * self.pace;
        match self.group.arrivals {
            Arrivals::Poisson => self.stream.exponential(mean),
            Arrivals::Periodic => (mean.round() as u64).max(1),
        }
    }
}

impl Source {
    fn has_ended(&self) -> bool {
        self.next >= self.group.stop.0
    }

    /// A message posted now, if its destination was drawn to be one. Draws the next.
    fn take(&mut self, rank: Rank) -> Option<(Rank, u64)> {
        let Drawn { destination, bytes, gap } = self.drawn;
        self.next = self.next.saturating_add(gap);
        if !self.has_ended() {
            self.draw(rank);
        }
        Some((destination?, bytes))
    }

    fn draw(&mut self, rank: Rank) {
        let bytes = self.group.sizes.draw(&mut self.stream);
        let gap = self.gap_after(bytes);
        let destination = self.group.destinations.draw(rank, &mut self.stream);
        self.drawn = Drawn { destination, bytes, gap };
    }

    fn upcoming(&self) -> Option<(Rank, u16)> {
        Some((self.drawn.destination?, self.index))
    }
}

/// A rank with one source.
fn step_one(source: &mut Source, rank: Rank, now: u64) -> Op {
    loop {
        if source.has_ended() {
            return Op::Done;
        }
        if source.next > now {
            return Op::WaitUntil(Picoseconds(source.next));
        }
        if let Some((dst, bytes)) = source.take(rank) {
            let next = (!source.has_ended()).then_some(Picoseconds(source.next));
            return Op::Offer { dst, bytes, group: source.index, next };
        }
    }
}

/// A rank with several.
fn step_several(sources: &mut [Source], turns: &mut Vec<Turn>, rank: Rank, now: u64) -> Op {
    loop {
        let Some((time, place)) = turns.first().copied() else { return Op::Done };
        if time > now {
            return Op::WaitUntil(Picoseconds(time));
        }
        let source = &mut sources[usize::from(place)];
        let drawn = source.take(rank);
        if source.has_ended() {
            turns.remove(0);
        } else {
            let turn = (source.next, place);
            let later = turns[1..].iter().take_while(|other| **other < turn).count();
            turns.copy_within(1..=later, 0);
            turns[later] = turn;
        }
        if let Some((dst, bytes)) = drawn {
            let next = turns.first().map(|(time, _)| Picoseconds(*time));
            return Op::Offer { dst, bytes, group: source.index, next };
        }
    }
}

impl RankProgram for OpenLoop {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        match &mut self.sources {
            Sources::One(source) => step_one(source, self.rank, now.0),
            Sources::Several(sources, turns) => step_several(sources, turns, self.rank, now.0),
        }
    }

    fn upcoming(&self) -> Option<(Rank, u16)> {
        match &self.sources {
            Sources::One(source) => source.upcoming(),
            Sources::Several(sources, turns) => {
                turns.first().and_then(|(_, place)| sources[usize::from(*place)].upcoming())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, PatternSpec, Ranks, SizeDistribution, Transport};
    use clearlane_ib::{Bytes, LinkSpeed, LinkWidth};

    fn group(name: &str, load: f64) -> FlowGroup {
        let ranks = Ranks::new((0..9).map(|rank| format!("host{rank}")).collect());
        FlowGroup {
            name: name.into(),
            class: Class::Background,
            destinations: PatternSpec::Uniform(Default::default()).build(&ranks, None).unwrap(),
            senders: (0..9).map(Rank).collect(),
            sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(5000) },
            load,
            arrivals: Arrivals::Poisson,
            start: Picoseconds(0),
            stop: Picoseconds(400_000_000),
            transport: Transport::Ud,
            sl: None,
        }
    }

    /// What a program says it will post next is what it posts next.
    #[test]
    fn the_next_message_is_known_before_it_is_posted() {
        let rate = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        for groups in [vec![group("one", 0.4)], vec![group("one", 0.2), group("two", 0.3)]] {
            let mut program = OpenLoop::new(Rank(3), &groups, rate, 2048, |_| 26, 1);
            let (mut now, mut posted) = (Picoseconds(0), 0);
            loop {
                let upcoming = program.upcoming();
                match program.step(now, Event::Elapsed) {
                    Op::Offer { dst, group, next, .. } => {
                        assert_eq!(upcoming, Some((dst, group)));
                        posted += 1;
                        let Some(next) = next else { break };
                        now = next;
                    }
                    Op::WaitUntil(time) => now = time,
                    Op::Done => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(posted > 50, "{posted} messages");
        }
    }
}
