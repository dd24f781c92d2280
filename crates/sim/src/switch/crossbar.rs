//! Crossbars with limits of their own: reads of a whole input port one after the other, stages that
//! a head without credits pays again, and buffers behind the crossbar.
//!
//! Where a port feeds one output at a time, outputs that choose at one instant may want the same
//! input. So they choose in rounds from one state: each proposes a head, each input accepts one
//! output, in turn, and who was refused proposes again (iSLIP: McKeown, IEEE/ACM Trans. Networking
//! 7(2), 1999). The order in which outputs were touched cannot be seen.
//!
//! The head whose turn it is holds its lane of its output while it lacks credits, or room in the
//! buffer of the output. It does so also while its input is read for another output. A head that
//! waits for its input alone lets others go first.
//!
//! Allocation works ahead of the link: a head that waits for its output, for its turn or for the
//! packet before it bids while that packet is still being sent, and follows it without a gap (Dally
//! and Towles, Principles and Practices of Interconnection Networks, 16.2: the stages of one packet
//! overlap the traversal of another). Credits cannot be foreseen. A head that found none when the
//! link was free for it is allotted the far buffer (VA) and the crossbar (SA) once they are there.

use super::output_buffer::OutputBuffers;
use super::{Candidate, Choice, Exit, Switches, Way};
use crate::arbiter::{Arbiter, Table};
use crate::model::{Markers, Model};
use crate::network::{Home, NetworkOf};
use crate::packet::PacketIndex;
use crate::port::{NEVER, PortIndex};
use crate::port_set::PortSet;
use crate::records::{Records, blank, index};
use crate::{CrossbarReads, Parameters};
use clearlane_ib::wire;

pub(crate) use saved::SavedCrossbars;

mod saved;

index!(
    /// A lane of an output.
    OutputLane
);

/// What crossbars are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CrossbarSettings {
    /// Whether an input port is read for one output at a time.
    by_port: bool,
    /// Credits of the buffer of each lane of an output; 0 without.
    pub(super) room: u32,
    /// What a head pays once there are credits again, in ps.
    again: u64,
}

impl CrossbarSettings {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        let buffer = parameters.output_buffer;
        // Behind the crossbar a packet has been allotted it already.
        let sa = if buffer.is_some() { 0 } else { parameters.sa_delay.0 };
        CrossbarSettings {
            by_port: parameters.crossbar_reads == CrossbarReads::Port,
            room: buffer.map_or(0, |bytes| bytes / wire::CREDIT_UNIT),
            again: parameters.va_delay.0 + sa,
        }
    }

    /// Whether they limit anything that an output's link does not.
    pub(crate) fn limits(self) -> bool {
        self.by_port || self.room > 0 || self.again > 0
    }
}

/// A lane whose packet found no credits when the link was free for it.
const STARVED: u64 = NEVER;

/// The crossbars of a partition's switches.
pub(crate) struct Crossbars {
    pub(super) settings: CrossbarSettings,
    /// By port, where an input is read for one output at a time: until when it is, and the output
    /// after the one it was read for last.
    reads: Records<PortIndex, (u64, u8)>,
    /// By output and lane, where stages are paid again: until when, or `STARVED`.
    allotted: Records<OutputLane, u64>,
    pub(crate) behind: OutputBuffers,
    /// Packets that leave for hosts.
    pub(crate) exits: Vec<Exit>,
    /// Touched outputs of one instant, those of them that are still open, and what these propose.
    /// Empty between instants; kept for the room they have taken.
    touched: Vec<PortIndex>,
    open: Vec<PortIndex>,
    proposals: Vec<Proposal>,
}

/// A head that an output would take.
struct Proposal {
    output: PortIndex,
    choice: Choice,
    /// What becomes of the turns of its lanes if it is refused; nothing if one lane alone could be
    /// chosen, which takes no turn.
    turns: Option<Arbiter>,
}

impl Crossbars {
    /// Of so many ports with so many lanes each.
    pub(super) fn new(settings: CrossbarSettings, ports: usize, lanes: usize) -> Self {
        let reads = if settings.by_port { ports } else { 0 };
        let allotted = if settings.again > 0 { ports * lanes } else { 0 };
        let buffers = if settings.room > 0 { ports } else { 0 };
        Crossbars {
            settings,
            reads: blank(reads, (0, 0)),
            allotted: blank(allotted, 0),
            behind: OutputBuffers::new(settings.room, buffers, lanes),
            exits: Vec::new(),
            touched: Vec::new(),
            open: Vec::new(),
            proposals: Vec::new(),
        }
    }

    /// Asks for what says until when an input is read.
    #[inline(always)]
    pub(crate) fn prefetch_read(&self, input: PortIndex) {
        self.reads.prefetch::<1>(input);
    }

