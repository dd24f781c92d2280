//! A row's fabric and tables, and the runs on them.

use crate::all_pairs::AllPairs;
use crate::cpu_time;
use crate::parameters::MESSAGE;
use crate::rows::{By, Row};
use clearlane_congestion::{Decides, Values, mechanisms};
use clearlane_fabric::structure::{Grid, grid};
use clearlane_fabric::{Fabric, NodeKind, topologies};
use clearlane_ib::{Lmc, Picoseconds};
use clearlane_sim::{
    Division, Forwarding, GroupSettings, Hosts, Job, Mechanisms, Placed, Recording, Setup,
    Simulation, Ties, queue_width_log2,
};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::programs::Group;
use clearlane_workload::{
    Arrivals, Class, Demand, Event, FlowGroup, Offered, Op, OpenLoop, PatternSpec, ProgramSpec,
    Rank, RankProgram, SizeDistribution,
};
use serde_json::json;
use std::sync::Arc;

/// A row with its fabric built and its tables filled: what is never timed.
pub(crate) struct Bench {
    pub(crate) row: &'static Row,
    fabric: Fabric,
    grid: Option<Grid>,
    subnet: Option<Subnet>,
}

/// One run, in CPU seconds of this process.
pub(crate) struct Timed {
    /// Hops of data packets.
    pub(crate) hops: u64,
    /// Building the network and its programs.
    pub(crate) setup: f64,
    /// Simulating: what a rate is taken of.
    pub(crate) run: f64,
    /// Checking every invariant and handing out what was found.
    pub(crate) audit: f64,
}

impl Row {
    /// Builds the fabric and the tables.
    pub(crate) fn prepare(&'static self) -> Result<Bench, String> {
        let fabric = topologies::build(self.topology).map_err(|error| error.to_string())?;
        let (mut subnet, mut lattice) = (None, None);
        match self.by {
            By::Rule => lattice = Some(grid(&fabric).map_err(|error| error.to_string())?),
            By::Engine(name, lanes) => {
                let options = RouteOptions { lanes, ..RouteOptions::default() };
                subnet = Some(tables(&fabric, name, &options)?);
            }
            By::Adaptive(name, lanes) => {
                let options = RouteOptions { lanes, adaptive: true, ..RouteOptions::default() };
                subnet = Some(tables(&fabric, name, &options)?);
            }
            By::Multipath(lanes) => {
                let lmc = Lmc::new(2).ok_or("four LIDs a host are no LMC")?;
                let options = RouteOptions { lanes, lmc, ..RouteOptions::default() };
                subnet = Some(tables(&fabric, "multipath", &options)?);
            }
        }
        Ok(Bench { row: self, fabric, grid: lattice, subnet })
    }
}

