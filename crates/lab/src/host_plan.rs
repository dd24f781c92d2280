//! What the hosts of a variant are to send, for hosts that are not simulated.

use crate::experiment::{Experiment, Mode, Variant, WarmUp};
use crate::halt::Halt;
use crate::prepare::Prepared;
use crate::routes::Routed;
use crate::{ControlSpec, LabError};
use clearlane_fabric::{Endpoint, Fabric, Link};
use clearlane_ib::random::Stream;
use clearlane_ib::{BitsPerSecond, Bytes, LinkRate, Picoseconds};
use clearlane_workload::{Arrivals, Class, FlowGroup, Rank, SizeDistribution, Transport};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Draws by which the share of each destination is found where they are drawn at random.
const DRAWS: u32 = 4096;
/// Flows of a plan.
const FLOWS_MAX: usize = 1 << 16;

/// A flow from one host to another.
#[derive(Clone, PartialEq, Debug)]
pub struct HostFlow {
    /// Who sends.
    pub source: String,
    /// Who receives.
    pub destination: String,
    /// Flow group.
    pub group: String,
    /// Its class.
    pub class: Class,
    /// RC, which hosts carry by TCP, or UD, by UDP.
    pub transport: Transport,
    /// Bytes of a full packet's payload, the MTU unless the preset's packets are smaller.
    pub payload_max: u32,
    /// Sizes of messages.
    pub sizes: SizeDistribution,
    /// When they are posted.
    pub arrivals: Arrivals,
    /// Offered load of the flow as a share of the sender's link.
    pub load: f64,
    /// Whether the sender is to send as fast as it can: periodic messages that fill the link.
    pub at_full_speed: bool,
    /// The sender's link.
    pub link: LinkRate,
    /// Paths of the flow: 1 unless a mechanism chooses among them.
    pub paths: u8,
    /// First instant a message may be posted.
    pub start: Picoseconds,
    /// No message is posted from here on.
    pub stop: Picoseconds,
}

/// A port with a cable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CabledPort {
    /// Name of the host or switch.
    pub node: String,
    /// Port number.
    pub port: u8,
    /// Whether it is a switch's.
    pub of_switch: bool,
}

/// A cable of the variant's fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCable {
    /// Its ends.
    pub ends: [CabledPort; 2],
    /// Rate of data each way.
    pub rate: BitsPerSecond,
}

/// What the hosts of a variant are to send.
#[derive(Clone, PartialEq, Debug)]
pub struct HostPlan {
    /// Name of the experiment.
    pub name: String,
    /// Name of the variant.
    pub variant: String,
    /// Seed of random draws.
    pub seed: u64,
    /// How long the run lasts.
    pub duration: Picoseconds,
    /// Slices of the time series.
    pub slices: u32,
    /// When measuring begins, if the experiment says so (`run.warm_up`).
    pub warm_up: Option<Picoseconds>,
    /// The flows, by group, source and destination; one for each queue pair.
    pub flows: Vec<HostFlow>,
    /// The cables, for who builds such a network.
    pub cables: Vec<HostCable>,
    /// What a switch's buffer holds (`sim.buffer`).
    pub buffer: Bytes,
    /// The mechanisms, every parameter spelt out; empty without any.
    pub control: String,
    /// The experiment with this variant alone and every default spelt out.
    pub resolved: String,
}

