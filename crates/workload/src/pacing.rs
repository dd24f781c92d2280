//! Active packet pacing: how far apart the packets of a program's messages are (Shibamura 2014,
//! section 1). Gaps are computed before a run, from what a program sends and the routes it takes.

use crate::programs::{Planned, Schedule};
use crate::walks::Walks;
use crate::{Gap, Rank, Routes};
use clearlane_ib::Picoseconds;
use std::sync::Arc;

/// How a file asks for gaps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PacingSpec {
    /// None: packets follow one another.
    None,
    /// The same for every message.
    Fixed(Gap),
    /// By step and message, the most messages that share a link of its route, less one: the
    /// message overlap degree, MOD (section 1).
    Overlap,
    /// By message, the hops between switches on its route, less one: what the paper computes MOD by
    /// (section 3.2).
    Hops,
    /// Ranks keep the timetable of their algorithm: every message begins when its turn has come,
    /// and its packets are as far apart as others need.
    Timetable,
}

/// The gaps of a program's messages.
#[derive(Clone, Default, Debug)]
pub enum Pacing {
    /// None.
    #[default]
    None,
    /// The same for every message.
    Fixed(Gap),
    /// By step, sender and place.
    Steps(Arc<StepGaps>),
    /// Those of a timetable, which is in times of a packet.
    Timetable {
        /// Payload of a full packet, bytes.
        payload: u32,
        /// How long it takes on the link, headers included.
        packet: Picoseconds,
    },
}

/// Gaps by step, sender and place, in whole packets: two bytes a message, and two a step in which
/// all are the same.
#[derive(Debug)]
pub struct StepGaps {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Same(u16),
    Each { places: u32, gaps: Box<[u16]> },
}

impl Pacing {
    /// The gap of a message: that of a rank at a place of a step, of which so many are together in
    /// one of the schedule.
    pub(crate) fn gap(&self, rank: Rank, step: u32, place: u32, together: u32) -> Gap {
        match self {
            Pacing::None | Pacing::Timetable { .. } => Gap(0),
            Pacing::Fixed(gap) => *gap,
            Pacing::Steps(gaps) => {
                // Steps that are together have one place each.
                let within = step % together.max(1);
                gaps.gap(rank, step / together.max(1), place + within)
            }
        }
    }
}

impl StepGaps {
    /// The gaps of a schedule on these routes, where rank r sits at `hosts[r]`; by hops, or else by
    /// overlap.
    pub fn of(schedule: &dyn Schedule, routes: &dyn Routes, hosts: &[Rank], by_hops: bool) -> Self {
        let mut walks = Walks::new(routes, hosts);
        let mut messages = Vec::new();
        let mut step = |number: u32| {
            schedule.messages(number, &mut messages);
            let places = schedule.places(number);
            let mut gaps = vec![0; hosts.len() * places as usize];
            match by_hops {
                true => walks.hops(&messages, |message, hops| {
                    gaps[at(message, places)] = less_one(hops);
                }),
                false => walks.overlaps(&messages, |message, overlap| {
                    gaps[at(message, places)] = less_one(overlap);
                }),
            }
            Step::of(gaps, places, messages.len())
        };
        StepGaps { steps: (0..schedule.steps()).map(&mut step).collect() }
    }

    fn gap(&self, rank: Rank, step: u32, place: u32) -> Gap {
        let packets = match self.steps.get(step as usize) {
            None => 0,
            Some(Step::Same(gap)) => *gap,
            Some(Step::Each { places, gaps }) => {
                let at = u64::from(rank.0) * u64::from(*places) + u64::from(place);
                gaps.get(at as usize).copied().unwrap_or(0)
            }
        };
        Gap(u32::from(packets) * 1000)
    }

    /// The largest gap, in packets.
    pub fn largest(&self) -> u16 {
        let of = |step: &Step| match step {
            Step::Same(gap) => *gap,
            Step::Each { gaps, .. } => gaps.iter().copied().max().unwrap_or(0),
        };
        self.steps.iter().map(of).max().unwrap_or(0)
    }
}

impl Step {
    fn of(gaps: Vec<u16>, places: u32, messages: usize) -> Self {
        let first = gaps.first().copied().unwrap_or(0);
        // A rank that sends nothing needs no gap of its own.
        match messages == gaps.len() && gaps.iter().all(|gap| *gap == first) {
            true => Step::Same(first),
            false => Step::Each { places, gaps: gaps.into() },
        }
    }
}

fn at(message: &Planned, places: u32) -> usize {
    message.from.0 as usize * places as usize + message.place as usize
}

