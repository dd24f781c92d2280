//! What the tests of this folder share: fabrics and senders of the packet simulator's tests, and a
//! runner for both simulators.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

#[path = "../../../../sim/tests/it/support/mod.rs"]
mod packets;
#[path = "../../../../ranks/tests/it/support/script.rs"]
pub mod script;

use clearlane_fabric::Fabric;
use clearlane_flow::{Batching, Simulation};
use clearlane_ib::Picoseconds;
use clearlane_sim::{
    Division, Forwarding, GroupSettings, Hosts, Job, Outcome, Parameters, Placed, Recording, Setup,
    preset,
};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::programs::Group;
use clearlane_workload::{ProgramSpec, RankProgram, Transport};
pub use packets::{
    Greedy, build, delivered, dual_homed, greedy, group, idle, near, one_message, parking_lot,
    tables,
};

/// A byte on 4x QDR, ps.
pub const BYTE: u64 = 250;
/// A datagram of 2 KiB.
pub const PACKET_PS: u64 = 2082 * BYTE;

pub fn qdr() -> Parameters {
    (preset::by_name("qdr").unwrap().parameters)()
}

/// Links almost without delay and software without overhead: what is left is rates.
pub fn rates_alone() -> Parameters {
    let no = Picoseconds(0);
    Parameters {
        switch_delay: no,
        va_delay: no,
        sa_delay: no,
        cable_delay: Picoseconds(1),
        send_overhead: no,
        receive_overhead: no,
        ..qdr()
    }
}

pub fn dor(fabric: &Fabric) -> Subnet {
    engines::engine("dor")
        .unwrap()
        .fill(fabric, &RouteOptions { lanes: 2, ..RouteOptions::default() })
        .unwrap()
}

/// By program, then rank: the host and what it runs.
pub type Jobs = Vec<Vec<(u32, Box<dyn RankProgram>)>>;

/// What is run: programs are made anew for each run.
pub struct Case<'a> {
    pub fabric: &'a Fabric,
    pub forwarding: Forwarding<'a>,
    pub parameters: Parameters,
    pub groups: Vec<GroupSettings>,
    pub programs: &'a dyn Fn(u32) -> Box<dyn RankProgram>,
    /// By program, then rank: the host and what it runs.
    pub jobs: &'a dyn Fn() -> Jobs,
    pub until: u64,
    pub recording: Recording,
}

impl<'a> Case<'a> {
    /// Hosts by themselves, of one group of datagrams.
    pub fn of_hosts(
        fabric: &'a Fabric,
        subnet: &'a Subnet,
        parameters: Parameters,
        programs: &'a dyn Fn(u32) -> Box<dyn RankProgram>,
        until: u64,
    ) -> Self {
        Case {
            fabric,
            forwarding: Forwarding::Tables(subnet),
            parameters,
            groups: vec![group(Transport::Ud)],
            programs,
            jobs: &Vec::new,
            until,
            recording: Recording {
                slice: Picoseconds(until / 10),
                slices: 10,
                grows: false,
                flow_bytes_max: 1 << 20,
            },
        }
    }

    /// Ranks of one program, of one group of connections; hosts are idle.
    pub fn of_ranks(
        fabric: &'a Fabric,
        forwarding: Forwarding<'a>,
        parameters: Parameters,
        jobs: &'a dyn Fn() -> Jobs,
    ) -> Self {
        Case {
            fabric,
            forwarding,
            parameters,
            groups: vec![group(Transport::Rc)],
            programs: &|_| idle(),
            jobs,
            until: 1 << 46,
            recording: Recording {
                slice: Picoseconds(1_000_000),
                slices: 64,
                grows: true,
                flow_bytes_max: 1 << 20,
            },
        }
    }

    pub fn setup(&self) -> Setup<'a> {
        let hosts = Hosts::with_ports(self.fabric, self.parameters.adapter_ports);
        let jobs = (self.jobs)().into_iter().map(|ranks| {
            let placed = |(host, program)| Placed { host, program };
            Job { ranks: ranks.into_iter().map(placed).collect() }
        });
        let jobs: Vec<Job> = jobs.collect();
        Setup {
            fabric: self.fabric,
            forwarding: self.forwarding,
            parameters: self.parameters.clone(),
            groups: self.groups.clone(),
            programs: (0..hosts.count() as u32).map(self.programs).collect(),
            ends_with_jobs: !jobs.is_empty(),
            jobs,
            recording: self.recording,
            control: None,
            queue_width_log2: 13,
            division: Division::WHOLE,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
        }
    }

    /// As flows, exactly.
    pub fn run(&self) -> Outcome {
        self.run_with(Batching::EXACT)
    }

    pub fn run_with(&self, batching: Batching) -> Outcome {
        let mut simulation = Simulation::with_batching(self.setup(), batching).unwrap();
        simulation.run_until(Picoseconds(self.until));
        simulation.finish()
    }

    /// As packets.
    pub fn run_packets(&self) -> Outcome {
        let mut simulation = clearlane_sim::Simulation::new(self.setup()).unwrap();
        simulation.run_until(Picoseconds(self.until));
        simulation.finish()
    }
}

/// The ranks of a kind of program, on the first hosts.
pub fn ranks_of(spec: &ProgramSpec, ranks: u32) -> Jobs {
    let programs = spec.build(&Group { ranks, ..Group::default() }).unwrap();
    vec![(0..).zip(programs).collect()]
}

/// A program as an experiment file writes it, without its braces.
pub fn program(text: &str) -> ProgramSpec {
    toml::from_str(text).unwrap()
}
