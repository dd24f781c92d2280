//! Programs in motion: they are stepped, their messages posted, their receives matched. A rank has
//! one CPU: what an operation costs it, no other operation has (the o of LogGP, Alexandrov et al.,
//! SPAA 1995).

use crate::adapter::{Adapters, Post, Told};
use crate::model::{Model, Observer};
use crate::network::{Network, NetworkOf};
use crate::port::PortIndex;
use crate::port_set::PortSet;
use crate::queue::Kind;
use crate::records::{Records, index, prefetch_value, room_for};
use clearlane_ib::Picoseconds;
use clearlane_workload::{Event, Handle, Op, RankProgram};

index!(
    /// A rank's place among those of the partition: its adapter's slot.
    LocalRank
);

/// Operations a program may do at one event before its own clock is waited for.
const BURST: u32 = 4096;

/// What a program waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    /// Its next step, due at the time in the queue.
    Step(Event),
    /// An operation.
    Operation(Handle),
    /// Nothing: it has ended.
    Ended,
}

/// What follows an operation.
enum After {
    /// The program is told at once and goes on.
    Goes(Event),
    /// It is told at this time.
    Until(u64, Event),
    /// It waits for something else, or for nothing more.
    Waits(Waiting),
}

/// One rank.
struct RankState {
    program: Box<dyn RankProgram>,
    /// When its CPU is free; every operation takes it for at least 1 ps.
    clock: u64,
    waiting: Waiting,
    next_handle: u32,
    /// Nothing for a program that waits for no operation: open-loop traffic needs none.
    matching: Option<Box<Matching>>,
}

/// Operations that meet their completion and receives that meet their message.
#[derive(Default)]
struct Matching {
    /// Operations that completed before anybody waited for them, and when.
    done: Vec<(Handle, u64)>,
    /// Receives posted, in order.
    receives: Vec<(u32, u32, Handle)>,
    /// Messages that came before their receive.
    unexpected: Vec<(u32, u32)>,
    /// Receives that have met their message and cost the CPU their overhead when waited for.
    received: Vec<Handle>,
}

impl RankState {
    fn matching(&mut self) -> &mut Matching {
        self.matching.get_or_insert_default()
    }

    fn handle(&mut self) -> Handle {
        self.next_handle = self.next_handle.wrapping_add(1);
        Handle(self.next_handle)
    }

    /// Whether an operation is a receive, which costs the CPU when it is waited for.
    fn takes_received(&mut self, handle: Handle) -> bool {
        let received = &mut self.matching().received;
        let found = received.iter().position(|known| *known == handle);
        found.map(|index| received.swap_remove(index)).is_some()
    }
}

/// The ranks of a partition, by the slot of their adapter.
pub(crate) struct Ranks {
    ranks: Records<LocalRank, RankState>,
    send_overhead: u64,
    receive_overhead: u64,
}

impl Ranks {
    /// Ranks that have not begun.
    pub(crate) fn new(
        programs: Vec<Box<dyn RankProgram>>,
        send_overhead: Picoseconds,
        receive_overhead: Picoseconds,
    ) -> Self {
        let state = |program| RankState {
            program,
            clock: 0,
            waiting: Waiting::Step(Event::Start),
            next_handle: 0,
            matching: None,
        };
        let mut ranks = room_for(programs.len());
        ranks.extend(programs.into_iter().map(state));
        Ranks {
            ranks: ranks.into(),
            send_overhead: send_overhead.0,
            receive_overhead: receive_overhead.0,
        }
    }