fn tables(fabric: &Fabric, name: &str, options: &RouteOptions) -> Result<Subnet, String> {
    engines::route(name, fabric, options).map_err(|error| error.to_string())
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
pub(crate) struct Traffic {
    groups: Vec<GroupSettings>,
    programs: Vec<Box<dyn RankProgram>>,
    jobs: Vec<Job>,
}

impl Bench {
    /// Simulates so many microseconds.
    pub(crate) fn run(&self, span_us: u64) -> Result<Timed, String> {
        let span = Picoseconds(span_us * 1_000_000);
        let begin = cpu_time::of_process();
        let mut simulation = self.start(span, Division::WHOLE, self.traffic(span)?)?;
        let started = cpu_time::of_process();
        simulation.run_until(span);
        let ended = cpu_time::of_process();
        let hops = simulation.finish().totals.packet_hops;
        Ok(Timed {
            hops,
            setup: (started - begin).as_secs_f64(),
            run: (ended - started).as_secs_f64(),
            audit: (cpu_time::of_process() - ended).as_secs_f64(),
        })
    }

    /// Bytes per switch that a simulation of so many microseconds holds at its end, besides the
    /// fabric it was built from, with counters of one slice of time.
    pub(crate) fn memory(&self, span_us: u64) -> Result<f64, String> {
        let span = Picoseconds(span_us * 1_000_000);
        let before = crate::ALLOCATED.current_usage();
        let mut simulation = self.start(span, Division::WHOLE, self.traffic(span)?)?;
        simulation.run_until(span);
        let bytes = crate::ALLOCATED.current_usage() - before;
        simulation.finish();
        Ok(bytes as f64 / self.fabric.ids(NodeKind::Switch).count() as f64)
    }

    /// Bytes per pair of hosts that are held when every host has just sent a message to every
    /// other at the row's load, besides what was held before the first.
    pub(crate) fn memory_of_pairs(&self) -> Result<f64, String> {
        let hosts = Hosts::of(&self.fabric);
        let parameters = self.row.parameters.clone();
        let ranks = hosts.count() as u32;
        let wire = MESSAGE.0 + u64::from(parameters.header_bytes(self.row.transport));
        let busy = hosts.rate(Rank(0), &parameters).serialisation(wire);
        let gap = Picoseconds((busy as f64 / self.row.load) as u64);
        let program =
            |rank| -> Box<dyn RankProgram> { Box::new(AllPairs::new(rank, ranks, MESSAGE.0, gap)) };
        let group = GroupSettings { transport: self.row.transport, sl: None };
        let programs = (0..ranks).map(program).collect();
        let traffic = Traffic { groups: vec![group], programs, jobs: Vec::new() };
        let span = Picoseconds(gap.0 * u64::from(ranks));
        let mut simulation = self.start(span, Division::WHOLE, traffic)?;
        let before = crate::ALLOCATED.current_usage();
        simulation.run_until(span);
        let bytes = crate::ALLOCATED.current_usage().saturating_sub(before);
        simulation.finish();
        Ok(bytes as f64 / (f64::from(ranks) * f64::from(ranks - 1)))
    }

    /// The row about to run for `span`.
    pub(crate) fn start(
        &self,
        span: Picoseconds,
        division: Division,
        Traffic { groups, programs, jobs }: Traffic,
    ) -> Result<Simulation, String> {
        let slices = Recording { slice: span, slices: 1, grows: false, flow_bytes_max: 0 };
        let forwarding = match (&self.grid, &self.subnet) {
            (Some(grid), _) => Forwarding::DimensionOrder(grid, Ties::Both),
            (None, Some(subnet)) => Forwarding::Tables(subnet),
            (None, None) => return Err("neither tables nor a rule".into()),
        };
        let setup = Setup {
            fabric: &self.fabric,
            forwarding,
            parameters: self.row.parameters.clone(),
            queue_width_log2: queue_width_log2(programs.len()),
            division,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs,
            ends_with_jobs: false,
            groups,
            programs,
            recording: slices,
            control: self.row.control.map(mechanism).transpose()?,
        };
        Simulation::new(setup).map_err(|error| error.to_string())
    }

    /// The row's traffic until `stop`.
    pub(crate) fn traffic(&self, stop: Picoseconds) -> Result<Traffic, String> {
        match self.row.exchanged {
            Some(size) => self.exchange(size),
            None => self.uniform(stop),
        }
    }

    /// A rank at each host, which exchanges messages of this size with one other after another.
    fn exchange(&self, size: &str) -> Result<Traffic, String> {
        let ranks = Hosts::of(&self.fabric).count() as u32;
        let spec = json!({ "kind": "pairwise-alltoall", "size": size, "rounds": 1_000_000 });
        let spec: ProgramSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
        let group = Group { ranks, ..Group::default() };
        let built = spec.build(&group).map_err(|error| error.to_string())?;
        let placed = (0..).zip(built).map(|(host, program)| Placed { host, program });
        Ok(Traffic {
            groups: vec![GroupSettings { transport: self.row.transport, sl: None }],
            programs: (0..ranks).map(|_| -> Box<dyn RankProgram> { Box::new(Silent) }).collect(),
            jobs: vec![Job { ranks: placed.collect() }],
        })
    }

    /// Uniform traffic at the row's load until `stop`.
    fn uniform(&self, stop: Picoseconds) -> Result<Traffic, String> {
        let hosts = Hosts::of(&self.fabric);
        let parameters = self.row.parameters.clone();
        let pattern = PatternSpec::to_anybody();
        let destinations = pattern.build(hosts.ranks(), None).map_err(|error| error.to_string())?;
        // Over several lanes: one flow group per service level.
        let lanes = match self.row.by {
            By::Engine("fat-tree", lanes) | By::Adaptive("fat-tree", lanes) => lanes,
            _ => 1,
        };
        let group = |lane: u8| FlowGroup {
            name: format!("uniform {lane}"),
            class: Class::Background,
            senders: (0..hosts.count() as u32).map(Rank).collect(),
            transport: self.row.transport,
            demand: Demand::OpenLoop(Arc::new(Offered {
                destinations: destinations.clone(),
                sizes: SizeDistribution::Fixed(MESSAGE),
                load: self.row.load / f64::from(lanes),
                arrivals: Arrivals::Poisson,
                start: Picoseconds(0),
                stop,
            })),
            sl: (lanes > 1).then(|| clearlane_ib::ServiceLevel::new(lane).unwrap_or_default()),
        };
        let groups: Vec<Arc<FlowGroup>> = (0..lanes).map(group).map(Arc::new).collect();
        let program = |rank: u32| -> Box<dyn RankProgram> {
            let rate = hosts.rate(Rank(rank), &parameters);
            let packet = |group: &FlowGroup| parameters.packet(group.transport);
            Box::new(OpenLoop::new(Rank(rank), &groups, rate, packet, 1))
        };
        Ok(Traffic {
            groups: groups
                .iter()
                .map(|group| GroupSettings { transport: group.transport, sl: group.sl })
                .collect(),
            programs: (0..hosts.count() as u32).map(program).collect(),
            jobs: Vec::new(),
        })
    }
}

/// A host that sends nothing by itself.
struct Silent;

impl RankProgram for Silent {
    fn step(&mut self, _: Picoseconds, _: Event) -> Op {
        Op::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ROWS;
    use clearlane_sim::instances;

    #[test]
    fn every_instance_is_paid_for_by_a_row_that_runs_on_it() {
        for instance in instances::all() {
            let row = ROWS.iter().find(|row| row.name == instance.row && !row.rare);
            let row = row.unwrap_or_else(|| panic!("{} names no row", instance.name));
            let (bench, span) = (row.prepare().unwrap(), Picoseconds(1_000_000));
            let traffic = bench.traffic(span).unwrap();
            let simulation = bench.start(span, Division::WHOLE, traffic).unwrap();
            assert_eq!(simulation.instance(), instance.name, "{}", row.name);
        }
    }
}
