//! The library's face: a set-up goes in, an outcome comes out. Which instance of the simulator runs
//! is decided here, in one place, so that no instance is built that no set-up reaches.

use crate::adapter::{AdapterSettings, Adapters, PacketSize};
use crate::addressing::Addressing;
use crate::arbiter::Arbitration;
use crate::cabling::Cabling;
use crate::checkpoint::RunState;
use crate::control::{AdapterReactors, MarkedPort, OutputMarkers, Record, SharedMechanisms};
use crate::error::SetupError;
use crate::fleet::Crew;
use crate::forward::{AdaptiveForwarder, Forwarding, GridForwarder, TableForwarder};
use crate::model::{Forwarder, Markers, Model, Observer, Reactors, Uncontrolled};
use crate::network::Network;
use crate::outcome::Tapped;
use crate::partition::Partition;
use crate::port::{LinkKind, PortIndex};
use crate::port_set::PortSet;
use crate::ranks::{Placement, Ranks, Seat};
use crate::recorder::{NoObserver, Recorder, Recording, Slices};
use crate::setup::{self, Job, Placed, Setup, Status, fits_few, radix};
use crate::switch::{CrossbarSettings, Switches};
use crate::windows::{Limits, Run, Windows};
use crate::{Hosts, InputQueueing, Outcome, Parameters, Totals};
use clearlane_congestion::Source;
use clearlane_ib::{LinkRate, Picoseconds, Saved, StateError, wire};
use clearlane_ranks::{Process, Settings};
use clearlane_subnet::{Subnet, VlArbitration};
use clearlane_workload::{Rank, RankProgram, Transport};
use rustc_hash::FxHashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whose state it is, and the version of its layout.
const STATE: &str = "simulation";
const VERSION: u16 = 2;

/// A simulation under way.
pub struct Simulation {
    run: Box<dyn Run>,
}

impl Simulation {
    /// Builds the network and starts the programs. Fails if a parameter is out of range or a table
    /// would send a packet nowhere.
    pub fn new(mut setup: Setup<'_>) -> Result<Self, SetupError> {
        let hosts = Hosts::with_ports(setup.fabric, setup.parameters.adapter_ports);
        setup.check(&hosts)?;
        // From here on a buffer is that of a lane.
        setup.parameters.buffer = setup.parameters.lane_buffer(setup.forwarding.lanes());
        let run = match setup.forwarding {
            Forwarding::Tables(subnet) => with_tables(setup, hosts, subnet),
            Forwarding::DimensionOrder(grid, ties) => {
                let forwarder = GridForwarder::new(setup.fabric, (grid, ties), &hosts)?;
                with_rule(setup, hosts, forwarder)
            }
        };
        Ok(Simulation { run })
    }

    /// A simulation that goes on from where one of the same set-up was [saved](Self::save), however
    /// either is divided: it comes to the same outcome to the last byte. Fails if the set-up is
    /// refused, or the state is of another set-up or version, or damaged.
    pub fn resume(setup: Setup<'_>, saved: &Saved) -> Result<Self, SetupError> {
        let state: RunState = saved.state(STATE, VERSION)?;
        let (fabric, forwarding, groups) = (setup.fabric, setup.forwarding, setup.groups.len());
        let mut simulation = Self::new(setup)?;
        let ways = state.ways(simulation.run.homes());
        let leads = match forwarding {
            // The rule leads from everywhere to everywhere.
            Forwarding::DimensionOrder(..) => true,
            Forwarding::Tables(subnet) => setup::lead(fabric, subnet, ways),
        };
        let loaded = simulation.run.load(state, groups as u16).filter(|()| leads);
        loaded.ok_or(SetupError::State(StateError::Damaged(STATE)))?;
        Ok(simulation)
    }

    /// The state of a whole run, of what its processes saved at one instant, in their order. Fails
    /// if they are not of one run and instant, or damaged.
    pub fn joined(parts: &[Saved]) -> Result<Saved, StateError> {
        let mut parts = parts.iter().map(|part| part.state::<RunState>(STATE, VERSION));
        let mut whole = parts.next().ok_or(StateError::Damaged(STATE))??;
        for part in parts {
            whole.append(part?).ok_or(StateError::Damaged(STATE))?;
        }
        whole.sort();
        Ok(Saved::new(STATE, VERSION, &whole))
    }

