//! A variant made ready to run: files read, cables cut, tables filled and checked, traffic resolved
//! to hosts.

use crate::LabError;
use crate::control::Control;
use crate::experiment::{
    Ends, FabricSource, FabricSpec, LanePolicySpec, Mode, Place, Plan, Routing, SubnetSpec,
    TrafficSpec, Variant, gaps_in_words, in_words, placed, read_trace,
};
use crate::fact::Fact;
use crate::halt::Halt;
use crate::ideal::{self, Ideals};
use crate::measure;
use crate::queue_pairs::QueuePairs;
use crate::reachable::Reachable;
use crate::routes::{DefaultRoutes, Routed};
use crate::table::{grouped, significant};
use crate::text;
use clearlane_fabric::structure;
use clearlane_fabric::topologies::TopologyError;
use clearlane_fabric::{Endpoint, Fabric, NodeNameMap, damage, formats, topologies};
use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth, ServiceLevel, wire};
use clearlane_sim::parameters::{KEYS, Key};
use clearlane_sim::{BufferPer, Forwarding, Hosts, Parameters};
use clearlane_subnet::engines::{self, RouteOptions, TableFile};
use clearlane_subnet::lanes::{self, LaneOptions};
use clearlane_subnet::{LidError, LidMap, Subnet, check};
use clearlane_workload::{Arrivals, Class, Demand, FlowGroup, Offered, Rank, Transport};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a fabric file: one of 49,151 LIDs takes some 20 MB.
pub const FABRIC_BYTES_MAX: u64 = 256 << 20;
/// Most bytes of a table or matrix file: a subnet's largest LFT dump takes 1 GB.
pub const TABLE_BYTES_MAX: u64 = 2 << 30;

/// Messages of a program up to which its ideal times are among the facts.
const IDEAL_MESSAGES_MAX: u64 = 2_000_000;

/// A variant ready to run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) fabric: Fabric,
    pub(crate) routed: Routed,
    pub(crate) hosts: Hosts,
    pub(crate) groups: Vec<FlowGroup>,
    pub(crate) ideals: Ideals,
    pub(crate) queue_pairs: QueuePairs,
    pub(crate) parameters: Parameters,
    pub(crate) control: Control,
    pub(crate) facts: Vec<Fact>,
    /// Hosts that stand in for missing ones: what was simulated is not what the file asks for.
    pub(crate) stand_ins: Vec<String>,
    pub(crate) oddities: Vec<String>,
    /// True if some pairs of hosts have no path and traffic leaves them out.
    pub(crate) has_dead_pairs: bool,
}

impl Prepared {
    /// Reads, routes and checks. Fails where a file or a request in it is wrong, and between two of
    /// these steps if it is to stop.
    pub(crate) fn of(variant: &Variant, plan: &Plan, halt: Halt<'_>) -> Result<Self, LabError> {
        let go_on = || halt.set_up(&variant.name);
        go_on()?;
        let fault = |problem: &dyn std::fmt::Display| LabError::variant(&variant.name, problem);
        let mut facts = Vec::new();
        let mut oddities = Vec::new();
        let fabric = fabric(variant, &mut oddities)?;
        go_on()?;
        let hosts = Hosts::with_ports(&fabric, variant.devices.parameters.adapter_ports);
        let mut variant = Cow::Borrowed(variant);
        let stand_ins = match variant.stand_in {
            true => variant.to_mut().replace_missing(hosts.ranks()),
            false => Vec::new(),
        };
        let variant = &*variant;
        lids_suffice(variant, &fabric)?;
        fact(&mut facts, "fabric", fabric.summary().to_string());
        fact(&mut facts, "structure", structure_of(&fabric));
        go_on()?;
        let routed = route(variant, &fabric, &mut oddities)?;
        go_on()?;
        let has_dead_pairs = check_routing(variant, &fabric, &routed, &mut facts, &mut oddities)?;
        go_on()?;
        let traffic = read(&variant.traffic, &mut oddities)?;
        let mut groups = groups((variant, &traffic), plan, (&fabric, &routed, &hosts))?;
        if let Routed::Tables(subnet) = &routed
            && has_dead_pairs
        {
            let reachable = Arc::new(Reachable::of(&fabric, subnet, &hosts));
            let limited = groups.into_iter().map(|group| reachable.limit(group));
            groups = limited.collect::<Result<_, _>>().map_err(|e| fault(&e))?;
        }
        let queue_pairs = QueuePairs::of(variant.traffic.iter().map(TrafficSpec::queue_pairs));
        queue_pairs_fit(&queue_pairs).map_err(|e| fault(&e))?;
        ends_some_time(plan, &groups).map_err(|e| fault(&e))?;
        traffic_facts(&groups, &variant.traffic, &mut facts);
        oddities.extend(groups.iter().filter_map(overload));
        device_facts(variant, &mut facts);
        let control = Control::of(&variant.control, &fabric).map_err(|e| fault(&e))?;
        if plan.mode == Mode::Flow {
            flows_suffice(&control, &routed).map_err(|e| fault(&e))?;
            fact(&mut facts, "mode", "flow".into());
            oddities.push(FLOW.into());
        }
        facts.extend(control.facts());
        oddities.extend(control.remarks(&fabric, &routed, &hosts));
        let parameters = variant.devices.parameters.clone();
        oddities.extend(missing_ports(&parameters, &hosts));
        oddities.extend(small_share(&parameters, routed.forwarding().lanes()));
        let mut prepared = Prepared {
            fabric,
            routed,
            hosts,
            groups,
            ideals: Ideals::of(&variant.traffic),
            queue_pairs,
            parameters,
            control,
            facts,
            stand_ins,
            oddities,
            has_dead_pairs,
        };
        go_on()?;
        let ideal = prepared.ideal_facts();
        prepared.facts.extend(ideal);
        Ok(prepared)
    }

