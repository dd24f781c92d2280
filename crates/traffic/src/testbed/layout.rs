//! What a testbed is made of, as commands of iproute2. Nothing is done here.

use clearlane_ib::{BitsPerSecond, Bytes};
use clearlane_lab::{CabledPort, HostCable, HostPlan};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Hosts and switches of a testbed.
const NODES_MAX: usize = 100;
/// Ethernet's and IPoIB's largest datagram mode MTU (RFC 4391, 7) is the link's less 4 B.
const IPOIB_HEADER: u32 = 4;
/// Packets that Linux may carry as one bundle (segmentation offload): each by itself would ask for
/// more than the cores of a small machine.
const BUNDLE_PACKETS: u32 = 4;
/// What a token bucket lets through at once: a bundle, so that it need not be taken apart.
const BURST_BYTES: u64 = 16 << 10;

/// How a switch's output queues what comes in at several ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// One first-in first-out queue for all (tbf).
    Fifo,
    /// A queue for each input port, served in turns (htb): as an input-buffered switch does.
    ByInput,
}

/// A testbed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Hosts: name, namespace, address for data, address for control.
    pub hosts: Vec<HostPlace>,
    /// Namespace of the controller.
    pub controller: String,
    /// All namespaces.
    pub namespaces: Vec<String>,
    /// Commands that build it, in order, without the namespaces themselves.
    pub commands: Vec<Vec<String>>,
}

/// A host of a testbed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlace {
    /// As the plan names it.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Where it sends from and receives.
    pub data: Ipv4Addr,
    /// Where its agent listens for the controller.
    pub control: Ipv4Addr,
    /// Its ports.
    pub ports: Vec<String>,
}

/// Why a plan's fabric is no testbed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(String);

/// The first two octets of addresses: for benchmarks, routed nowhere (RFC 2544, RFC 6890).
const NETWORK: [u8; 2] = [198, 18];
const CONTROL: [u8; 2] = [198, 19];

fn fault<T>(problem: String) -> Result<T, LayoutError> {
    Err(LayoutError(problem))
}

/// A node and its cables.
#[derive(Default)]
struct Node {
    is_switch: bool,
    /// Port, rate, the other end.
    ports: Vec<(u8, BitsPerSecond, CabledPort)>,
}

impl Layout {
    /// The testbed of a plan, with cables of so many times less, whose namespaces begin with
    /// `prefix`. Fails if the fabric has loops,
    /// in which Ethernet would send for ever, hosts with several ports, or too many nodes.
    pub fn of(
        plan: &HostPlan,
        queue: Queue,
        slower: u32,
        prefix: &str,
    ) -> Result<Self, LayoutError> {
        let slow = |cable: &HostCable| HostCable {
            rate: BitsPerSecond((cable.rate.0 / u64::from(slower.max(1))).max(1)),
            ..cable.clone()
        };
        let cables: Vec<HostCable> = plan.cables.iter().map(slow).collect();
        if slower > 1 && !plan.flows.iter().all(|flow| flow.at_full_speed) {
            return fault(
                "cables can be slower for flows at full speed alone; drop --slower".into(),
            );
        }
        let nodes = nodes(&cables)?;
        let names: Vec<&str> = nodes.keys().copied().collect();
        let namespace = |name: &str| -> String {
            let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
            format!("{prefix}-n{place}")
        };
        let controller = format!("{prefix}-c");
        let mut layout = Layout {
            hosts: Vec::new(),
            namespaces: names
                .iter()
                .map(|name| namespace(name))
                .chain([controller.clone()])
                .collect(),
            controller,
            commands: Vec::new(),
        };
        let mtu = plan.flows.iter().map(|flow| flow.payload_max).max().unwrap_or(2048);
        let mtu = mtu.clamp(576, 65_000) - IPOIB_HEADER;
        for cable in &cables {
            layout.cable(cable, &namespace, mtu);
        }
        let mut hosts = BTreeMap::new();
        for (name, node) in nodes.iter().filter(|(_, node)| !node.is_switch) {
            let place = u8::try_from(hosts.len() + 1).unwrap_or(u8::MAX);
            let address = |network: [u8; 2]| Ipv4Addr::new(network[0], network[1], 0, place);
            let ports = node.ports.iter().map(|(port, ..)| interface(*port)).collect();
            let (data, control) = (address(NETWORK), address(CONTROL));
            hosts.insert(*name, data);
            let (name, namespace) = ((*name).to_owned(), namespace(name));
            layout.hosts.push(HostPlace { name, namespace, data, control, ports });
        }
        layout.switches(&nodes, &namespace);
        layout.shape(&nodes, &namespace, (queue, plan.buffer, mtu), &hosts);
        layout.manage();
        Ok(layout)
    }