    /// Everything that moves in the run, so that [`Simulation::resume`] can go on from here, or end
    /// as it has ended; of several processes, which all save at one instant, the part of this one:
    /// see [`Simulation::joined`]. Nothing if a program cannot be saved.
    pub fn save(&mut self) -> Option<Saved> {
        self.run.save().map(|state| Saved::new(STATE, VERSION, &state))
    }

    /// Advances simulated time to `until` or to the end, whichever comes first.
    pub fn run_until(&mut self, until: Picoseconds) -> Status {
        self.advance(until, &AtomicBool::new(false))
    }

    /// The same, but returns [`Status::Paused`] soon after `pause` is set: within microseconds of
    /// simulated time. Whoever sets it, clears it.
    pub fn advance(&mut self, until: Picoseconds, pause: &AtomicBool) -> Status {
        self.run.advance(until.0.min(Picoseconds::MAX_RUN.0), pause)
    }

    /// Simulated time reached.
    pub fn now(&self) -> Picoseconds {
        Picoseconds(self.run.now())
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.run.totals()
    }

    /// Messages that take memory: those posted and not yet done with. Where a mechanism divides
    /// messages, each part counts.
    pub fn messages_kept(&self) -> u64 {
        self.run.messages_kept()
    }

    /// Events served so far. No result: it differs with the division of a run.
    pub fn events(&self) -> u64 {
        self.run.events()
    }

    /// Parts of the fabric that are simulated side by side.
    pub fn partitions(&self) -> usize {
        self.run.partitions()
    }

    /// Threads they are simulated on.
    pub fn threads(&self) -> usize {
        self.run.threads()
    }

    /// Measures what windows take on each thread from now on, by `clock`, the CPU time of the
    /// calling thread in any unit: for [`Simulation::balance`].
    pub fn measure(&mut self, clock: fn() -> u64) {
        self.run.measure(clock);
    }

    /// What windows took on all threads together, and what they took on the thread each took
    /// longest on: their ratio is the speed-up that an even share of work would allow. 0 and 0
    /// unless it is measured on several partitions.
    pub fn balance(&self) -> (u64, u64) {
        self.run.balance()
    }

    /// What taps have seen up to now since the last call, by time, port, lane and kind.
    pub fn take_tapped(&mut self) -> Vec<Tapped> {
        self.run.take_tapped()
    }

    /// Checks every invariant (credits and packets conserved, no link above its rate) and hands out
    /// what was found. Panics with the place if an invariant does not hold: that is a fault of this
    /// program, never of its input.
    pub fn finish(self) -> Outcome {
        self.run.finish()
    }
}

/// An instance: how switches forward (`F`) and queue (`VOQ`), whether devices have limits of their
/// own (`LIMITED`), who watches (`O`), markers and reactors (`K`, `R`), the width of port
/// sets (`B`).
struct Instance<F, O, K, R, B, const VOQ: bool, const LIMITED: bool>(PhantomData<(F, O, K, R, B)>);

impl<F, O, K, R, B, const VOQ: bool, const LIMITED: bool> Model
    for Instance<F, O, K, R, B, VOQ, LIMITED>
where
    F: Forwarder,
    O: Observer + 'static,
    K: Markers + 'static,
    R: Reactors + 'static,
    B: PortSet,
{
    type Ports = B;
    type Forwarder = F;
    type Observer = O;
    type Markers = K;
    type Reactors = R;
    const VOQ: bool = VOQ;
    const LIMITED: bool = LIMITED;
}

