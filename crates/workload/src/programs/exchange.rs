//! Ranks that go through steps, in each of which they send to some ranks and receive from some:
//! algorithms of collectives, rings and halos are lists of such steps.

use super::schedule::{Planned, Schedule};
use super::{Group, Program, rounds, several};
use crate::{Event, Filter, Gap, Handles, Hints, Op, Pacing, Rank, RankProgram};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

/// A message that one rank sends in a step, and one that it receives, at the same place of the
/// step: places number the messages of a rank, and that of sender and receiver is the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Transfer {
    /// To whom, and how many bytes of payload.
    pub(super) to: Option<(Rank, u64)>,
    pub(super) from: Option<Rank>,
    /// The port it is sent by, of adapters with several.
    pub(super) engine: Option<u8>,
}

impl Transfer {
    /// A message to one rank and one from another.
    pub(super) fn both(to: u32, from: u32, bytes: u64) -> Self {
        Transfer { to: Some((Rank(to), bytes)), from: Some(Rank(from)), engine: None }
    }
}

/// When a message of a timetable is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// In times of a full packet on the link after the beginning of its round.
    pub(super) begin: u64,
    /// Idle time after each packet, in times of a packet.
    pub(super) gap: u32,
}

/// The steps of an algorithm, as one rank goes through them. How many there are, and how many
/// places each has, is the same for all ranks.
pub(super) trait Steps: Send + Sync {
    /// Its name, by which its states are known.
    const NAME: &'static str;

    /// How many there are.
    fn count(&self) -> u32;

    /// Messages that a rank sends or receives in a step, at most.
    fn places(&self, _number: u32) -> u32 {
        1
    }

    /// One of them, by its place.
    fn transfer(&self, number: u32, place: u32) -> Transfer;

    /// Whether the rank waits at the end of a step for all that it has posted: else it goes on with
    /// the next one. It always waits after the last.
    fn waits(&self, _number: u32) -> bool {
        true
    }

    /// How many steps one after the other are under way at a time, where ranks do not wait.
    fn together(&self) -> u32 {
        1
    }

    /// When a message of so many packets is sent by a rank that keeps a timetable; nothing if there
    /// is none.
    fn slot(&self, _number: u32, _place: u32, _packets: u64) -> Option<Slot> {
        None
    }

    /// How long a round with messages of so many packets takes by the timetable, in times of a
    /// packet.
    fn slots(&self, _packets: u64) -> u64 {
        0
    }
}

/// A collective: its parameters, and the steps they mean for a rank.
pub(super) trait Collective: Clone + Send + Sync + 'static {
    /// What a rank goes through.
    type Steps: Steps + 'static;
    /// What all ranks know together, made once.
    type Shared;

    /// How often it is done.
    fn rounds(&self) -> u32;

    /// The longest message among so many ranks, bytes; a bound of it where shares differ.
    fn longest(&self, ranks: u32) -> u64;

    /// Fails if it is none for so many ranks, in words that go on after its name.
    fn fits(&self, _ranks: u32) -> Result<(), String> {
        Ok(())
    }

    /// Whether its ranks can keep a timetable.
    fn keeps_timetable(&self) -> bool {
        false
    }

    /// What all of so many ranks that it fits know together.
    fn shared(&self, ranks: u32) -> Self::Shared;

    /// The steps of one of them.
    fn steps(&self, rank: u32, ranks: u32, shared: &Self::Shared) -> Self::Steps;
}

impl<C: Collective> Program for C {
    /// One a round.
    fn operations(&self) -> u64 {
        u64::from(Collective::rounds(self))
    }

    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String> {
        let (rounds, ranks) = (rounds(Collective::rounds(self))?, several(group.ranks)?);
        self.fits(ranks)?;
        let shared = self.shared(ranks);
        let rank = |rank: u32| -> Box<dyn RankProgram> {
            let steps = self.steps(rank, ranks, &shared);
            Box::new(Exchange::new(steps, Rank(rank), group, rounds))
        };
        Ok((0..ranks).map(rank).collect())
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn keeps_timetable(&self) -> bool {
        Collective::keeps_timetable(self)
    }

    fn longest(&self, ranks: u32) -> u64 {
        Collective::longest(self, ranks)
    }

    fn schedule(&self, ranks: u32) -> Result<Option<Box<dyn Schedule>>, String> {
        self.fits(several(ranks)?)?;
        let shared = self.shared(ranks);
        let all = (0..ranks).map(|rank| self.steps(rank, ranks, &shared)).collect();
        Ok(Some(Box::new(Everybody::<C::Steps>(all))))
    }
}

/// The steps of all ranks.
struct Everybody<S>(Vec<S>);

impl<S: Steps> Schedule for Everybody<S> {
    fn steps(&self) -> u32 {
        let first = self.0.first();
        first.map_or(0, |steps| steps.count().div_ceil(steps.together().max(1)))
    }

    fn places(&self, step: u32) -> u32 {
        let Some(first) = self.0.first() else { return 0 };
        let together = first.together().max(1);
        let numbers = step * together..((step + 1) * together).min(first.count());
        numbers.map(|number| first.places(number)).sum()
    }