    /// Adds a command of iproute2 within a namespace.
    fn within(&mut self, namespace: &str, words: &str) {
        let words = words.split_whitespace().map(str::to_owned);
        let program = ["ip", "netns", "exec", namespace].map(str::to_owned);
        self.commands.push(program.into_iter().chain(words).collect());
    }

    /// A pair of ports, each in its namespace.
    fn cable(&mut self, cable: &HostCable, namespace: &impl Fn(&str) -> String, mtu: u32) {
        let [a, b] = &cable.ends;
        let [of_a, of_b] = [a, b].map(|end| namespace(&end.node));
        let [port_a, port_b] = [a, b].map(|end| interface(end.port));
        let pair = format!(
            "ip link add {port_a} mtu {mtu} type veth peer name {port_b} mtu {mtu} netns {of_b}"
        );
        self.within(&of_a, &pair);
        for (of, port) in [(of_a, port_a), (of_b, port_b)] {
            self.within(&of, &format!("ip link set {port} gso_max_segs {BUNDLE_PACKETS}"));
            self.within(&of, &format!("ip link set {port} up"));
        }
    }

    fn switches(&mut self, nodes: &BTreeMap<&str, Node>, namespace: &impl Fn(&str) -> String) {
        for (name, node) in nodes.iter().filter(|(_, node)| node.is_switch) {
            let of = namespace(name);
            self.within(&of, "ip link add switch type bridge forward_delay 0 mcast_snooping 0");
            self.within(&of, "ip link set switch up");
            for (port, ..) in &node.ports {
                self.within(&of, &format!("ip link set {} master switch", interface(*port)));
            }
        }
        for host in self.hosts.clone() {
            self.within(&host.namespace, "ip link set lo up");
            if let [port] = &host.ports[..] {
                let data = host.data;
                self.within(&host.namespace, &format!("ip addr add {data}/24 dev {port}"));
            }
        }
    }

    /// Every output at its cable's rate; those of switches with the queue that was asked for.
    fn shape(
        &mut self,
        nodes: &BTreeMap<&str, Node>,
        namespace: &impl Fn(&str) -> String,
        (queue, buffer, mtu): (Queue, Bytes, u32),
        hosts: &BTreeMap<&str, Ipv4Addr>,
    ) {
        for (name, node) in nodes {
            let of = namespace(name);
            for (port, rate, _) in &node.ports {
                let (dev, rate) = (interface(*port), rate.0);
                let limit = buffer.0.max(4 * BURST_BYTES);
                if queue == Queue::Fifo || !node.is_switch {
                    let tbf = format!(
                        "tc qdisc add dev {dev} root tbf rate {rate}bit burst {BURST_BYTES} \
                         limit {limit}"
                    );
                    self.within(&of, &tbf);
                    continue;
                }
                self.classes(nodes, (name, node, *port), &of, (rate, limit, mtu), hosts);
            }
        }
    }