/// Switches that forward by tables: by number of lanes and size of switches.
fn with_tables(setup: Setup<'_>, hosts: Hosts, subnet: &Subnet) -> Box<dyn Run> {
    let (fabric, lanes) = (setup.fabric, usize::from(subnet.sl_to_vl.lanes()));
    let tables = TableForwarder::new(fabric, subnet);
    let radix = radix(fabric);
    let voq = setup.parameters.input_queueing == InputQueueing::Voq;
    if let Some(groups) = &subnet.adaptive {
        let forwarder = AdaptiveForwarder::new(tables, subnet, groups);
        return with_any_lanes(setup, hosts, lanes, forwarder);
    }
    if voq || is_limited(&setup.parameters, &hosts) {
        return with_any_lanes(setup, hosts, lanes, tables);
    }
    if setup.control.is_some() {
        return match (lanes, radix) {
            (1, 0..=64) => controlled::<_, u64, 1, false, false>(setup, hosts, tables),
            (2, 0..=16) => controlled::<_, u16, 2, false, false>(setup, hosts, tables),
            (2, 17..=64) => controlled::<_, u64, 2, false, false>(setup, hosts, tables),
            _ => with_any_lanes(setup, hosts, lanes, tables),
        };
    }
    match (lanes, radix) {
        (1, 0..=64) => uncontrolled::<_, u64, 1>(setup, hosts, tables),
        (2, 0..=16) => uncontrolled::<_, u16, 2>(setup, hosts, tables),
        (2, 17..=64) => uncontrolled::<_, u64, 2>(setup, hosts, tables),
        (3..=8, 0..=64) => uncontrolled::<_, u64, 8>(setup, hosts, tables),
        _ => uncontrolled::<_, [u64; 4], 16>(setup, hosts, tables),
    }
}

/// Switches that forward by the rule of dimension order: they have two lanes.
fn with_rule(setup: Setup<'_>, hosts: Hosts, rule: GridForwarder) -> Box<dyn Run> {
    let voq = setup.parameters.input_queueing == InputQueueing::Voq;
    let limited = is_limited(&setup.parameters, &hosts);
    if limited && !voq && setup.control.is_none() && radix(setup.fabric) <= 16 {
        // The tori of nsim-2014, which has four links a node.
        return plain::<_, u16, 2, false, true>(setup, hosts, rule);
    }
    if voq || limited || setup.control.is_some() || radix(setup.fabric) > 64 {
        return with_any_lanes(setup, hosts, 2, rule);
    }
    match radix(setup.fabric) {
        0..=16 => uncontrolled::<_, u16, 2>(setup, hosts, rule),
        _ => uncontrolled::<_, u64, 2>(setup, hosts, rule),
    }
}

/// Instances for any number of lanes: one for common sizes, one for all.
fn with_any_lanes<F: Forwarder>(
    setup: Setup<'_>,
    hosts: Hosts,
    lanes: usize,
    forwarder: F,
) -> Box<dyn Run> {
    let few = fits_few(lanes, radix(setup.fabric));
    let voq = setup.parameters.input_queueing == InputQueueing::Voq;
    if is_limited(&setup.parameters, &hosts) {
        return match (voq, few) {
            (false, true) => seldom::<F, u64, 8, false, true>(setup, hosts, forwarder),
            (false, false) => seldom::<F, [u64; 4], 16, false, true>(setup, hosts, forwarder),
            (true, _) => seldom::<F, [u64; 4], 16, true, true>(setup, hosts, forwarder),
        };
    }
    match (setup.control.is_some(), voq, few) {
        (_, true, true) => seldom::<F, u64, 8, true, false>(setup, hosts, forwarder),
        (_, true, false) => seldom::<F, [u64; 4], 16, true, false>(setup, hosts, forwarder),
        (false, _, true) => uncontrolled::<F, u64, 8>(setup, hosts, forwarder),
        (false, _, false) => uncontrolled::<F, [u64; 4], 16>(setup, hosts, forwarder),
        (true, _, true) => controlled::<F, u64, 8, false, false>(setup, hosts, forwarder),
        (true, _, false) => controlled::<F, [u64; 4], 16, false, false>(setup, hosts, forwarder),
    }
}

/// Whether crossbars or adapters have limits of their own.
fn is_limited(parameters: &Parameters, hosts: &Hosts) -> bool {
    CrossbarSettings::of(parameters).limits() || hosts.share_memory(parameters)
}

/// Virtual output queues, or devices that have limits of their own. One instance whether watched
/// or not: there are many instances, each takes its time to compile, and few runs need these.
fn seldom<F: Forwarder, B: PortSet, const V: usize, const VOQ: bool, const LIMITED: bool>(
    setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    match setup.control.is_some() {
        true => controlled::<F, B, V, VOQ, LIMITED>(setup, hosts, forwarder),
        false => plain::<F, B, V, VOQ, LIMITED>(setup, hosts, forwarder),
    }
}

