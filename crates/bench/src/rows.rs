//! The rows: fabrics, tables and loads.

use clearlane_congestion::{Decides, Values, mechanisms};
use clearlane_fabric::structure::{Grid, grid};
use clearlane_fabric::{Fabric, NodeKind, topologies};
use clearlane_ib::{Bytes, Picoseconds};
use clearlane_sim::{
    Forwarding, GroupSettings, Hosts, Mechanisms, Parameters, Recording, Setup, Simulation, preset,
    queue_width_log2,
};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::{
    Arrivals, Class, FlowGroup, OpenLoop, PatternSpec, Rank, RankProgram, SizeDistribution,
    Transport,
};
use std::sync::Arc;

/// What switches forward by.
pub(crate) enum By {
    /// Dimension order by coordinates.
    Rule,
    /// The tables of a routing engine, and how many lanes traffic is spread over.
    Engine(&'static str, u8),
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
    pub(crate) topology: &'static str,
    pub(crate) by: By,
    pub(crate) load: f64,
    pub(crate) transport: Transport,
    pub(crate) recorded: bool,
    /// A congestion mechanism with its defaults.
    pub(crate) control: Option<&'static str>,
    pub(crate) span_us: u64,
    pub(crate) goal: Option<f64>,
    /// Whether its instructions are counted too, and the goal for them.
    pub(crate) instructions: Option<Option<f64>>,
    /// Whether its memory is measured too, and the goals in bytes per node: counters off, on.
    pub(crate) memory: Option<[f64; 2]>,
}

const fn ud(name: &'static str, topology: &'static str, by: By, load: f64, span_us: u64) -> Row {
    Row {
        name,
        note: "UD, no observers",
        topology,
        by,
        load,
        transport: Transport::Ud,
        recorded: false,
        control: None,
        span_us,
        goal: None,
        instructions: None,
        memory: None,
    }
}

const fn rc(name: &'static str, topology: &'static str, by: By, load: f64, span_us: u64) -> Row {
    Row {
        note: "RC with ACKs and counters; data packets counted",
        transport: Transport::Rc,
        recorded: true,
        goal: None,
        ..ud(name, topology, by, load, span_us)
    }
}

/// The row of RC under a mechanism: beside the one without, what the mechanism costs.
const fn under(
    name: &'static str,
    control: &'static str,
    topology: &'static str,
    by: By,
    load: f64,
    span_us: u64,
) -> Row {
    Row {
        note: "the same under a congestion mechanism",
        control: Some(control),
        ..rc(name, topology, by, load, span_us)
    }
}

/// All rows. Load is a share of the host link, headers included; 2 KiB messages, one packet each.
pub(crate) const ROWS: &[Row] = &[
    Row {
        goal: Some(6.0),
        instructions: Some(None),
        ..ud("torus-8x8", "torus:8x8", By::Engine("dor", 2), 0.4, 8000)
    },
    rc("torus-8x8-rc", "torus:8x8", By::Engine("dor", 2), 0.4, 2000),
    under("torus-8x8-rc-iba-cc", "iba-cc", "torus:8x8", By::Engine("dor", 2), 0.4, 2000),
    under("torus-8x8-rc-dcqcn", "dcqcn", "torus:8x8", By::Engine("dor", 2), 0.4, 2000),
    Row {
        goal: Some(6.0),
        instructions: Some(Some(750.0)),
        ..ud("torus-16x16x16", "torus:16x16x16", By::Rule, 0.25, 200)
    },
    rc("torus-16x16x16-rc", "torus:16x16x16", By::Rule, 0.25, 30),
    Row {
        goal: Some(5.0),
        ..ud("tree-648-1-lane", "fat-tree:648", By::Engine("fat-tree", 1), 0.5, 1500)
    },
    Row {
        goal: Some(4.0),
        ..ud("tree-648-8-lanes", "fat-tree:648", By::Engine("fat-tree", 8), 0.5, 1500)
    },
    rc("tree-648-rc", "fat-tree:648", By::Engine("fat-tree", 1), 0.5, 500),
    under("tree-648-rc-iba-cc", "iba-cc", "fat-tree:648", By::Engine("fat-tree", 1), 0.5, 500),
    Row {
        goal: Some(5.0),
        memory: Some([1600.0, 2200.0]),
        ..ud("torus-64x64x32", "torus:64x64x32", By::Rule, 0.06, 40)
    },
];

/// A row with its fabric built and its tables filled: what is not timed.
pub(crate) struct Bench {
    row: &'static Row,
    fabric: Fabric,
    grid: Option<Grid>,
    subnet: Option<Subnet>,
}

impl Row {
    /// Builds the fabric and the tables.
    pub(crate) fn prepare(&'static self) -> Result<Bench, String> {
        let fabric = topologies::build(self.topology).map_err(|error| error.to_string())?;
        let (mut subnet, mut lattice) = (None, None);
        match self.by {
            By::Rule => lattice = Some(grid(&fabric).map_err(|error| error.to_string())?),
            By::Engine(name, lanes) => subnet = Some(tables(&fabric, name, lanes)?),
        }
        Ok(Bench { row: self, fabric, grid: lattice, subnet })
    }
}

fn tables(fabric: &Fabric, name: &str, lanes: u8) -> Result<Subnet, String> {
    let options = RouteOptions { lanes, ..RouteOptions::default() };
    engines::route(name, fabric, &options).map_err(|error| error.to_string())
}

/// The mechanism of this name with its defaults.
fn mechanism(name: &str) -> Result<Mechanisms, String> {
    let entry = mechanisms::by_name(name).ok_or_else(|| format!("no mechanism {name}"))?;
    let built = (entry.build)(&Values::default()).map_err(|error| error.to_string())?;
    let none = Mechanisms { seed: 1, ..Mechanisms::default() };
    Ok(match entry.decides {
        Decides::When => Mechanisms { when: Some(built), ..none },
        Decides::Which => Mechanisms { which: Some(built), ..none },
    })
}

/// What a set-up wants to know of the traffic.
type Traffic = (Vec<GroupSettings>, Vec<Box<dyn RankProgram>>);

impl Bench {
    /// Simulates so many microseconds and returns the data packets' hops.
    pub(crate) fn run(&self, span_us: u64) -> Result<u64, String> {
        let mut simulation = self.start(span_us, self.row.recorded)?;
        simulation.run_until(Picoseconds(span_us * 1_000_000));
        Ok(simulation.finish().totals.packet_hops)
    }