    /// A class for each other port of a switch, to which an even part of the output belongs and
    /// what others leave; packets are told by the hosts behind that port.
    fn classes(
        &mut self,
        nodes: &BTreeMap<&str, Node>,
        (name, node, port): (&str, &Node, u8),
        of: &str,
        (rate, limit, mtu): (u64, u64, u32),
        hosts: &BTreeMap<&str, Ipv4Addr>,
    ) {
        let dev = interface(port);
        let inputs: Vec<&(u8, BitsPerSecond, CabledPort)> =
            node.ports.iter().filter(|(other, ..)| *other != port).collect();
        let part = rate / inputs.len().max(1) as u64;
        let quantum = (mtu + 14) * BUNDLE_PACKETS;
        self.within(of, &format!("tc qdisc add dev {dev} root handle 1: htb default 1"));
        let whole =
            format!("htb rate {rate}bit ceil {rate}bit burst {BURST_BYTES} cburst {BURST_BYTES}");
        self.within(of, &format!("tc class add dev {dev} parent 1: classid 1:ffff {whole}"));
        // What no host sends, such as ARP.
        let class = |id: String, share: u64| {
            format!(
                "tc class add dev {dev} parent 1:ffff classid {id} htb rate {share}bit ceil \
                 {rate}bit burst {BURST_BYTES} cburst {BURST_BYTES} quantum {quantum}"
            )
        };
        self.within(of, &class("1:1".into(), (rate / 1000).max(8000)));
        for (input, _, other) in inputs {
            let id = format!("1:{:x}", 0x10 + u16::from(*input));
            self.within(of, &class(id.clone(), part));
            let leaf = format!("tc qdisc add dev {dev} parent {id} bfifo limit {limit}");
            self.within(of, &leaf);
            for host in behind(nodes, name, &other.node) {
                if let Some(address) = hosts.get(host) {
                    let filter = format!(
                        "tc filter add dev {dev} parent 1: protocol ip u32 match ip src \
                         {address}/32 flowid {id}"
                    );
                    self.within(of, &filter);
                }
            }
        }
    }

    /// The network of control: the controller and every host at one bridge.
    fn manage(&mut self) {
        let controller = self.controller.clone();
        self.within(&controller, "ip link set lo up");
        self.within(&controller, "ip link add control type bridge forward_delay 0");
        self.within(&controller, "ip link set control up");
        let own = Ipv4Addr::new(CONTROL[0], CONTROL[1], 0, 254);
        self.within(&controller, &format!("ip addr add {own}/24 dev control"));
        for (number, host) in self.hosts.clone().into_iter().enumerate() {
            let (namespace, address) = (&host.namespace, host.control);
            let pair =
                format!("ip link add h{number} type veth peer name control netns {namespace}");
            self.within(&controller, &pair);
            self.within(&controller, &format!("ip link set h{number} master control up"));
            self.within(namespace, "ip link set control up");
            self.within(namespace, &format!("ip addr add {address}/24 dev control"));
        }
    }
}

/// The name of a port's interface.
fn interface(port: u8) -> String {
    format!("p{port}")
}

/// The nodes of these cables. Fails if they make no tree.
fn nodes(cables: &[HostCable]) -> Result<BTreeMap<&str, Node>, LayoutError> {
    let mut nodes: BTreeMap<&str, Node> = BTreeMap::new();
    for cable in cables {
        for (end, other) in [(0, 1), (1, 0)].map(|(a, b)| (&cable.ends[a], &cable.ends[b])) {
            let node = nodes.entry(&end.node).or_default();
            node.is_switch = end.of_switch;
            node.ports.push((end.port, cable.rate, other.clone()));
        }
    }
    if nodes.len() > NODES_MAX {
        return fault(format!("{} hosts and switches; a testbed has {NODES_MAX}", nodes.len()));
    }
    if let Some((name, _)) = nodes.iter().find(|(_, node)| !node.is_switch && node.ports.len() > 1)
    {
        return fault(format!("host {name} has several cables; a testbed's hosts have one"));
    }
    let Some(first) = nodes.keys().next() else { return fault("the fabric has no cables".into()) };
    if reached(&nodes, first, None).len() < nodes.len() {
        return fault("the fabric falls apart; a testbed is one network".into());
    }
    // A connected graph is a tree if it has one edge less than nodes.
    if cables.len() >= nodes.len() {
        return fault(
            "the fabric has several ways between two nodes, and bridges of Ethernet need a tree; \
             cut cables, as with fabric.cut"
                .into(),
        );
    }
    Ok(nodes)
}