fn less_one(count: u32) -> u16 {
    u16::try_from(count.saturating_sub(1)).unwrap_or(u16::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Channel, ProgramSpec};
    use clearlane_ib::{BitsPerSecond, LinkRate};

    /// A torus in dimension order with a host at every switch; ties go up.
    #[derive(Debug)]
    pub(crate) struct Torus {
        pub(crate) sides: &'static [u32],
    }

    impl Torus {
        pub(crate) fn nodes(&self) -> u32 {
            self.sides.iter().product()
        }
    }

    impl Routes for Torus {
        fn channels(&self) -> usize {
            self.nodes() as usize * 2 * self.sides.len()
        }

        fn name(&self, channel: Channel) -> String {
            format!("c{}", channel.0)
        }

        fn find(&self, _: &str) -> Result<Channel, String> {
            Err("is no port".into())
        }

        fn rate(&self, _: Channel) -> LinkRate {
            LinkRate::from_bits(BitsPerSecond(32_000_000_000)).unwrap()
        }

        fn switch(&self, rank: Rank) -> u32 {
            rank.0
        }

        fn paths(&self, _: Rank) -> u16 {
            1
        }

        fn walk(&self, source: Rank, destination: Rank, _: u16, route: &mut Vec<Channel>) {
            route.clear();
            let (mut at, mut stride) = (source.0, 1);
            for (dimension, k) in (0..).zip(self.sides) {
                let ahead = (destination.0 / stride % k + k - at / stride % k) % k;
                let up = 2 * ahead <= *k;
                for _ in 0..if up { ahead } else { k - ahead } {
                    let channel = (at * self.sides.len() as u32 + dimension) * 2;
                    route.push(Channel(channel + u32::from(!up)));
                    let a = at / stride % k;
                    let next = if up { (a + 1) % k } else { (a + k - 1) % k };
                    at = at - a * stride + next * stride;
                }
                stride *= k;
            }
        }
    }

    fn gaps(sides: &'static [u32], program: &str, by_hops: bool) -> StepGaps {
        let (torus, spec) = (Torus { sides }, toml::from_str::<ProgramSpec>(program).unwrap());
        let ranks: Vec<Rank> = (0..torus.nodes()).map(Rank).collect();
        let schedule = spec.schedule(torus.nodes()).unwrap().unwrap();
        StepGaps::of(&*schedule, &torus, &ranks, by_hops)
    }

    #[test]
    fn a_shift_has_one_gap_a_step() {
        let found = gaps(&[8], "kind = \"ring-alltoall\"\nsize = \"1 KiB\"", false);
        // k hops up, k messages on a link; from half way around on, 8 − k.
        let of = |step| found.gap(Rank(3), step, 0).0 / 1000;
        assert_eq!((0..7).map(of).collect::<Vec<_>>(), [0, 1, 2, 3, 2, 1, 0]);
        assert!(found.steps.iter().all(|step| matches!(step, Step::Same(_))));
        assert_eq!(found.gap(Rank(3), 7, 0), Gap(0), "there is no such step");
    }

    #[test]
    fn an_exchange_has_gaps_by_rank() {
        let program = "kind = \"pairwise-alltoall\"\nsize = \"1 KiB\"";
        let (overlap, hops) = (gaps(&[8], program, false), gaps(&[8], program, true));
        // In the third step 0 and 3 exchange over three links, 1 and 2 between them over one.
        let of = |gaps: &StepGaps, rank| gaps.gap(Rank(rank), 2, 0).0 / 1000;
        assert_eq!((of(&hops, 0), of(&hops, 1)), (2, 0));
        assert_eq!((of(&overlap, 0), of(&overlap, 1)), (1, 1));
    }

    #[test]
    fn steps_that_are_together_share_links() {
        let spread = |engines: &str| {
            gaps(&[8], &format!("kind = \"spread-alltoall\"\nsize = \"1 KiB\"\n{engines}"), false)
        };
        let alone = Pacing::Steps(Arc::new(spread("")));
        let paired = Pacing::Steps(Arc::new(spread("engines = 2")));
        let of = |pacing: &Pacing, together| -> Vec<u32> {
            (0..7).map(|step| pacing.gap(Rank(5), step, 0, together).0 / 1000).collect()
        };
        assert_eq!(of(&alone, 1), [0, 1, 2, 3, 2, 1, 0]);
        // Distances 1 and 2 lay three messages on a link, 3 and 4 seven, −3 and −2 five, −1 one.
        assert_eq!(of(&paired, 2), [2, 2, 6, 6, 4, 4, 0]);
    }

    #[test]
    fn a_step_of_one_gap_is_one_number() {
        assert!(matches!(Step::of(vec![3; 8], 1, 8), Step::Same(3)));
        assert!(matches!(Step::of(vec![3, 0], 1, 1), Step::Each { .. }), "one sends nothing");
        assert_eq!(less_one(0), 0);
        assert_eq!(less_one(70_000), u16::MAX);
    }
}