    /// Asks for what says until when stages of an output are paid again.
    #[inline(always)]
    pub(crate) fn prefetch_allotted<const V: usize>(&self, output: PortIndex) {
        self.allotted.prefetch::<1>(numbered::<V>(output, 0));
    }

    /// Until when an input is read for an output; `None` if it is not.
    #[inline(always)]
    fn read_until(&self, input: PortIndex, now: u64) -> Option<u64> {
        if !self.settings.by_port {
            return None;
        }
        Some(self.reads[input].0).filter(|until| *until > now)
    }

    /// A packet leaves (output, lane) by the link: what was allotted is used, and other lanes wait
    /// for the link now, whatever they waited for before.
    pub(super) fn sends<const V: usize>(&mut self, output: PortIndex, lane: u8) {
        if self.settings.again == 0 {
            return;
        }
        for other in 0..V as u8 {
            let at = &mut self.allotted[numbered::<V>(output, other)];
            if other == lane || *at == STARVED {
                *at = 0;
            }
        }
    }
}

/// The number of a lane of an output.
#[inline(always)]
pub(super) fn numbered<const V: usize>(output: PortIndex, lane: u8) -> OutputLane {
    OutputLane(output.0 * V as u32 + u32::from(lane))
}

/// Why an output sends nothing: whether a packet lacks credits, and when to look again.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) stalled: bool,
    pub(super) until: u64,
}

impl Held {
    /// Nothing is known yet.
    pub(super) const NOTHING: Held = Held { stalled: false, until: NEVER };

    pub(super) fn and(self, other: Held) -> Held {
        let stalled = self.stalled | other.stalled;
        Held { stalled, until: self.until.min(other.until) }
    }
}

impl<M: Model> Switches<M> {
    /// Credits of the buffer of each lane of an output; 0 without.
    pub(crate) fn output_buffer(&self) -> u32 {
        self.crossbars.settings.room
    }