/// The same without mechanisms.
fn plain<F: Forwarder, B: PortSet, const V: usize, const VOQ: bool, const LIMITED: bool>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    let (groups, recording) = (setup.groups.len(), setup.recording.take());
    let limits = recording.unwrap_or(NOTHING).limits();
    let builder = Builder::new(setup, hosts, forwarder, limits);
    type Plain<F, B, const VOQ: bool, const LIMITED: bool> =
        Instance<F, Option<Recorder>, Uncontrolled, Uncontrolled, B, VOQ, LIMITED>;
    builder.build::<Plain<F, B, VOQ, LIMITED>, V>(
        |ports, taps| recording.map(|what| Recorder::new(what, groups, ports, taps)),
        |_, _| (Uncontrolled, Uncontrolled),
    )
}

/// Without mechanisms, watched or not.
fn uncontrolled<F: Forwarder, B: PortSet, const V: usize>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    let groups = setup.groups.len();
    match setup.recording.take() {
        None => {
            let limits = Limits { flow_bytes_max: u64::MAX, ..NOTHING.limits() };
            let builder = Builder::new(setup, hosts, forwarder, limits);
            builder
                .build::<Instance<F, NoObserver, Uncontrolled, Uncontrolled, B, false, false>, V>(
                    |_, _| NoObserver,
                    |_, _| (Uncontrolled, Uncontrolled),
                )
        }
        Some(recording) => {
            let builder = Builder::new(setup, hosts, forwarder, recording.limits());
            builder.build::<Instance<F, Recorder, Uncontrolled, Uncontrolled, B, false, false>, V>(
                |ports, taps| Recorder::new(recording, groups, ports, taps),
                |_, _| (Uncontrolled, Uncontrolled),
            )
        }
    }
}

/// With mechanisms: what they did is always recorded.
fn controlled<F: Forwarder, B: PortSet, const V: usize, const VOQ: bool, const LIMITED: bool>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    let mechanisms = SharedMechanisms::from(setup.control.take().unwrap_or_default());
    let watched = setup.recording.take();
    let recording = watched.unwrap_or(NOTHING);
    let paths = match setup.forwarding {
        Forwarding::Tables(subnet) => hosts.paths(subnet),
        Forwarding::DimensionOrder(..) => 1,
    };
    let (groups, parameters) = (setup.groups.len(), setup.parameters.clone());
    let rates = hosts.clone();
    let builder = Builder::new(setup, hosts, forwarder, recording.limits());
    type Controlled<F, B, const VOQ: bool, const LIMITED: bool> =
        Instance<F, Option<Recorder>, OutputMarkers, AdapterReactors, B, VOQ, LIMITED>;
    builder.build::<Controlled<F, B, VOQ, LIMITED>, V>(
        |ports, taps| watched.map(|what| Recorder::new(what, groups, ports, taps)),
        |ports, slots| {
            let markers = OutputMarkers::new(&mechanisms, ports, V as u8, &parameters);
            let source = |(rank, number): &(u32, u8)| Source {
                link: rates.rate_at(Rank(*rank), *number, &parameters),
                packet_max: parameters.packet_bytes_max(),
                paths,
            };
            let sources = slots.iter().map(source).collect();
            let record = Record::new(Slices::of(&recording), recording.flow_bytes_max);
            let order = parameters.message_order;
            (markers, AdapterReactors::new(mechanisms.clone(), sources, record, order))
        },
    )
}

/// What is recorded where nobody watches.
const NOTHING: Recording =
    Recording { slice: Picoseconds::MAX_RUN, slices: 1, grows: false, flow_bytes_max: 0 };

impl Recording {
    fn limits(&self) -> Limits {
        Limits { slices: Slices::of(self), flow_bytes_max: self.flow_bytes_max }
    }
}

/// Builds the partitions of an instance.
struct Builder<'a, F> {
    setup: Setup<'a>,
    hosts: Hosts,
    forwarder: Arc<F>,
    limits: Limits,
    cabling: Cabling,
    addressing: Arc<Addressing>,
    settings: Arc<AdapterSettings>,
    /// By rank: its partition; empty if there is only one.
    partition_of: Arc<Vec<u32>>,
    /// By host, until its partition is built.
    programs: Vec<Option<Box<dyn RankProgram>>>,
    /// Ranks of programs, until their partition is built.
    ranks: Vec<Option<Process>>,
    placement: Arc<Placement>,
    /// Whether a message of a program may overtake another between the same two ranks.
    overtaking: bool,
    /// How many programs there are.
    jobs: usize,
}