    /// Bytes per switch that a simulation of so many microseconds holds at its end, besides the
    /// fabric it was built from; with counters (one slice of time) or without.
    pub(crate) fn memory(&self, span_us: u64, counters: bool) -> Result<f64, String> {
        let before = crate::ALLOCATED.current_usage();
        let mut simulation = self.start(span_us, counters)?;
        simulation.run_until(Picoseconds(span_us * 1_000_000));
        let bytes = crate::ALLOCATED.current_usage() - before;
        simulation.finish();
        Ok(bytes as f64 / self.fabric.ids(NodeKind::Switch).count() as f64)
    }

    fn start(&self, span_us: u64, recorded: bool) -> Result<Simulation, String> {
        let span = Picoseconds(span_us * 1_000_000);
        let hosts = Hosts::of(&self.fabric);
        // Links and buffers of the measured prototype: 4 GB/s, 8 KiB a lane on tori.
        let parameters = match self.row.by {
            By::Rule => preset::by_name("nsim-2014"),
            By::Engine(..) => preset::by_name("qdr"),
        };
        let parameters = parameters.ok_or("the preset is gone")?;
        let parameters = Parameters {
            buffer: Bytes(8 << 10),
            injection_engines: None,
            dma_rate: None,
            send_overhead: Picoseconds(0),
            ..(parameters.parameters)()
        };
        let (groups, programs) = self.traffic(&hosts, &parameters, span)?;
        let slices = Recording { slice: span, slices: 1, flow_bytes_max: 0 };
        let forwarding = match (&self.grid, &self.subnet) {
            (Some(grid), _) => Forwarding::DimensionOrder(grid),
            (None, Some(subnet)) => Forwarding::Tables(subnet),
            (None, None) => return Err("neither tables nor a rule".into()),
        };
        let setup = Setup {
            fabric: &self.fabric,
            forwarding,
            parameters,
            groups,
            programs,
            recording: recorded.then_some(slices),
            control: self.row.control.map(mechanism).transpose()?,
            queue_width_log2: queue_width_log2(hosts.count()),
            division: clearlane_sim::Division::WHOLE,
            taps: Vec::new(),
        };
        Simulation::new(setup).map_err(|error| error.to_string())
    }

    fn traffic(
        &self,
        hosts: &Hosts,
        parameters: &Parameters,
        span: Picoseconds,
    ) -> Result<Traffic, String> {
        let pattern = PatternSpec::Uniform(Default::default());
        let destinations =
            pattern.build(&hosts.ranks(), None).map_err(|error| error.to_string())?;
        // Over several lanes: one flow group per service level.
        let lanes = match self.row.by {
            By::Engine("fat-tree", lanes) => lanes,
            _ => 1,
        };
        let group = |lane: u8| FlowGroup {
            name: format!("uniform {lane}"),
            class: Class::Background,
            senders: (0..hosts.count() as u32).map(Rank).collect(),
            destinations: destinations.clone(),
            sizes: SizeDistribution::Fixed(Bytes(2048)),
            load: self.row.load / f64::from(lanes),
            arrivals: Arrivals::Poisson,
            start: Picoseconds(0),
            stop: span,
            transport: self.row.transport,
            sl: (lanes > 1).then(|| clearlane_ib::ServiceLevel::new(lane).unwrap_or_default()),
        };
        let groups: Vec<Arc<FlowGroup>> = (0..lanes).map(group).map(Arc::new).collect();
        let program = |rank: u32| -> Box<dyn RankProgram> {
            let rate = hosts.rate(Rank(rank), parameters);
            Box::new(OpenLoop::new(
                Rank(rank),
                &groups,
                rate,
                parameters.mtu,
                |group| parameters.header_bytes(group.transport),
                1,
            ))
        };
        let settings =
            groups.iter().map(|g| GroupSettings { transport: g.transport, sl: g.sl }).collect();
        Ok((settings, (0..hosts.count() as u32).map(program).collect()))
    }
}