    /// Phase 2 of all outputs of a switch that were touched.
    #[inline(never)]
    pub(crate) fn arbitrate_together<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        home: Home,
    ) {
        let mut touched = std::mem::take(&mut self.crossbars.touched);
        let outputs = net.dirty.iter().copied();
        touched.extend(outputs.filter(|port| net.place(*port) < home.switch_ports.into()));
        if let [output] = touched[..] {
            self.arbitrate_one(net, output);
        } else {
            touched.sort_unstable();
            touched.dedup();
            self.arbitrate_several(net, &touched);
        }
        touched.clear();
        self.crossbars.touched = touched;
    }

    /// Serves one output: no other wants its head.
    #[inline(always)]
    fn arbitrate_one<const V: usize>(&mut self, net: &mut NetworkOf<M, V>, output: PortIndex) {
        self.make_room(net, output);
        if let Some(Proposal { choice, .. }) = self.propose(net, output) {
            let exit = self.grant(net, output, choice);
            self.crossbars.exits.extend(exit);
        }
        let exit = self.send_buffered(net, output);
        self.crossbars.exits.extend(exit);
    }

    /// Serves several outputs in rounds.
    fn arbitrate_several<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        touched: &[PortIndex],
    ) {
        touched.iter().for_each(|output| self.make_room(net, *output));
        let mut open = std::mem::take(&mut self.crossbars.open);
        open.extend_from_slice(touched);
        while !open.is_empty() {
            self.propose_all(net, &mut open);
            self.accept(net, &mut open);
        }
        self.crossbars.open = open;
        for output in touched {
            let exit = self.send_buffered(net, *output);
            self.crossbars.exits.extend(exit);
        }
    }

    /// Each output that is open proposes a head; those that have none are no longer open.
    fn propose_all<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        open: &mut Vec<PortIndex>,
    ) {
        let mut proposals = std::mem::take(&mut self.crossbars.proposals);
        for output in open.drain(..) {
            proposals.extend(self.propose(net, output));
        }
        self.crossbars.proposals = proposals;
    }

    /// Has each input accept one proposal. The others stay open. Where lanes are read by
    /// themselves, all are accepted: no two outputs want the same head.
    fn accept<const V: usize>(&mut self, net: &mut NetworkOf<M, V>, open: &mut Vec<PortIndex>) {
        let mut proposals = std::mem::take(&mut self.crossbars.proposals);
        let by_port = self.crossbars.settings.by_port;
        if by_port {
            let turn = |proposal: &Proposal| {
                let input = proposal.choice.input;
                let next = u32::from(self.crossbars.reads[input].1);
                (input, (net.place(proposal.output) + 256 - next) % 256)
            };
            proposals.sort_unstable_by_key(turn);
        }
        let mut last = None;
        for Proposal { output, choice, turns } in proposals.drain(..) {
            if by_port && last == Some(choice.input) {
                if let Some(turns) = turns {
                    net.arbitration.set_turns(output, turns);
                }
                open.push(output);
                continue;
            }
            last = Some(choice.input);
            let exit = self.grant(net, output, choice);
            self.crossbars.exits.extend(exit);
        }
        self.crossbars.proposals = proposals;
    }

    /// The head an output would take now.
    fn propose<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        output: PortIndex,
    ) -> Option<Proposal> {
        let mut lanes = net.ports[output].waiting;
        if lanes == 0 {
            return None;
        }
        let taken_until = self.crossbars.behind.taken_until(output, net.ports[output].free_at);
        if taken_until > net.now {
            net.wake(output, taken_until);
            return None;
        }
        let (mut eligible, mut held) = (0u16, Held::NOTHING);
        let mut chosen = [(PortIndex(0), 0u8); V];
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let until = match self.candidate(net, output, lane) {
                Candidate::Ready { input, lane: from, credits, sooner } => {
                    match self.may_take(net, output, lane, credits) {
                        Ok(()) => {
                            eligible |= 1 << lane;
                            chosen[usize::from(lane) % V] = (input, from);
                            continue;
                        }
                        Err(other) => Held { until: other.until.min(sooner), ..other },
                    }
                }
                Candidate::Later(until) => Held { stalled: false, until },
            };
            held = held.and(until);
        }
        if eligible == 0 {
            net.hold(output, held.stalled, held.until);
            return None;
        }
        let behind = self.crossbars.settings.room > 0;
        // Not read where it is not needed: in a large fabric that is a cache line of its own.
        let several = !behind && !eligible.is_power_of_two();
        let turns = several.then(|| net.arbitration.turns(output));
        let (lane, table) = match behind {
            false => net.arbitration.choose(output, eligible),
            true => (self.crossbars.behind.turn(output, eligible), Table::Neither),
        };
        let (input, from) = chosen[usize::from(lane) % V];
        Some(Proposal { output, choice: Choice { lane, table, input, from }, turns })
    }

    /// Time at which the input of a head is free, if the head waits for nothing else. `None` if it
    /// waits for nothing, or lacks credits or room.
    #[inline(always)]
    pub(super) fn waits_for_input<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        (output, lane): (u8, u8),
        credits: u16,
    ) -> Option<u64> {
        let until = self.crossbars.read_until(input, net.now)?;
        let output = net.port(output.into());
        let has_way = match self.crossbars.settings.room {
            0 => net.credits_now(output, lane) >= credits,
            _ => self.crossbars.behind.has_room(numbered::<V>(output, lane), credits),
        };
        has_way.then_some(until)
    }

    /// Whether (output, lane) can take a packet of so many credits: onto the link, or into the
    /// buffer before it.
    fn may_take<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        output: PortIndex,
        lane: u8,
        credits: u16,
    ) -> Result<(), Held> {
        if self.crossbars.settings.room == 0 {
            return self.may_send(net, output, lane, credits);
        }
        if self.crossbars.behind.has_room(numbered::<V>(output, lane), credits) {
            return Ok(());
        }
        // When what is sent has left; if nothing is, whoever sends next sees that somebody waits.
        let free_at = net.ports[output].free_at;
        Err(Held { stalled: false, until: if free_at > net.now { free_at } else { NEVER } })
    }

    /// Whether a packet of so many credits may leave (output, lane) by the link, which is free.
    pub(super) fn may_send<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        output: PortIndex,
        lane: u8,
        credits: u16,
    ) -> Result<(), Held> {
        let again = self.crossbars.settings.again;
        if !net.has_credits(output, lane, credits) {
            let until = net.credits_at(output, lane, credits);
            if again > 0 {
                let at = &mut self.crossbars.allotted[numbered::<V>(output, lane)];
                // Another head is being allotted the lane until then, and its input is read
                // meanwhile. A look before then changes nothing: not every division has it.
                if *at > net.now && *at != STARVED {
                    return Err(Held { stalled: false, until: until.min(*at) });
                }
                *at = STARVED;
            }
            self.markers.on_starved(output, lane);
            return Err(Held { stalled: true, until });
        }
        if again > 0 {
            let at = &mut self.crossbars.allotted[numbered::<V>(output, lane)];
            if *at == STARVED {
                *at = net.now + again;
            }
            if *at > net.now {
                return Err(Held { stalled: false, until: *at });
            }
        }
        Ok(())
    }

    /// A packet that is no longer in a buffer of its input crosses: onto the link, or into the
    /// buffer before it. Returned if it leaves for a host.
    pub(super) fn cross<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        way: &Way,
        id: PacketIndex,
        (busy, left): (u64, u64),
    ) -> Option<Exit> {
        if self.crossbars.settings.by_port {
            let next = (net.place(way.output) + 1) % M::Ports::PORTS;
            self.crossbars.reads[way.input] = (left, next as u8);
        }
        if self.crossbars.settings.room > 0 {
            self.put_behind(net, way, id, left);
            return None;
        }
        self.crossbars.sends::<V>(way.output, way.lane);
        self.depart(net, way, id, busy, left)
    }
}