    /// The ideal times of programs that do not take long to compute.
    fn ideal_facts(&self) -> Vec<Fact> {
        let messages = |group: usize| ideal::messages(&self.groups[group]);
        let few = |group: &usize| (1..=IDEAL_MESSAGES_MAX).contains(&messages(*group));
        let ideal = |group: usize| {
            let (bounds, group) = (measure::Ideals::ideal(self, group)?, &self.groups[group]);
            let (payload, _) = self.parameters.packet(group.transport);
            let us = |time: clearlane_ib::Picoseconds| significant(time.as_microseconds());
            let value = format!(
                "{} us step by step, {} us by the busiest link, {} us by the busiest host; payload \
                 of {} B a packet",
                us(bounds.by_steps),
                us(bounds.by_link),
                us(bounds.by_host),
                grouped(payload.into())
            );
            Some(Fact { label: format!("ideal time of {}", group.name), value })
        };
        (0..self.groups.len()).filter(few).filter_map(ideal).collect()
    }

    /// What the simulation forwards by.
    pub(crate) fn forwarding(&self) -> Forwarding<'_> {
        self.routed.forwarding()
    }

    /// Bytes of the queues per output of a run; 0 where switches have none.
    pub(crate) fn voq_bytes(&self) -> u64 {
        clearlane_sim::voq_bytes(&self.fabric, self.forwarding(), &self.parameters)
    }

    /// The groups without those that cause congestion, if there are victims to compare by. Groups
    /// keep their indices, so that nobody's random draws change.
    pub(crate) fn groups_without_hot(&self) -> Option<Vec<FlowGroup>> {
        let has = |class| self.groups.iter().any(|group| group.class == class);
        (has(Class::Hot) && has(Class::Victim)).then(|| {
            let mut groups = self.groups.clone();
            for group in groups.iter_mut().filter(|group| group.class == Class::Hot) {
                group.senders.clear();
            }
            groups
        })
    }
}

impl measure::Ideals for Prepared {
    fn ideal(&self, number: usize) -> Option<clearlane_workload::Bounds> {
        let Prepared { fabric, routed, hosts, parameters, .. } = self;
        let place = ideal::Place { fabric, routed, hosts, parameters };
        self.ideals.get(number, self.groups.get(number)?, &place)
    }
}

/// What a reader should know of all that flow mode finds.
const FLOW: &str = "flow mode: rates are max-min fair, without packets, buffers or credits: times \
                    are bounds, to be compared with mode = \"packets\" where that can be afforded";

/// Fails if a variant has what only packets have.
fn flows_suffice(control: &Control, routed: &Routed) -> Result<(), String> {
    let adaptive = matches!(routed, Routed::Tables(subnet) if subnet.adaptive.is_some());
    let what = match (control.is_on(), adaptive) {
        (true, _) => "congestion mechanisms",
        (_, true) => "adaptive routing",
        _ => return Ok(()),
    };
    Err(clearlane_flow::SetupError::Packets { what }.to_string())
}

