//! The library's face: a set-up goes in, an outcome comes out. Which instance of the simulator runs
//! is decided here, in one place, so that no instance is built that no set-up reaches.

use crate::adapter::{AdapterSettings, Adapters};
use crate::addressing::Addressing;
use crate::arbiter::Arbitration;
use crate::cabling::Cabling;
use crate::control::{
    AdapterReactors, MarkedPort, OutputMarkers, Record, SharedMechanisms, packet_max,
};
use crate::error::SetupError;
use crate::forward::{AdaptiveForwarder, Forwarding, GridForwarder, TableForwarder};
use crate::model::{Forwarder, Markers, Model, Observer, Reactors, Uncontrolled};
use crate::network::Network;
use crate::outcome::Tapped;
use crate::partition::Partition;
use crate::port::{LinkKind, PortIndex};
use crate::port_set::PortSet;
use crate::ranks::Ranks;
use crate::recorder::{NoObserver, Recorder, Recording};
use crate::setup::{self, Setup, Status, fits_few, radix};
use crate::switch::Switches;
use crate::windows::{Limits, Run, Windows};
use crate::{Hosts, InputQueueing, Outcome, Totals};
use clearlane_congestion::Source;
use clearlane_ib::{LinkRate, Picoseconds, wire};
use clearlane_subnet::{Subnet, VlArbitration};
use clearlane_workload::{Rank, RankProgram, Transport};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A simulation under way.
pub struct Simulation {
    run: Box<dyn Run>,
}