impl HostPlan {
    /// Names of the mechanisms that senders have; empty without any.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        match ControlSpec::of_spelt_out(&self.control) {
            Ok(spec) if !self.control.is_empty() => {
                spec.all().map(|mechanism| mechanism.entry.name).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The plan of a variant, the first if none is named. Fails where the experiment does, and on
    /// programs, which hosts run as what they are.
    pub fn of(experiment: &Experiment, variant: Option<&str>) -> Result<Self, LabError> {
        let mut experiment = experiment.clone();
        let named = variant.or(experiment.variants.first().map(|first| first.name.as_str()));
        let named = named.unwrap_or_default().to_owned();
        experiment.keep_variants(&[&named])?;
        let resolved = experiment.resolved();
        let Some(variant) = experiment.variants.first() else {
            return Err(LabError::Request("the experiment has no variant".into()));
        };
        let fault = |problem: String| LabError::variant(&variant.name, problem);
        if experiment.plan.mode == Mode::Flow {
            return Err(fault("run.mode = \"flow\" is for simulations; drop it".into()));
        }
        let (cancel, memory_short) = (&AtomicBool::new(false), &OnceLock::new());
        let prepared = Prepared::of(variant, &experiment.plan, Halt { cancel, memory_short })?;
        let plan = HostPlan {
            name: experiment.name.clone(),
            variant: variant.name.clone(),
            seed: experiment.plan.seed,
            duration: experiment.plan.duration,
            slices: experiment.plan.slices,
            warm_up: match experiment.plan.warm_up {
                WarmUp::Until(time) => Some(time),
                WarmUp::Auto => None,
            },
            flows: Vec::new(),
            cables: cables(&prepared.fabric),
            buffer: prepared.parameters.buffer,
            control: match prepared.control.is_on() {
                true => variant.control.spelt_out(),
                false => String::new(),
            },
            resolved,
        };
        let flows = flows(variant, &prepared, plan.seed).map_err(fault)?;
        Ok(HostPlan { flows, ..plan })
    }

    /// The hosts that take part, by name.
    pub fn hosts(&self) -> Vec<&str> {
        let ends = self.flows.iter().flat_map(|flow| [&flow.source, &flow.destination]);
        let mut hosts: Vec<&str> = ends.map(String::as_str).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

fn cables(fabric: &Fabric) -> Vec<HostCable> {
    let end = |end: Endpoint| {
        let node = fabric.node(end.node);
        let (port, of_switch) = (end.port.value(), node.is_switch());
        CabledPort { node: node.name.clone(), port, of_switch }
    };
    let cable = |link: &Link| HostCable {
        ends: [end(link.a), end(link.b)],
        rate: LinkRate::of(link.width, link.speed).bits_per_second(),
    };
    fabric.links().iter().map(cable).collect()
}

fn flows(variant: &Variant, prepared: &Prepared, seed: u64) -> Result<Vec<HostFlow>, String> {
    let ranks = prepared.hosts.ranks();
    let name = |rank: Rank| ranks.name(rank).to_owned();
    let paths = match &prepared.routed {
        Routed::Tables(subnet) if prepared.control.chooses_paths() => prepared.hosts.paths(subnet),
        _ => 1,
    };
    let mut flows = Vec::new();
    for (index, group) in prepared.groups.iter().enumerate() {
        let Some(offered) = group.offered() else {
            return Err(format!(
                "traffic {} is a program; hosts run programs as they are, and traffic sends \
                 patterns; give it a pattern",
                group.name
            ));
        };
        let (payload_max, _) = prepared.parameters.packet(group.transport);
        let queue_pairs = variant.traffic.get(index).map_or(1, |spec| spec.queue_pairs());
        for source in &group.senders {
            for (destination, share) in shares(group, *source, seed) {
                let load = offered.load * share / f64::from(queue_pairs);
                let flow = HostFlow {
                    source: name(*source),
                    destination: name(destination),
                    group: group.name.clone(),
                    class: group.class,
                    transport: group.transport,
                    payload_max,
                    sizes: offered.sizes.clone(),
                    arrivals: offered.arrivals,
                    load: load.min(4.0),
                    at_full_speed: offered.load * share >= 1.0
                        && offered.arrivals == Arrivals::Periodic,
                    link: prepared.hosts.rate(*source, &prepared.parameters),
                    paths,
                    start: offered.start,
                    stop: offered.stop,
                };
                flows.extend((0..queue_pairs).map(|_| flow.clone()));
                if flows.len() > FLOWS_MAX {
                    return Err(format!("more than {FLOWS_MAX} flows; choose fewer senders"));
                }
            }
        }
    }
    Ok(flows)
}

/// The destinations of a sender, and the share of the group's load that goes to each.
fn shares(group: &FlowGroup, source: Rank, seed: u64) -> Vec<(Rank, f64)> {
    let Some(offered) = group.offered() else { return Vec::new() };
    let weight = group.weight(source);
    if weight <= 0.0 {
        return Vec::new();
    }
    let mut stream = Stream::new(seed, "destinations of hosts", source.0.into());
    let mut counts: BTreeMap<Rank, u32> = BTreeMap::new();
    let mut drawn = 0;
    for _ in 0..DRAWS {
        if let Some(destination) = offered.destinations.draw(source, &mut stream) {
            *counts.entry(destination).or_insert(0) += 1;
            drawn += 1;
        }
    }
    let share = |count: u32| weight * f64::from(count) / f64::from(drawn.max(1));
    counts.into_iter().map(|(rank, count)| (rank, share(count))).collect()
}