/// The flow groups of a variant's traffic on a routed fabric.
fn groups(
    (variant, traffic): (&Variant, &[TrafficSpec]),
    plan: &Plan,
    (fabric, routed, hosts): (&Fabric, &Routed, &Hosts),
) -> Result<Vec<FlowGroup>, LabError> {
    let ranks = hosts.ranks();
    let parameters = &variant.devices.parameters;
    let routes = DefaultRoutes::of(fabric, routed, hosts, parameters);
    let routes = routes.map_err(|error| LabError::variant(&variant.name, error))?;
    let rates = (0..hosts.count()).map(|rank| hosts.port_rate_of(Rank(rank as u32), parameters));
    // More time a byte is more: this is the slowest.
    let port_rate = rates.max();
    let port_rate = port_rate.unwrap_or(LinkRate::of(LinkWidth::X1, LinkSpeed::Sdr));
    let place = Place { ranks, routes: &routes, parameters, port_rate };
    let given = placed(traffic, ranks)
        .map_err(|(number, problem)| missing_host(variant, traffic[number].fault(&problem)))?;
    let group = |(spec, given): (&TrafficSpec, Option<Vec<Rank>>)| {
        let group = spec.group(&place, given, plan.duration);
        group.map_err(|problem| missing_host(variant, problem))
    };
    traffic.iter().zip(given).map(group).collect()
}

/// Traffic with the files that its patterns and programs need. What a trace says and a program made
/// of it does not do is an oddity.
fn read(traffic: &[TrafficSpec], oddities: &mut Vec<String>) -> Result<Vec<TrafficSpec>, LabError> {
    let mut traffic = traffic.to_vec();
    for spec in &mut traffic {
        if let Some(table) = spec.table() {
            table.text = Some(text::read(Path::new(&table.path), TABLE_BYTES_MAX)?);
        }
        if let Some(file) = spec.trace() {
            read_trace(file)?;
            let lost = file.lost.iter().map(|lost| LabError::one_line(lost));
            oddities.extend(lost);
        }
    }
    Ok(traffic)
}

/// What else can be done where a host of an experiment is missing on another fabric.
const STAND_IN: &str = "; or let the first hosts of this fabric stand in, with --stand-in";

fn fact(facts: &mut Vec<Fact>, label: &str, value: String) {
    facts.push(Fact { label: label.to_owned(), value });
}

/// The fabric of a variant: read or built, cables cut.
pub(crate) fn fabric(variant: &Variant, oddities: &mut Vec<String>) -> Result<Fabric, LabError> {
    let fault = |problem: &dyn std::fmt::Display| LabError::variant(&variant.name, problem);
    let FabricSpec { source, node_name_map, cut, cut_random } = &variant.fabric;
    let mut fabric = match source {
        FabricSource::File(path) => {
            let text = text::read(path, FABRIC_BYTES_MAX)?;
            let name = path.display().to_string();
            let reading = formats::read(&text, &name).map_err(|error| fault(&error))?;
            let odd = reading.oddities.iter();
            oddities.extend(odd.map(|oddity| LabError::one_line(&format!("{name} {oddity}"))));
            reading.fabric
        }
        FabricSource::Build(spec) => built(spec, variant).map_err(|error| fault(&error))?,
    };
    if let Some(path) = node_name_map {
        let text = text::read(path, FABRIC_BYTES_MAX)?;
        let map = NodeNameMap::read(&text, &path.display().to_string());
        if map.map_err(|error| fault(&error))?.apply(&mut fabric) == 0 {
            let path = path.display();
            return Err(fault(&format!(
                "{path} names no node of the fabric; give the map of this \
                                       fabric"
            )));
        }
    }
    fabric.tell_apart();
    let names: Vec<&str> = cut.iter().map(String::as_str).collect();
    let mut dead = damage::cables(&fabric, &names).map_err(|error| fault(&error))?;
    if let Some(random) = cut_random {
        let choice = damage::Choice {
            links: random.links as usize,
            seed: random.seed,
            uplinks_min: random.keep_uplinks,
        };
        dead.extend(damage::choose(&fabric, &choice).map_err(|error| fault(&error))?);
    }
    dead.sort_unstable();
    dead.dedup();
    if !dead.is_empty() {
        let cables: Vec<String> =
            dead.iter().map(|id| fabric.cable(fabric.link(*id))).take(20).collect();
        let more = if dead.len() > 20 { ", …" } else { "" };
        oddities.push(format!("{} cables cut: {}{more}", dead.len(), cables.join(", ")));
        damage::cut(&mut fabric, &dead);
    }
    Ok(fabric)
}