    fn messages(&self, step: u32, into: &mut Vec<Planned>) {
        into.clear();
        let Some(first) = self.0.first() else { return };
        let together = first.together().max(1);
        let mut before = 0;
        for number in step * together..((step + 1) * together).min(first.count()) {
            for (from, steps) in (0..).map(Rank).zip(&self.0) {
                for place in 0..steps.places(number) {
                    let Transfer { to, engine, .. } = steps.transfer(number, place);
                    let Some((to, bytes)) = to.filter(|(to, _)| *to != from) else { continue };
                    into.push(Planned { from, to, bytes, engine, place: before + place });
                }
            }
            before += first.places(number);
        }
    }
}

/// One rank of an algorithm, which goes through its steps so many times.
pub(super) struct Exchange<S> {
    steps: S,
    rank: Rank,
    group: u16,
    pacing: Pacing,
    rounds: u32,
    moving: Moving,
}

/// What is saved of it: the algorithm does not change.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Moving {
    rounds_left: u32,
    /// The step, less than their count.
    number: u32,
    /// What is posted next in the step: first its receives, place by place, then its sends.
    next: u32,
    /// What was posted and not waited for.
    posted: Handles,
}

/// Version of the layout of `Moving`.
const VERSION: u16 = 2;

impl<S: Steps> Exchange<S> {
    /// A rank that has not begun.
    fn new(steps: S, rank: Rank, group: &Group, rounds: u32) -> Self {
        let moving = Moving { rounds_left: rounds, number: 0, next: 0, posted: Handles::new() };
        let (group, pacing) = (group.group, group.pacing.clone());
        Exchange { steps, rank, group, pacing, rounds, moving }
    }

    /// The next operation of its step; nothing if all of them are posted.
    fn post(&mut self, now: Picoseconds) -> Option<Op> {
        let (number, places) = (self.moving.number, self.steps.places(self.moving.number));
        while self.moving.next < 2 * places {
            let (sends, place) = (self.moving.next >= places, self.moving.next % places);
            let transfer = self.steps.transfer(number, place);
            let slot = transfer.to.filter(|_| sends).and_then(|(_, bytes)| self.slot(place, bytes));
            if let Some((due, _)) = slot.filter(|(due, _)| *due > now) {
                return Some(Op::WaitUntil(due));
            }
            self.moving.next += 1;
            let tag = number.wrapping_mul(places).wrapping_add(place);
            match (sends, transfer.from, transfer.to) {
                (false, Some(from), _) => {
                    let filter = Filter { source: Some(from), tag: Some(tag), context: 0 };
                    return Some(Op::Recv { filter, stream: 0 });
                }
                (true, _, Some((dst, bytes))) => {
                    let together = self.steps.together();
                    let gap = || self.pacing.gap(self.rank, number, place, together);
                    let gap = slot.map_or_else(gap, |(_, gap)| gap);
                    let hints = Hints { engine: transfer.engine, gap, ..Hints::default() };
                    let group = self.group;
                    let (context, tracked) = (0, true);
                    return Some(Op::Send { dst, bytes, tag, context, group, tracked, hints });
                }
                _ => {}
            }
        }
        None
    }

    /// When a message of the present step is sent, and its gap, if the rank keeps a timetable.
    fn slot(&self, place: u32, bytes: u64) -> Option<(Picoseconds, Gap)> {
        let Pacing::Timetable { payload, packet } = self.pacing else { return None };
        let packets = bytes.div_ceil(u64::from(payload.max(1))).max(1);
        let slot = self.steps.slot(self.moving.number, place, packets)?;
        let round = u64::from(self.rounds - self.moving.rounds_left);
        let begin = round.saturating_mul(self.steps.slots(packets)).saturating_add(slot.begin);
        Some((Picoseconds(begin.saturating_mul(packet.0)), Gap(slot.gap * 1000)))
    }

    /// Goes to the next step. Returns whether all that was posted is waited for before it.
    fn go_on(&mut self) -> bool {
        let (last, moving) = (self.steps.count() - 1, &mut self.moving);
        let keeps_timetable = matches!(self.pacing, Pacing::Timetable { .. });
        let waits = moving.number == last || self.steps.waits(moving.number) && !keeps_timetable;
        (moving.number, moving.next) = (moving.number + 1, 0);
        if moving.number > last {
            (moving.number, moving.rounds_left) = (0, moving.rounds_left - 1);
        }
        waits && !moving.posted.is_empty()
    }
}