/// The nodes that can be reached from one without passing another.
fn reached<'a>(
    nodes: &'a BTreeMap<&'a str, Node>,
    from: &'a str,
    without: Option<&str>,
) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::from([from]), VecDeque::from([from]));
    while let Some(name) = next.pop_front() {
        for (_, _, other) in nodes.get(name).iter().flat_map(|node| &node.ports) {
            let other = other.node.as_str();
            if Some(other) != without && reached.insert(other) {
                next.push_back(other);
            }
        }
    }
    reached
}

/// What is behind a neighbour of a switch, that with it.
fn behind<'a>(
    nodes: &'a BTreeMap<&'a str, Node>,
    switch: &str,
    neighbour: &'a str,
) -> BTreeSet<&'a str> {
    reached(nodes, neighbour, Some(switch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_lab::Experiment;

    fn plan(build: &str) -> HostPlan {
        let text = format!(
            "schema = 1\nname = \"t\"\n[fabric]\nbuild = \"{build},speed=1xSDR\"\n[subnet]\n\
             engine = \"up-down\"\n[sim]\npreset = \"sdr-2011\"\n[run]\nduration = \"1 ms\"\n\
             [[traffic]]\nname = \"all\"\nclass = \"hot\"\nload = 1.0\nsize = \"4 KiB\"\n\
             arrivals = \"periodic\"\npattern = {{ kind = \"incast\", to = 0 }}\n"
        );
        let experiment = Experiment::parse(&text, "t.toml".as_ref()).unwrap();
        HostPlan::of(&experiment, None).unwrap()
    }

    fn commands(layout: &Layout) -> Vec<String> {
        layout.commands.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn every_output_has_its_cable_s_rate() {
        let layout = Layout::of(&plan("star:3"), Queue::Fifo, 10, "x").unwrap();
        assert_eq!((layout.hosts.len(), layout.namespaces.len()), (3, 5));
        let all = commands(&layout);
        let shaped = all.iter().filter(|line| line.contains("tbf rate 200000000bit")).count();
        // Three cables of 2 Gb/s, ten times slower, both ways.
        assert_eq!(shaped, 6, "{all:#?}");
        assert!(!all.iter().any(|line| line.contains("htb")), "{all:#?}");
    }

    /// Two switches with two hosts each: what comes over the cable between them is one input.
    #[test]
    fn a_class_is_an_input_and_who_is_behind_it() {
        let layout = Layout::of(&plan("chain:2x2"), Queue::ByInput, 1, "x").unwrap();
        let all = commands(&layout);
        let address = |name: &str| layout.hosts.iter().find(|host| host.name == name).unwrap().data;
        let first = layout.hosts.iter().find(|host| host.name == "host0000").unwrap();
        // The switch's port to it: where no packet of its own is told apart.
        let own = format!("match ip src {}/32", first.data);
        let filters: Vec<&String> = all.iter().filter(|line| line.contains("tc filter")).collect();
        let port = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let at = |word| words.iter().position(|known| *known == word).unwrap();
            (
                words[3].to_owned(),
                words[at("dev") + 1].to_owned(),
                words[at("flowid") + 1].to_owned(),
            )
        };
        let class_of = |host: &str| -> Vec<(String, String, String)> {
            let of = format!("match ip src {}/32", address(host));
            filters.iter().filter(|line| line.contains(&of)).map(|line| port(line)).collect()
        };
        let to_first: Vec<_> = {
            let others: Vec<_> = class_of("host0001");
            let seen = |place: &(String, String, String)| {
                !filters.iter().any(|line| {
                    line.contains(&own) && port(line).0 == place.0 && port(line).1 == place.1
                })
            };
            others.into_iter().filter(seen).collect()
        };
        let [(switch, dev, near)] = &to_first[..] else { panic!("{to_first:?}") };
        let at = |host: &str| {
            let place = class_of(host).into_iter().find(|p| p.0 == *switch && p.1 == *dev);
            place.unwrap().2
        };
        assert_eq!(at("host0002"), at("host0003"), "both come over one cable");
        assert_ne!(at("host0002"), *near);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let layout = |build| Layout::of(&plan(build), Queue::Fifo, 1, "x").unwrap_err().to_string();
        assert!(layout("ring:3x1").contains("need a tree"), "{}", layout("ring:3x1"));
        assert!(layout("star:120").contains("a testbed has 100"), "{}", layout("star:120"));
    }
}