/// A built fabric whose hosts have as many cables as the preset's, if its builder has that option
/// and the specification does not set it.
fn built(spec: &str, variant: &Variant) -> Result<Fabric, TopologyError> {
    let (spec, links) = (with_speed(spec, variant), variant.devices.preset.links);
    if links == 1 || spec.split([':', ',']).any(|part| part.trim_start().starts_with("links=")) {
        return topologies::build(&spec);
    }
    match topologies::build(&format!("{spec},links={links}")) {
        Err(TopologyError::UnknownOption { .. }) => topologies::build(&spec),
        built => built,
    }
}

/// A built fabric has the links of the preset unless its specification says otherwise.
fn with_speed(spec: &str, variant: &Variant) -> String {
    if spec.split([':', ',']).any(|part| part.trim_start().starts_with("speed=")) {
        return spec.to_owned();
    }
    let (width, speed) = variant.devices.preset.link;
    let joint = if spec.contains(':') { "," } else { ":" };
    format!("{spec}{joint}speed={width}{speed}")
}

fn structure_of(fabric: &Fabric) -> String {
    if let Ok(grid) = structure::grid(fabric) {
        let sizes: Vec<String> = grid.dims.iter().map(u32::to_string).collect();
        let kind = if grid.wraps.iter().all(|wraps| *wraps) { "torus" } else { "mesh" };
        let partly = grid.wraps.iter().any(|wraps| *wraps) && kind == "mesh";
        return format!(
            "{}{kind} {}",
            if partly { "partly wrapped " } else { "" },
            sizes.join("×")
        );
    }
    match structure::tree(fabric) {
        Ok(tree) => {
            let sizes: Vec<String> =
                (0..tree.height()).map(|level| tree.switches(level).len().to_string()).collect();
            format!("tree, switches per level from the leaves up: {}", sizes.join(", "))
        }
        Err(_) => "irregular topology".into(),
    }
}

/// Looked at before anything that takes its time on a fabric no subnet can address.
fn lids_suffice(variant: &Variant, fabric: &Fabric) -> Result<(), LabError> {
    let enough = match &variant.subnet.routing {
        Routing::DimensionOrderRule(_) => Ok(()),
        Routing::Engine(_) => LidMap::suffice(fabric, variant.subnet.lmc),
        Routing::Files(_) => LidMap::from_fabric(fabric).map(|_| ()),
    };
    enough.map_err(|error| match error {
        LidError::TooMany { .. } => {
            let rule = "or, if it is a grid, forward by rule: forwarding = \"dimension-order\"";
            LabError::variant(&variant.name, format!("{error}, {rule}"))
        }
        other => LabError::variant(&variant.name, other),
    })
}

fn route(
    variant: &Variant,
    fabric: &Fabric,
    oddities: &mut Vec<String>,
) -> Result<Routed, LabError> {
    let fault = |problem: &dyn std::fmt::Display| LabError::variant(&variant.name, problem);
    let SubnetSpec { routing, lmc, lanes, adaptive, roots, lane_policy, vl_arbitration } =
        &variant.subnet;
    let mut options =
        RouteOptions { lmc: *lmc, lanes: *lanes, adaptive: *adaptive, ..RouteOptions::default() };
    let engine = match routing {
        Routing::DimensionOrderRule(ties) => {
            oddities.push(
                "forwarding is by rule (dimension order, lane 1 after the dateline): no subnet \
                 manager can deploy it"
                    .into(),
            );
            let grid = structure::grid(fabric).map_err(|error| fault(&error))?;
            return Ok(Routed::Rule(grid, *ties));
        }
        Routing::Engine(name) => name.as_str(),
        Routing::Files(paths) => {
            options.files = table_files(variant, paths)?;
            options.lids = LidMap::from_fabric(fabric).map_err(|error| fault(&error))?;
            "file"
        }
    };
    let engine = engines::engine(engine).map_err(|error| fault(&error))?;
    options.roots = engine.roots(fabric, roots).map_err(|error| fault(&error))?;
    let mut subnet = engine.fill(fabric, &options).map_err(|error| fault(&error))?;
    if let Some(spec) = lane_policy {
        assign_lanes(variant, spec, fabric, &mut subnet)?;
    }
    if let Some(arbitration) = vl_arbitration {
        subnet.vl_arbitration = arbitration.clone();
    }
    oddities.extend(subnet.remarks.iter().map(|remark| LabError::one_line(remark)));
    Ok(Routed::Tables(Box::new(subnet)))
}

