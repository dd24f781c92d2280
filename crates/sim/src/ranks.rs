//! Programs in motion: they are stepped, their messages posted, their receives matched.

use crate::adapter::Message;
use crate::control::Control;
use crate::control::FlowKey;
use crate::engine::{Engine, STEP, key};
use crate::forward::{Forwarder, Forwarding};
use crate::network::NIL;
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::{Hosts, wheel};
use clearlane_fabric::Fabric;
use clearlane_ib::{Picoseconds, ServiceLevel, VirtualLane};
use clearlane_subnet::PathSl;
use clearlane_workload::{Event, Handle, Op, Rank, RankProgram};

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

/// One rank.
pub(crate) struct RankState {
    program: Box<dyn RankProgram>,
    /// Never behind the engine's; every operation advances it by 1 ps.
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
}

impl RankState {
    pub(crate) fn new(program: Box<dyn RankProgram>) -> Self {
        RankState {
            program,
            clock: 0,
            waiting: Waiting::Step(Event::Start),
            next_handle: 0,
            matching: None,
        }
    }

    fn matching(&mut self) -> &mut Matching {
        self.matching.get_or_insert_default()
    }
}

/// LIDs and service levels of ranks.
pub(crate) struct Addressing {
    lids: Vec<u32>,
    /// Rows of the path SL table; empty where every path has the same.
    rows: Vec<u32>,
    path_sl: PathSl,
    adapter_lanes: [VirtualLane; 16],
}

impl Addressing {
    pub(crate) fn new(fabric: &Fabric, hosts: &Hosts, forwarding: Forwarding<'_>) -> Self {
        let ranks = 0..hosts.count() as u32;
        match forwarding {
            Forwarding::Tables(subnet) => {
                let lid = |rank| subnet.lids.base(hosts.end(Rank(rank)));
                let row = |rank| {
                    let peer = fabric.peer(hosts.end(Rank(rank)))?;
                    subnet.tables.row_of(peer.node)
                };
                Addressing {
                    // `check_tables` has seen a LID for every host and a switch at its port.
                    lids: ranks
                        .clone()
                        .map(|r| lid(r).map_or(0, |(lid, _)| lid.value().into()))
                        .collect(),
                    rows: ranks.map(|rank| row(rank).unwrap_or(0) as u32).collect(),
                    path_sl: subnet.path_sl.clone(),
                    adapter_lanes: subnet.sl_to_vl.adapter,
                }
            }
            Forwarding::DimensionOrder(_) => Addressing {
                lids: ranks.clone().collect(),
                rows: Vec::new(),
                path_sl: PathSl::Uniform(ServiceLevel::default()),
                adapter_lanes: [VirtualLane::default(); 16],
            },
        }
    }

    /// LID of a rank; its number where forwarding is by rule.
    #[inline(always)]
    pub(crate) fn lid(&self, rank: u32) -> u32 {
        self.lids[rank as usize]
    }

    /// Lane of a service level on the link from adapter to switch.
    #[inline(always)]
    pub(crate) fn lane(&self, sl: u8) -> VirtualLane {
        self.adapter_lanes[usize::from(sl & 15)]
    }

    /// Service level of a path.
    pub(crate) fn sl(&self, source: u32, destination: u32, path: u8) -> u8 {
        let row = |rank: u32| self.rows.get(rank as usize).map_or(0, |row| *row as usize);
        self.path_sl.level_at(row(source), row(destination), path.into()).value()
    }
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Steps a program until it has to wait.
    pub(crate) fn step_rank(&mut self, rank: u32) {
        let Waiting::Step(mut event) = self.ranks[rank as usize].waiting else { return };
        let state = &mut self.ranks[rank as usize];
        state.clock = state.clock.max(self.now);
        for _ in 0..BURST {
            let state = &mut self.ranks[rank as usize];
            let clock = state.clock;
            let op = state.program.step(Picoseconds(clock), event);
            state.clock += 1;
            match op {
                Op::Put { dst, bytes, group, tracked } => {
                    let handle = self.handle(rank);
                    let tracked = tracked.then_some(handle);
                    self.post(rank, clock, dst.0, bytes, group, tracked, None);
                    event = Event::Posted(handle);
                }
                Op::Send { dst, bytes, tag, group, tracked } => {
                    let handle = self.handle(rank);
                    let tracked = tracked.then_some(handle);
                    self.post(rank, clock, dst.0, bytes, group, tracked, Some(tag));
                    event = Event::Posted(handle);
                }
                Op::Recv { src, tag } => event = Event::Posted(self.receive(rank, src.0, tag)),
                Op::Wait(handle) => {
                    let state = &mut self.ranks[rank as usize];
                    let done = &mut state.matching().done;
                    match done.iter().position(|done| done.0 == handle) {
                        Some(index) => {
                            let (_, time) = done.swap_remove(index);
                            event = Event::Completed(handle);
                            if time > clock {
                                return self.step_at(rank, time, event);
                            }
                        }
                        None => {
                            state.waiting = Waiting::Operation(handle);
                            return;
                        }
                    }
                }
                Op::Compute(span) => {
                    return self.step_at(rank, clock + span.0.max(1), Event::Elapsed);
                }
                Op::WaitUntil(time) if time.0 > clock => {
                    return self.step_at(rank, time.0, Event::Elapsed);
                }
                Op::WaitUntil(_) => event = Event::Elapsed,
                Op::Done => {
                    self.ranks[rank as usize].waiting = Waiting::Ended;
                    return;
                }
            }
        }
        let clock = self.ranks[rank as usize].clock;
        self.step_at(rank, clock, event);
    }