impl<'a, F: Forwarder> Builder<'a, F> {
    fn new(mut setup: Setup<'a>, hosts: Hosts, forwarder: F, limits: Limits) -> Self {
        let parameters = &setup.parameters;
        let settings = AdapterSettings {
            groups: std::mem::take(&mut setup.groups),
            packets: [Transport::Ud, Transport::Rc].map(|transport| PacketSize {
                payload_max: parameters.payload_max(transport),
                header: parameters.header_bytes(transport),
            }),
            dma: parameters.dma_rate.and_then(LinkRate::from_bits),
            drain: parameters.drain_rate.and_then(LinkRate::from_bits),
            memory: parameters.memory_rate.and_then(LinkRate::from_bits),
            share: hosts.share_memory(parameters),
            injection_engines: parameters.injection_engines,
            outstanding: parameters.outstanding,
            read_depth: parameters.read_depth,
            ack_coalescing: parameters.ack_coalescing,
            queueing: parameters.queueing,
            source_backlog: parameters.source_backlog,
        };
        let programs = std::mem::take(&mut setup.programs);
        let programs: Vec<_> = programs.into_iter().map(Some).collect();
        let cabling = Cabling::new(setup.fabric, &hosts, setup.division.partitions);
        let jobs = setup.jobs.len();
        let (ranks, others) = ranks(hosts.count() as u32, std::mem::take(&mut setup.jobs));
        let placement = Placement { hosts: hosts.count() as u32, others };
        let paths = match setup.forwarding {
            Forwarding::Tables(subnet) => hosts.paths(subnet),
            Forwarding::DimensionOrder(..) => 1,
        };
        let has_ways = F::ADAPTIVE || paths > 1 || hosts.has_several_ports();
        let takes_ways = |program: &dyn RankProgram| !program.takes_one_way();
        let of_ranks = ranks.iter().flatten().map(|rank| &*rank.program);
        let mut all = of_ranks.chain(programs.iter().flatten().map(|program| &**program));
        let overtaking = has_ways || all.any(takes_ways);
        Builder {
            overtaking,
            ranks,
            placement: Arc::new(placement),
            jobs,
            partition_of: Arc::new(partition_of(&cabling, hosts.count())),
            cabling,
            addressing: Arc::new(Addressing::new(setup.fabric, &hosts, setup.forwarding)),
            settings: Arc::new(settings),
            forwarder: Arc::new(forwarder),
            setup,
            hosts,
            limits,
            programs,
        }
    }

    /// `observer` is made for so many ports and the taps among them, markers and reactors for
    /// ports and for adapters' ports.
    fn build<M: Model<Forwarder = F>, const V: usize>(
        mut self,
        observer: impl Fn(usize, &[PortIndex]) -> M::Observer,
        control: impl Fn(
            &mut dyn Iterator<Item = Option<MarkedPort>>,
            &[(u32, u8)],
        ) -> (M::Markers, M::Reactors),
    ) -> Box<dyn Run> {
        let crew = Crew::of(self.setup.fleet.take());
        let own = crew.share(self.cabling.partitions.len(), crew.rank());
        let partitions = own.map(|part| self.partition::<M, V>(part, &observer, &control));
        let partitions = partitions.collect();
        let all = (crew, self.cabling.numbering(&self.hosts));
        let (threads, width) = (self.setup.division.threads, self.setup.queue_width_log2);
        let ends_with_jobs = self.setup.ends_with_jobs;
        Box::new(Windows::<M, V>::new(partitions, all, threads, width, self.limits, ends_with_jobs))
    }

    /// The ranks at these ports of adapters.
    fn ranks_at(&mut self, slots: &[(u32, u8)], overtaking: bool) -> Ranks {
        // Where its first port is.
        let first = (0..).zip(slots).filter(|(_, (_, number))| *number == 0);
        let slots: FxHashMap<u32, u32> =
            first.clone().map(|(slot, (host, _))| (*host, slot)).collect();
        let hosts: Vec<u32> = first.map(|(_, (host, _))| *host).collect();
        let own = |host: &u32| {
            let program = self.programs[*host as usize].take()?;
            Some(Process { number: *host, base: 0, job: None, program })
        };
        let mut processes: Vec<Process> = hosts.iter().filter_map(own).collect();
        let (mut seats, mut taken) = (Vec::new(), FxHashMap::<u32, u8>::default());
        for (rank, host) in self.ranks.iter_mut().zip(&self.placement.others) {
            let Some(slot) = slots.get(host).copied() else { continue };
            let Some(process) = rank.take() else { continue };
            let number = taken.entry(slot).or_default();
            *number += 1;
            seats.push((process.number, Seat { slot, number: *number }));
            processes.push(process);
        }
        let parameters = &self.setup.parameters;
        let settings = Settings { overtaking, ..parameters.library() };
        let all = clearlane_ranks::Ranks::new(processes, self.jobs, settings);
        let (overhead, placement) = (parameters.send_overhead, Arc::clone(&self.placement));
        Ranks::new(all, overhead, hosts.len() as u32, seats, placement)
    }