impl Simulation {
    /// Builds the network and starts the programs. Fails if a parameter is out of range or a table
    /// would send a packet nowhere.
    pub fn new(setup: Setup<'_>) -> Result<Self, SetupError> {
        let hosts = Hosts::of(setup.fabric);
        setup::check(&setup, &hosts)?;
        let run = match setup.forwarding {
            Forwarding::Tables(subnet) => {
                if let Some(groups) = &subnet.adaptive {
                    setup::check_groups(setup.fabric, subnet, groups)?;
                }
                let all = setup.control.as_ref().is_some_and(|control| control.which.is_some());
                setup::check_tables(setup.fabric, &hosts, subnet, all)?;
                with_tables(setup, hosts, subnet)
            }
            Forwarding::DimensionOrder(grid) => {
                let forwarder = GridForwarder::new(setup.fabric, grid, &hosts)?;
                with_rule(setup, hosts, forwarder)
            }
        };
        Ok(Simulation { run })
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

/// An instance: how switches forward (`F`) and queue (`VOQ`), who watches (`O`), markers and
/// reactors (`K`, `R`), the width of port sets (`B`).
struct Instance<F, O, K, R, B, const VOQ: bool>(PhantomData<(F, O, K, R, B)>);

impl<F, O, K, R, B, const VOQ: bool> Model for Instance<F, O, K, R, B, VOQ>
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
    if voq {
        return with_any_lanes(setup, hosts, lanes, tables);
    }
    if setup.control.is_some() {
        return match (lanes, radix) {
            (1, 0..=64) => controlled::<_, u64, 1, false>(setup, hosts, tables),
            (2, 0..=16) => controlled::<_, u16, 2, false>(setup, hosts, tables),
            (2, 17..=64) => controlled::<_, u64, 2, false>(setup, hosts, tables),
            _ => with_any_lanes(setup, hosts, lanes, tables),
        };
    }
    match (lanes, radix) {
        (1, 0..=64) => uncontrolled::<_, u64, 1, false>(setup, hosts, tables),
        (2, 0..=16) => uncontrolled::<_, u16, 2, false>(setup, hosts, tables),
        (2, 17..=64) => uncontrolled::<_, u64, 2, false>(setup, hosts, tables),
        (3..=8, 0..=64) => uncontrolled::<_, u64, 8, false>(setup, hosts, tables),
        _ => uncontrolled::<_, [u64; 4], 16, false>(setup, hosts, tables),
    }
}

/// Switches that forward by the rule of dimension order: they have two lanes.
fn with_rule(setup: Setup<'_>, hosts: Hosts, rule: GridForwarder) -> Box<dyn Run> {
    let voq = setup.parameters.input_queueing == InputQueueing::Voq;
    if voq || setup.control.is_some() || radix(setup.fabric) > 64 {
        return with_any_lanes(setup, hosts, 2, rule);
    }
    match radix(setup.fabric) {
        0..=16 => uncontrolled::<_, u16, 2, false>(setup, hosts, rule),
        _ => uncontrolled::<_, u64, 2, false>(setup, hosts, rule),
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
    match (setup.control.is_some(), voq, few) {
        (false, false, true) => uncontrolled::<F, u64, 8, false>(setup, hosts, forwarder),
        (false, false, false) => uncontrolled::<F, [u64; 4], 16, false>(setup, hosts, forwarder),
        (false, true, true) => uncontrolled::<F, u64, 8, true>(setup, hosts, forwarder),
        (false, true, false) => uncontrolled::<F, [u64; 4], 16, true>(setup, hosts, forwarder),
        (true, false, true) => controlled::<F, u64, 8, false>(setup, hosts, forwarder),
        (true, false, false) => controlled::<F, [u64; 4], 16, false>(setup, hosts, forwarder),
        (true, true, true) => controlled::<F, u64, 8, true>(setup, hosts, forwarder),
        (true, true, false) => controlled::<F, [u64; 4], 16, true>(setup, hosts, forwarder),
    }
}

/// Without mechanisms, watched or not.
fn uncontrolled<F: Forwarder, B: PortSet, const V: usize, const VOQ: bool>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    let groups = setup.groups.len();
    match setup.recording.take() {
        None => {
            let limits = Limits { slice: Picoseconds(0), flow_bytes_max: u64::MAX };
            let builder = Builder::new(setup, hosts, forwarder, limits);
            builder.build::<Instance<F, NoObserver, Uncontrolled, Uncontrolled, B, VOQ>, V>(
                |_, _| NoObserver,
                |_, _| (Uncontrolled, Uncontrolled),
            )
        }
        Some(recording) => {
            let builder = Builder::new(setup, hosts, forwarder, recording.limits());
            builder.build::<Instance<F, Recorder, Uncontrolled, Uncontrolled, B, VOQ>, V>(
                |ports, taps| Recorder::new(recording, groups, ports, taps),
                |_, _| (Uncontrolled, Uncontrolled),
            )
        }
    }
}

/// With mechanisms: what they did is always recorded.
fn controlled<F: Forwarder, B: PortSet, const V: usize, const VOQ: bool>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Box<dyn Run> {
    let mechanisms = SharedMechanisms::from(setup.control.take().unwrap_or_default());
    let nothing = Recording { slice: Picoseconds::MAX_RUN, slices: 1, flow_bytes_max: 0 };
    let watched = setup.recording.take();
    let recording = watched.unwrap_or(nothing);
    let paths = match setup.forwarding {
        Forwarding::Tables(subnet) => hosts.paths(subnet),
        Forwarding::DimensionOrder(_) => 1,
    };
    let (groups, parameters) = (setup.groups.len(), setup.parameters.clone());
    let rates = hosts.clone();
    let builder = Builder::new(setup, hosts, forwarder, recording.limits());
    builder.build::<Instance<F, Option<Recorder>, OutputMarkers, AdapterReactors, B, VOQ>, V>(
        |ports, taps| watched.map(|what| Recorder::new(what, groups, ports, taps)),
        |ports, ranks| {
            let markers = OutputMarkers::new(&mechanisms, ports, V as u8, &parameters);
            let source = |rank: &u32| Source {
                link: rates.rate(Rank(*rank), &parameters),
                packet_max: packet_max(&parameters),
                paths,
            };
            let sources = ranks.iter().map(source).collect();
            let Recording { slice, slices, flow_bytes_max } = recording;
            let record = Record::new(slice.0, slices, flow_bytes_max);
            (markers, AdapterReactors::new(mechanisms.clone(), sources, record))
        },
    )
}

impl Recording {
    fn limits(&self) -> Limits {
        Limits { slice: self.slice, flow_bytes_max: self.flow_bytes_max }
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
    /// By rank, until its partition is built.
    programs: Vec<Option<Box<dyn RankProgram>>>,
}

impl<'a, F: Forwarder> Builder<'a, F> {
    fn new(mut setup: Setup<'a>, hosts: Hosts, forwarder: F, limits: Limits) -> Self {
        let parameters = &setup.parameters;
        let settings = AdapterSettings {
            groups: std::mem::take(&mut setup.groups),
            mtu: parameters.mtu,
            headers: [Transport::Rc, Transport::Ud].map(|t| parameters.header_bytes(t)),
            dma: parameters.dma_rate.and_then(LinkRate::from_bits),
            drain: parameters.drain_rate.and_then(LinkRate::from_bits),
            injection_engines: parameters.injection_engines,
            outstanding: parameters.outstanding,
            ack_coalescing: parameters.ack_coalescing,
            queueing: parameters.queueing,
            send_overhead: parameters.send_overhead.0,
        };
        let programs = std::mem::take(&mut setup.programs).into_iter().map(Some).collect();
        let cabling = Cabling::new(setup.fabric, &hosts, setup.division.partitions);
        Builder {
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
    /// ports and for ranks.
    fn build<M: Model<Forwarder = F>, const V: usize>(
        mut self,
        observer: impl Fn(usize, &[PortIndex]) -> M::Observer,
        control: impl Fn(
            &mut dyn Iterator<Item = Option<MarkedPort>>,
            &[u32],
        ) -> (M::Markers, M::Reactors),
    ) -> Box<dyn Run> {
        let count = self.cabling.partitions.len();
        let partitions = (0..count).map(|part| self.partition::<M, V>(part, &observer, &control));
        let partitions = partitions.collect();
        let (threads, width) = (self.setup.division.threads, self.setup.queue_width_log2);
        Box::new(Windows::<M, V>::new(partitions, threads, width, self.limits))
    }

    fn partition<M: Model<Forwarder = F>, const V: usize>(
        &mut self,
        part: usize,
        observer: impl Fn(usize, &[PortIndex]) -> M::Observer,
        control: impl Fn(
            &mut dyn Iterator<Item = Option<MarkedPort>>,
            &[u32],
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
        let ranks = self.cabling.ranks(part);
        let mut marked = (0..ports as u32).map(|port| {
            let (index, record) = (PortIndex(port), &parts.ports[port as usize]);
            let kind = parts.classes[usize::from(record.class.0)].kind;
            let end = places.end(index);
            let faces_adapter = kind == LinkKind::Exit;
            let switch = MarkedPort { node: end.node.0, port: end.port.value(), faces_adapter };
            (kind != LinkKind::Host).then_some(switch)
        });
        let (markers, reactors) = control(&mut marked, &ranks);
        let arbitration = match self.setup.forwarding {
            Forwarding::Tables(subnet) => subnet.vl_arbitration.clone(),
            Forwarding::DimensionOrder(_) => VlArbitration::equal(V as u8),
        };
        let arbitration = Arbitration::new(&arbitration, ports, V);
        let observer = observer(ports, &taps);
        let mixed = parts.links.mixed;
        let net = Network::new(parts, arbitration, observer, self.setup.queue_width_log2);
        let switches = Switches::new(
            Arc::clone(&self.forwarder),
            self.cabling.partitions[part].start as u32,
            markers,
            parameters.arbitration,
            (ports, V, radix(fabric).into()),
            wire::credits(parameters.mtu),
            mixed,
        );
        let programs = ranks.iter().filter_map(|rank| self.programs[*rank as usize].take());
        let overheads = (parameters.send_overhead, parameters.receive_overhead);
        let programs = Ranks::new(programs.collect(), overheads.0, overheads.1);
        let adapters = Adapters::new(
            Arc::clone(&self.settings),
            Arc::clone(&self.addressing),
            Arc::clone(&self.forwarder),
            &ranks,
            (part as u32, Arc::clone(&self.partition_of)),
            reactors,
        );
        Partition::new(net, switches, adapters, programs, places)
    }
}

/// By rank: its partition; empty if there is only one.
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