/// Gives paths their lanes.
fn assign_lanes(
    variant: &Variant,
    spec: &LanePolicySpec,
    fabric: &Fabric,
    subnet: &mut Subnet,
) -> Result<(), LabError> {
    let fault = |problem: &dyn std::fmt::Display| LabError::variant(&variant.name, problem);
    let policy = lanes::policy(spec.policy).map_err(|error| fault(&error))?;
    let hot = spec.hot_ports(fabric);
    let hot = hot.map_err(|problem| missing_host(variant, format!("lane_policy: {problem}")))?;
    let links = spec.links(fabric);
    let of_links = links.map_err(|problem| fault(&format!("lane_policy: {problem}")))?;
    let options = LaneOptions { lanes: variant.subnet.lanes, hot, seed: spec.seed, of_links };
    policy.assign(fabric, subnet, &options).map_err(|error| fault(&error))
}

/// A host that may be missing: on a fabric that is not the experiment's own another may stand in.
fn missing_host(variant: &Variant, problem: String) -> LabError {
    match variant.foreign_site && !variant.stand_in {
        true => LabError::variant(&variant.name, format!("{problem}{STAND_IN}")),
        false => LabError::variant(&variant.name, problem),
    }
}

fn table_files(variant: &Variant, paths: &[PathBuf]) -> Result<Vec<TableFile>, LabError> {
    if paths.is_empty() {
        let problem = "engine \"file\" has no tables; write lft = \"site.lft\" in [subnet]";
        return Err(LabError::variant(&variant.name, problem));
    }
    let read = |path: &PathBuf| {
        let text = text::read(path, TABLE_BYTES_MAX)?;
        Ok(TableFile { name: path.display().to_string(), text })
    };
    paths.iter().map(read).collect()
}

fn check_routing(
    variant: &Variant,
    fabric: &Fabric,
    routed: &Routed,
    facts: &mut Vec<Fact>,
    oddities: &mut Vec<String>,
) -> Result<bool, LabError> {
    let Routed::Tables(subnet) = routed else {
        fact(facts, "routing", "dimension order by rule, not deployable".into());
        return Ok(false);
    };
    let lanes = subnet.sl_to_vl.lanes();
    let plural = if lanes == 1 { "lane" } else { "lanes" };
    let adaptive = if subnet.adaptive.is_some() { ", adaptive" } else { "" };
    fact(facts, "routing", format!("{}{adaptive}, {lanes} data {plural}", subnet.engine));
    for note in &subnet.notes {
        fact(facts, "engine", LabError::one_line(note));
    }
    let reached = check::reachability(fabric, subnet);
    if reached.hosts < reached.without_lid + 2 {
        let problem = "routing: there are no two hosts with LIDs; give a fabric file that has them";
        return Err(LabError::variant(&variant.name, problem));
    }
    let has_dead_pairs = !reached.is_sane();
    if has_dead_pairs {
        oddities.push(dead_pairs(variant, &reached)?);
    }
    let value = match has_dead_pairs {
        true => format!("{} of {} paths between {}", reached.reached, reached.pairs, reached.who()),
        false => format!("all {} paths between {}", reached.pairs, reached.who()),
    };
    fact(facts, "reachability", value);
    let deadlock_free = deadlock_free(fabric, subnet, &variant.traffic);
    if let Some(how) = deadlock_free.strip_prefix("no: ") {
        let by_hand = variant.traffic.iter().any(|group| group.sl.is_some());
        let cause = if by_hand { ", the service levels of the traffic included" } else { "" };
        oddities.push(format!("a deadlock is possible{cause}: {how}"));
    }
    fact(facts, "deadlock-free", deadlock_free);
    oddities.extend(shared_lanes(subnet, &variant.traffic));
    Ok(has_dead_pairs)
}