impl<S: Steps> RankProgram for Exchange<S> {
    fn takes_one_way(&self) -> bool {
        true
    }

    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        if let Event::Posted(handle) = event {
            self.moving.posted.push(handle);
        }
        while self.moving.rounds_left > 0 && self.steps.count() > 0 {
            if let Some(op) = self.post(now) {
                return op;
            }
            if self.go_on() {
                return Op::WaitAll(std::mem::take(&mut self.moving.posted));
            }
        }
        Op::Done
    }

    fn save(&self) -> Option<Saved> {
        Some(Saved::new(S::NAME, VERSION, &self.moving))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let moving: Moving = saved.state(S::NAME, VERSION)?;
        let is_step = moving.number == 0 || moving.number < self.steps.count();
        let is_next = is_step && moving.next <= 2 * self.steps.places(moving.number);
        // Between rounds, and after the last, it is at its first step.
        let is_over = moving.rounds_left == 0 && (moving.number > 0 || moving.next > 0);
        if moving.rounds_left > self.rounds || !is_next || is_over {
            return Err(StateError::Damaged(S::NAME));
        }
        self.moving = moving;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All ranks of a collective.
    pub(crate) fn all<C: Collective>(collective: &C, ranks: u32) -> Vec<C::Steps> {
        collective.fits(ranks).unwrap();
        let shared = collective.shared(ranks);
        let all: Vec<C::Steps> =
            (0..ranks).map(|rank| collective.steps(rank, ranks, &shared)).collect();
        for number in 0..all[0].count() {
            let longest = messages(&all, number).into_iter().map(|(.., bytes)| bytes).max();
            assert!(longest.is_none_or(|longest| longest <= collective.longest(ranks)));
        }
        all
    }

    /// Who sends how much to whom in a step, over all ranks; every message has its receive, and no
    /// receive is without its message.
    pub(crate) fn messages<S: Steps>(ranks: &[S], number: u32) -> Vec<(u32, u32, u64)> {
        let places = ranks[0].places(number);
        let (mut sent, mut received) = (Vec::new(), BTreeSet::new());
        for (rank, steps) in (0..).zip(ranks) {
            assert_eq!(steps.places(number), places, "places are those of all ranks");
            for place in 0..places {
                let transfer = steps.transfer(number, place);
                if let Some((to, bytes)) = transfer.to {
                    sent.push((rank, to.0, bytes));
                    let back = ranks[to.0 as usize].transfer(number, place).from;
                    assert_eq!(back, Some(Rank(rank)), "step {number}: {} does not receive", to.0);
                }
                if let Some(from) = transfer.from {
                    assert!(received.insert((from.0, rank, place)));
                }
            }
        }
        assert_eq!(sent.len(), received.len(), "step {number}: receives without their message");
        sent
    }

    /// Whether every rank sends so many bytes to every other once.
    pub(crate) fn one_to_each<S: Steps>(ranks: &[S], bytes: u64) {
        let sent = (0..ranks[0].count()).flat_map(|number| messages(ranks, number));
        let sent: Vec<_> = sent.collect();
        let pairs: BTreeSet<_> = sent.iter().map(|(from, to, _)| (from, to)).collect();
        assert!(sent.iter().all(|(from, to, length)| from != to && *length == bytes));
        assert_eq!((sent.len(), pairs.len()), (ranks.len() * (ranks.len() - 1), sent.len()));
    }

    /// What all ranks have in the end, if each begins with something of its own and a message
    /// carries all that its sender has: the most that an algorithm can spread.
    pub(crate) fn reach<S: Steps>(ranks: &[S]) -> Vec<BTreeSet<u32>> {
        let mut have: Vec<BTreeSet<u32>> =
            (0..ranks.len() as u32).map(|rank| BTreeSet::from([rank])).collect();
        for number in 0..ranks[0].count() {
            let before = have.clone();
            for (from, to, _) in messages(ranks, number) {
                have[to as usize].extend(&before[from as usize]);
            }
        }
        have
    }

    /// What a rank of a program of three does, by the first letters of its operations.
    fn operations(program: &str) -> String {
        let spec: crate::ProgramSpec = toml::from_str(program).unwrap();
        let group = Group { ranks: 3, ..Group::default() };
        let mut rank = spec.build(&group).unwrap().swap_remove(1);
        let (mut event, mut all) = (Event::Start, String::new());
        for number in 0..100 {
            let op = rank.step(Picoseconds(0), event);
            event = match op {
                Op::Recv { .. } | Op::Send { .. } => Event::Posted(crate::Handle(number)),
                _ => Event::AllCompleted,
            };
            match op {
                Op::Recv { .. } => all.push('r'),
                Op::Send { .. } => all.push('s'),
                Op::WaitAll(handles) => all.push_str(&format!("w{} ", handles.len())),
                _ => return all,
            }
        }
        all
    }

    #[test]
    fn ranks_receive_first_and_wait_as_their_algorithm_has_it() {
        let of = |kind: &str| operations(&format!("kind = \"{kind}\"\nsize = \"8 B\"\nrounds = 2"));
        assert_eq!(of("pairwise-alltoall"), "rsw2 rsw2 rsw2 rsw2 ", "at the end of each step");
        assert_eq!(of("spread-alltoall"), "rsrsw4 rsrsw4 ", "at the end of each round");
        assert_eq!(of("ring-exchange"), "rrssw4 rrssw4 ", "receives of a step come first");
        assert_eq!(of("binomial-broadcast"), "rw1 rw1 ", "one that sends nothing");
    }
}