    fn partition<M: Model<Forwarder = F>, const V: usize>(
        &mut self,
        part: usize,
        observer: impl Fn(usize, &[PortIndex]) -> M::Observer,
        control: impl Fn(
            &mut dyn Iterator<Item = Option<MarkedPort>>,
            &[(u32, u8)],
        ) -> (M::Markers, M::Reactors),
    ) -> Partition<M, V> {
        let (fabric, parameters) = (self.setup.fabric, &self.setup.parameters);
        let parts = self.cabling.parts::<M::Ports, V>(fabric, &self.hosts, parameters, part);
        let places = self.cabling.places(fabric, &self.hosts, part);
        let ports = parts.ports.len();
        let taps: Vec<PortIndex> = (0..ports as u32)
            .map(PortIndex)
            .filter(|port| self.setup.taps.contains(&places.end(*port)))
            .collect();
        let slots = self.cabling.slots(&self.hosts, part);
        let mut marked = (0..ports as u32).map(|port| {
            let (index, record) = (PortIndex(port), &parts.ports[port as usize]);
            let kind = parts.classes[usize::from(record.class.0)].kind;
            let end = places.end(index);
            let faces_adapter = kind == LinkKind::Exit;
            let switch = MarkedPort { node: end.node.0, port: end.port.value(), faces_adapter };
            (kind != LinkKind::Host).then_some(switch)
        });
        let (markers, reactors) = control(&mut marked, &slots);
        let arbitration = match self.setup.forwarding {
            Forwarding::Tables(subnet) => subnet.vl_arbitration.clone(),
            Forwarding::DimensionOrder(..) => VlArbitration::equal(V as u8),
        };
        let arbitration = Arbitration::new(&arbitration, ports, V);
        let observer = observer(ports, &taps);
        let mixed = parts.links.mixed;
        let net = Network::new(parts, arbitration, observer, self.setup.queue_width_log2);
        let switches = Switches::new(
            Arc::clone(&self.forwarder),
            self.cabling.partitions[part].start as u32,
            markers,
            (parameters.arbitration, CrossbarSettings::of(parameters)),
            (ports, V, radix(fabric).into()),
            wire::credits(parameters.mtu),
            mixed,
        );
        let programs = self.ranks_at(&slots, self.overtaking || M::Reactors::ON);
        let adapters = Adapters::new(
            Arc::clone(&self.settings),
            Arc::clone(&self.addressing),
            Arc::clone(&self.forwarder),
            &slots,
            (part as u32, Arc::clone(&self.partition_of)),
            reactors,
        );
        Partition::new(net, switches, adapters, programs, places)
    }
}

/// Ranks of programs in the order of their numbers, which begin after those of the hosts, and at
/// which host each is.
fn ranks(hosts: u32, jobs: Vec<Job>) -> (Vec<Option<Process>>, Vec<u32>) {
    let (mut ranks, mut places) = (Vec::new(), Vec::new());
    for (job, of) in jobs.into_iter().enumerate() {
        let base = hosts + ranks.len() as u32;
        for (rank, Placed { host, program }) in (base..).zip(of.ranks) {
            ranks.push(Some(Process { number: rank, base, job: Some(job as u16), program }));
            places.push(host);
        }
    }
    (ranks, places)
}

/// By host: its partition; empty if there is only one.
fn partition_of(cabling: &Cabling, ranks: usize) -> Vec<u32> {
    let parts = cabling.partitions.len();
    let mut partition_of = vec![0; if parts > 1 { ranks } else { 0 }];
    if parts > 1 {
        for part in 0..parts {
            cabling.ranks(part).iter().for_each(|rank| partition_of[*rank as usize] = part as u32);
        }
    }
    partition_of
}