    fn handle(&mut self, rank: u32) -> Handle {
        let state = &mut self.ranks[rank as usize];
        state.next_handle = state.next_handle.wrapping_add(1);
        Handle(state.next_handle)
    }

    /// Has the program stepped at `time` with `event`.
    fn step_at(&mut self, rank: u32, time: u64, event: Event) {
        self.ranks[rank as usize].waiting = Waiting::Step(event);
        let key = key(self.hosts_at + rank, STEP, 0);
        self.wheel.push(wheel::Event { time: time.max(self.now + 1), key, packet: 0 });
    }

    #[allow(clippy::too_many_arguments)]
    fn post(
        &mut self,
        rank: u32,
        born: u64,
        destination: u32,
        bytes: u64,
        group: u16,
        handle: Option<Handle>,
        tag: Option<u32>,
    ) {
        if destination == rank {
            // By memory: it never enters the fabric.
            if let Some(tag) = tag {
                self.arrived(rank, rank, tag);
            }
            if let Some(handle) = handle {
                self.finish_operation(rank, handle, self.now);
            }
            return;
        }
        let settings = self.groups[usize::from(group)];
        let bytes = bytes.max(1);
        self.totals.messages_posted += 1;
        let message = Message {
            next: NIL,
            source: rank,
            destination,
            queue_pair: NIL,
            tag: tag.unwrap_or(0),
            handle,
            bytes,
            sent: 0,
            ready: born + self.parameters.send_overhead.0,
            born,
            dlid: self.addressing.lid(destination),
            flow: NIL,
            whole: NIL,
            group,
            sl: settings
                .sl
                .map_or_else(|| self.addressing.sl(rank, destination, 0), |sl| sl.value()),
            path: 0,
            lane: 0,
            told: tag.is_some(),
        };
        match self.stripes(&message) {
            None => self.post_stripe(message),
            Some(stripes) => stripes.into_iter().for_each(|stripe| self.post_stripe(stripe)),
        }
    }

    /// Has a message, or one of its stripes, wait for the software overhead to be over.
    #[inline(always)]
    fn post_stripe(&mut self, mut message: Message) {
        let Message { source: rank, destination, group, path, sl, ready, .. } = message;
        if O::ON {
            let transport = self.groups[usize::from(group)].transport;
            let header = u64::from(self.parameters.header_bytes(transport));
            let packets = message.bytes.div_ceil(u64::from(self.parameters.mtu));
            let wire_bytes = message.bytes + packets * header;
            self.observer.on_posted(message.born, group, wire_bytes);
        }
        message.lane = self.first_lane(sl).value();
        message.flow = self.flow(FlowKey { source: rank, destination, group, path, sl });
        let id = match self.free_messages.pop() {
            Some(id) => {
                self.messages[id] = message;
                id
            }
            None => {
                self.messages.push(message);
                self.messages.len() as u32 - 1
            }
        };
        let port = self.hosts_at + rank;
        self.adapters[rank].posted.push_back(&mut self.messages, id);
        if ready <= self.now {
            self.dirty.push(port);
        } else {
            self.wake(port, ready);
        }
    }

    fn receive(&mut self, rank: u32, source: u32, tag: u32) -> Handle {
        let handle = self.handle(rank);
        let state = &mut self.ranks[rank as usize];
        let clock = state.clock;
        let matching = state.matching();
        match matching.unexpected.iter().position(|m| *m == (source, tag)) {
            Some(index) => {
                matching.unexpected.remove(index);
                matching.done.push((handle, clock));
            }
            None => matching.receives.push((source, tag, handle)),
        }
        handle
    }

    /// A two-sided message is complete at `rank`: it meets its receive or waits for it.
    pub(crate) fn arrived(&mut self, rank: u32, source: u32, tag: u32) {
        let matching = self.ranks[rank as usize].matching();
        match matching.receives.iter().position(|r| (r.0, r.1) == (source, tag)) {
            Some(index) => {
                let (_, _, handle) = matching.receives.remove(index);
                let told = self.now + self.parameters.receive_overhead.0;
                self.finish_operation(rank, handle, told);
            }
            None => matching.unexpected.push((source, tag)),
        }
    }

    /// An operation is complete at `time`; the program goes on if it waits for this one.
    pub(crate) fn finish_operation(&mut self, rank: u32, handle: Handle, time: u64) {
        let state = &mut self.ranks[rank as usize];
        if state.waiting == Waiting::Operation(handle) {
            self.step_at(rank, time, Event::Completed(handle));
        } else {
            state.matching().done.push((handle, time));
        }
    }

    /// The ranks whose programs have not ended.
    pub(crate) fn unfinished(&self) -> Vec<Rank> {
        let unfinished = |(rank, state): (usize, &RankState)| {
            (state.waiting != Waiting::Ended).then_some(Rank(rank as u32))
        };
        self.ranks.iter().enumerate().filter_map(unfinished).collect()
    }
}
