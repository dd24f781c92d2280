//! Builds the partitions of an instance from a set-up.

use crate::Hosts;
use crate::adapter::{AdapterSettings, Adapters, PacketSize};
use crate::addressing::Addressing;
use crate::arbiter::Arbitration;
use crate::cabling::Cabling;
use crate::control::MarkedPort;
use crate::error::SetupError;
use crate::fleet::Crew;
use crate::forwarding::Forwarding;
use crate::model::{Forwarder, Model, Reactors};
use crate::network::Network;
use crate::partition::Partition;
use crate::port::{LinkKind, PortIndex};
use crate::ranks::{Placement, Ranks, Seat};
use crate::recorder::{Recorder, Slices};
use crate::setup::{Job, Placed, Setup, radix};
use crate::switch::{CrossbarSettings, Switches};
use crate::windows::{Limits, Windows};
use clearlane_ib::{LinkRate, wire};
use clearlane_ranks::{Process, Settings};
use clearlane_subnet::VlArbitration;
use clearlane_workload::{RankProgram, Transport};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Builds the partitions of an instance.
pub(crate) struct Builder<'a, F> {
    setup: Setup<'a>,
    hosts: Hosts,
    forwarder: Arc<F>,
    limits: Limits,
    cabling: Cabling,
    addressing: Arc<Addressing>,
    settings: Arc<AdapterSettings>,
    /// The partition of each host; empty if there is only one.
    partition_of: Arc<Vec<u32>>,
    /// The program of each host, until its partition is built.
    programs: Vec<Option<Box<dyn RankProgram>>>,
    /// Ranks of programs, until their partition is built.
    ranks: Vec<Option<Process>>,
    placement: Arc<Placement>,
    /// Whether a message of a program may overtake another between the same two ranks.
    overtaking: bool,
    /// Number of programs.
    jobs: usize,
}

impl<'a, F: Forwarder> Builder<'a, F> {
    /// Takes a set-up that has been checked. Fails if the fabric lacks what forwarding needs.
    pub(crate) fn new(mut setup: Setup<'a>, hosts: Hosts) -> Result<Self, SetupError> {
        let forwarder = F::build(setup.fabric, setup.forwarding, &hosts)?;
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
        let has_ways = forwarder.chooses() || paths > 1 || hosts.has_several_ports();
        let takes_ways = |program: &dyn RankProgram| !program.takes_one_way();
        let of_ranks = ranks.iter().flatten().map(|rank| &*rank.program);
        let mut all = of_ranks.chain(programs.iter().flatten().map(|program| &**program));
        let overtaking = has_ways || all.any(takes_ways);
        let limits = Limits {
            slices: Slices::of(&setup.recording),
            flow_bytes_max: setup.recording.flow_bytes_max,
        };
        Ok(Builder {
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
        })
    }

    /// Builds an instance. `control` makes its markers for ports of switches, and its reactors for
    /// ports of adapters.
    pub(crate) fn build<M: Model<Forwarder = F>, const V: usize>(
        mut self,
        control: impl Fn(
            &mut dyn Iterator<Item = Option<MarkedPort>>,
            &[(u32, u8)],
        ) -> (M::Markers, M::Reactors),
    ) -> Windows {
        let crew = Crew::of(self.setup.fleet.take());
        let own = crew.share(self.cabling.partitions.len(), crew.rank());
        let partitions = own.map(|part| self.partition::<M, V>(part, &control));
        let partitions: Vec<Partition<M, V>> = partitions.collect();
        let all = (crew, self.cabling.numbering(&self.hosts));
        let (threads, width) = (self.setup.division.threads, self.setup.queue_width_log2);
        let ends_with_jobs = self.setup.ends_with_jobs;
        Windows::new(Box::new(partitions), all, threads, width, self.limits, ends_with_jobs)
    }

    /// The ranks at these ports of adapters.
    fn ranks_at(&mut self, slots: &[(u32, u8)], overtaking: bool) -> Ranks {
        // The slot of the first port of each host.
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
        let groups = self.settings.groups.len();
        let recorder = Recorder::new(self.setup.recording, groups, ports, &taps);
        let mixed = parts.links.mixed;
        let net = Network::new(parts, arbitration, recorder, self.setup.queue_width_log2);
        let switches = Switches::new(
            Arc::clone(&self.forwarder),
            self.cabling.partitions[part].start as u32,
            markers,
            (parameters.arbitration, parameters.input_queueing, CrossbarSettings::of(parameters)),
            (ports, V, self.setup.forwarding.lanes().into(), radix(fabric).into()),
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

/// Ranks of programs in the order of their numbers, and the host of each. Their numbers begin after
/// those of the hosts.
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

/// The partition of each host; empty if there is only one.
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