/// What is said where some paths do not arrive. Fails if none does, or switches choose among ports,
/// so that nobody can say which pairs are dead.
fn dead_pairs(variant: &Variant, reached: &check::ReachabilityReport) -> Result<String, LabError> {
    let example = reached.examples.first().map_or("", |fault| fault.text.as_str());
    let (dead, all) = (grouped(reached.pairs - reached.reached), grouped(reached.pairs));
    let said = format!("{dead} of {all} paths do not arrive; the first: {example}");
    if reached.reached == 0 || variant.subnet.adaptive {
        let remedy = "`check` lists them; use another engine or repair the tables";
        return Err(LabError::variant(&variant.name, format!("routing: {said}; {remedy}")));
    }
    Ok(format!(
        "{said}; traffic between hosts without a path is left out; `check` lists these \
                paths"
    ))
}

/// Whether buffers can wait in a circle, on the service levels that groups set by hand as well.
fn deadlock_free(fabric: &Fabric, subnet: &Subnet, traffic: &[TrafficSpec]) -> String {
    let mut by_hand: Vec<ServiceLevel> = traffic.iter().filter_map(|group| group.sl).collect();
    by_hand.sort_unstable();
    by_hand.dedup();
    let loops = check::credit_loop_on(fabric, subnet, &by_hand);
    let Some(cycle) = &loops.cycle else {
        return format!("yes: no cycle among {} dependencies of buffers", loops.dependencies);
    };
    let channel = |waiting: &check::Waiting| {
        let end = Endpoint { node: waiting.switch, port: waiting.port };
        format!("{} VL {}", fabric.describe(end), waiting.vl)
    };
    let names: Vec<String> = cycle.channels.iter().take(8).map(channel).collect();
    let more = if cycle.channels.len() > 8 { " → …" } else { "" };
    let count = cycle.channels.len();
    format!("no: {count} outputs can wait in a circle: {}{more}", names.join(" → "))
}

/// Groups whose own service level goes on a lane that another group is on as well, other than by
/// the same service level set by hand.
fn shared_lanes(subnet: &Subnet, traffic: &[TrafficSpec]) -> Vec<String> {
    let of_paths = subnet.path_sl.levels();
    let shares = |group: &TrafficSpec| {
        let sl = group.sl?;
        let beside = |other: &&TrafficSpec| match other.sl {
            Some(level) => level != sl && subnet.sl_to_vl.share_a_lane(sl, level),
            None => of_paths.iter().any(|level| subnet.sl_to_vl.share_a_lane(sl, *level)),
        };
        let others = traffic.iter().filter(|other| other.name != group.name).filter(beside);
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let lanes = subnet.sl_to_vl.lanes();
        let lane = subnet.sl_to_vl.adapter[usize::from(sl.value())];
        (!others.is_empty()).then(|| {
            let others = others.join(", ");
            format!(
                "traffic {}: sl {sl} (lane {lane}) shares a lane with {others}: lanes = {lanes}",
                group.name
            )
        })
    };
    traffic.iter().filter_map(shares).collect()
}

/// A group one of whose senders offers more than its link carries: a matrix may have some offer
/// more than others. Hot flows do so on purpose.
fn overload(group: &FlowGroup) -> Option<String> {
    if group.class == Class::Hot {
        return None;
    }
    let most = group.senders.iter().map(|sender| group.weight(*sender)).reduce(f64::max)?;
    let (name, most) = (&group.name, group.offered()?.load * most);
    (most > 1.0).then(|| {
        let most = significant(most);
        format!("traffic {name} offers {most} of its senders' links, more than they carry")
    })
}

/// Most groups of a simulation.
const SIMULATED_GROUPS_MAX: usize = 4096;

fn queue_pairs_fit(queue_pairs: &QueuePairs) -> Result<(), String> {
    match queue_pairs.count() {
        fit if fit <= SIMULATED_GROUPS_MAX => Ok(()),
        many => Err(format!(
            "{many} queue pairs between two hosts, all flow groups together, are more than \
             {SIMULATED_GROUPS_MAX}; lower queue_pairs"
        )),
    }
}