    /// Ranks whose records may be of use soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: u32) {
        self.ranks.prefetch::<1>(LocalRank(slot));
    }

    /// Programs that may be stepped soon, whose records are at hand.
    #[inline(always)]
    pub(crate) fn prefetch_program(&self, slot: u32) {
        prefetch_value(&*self.ranks[LocalRank(slot)].program);
    }

    /// Destination and flow group of the message that a program is known to post next.
    #[inline(always)]
    pub(crate) fn upcoming(&self, slot: u32) -> Option<(u32, u16)> {
        let upcoming = self.ranks[LocalRank(slot)].program.upcoming();
        upcoming.map(|(destination, group)| (destination.0, group))
    }

    /// Steps a program until it has to wait.
    pub(crate) fn step<M: Model, const V: usize>(
        &mut self,
        adapters: &mut Adapters<M, V>,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
    ) {
        let state = &mut self.ranks[LocalRank(slot)];
        let Waiting::Step(mut event) = state.waiting else { return };
        net.last_effect = net.now.max(net.last_effect);
        state.clock = state.clock.max(net.now);
        for _ in 0..BURST {
            let state = &mut self.ranks[LocalRank(slot)];
            let clock = state.clock;
            let op = state.program.step(Picoseconds(clock), event);
            state.clock += 1;
            match self.perform(adapters, net, slot, port, clock, op) {
                After::Goes(answer) => event = answer,
                After::Until(time, answer) => return self.step_at(net, slot, port, time, answer),
                After::Waits(waiting) => {
                    self.ranks[LocalRank(slot)].waiting = waiting;
                    return;
                }
            }
        }
        let clock = self.ranks[LocalRank(slot)].clock;
        self.step_at(net, slot, port, clock, event);
    }

    /// Does an operation that a program has asked for at `clock`.
    #[inline(always)]
    fn perform<M: Model, const V: usize>(
        &mut self,
        adapters: &mut Adapters<M, V>,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        clock: u64,
        op: Op,
    ) -> After {
        let mut post =
            Post { born: clock, destination: 0, bytes: 1, group: 0, handle: None, tag: None };
        match op {
            Op::Offer { dst, bytes, group, next } => {
                (post.destination, post.bytes, post.group) = (dst.0, bytes.max(1), group);
                if dst.0 != adapters.rank(slot) {
                    adapters.post(net, slot, port, post);
                }
                match next {
                    None => After::Waits(Waiting::Ended),
                    Some(next) if next.0 > clock + 1 => After::Until(next.0, Event::Elapsed),
                    Some(_) => After::Goes(Event::Elapsed),
                }
            }
            Op::Put { dst, bytes, group, tracked } => {
                (post.destination, post.bytes, post.group) = (dst.0, bytes.max(1), group);
                After::Goes(self.post(adapters, net, slot, port, post, tracked))
            }
            Op::Send { dst, bytes, tag, group, tracked } => {
                (post.destination, post.bytes, post.group) = (dst.0, bytes.max(1), group);
                post.tag = Some(tag);
                After::Goes(self.post(adapters, net, slot, port, post, tracked))
            }
            Op::Recv { src, tag } => After::Goes(Event::Posted(self.receive(slot, src.0, tag))),
            Op::Wait(handle) => match self.completed(slot, handle) {
                None => After::Waits(Waiting::Operation(handle)),
                Some(time) if time > clock => After::Until(time, Event::Completed(handle)),
                Some(_) => After::Goes(Event::Completed(handle)),
            },
            Op::Compute(span) => {
                let end = clock.saturating_add(span.0.max(1)).min(Picoseconds::MAX_RUN.0);
                After::Until(end.max(clock + 1), Event::Elapsed)
            }
            Op::WaitUntil(time) if time.0 > clock => After::Until(time.0, Event::Elapsed),
            Op::WaitUntil(_) => After::Goes(Event::Elapsed),
            Op::Done => After::Waits(Waiting::Ended),
        }
    }

    /// Has the program stepped at `time` with `event`.
    fn step_at<B: PortSet, O: Observer, const V: usize>(
        &mut self,
        net: &mut Network<B, O, V>,
        slot: u32,
        port: PortIndex,
        time: u64,
        event: Event,
    ) {
        self.ranks[LocalRank(slot)].waiting = Waiting::Step(event);
        let time = time.max(net.now + 1);
        net.schedule(time, port, Kind::Step, 0, 0);
    }

    /// A program posts a message.
    fn post<M: Model, const V: usize>(
        &mut self,
        adapters: &mut Adapters<M, V>,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        post: Post,
        tracked: bool,
    ) -> Event {
        let state = &mut self.ranks[LocalRank(slot)];
        let handle = state.handle();
        // The CPU is busy for the overhead, and the message ready after it.
        state.clock = state.clock.max(post.born + self.send_overhead);
        let post = Post { handle: tracked.then_some(handle), ..post };
        let rank = adapters.rank(slot);
        if post.destination != rank {
            adapters.post(net, slot, port, post);
            return Event::Posted(handle);
        }
        // By memory: it never enters the fabric.
        if let Some(tag) = post.tag {
            self.arrived(net, slot, port, rank, tag);
        }
        if let Some(handle) = post.handle {
            self.finished(net, slot, port, handle, 0);
        }
        Event::Posted(handle)
    }

    fn receive(&mut self, slot: u32, source: u32, tag: u32) -> Handle {
        let state = &mut self.ranks[LocalRank(slot)];
        let (handle, clock) = (state.handle(), state.clock);
        let matching = state.matching();
        match matching.unexpected.iter().position(|known| *known == (source, tag)) {
            Some(index) => {
                matching.unexpected.remove(index);
                matching.done.push((handle, clock));
                matching.received.push(handle);
            }
            None => matching.receives.push((source, tag, handle)),
        }
        handle
    }

    /// When a completed operation has cost its rank what it costs, if it is complete.
    fn completed(&mut self, slot: u32, handle: Handle) -> Option<u64> {
        let overhead = self.receive_overhead;
        let state = &mut self.ranks[LocalRank(slot)];
        // This operation's own picosecond is not waited for.
        let clock = state.clock - 1;
        let done = &mut state.matching().done;
        let index = done.iter().position(|known| known.0 == handle)?;
        let (_, time) = done.swap_remove(index);
        // A message is taken out of the adapter's hands by the CPU that waits for it.
        let cost = if state.takes_received(handle) { overhead } else { 0 };
        Some(time.max(clock) + cost)
    }

    /// Tells a program what its adapter, at `port`, had to tell.
    pub(crate) fn tell<B: PortSet, O: Observer, const V: usize>(
        &mut self,
        net: &mut Network<B, O, V>,
        port: PortIndex,
        told: Told,
    ) {
        match told {
            Told::Finished { slot, handle } => self.finished(net, slot, port, handle, 0),
            Told::Arrived { slot, source, tag } => self.arrived(net, slot, port, source, tag),
        }
    }

    /// A two-sided message is complete: it meets its receive or waits for it.
    fn arrived<B: PortSet, O: Observer, const V: usize>(
        &mut self,
        net: &mut Network<B, O, V>,
        slot: u32,
        port: PortIndex,
        source: u32,
        tag: u32,
    ) {
        let matching = self.ranks[LocalRank(slot)].matching();
        match matching.receives.iter().position(|known| (known.0, known.1) == (source, tag)) {
            Some(index) => {
                let (_, _, handle) = matching.receives.remove(index);
                matching.received.push(handle);
                let overhead = self.receive_overhead;
                self.finished(net, slot, port, handle, overhead);
            }
            None => matching.unexpected.push((source, tag)),
        }
    }

    /// An operation is complete; the program goes on if it waits for this one, after what that
    /// costs.
    fn finished<B: PortSet, O: Observer, const V: usize>(
        &mut self,
        net: &mut Network<B, O, V>,
        slot: u32,
        port: PortIndex,
        handle: Handle,
        cost: u64,
    ) {
        let now = net.now;
        let state = &mut self.ranks[LocalRank(slot)];
        if state.waiting == Waiting::Operation(handle) {
            state.takes_received(handle);
            let time = now.max(state.clock) + cost;
            self.step_at(net, slot, port, time, Event::Completed(handle));
        } else {
            state.matching().done.push((handle, now));
        }
    }

    /// Slots of the ranks whose programs have not ended.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        let unfinished = |(slot, state): (usize, &RankState)| {
            (state.waiting != Waiting::Ended).then_some(slot as u32)
        };
        self.ranks.iter().enumerate().filter_map(unfinished)
    }
}