/// Fails if runs are to end with programs that there are not, or not without the hot flows.
fn ends_some_time(plan: &Plan, groups: &[FlowGroup]) -> Result<(), &'static str> {
    let program = |group: &&FlowGroup| group.program().is_some();
    let has = |class| groups.iter().any(|group| group.class == class);
    if plan.ends == Ends::Duration {
        return Ok(());
    }
    if !groups.iter().any(|group| program(&group)) {
        return Err("run.ends = \"programs\", but no traffic has a program; give it one or set \
                    ends = \"duration\"");
    }
    let only_hot = groups.iter().filter(program).all(|group| group.class == Class::Hot);
    if only_hot && has(Class::Victim) {
        return Err("run.ends = \"programs\", but every program is of class hot, and victims are \
                    run without hot flows too; set class = \"background\" or \
                    ends = \"duration\"");
    }
    Ok(())
}

/// A remark if more adapter ports are requested than any host has.
fn missing_ports(parameters: &Parameters, hosts: &Hosts) -> Option<String> {
    let asked = parameters.adapter_ports.filter(|ports| *ports > 1)?;
    let most = (0..hosts.count()).map(|rank| hosts.ports(Rank(rank as u32)).len()).max()?;
    (most < asked as usize).then(|| {
        format!(
            "adapter_ports = {asked}, but hosts have at most {most} cabled; for a built \
             fabric write links = {asked}"
        )
    })
}

/// A share of a port's buffer that holds less than two full packets: while one leaves it, the next
/// cannot come in, so no link can be used up.
fn small_share(parameters: &Parameters, lanes: u8) -> Option<String> {
    let packet = parameters.packet_bytes_max();
    let full = u64::from(wire::credits(packet) * wire::CREDIT_UNIT);
    let share = parameters.lane_buffer(lanes);
    (parameters.buffer_per == BufferPer::Port && share.0 < 2 * full).then(|| {
        format!(
            "each of {lanes} lanes has {share} of the buffer of a port ({}), less than two packets \
             of {packet} B: no lane keeps its link busy",
            parameters.buffer
        )
    })
}

fn traffic_facts(groups: &[FlowGroup], specs: &[TrafficSpec], facts: &mut Vec<Fact>) {
    for (group, spec) in groups.iter().zip(specs) {
        let count = group.senders.iter().filter(|rank| group.weight(**rank) > 0.0).count();
        let sl = group.sl.map_or(String::new(), |sl| format!(", SL {sl}"));
        let sl = match spec.queue_pairs() {
            1 => sl,
            several => format!(" on {several} queue pairs{sl}"),
        };
        let transport = match group.transport {
            Transport::Rc => "RC",
            Transport::Ud => "UD",
        };
        let what = match &group.demand {
            Demand::OpenLoop(offered) => in_open_loop(offered, count, transport, &sl),
            Demand::Program(program, pacing) => {
                let gaps =
                    spec.job().map_or(String::new(), |job| gaps_in_words(job.pacing, pacing));
                format!("program {} of {count} ranks, {transport}{sl}{gaps}", program.name())
            }
        };
        let value = format!("{}; {what}", group.class.name());
        fact(facts, &format!("traffic {}", group.name), value);
        if let Some(note) = group.offered().and_then(|offered| offered.destinations.note()) {
            fact(facts, &format!("pairs of {}", group.name), LabError::one_line(note));
        }
    }
}

/// What so many senders offer, in words.
fn in_open_loop(offered: &Offered, count: usize, transport: &str, sl: &str) -> String {
    let senders = if count == 1 { "sender" } else { "senders" };
    let arrivals = match offered.arrivals {
        Arrivals::Poisson => "Poisson",
        Arrivals::Periodic => "periodic",
        Arrivals::Ramp(_) => "periodic and growing",
    };
    let (load, sizes) = (offered.load, in_words(&offered.sizes));
    let (start, stop) = (offered.start.exact(), offered.stop.exact());
    format!(
        "{count} {senders}, load {load}, messages of {sizes}, {arrivals} arrivals, \
         {transport}{sl}, {start} to {stop}"
    )
}

fn device_facts(variant: &Variant, facts: &mut Vec<Fact>) {
    let preset = variant.devices.preset;
    let is_assumed = |key: &&Key| preset.source(key).starts_with("assumed");
    let assumed: Vec<&str> = KEYS.iter().filter(is_assumed).map(|key| key.name).collect();
    fact(facts, "devices", format!("{}: {}", preset.name, preset.summary));
    fact(facts, "assumed numbers", assumed.join(", "));
    let overrides = variant.devices.overrides();
    if !overrides.is_empty() {
        fact(facts, "changed numbers", overrides.join(", "));
    }
}
