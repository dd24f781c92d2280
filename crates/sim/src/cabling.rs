//! From a fabric to networks at rest: homes, their partitions, ports and links.

use crate::mail::FarEnd;
use crate::network::{FarAdapters, Home, Links, Parts};
use crate::port::{ClassNumber, LinkClass, LinkKind, Port, PortIndex};
use crate::port_set::PortSet;
use crate::queue::Address;
use crate::records::room_for;
use crate::{Hosts, InputQueueing, Parameters};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth, PortNumber, wire};
use clearlane_workload::Rank;
use std::collections::BTreeSet;
use std::ops::Range;

/// The numbers that homes and ports have in the whole run, whatever process they are in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Numbering {
    /// By home: its first port; and, once more, how many ports there are.
    first_ports: Vec<u32>,
    /// By partition: its first home; and, once more, how many homes there are.
    first_homes: Vec<u32>,
}

impl Numbering {
    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> usize {
        self.first_homes.len() - 1
    }

    /// How many ports there are.
    pub(crate) fn ports(&self) -> u32 {
        self.first_ports[self.first_ports.len() - 1]
    }

    /// By home, its first port.
    pub(crate) fn homes(&self) -> &[u32] {
        &self.first_ports[..self.first_ports.len() - 1]
    }

    /// The first port of a partition; of the one after the last, how many ports there are.
    pub(crate) fn first_port(&self, partition: usize) -> u32 {
        self.first_ports[self.first_homes[partition] as usize]
    }

    /// The port at an address of a partition.
    pub(crate) fn port(&self, partition: u32, address: Address) -> u32 {
        let home = self.first_homes[partition as usize] + address.home();
        self.first_ports[home as usize] + address.place()
    }

    /// The partition of a port.
    pub(crate) fn partition(&self, port: u32) -> usize {
        let home = self.first_ports.partition_point(|first| *first <= port) as u32 - 1;
        self.first_homes.partition_point(|first| *first <= home) - 1
    }
}

/// Which switches and adapters belong together, and which homes form a partition.
pub(crate) struct Cabling {
    /// By home: the switch.
    switches: Vec<NodeId>,
    /// By home: ports of the switch.
    switch_ports: Vec<u8>,
    /// By home: ranks whose first port is plugged into it, in their order.
    ranks: Vec<Vec<u32>>,
    /// By rank: home, and place there of its first port. Empty where each rank has one port.
    seats: Vec<Address>,
    /// By node: home of a switch.
    home_of: Vec<u32>,
    /// Homes by partition.
    pub(crate) partitions: Vec<Range<usize>>,
}

impl Cabling {
    /// The homes of a fabric, in as many partitions as are asked for, or as there are homes.
    pub(crate) fn new(fabric: &Fabric, hosts: &Hosts, partitions: usize) -> Self {
        let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        let mut home_of = vec![u32::MAX; fabric.nodes().len()];
        for (home, switch) in switches.iter().enumerate() {
            home_of[switch.index()] = home as u32;
        }
        let mut ranks = vec![Vec::new(); switches.len()];
        for rank in 0..hosts.count() as u32 {
            // Hosts::of keeps only adapter ports cabled to a switch.
            if let Some(peer) = fabric.peer(hosts.end(Rank(rank))) {
                ranks[home_of[peer.node.index()] as usize].push(rank);
            }
        }
        let switch_ports = switches.iter().map(|s| fabric.node(*s).port_count()).collect();
        let (seats, partitions_of) = (Vec::new(), Vec::new());
        let mut cabling =
            Cabling { switches, switch_ports, ranks, seats, home_of, partitions: partitions_of };
        if hosts.has_several_ports() {
            cabling.seats = cabling.seats(hosts);
        }
        cabling.partitions = cabling.divide(partitions);
        cabling
    }

    /// Home and place of the first port of each rank.
    fn seats(&self, hosts: &Hosts) -> Vec<Address> {
        let mut seats = vec![Address::NIL; hosts.count()];
        for (home, ranks) in self.ranks.iter().enumerate() {
            let mut place = u32::from(self.switch_ports[home]);
            for rank in ranks {
                seats[*rank as usize] = Address::new(home as u32, place);
                place += hosts.ports(Rank(*rank)).len() as u32;
            }
        }
        seats
    }

    /// Runs of homes with about the same work each: a packet-hop at a switch and the two ends of a
    /// packet at a host cost about the same.
    fn divide(&self, partitions: usize) -> Vec<Range<usize>> {
        let count = partitions.clamp(1, self.switches.len().max(1));
        let work = |home: usize| usize::from(self.switch_ports[home]) + 2 * self.ranks[home].len();
        let all: usize = (0..self.switches.len()).map(work).sum();
        let (mut parts, mut first, mut done) = (Vec::new(), 0, 0);
        for home in 0..self.switches.len() {
            done += work(home);
            let left = self.switches.len() - home - 1;
            let wanted = count - parts.len() - 1;
            if wanted > 0 && (done * count >= all * (parts.len() + 1) || left == wanted) {
                parts.push(first..home + 1);
                first = home + 1;
            }
        }
        parts.push(first..self.switches.len());
        parts
    }

    /// The numbers of all homes and ports.
    pub(crate) fn numbering(&self, hosts: &Hosts) -> Numbering {
        let mut first_ports = vec![0];
        for home in 0..self.switches.len() {
            let ports = u32::from(self.switch_ports[home]) + self.adapter_ports(hosts, home);
            first_ports.push(first_ports[home] + ports);
        }
        let ends = self.partitions.iter().map(|homes| homes.end as u32);
        Numbering { first_ports, first_homes: std::iter::once(0).chain(ends).collect() }
    }

    /// Partition of a home, and its number there.
    fn located(&self, home: u32) -> (u32, u32) {
        let home = home as usize;
        let partition = self.partitions.partition_point(|homes| homes.end <= home);
        (partition as u32, (home - self.partitions[partition].start) as u32)
    }

    /// Ranks at a partition, in the order of their homes.
    pub(crate) fn ranks(&self, partition: usize) -> Vec<u32> {
        self.ranks[self.partitions[partition].clone()].concat()
    }

    /// Adapters' ports of a partition, by slot: the rank, and the number of the port there.
    pub(crate) fn slots(&self, hosts: &Hosts, partition: usize) -> Vec<(u32, u8)> {
        let ports = |rank: u32| (0..hosts.ports(Rank(rank)).len() as u8).map(move |at| (rank, at));
        self.ranks(partition).into_iter().flat_map(ports).collect()
    }

    /// Adapters' ports of a home.
    fn adapter_ports(&self, hosts: &Hosts, home: usize) -> u32 {
        let ports = self.ranks[home].iter().map(|rank| hosts.ports(Rank(*rank)).len());
        ports.sum::<usize>() as u32
    }

    /// The network of a partition at rest: all buffers empty, all credits at the sender.
    pub(crate) fn parts<B: PortSet, const V: usize>(
        &self,
        fabric: &Fabric,
        hosts: &Hosts,
        parameters: &Parameters,
        partition: usize,
    ) -> Parts<B, V> {
        let capacity = (parameters.buffer.0 / u64::from(wire::CREDIT_UNIT)).min(65_535) as u16;
        let (mut homes, mut ports, mut slot) = (Vec::new(), 0, 0);
        let range = self.partitions[partition].clone();
        for home in range.clone() {
            let switch_ports = self.switch_ports[home].into();
            let here = self.adapter_ports(hosts, home);
            homes.push(Home { first: PortIndex(ports), first_slot: slot, switch_ports });
            ports += u32::from(switch_ports) + here;
            slot += here;
        }
        let flight = parameters.cable_delay.0 + parameters.switch_delay.0;
        let mut rates = Rates::default();
        let mut blank = room_for(ports as usize);
        blank.resize(ports as usize, Port::blank(capacity));
        let mut wiring = Wiring {
            cabling: self,
            partition: partition as u32,
            homes,
            ports: blank,
            // The class of ports without a cable.
            classes: vec![LinkClass {
                kind: LinkKind::Inner,
                rate: LinkRate::of(LinkWidth::X1, LinkSpeed::Sdr),
                flight,
            }],
            far_ends: Vec::new(),
            flight,
        };
        wiring.connect(fabric, hosts, parameters, &mut rates);
        let Wiring { homes, ports, classes, far_ends, .. } = wiring;
        let adapter_ports = self.port_numbers(hosts, partition);
        let speedup = parameters.crossbar_speedup;
        Parts {
            homes,
            ports,
            classes,
            far_ends,
            adapter_ports,
            partitions: self.partitions.len(),
            links: Links {
                cable_delay: parameters.cable_delay.0,
                credit_delay: parameters.cable_delay.0 + parameters.credit_delay.0,
                speedup,
                capacity,
                mixed: rates.all.len() > 1 || speedup > 100,
                in_order: parameters.input_queueing == InputQueueing::Fifo
                    && !hosts.share_memory(parameters),
                fastest: rates.fastest(),
                flight,
                far_adapters: rates.far.then(|| FarAdapters { stores: stores(parameters) }),
            },
        }
    }

    /// By port of a partition: its number at its adapter. Empty where each adapter has one port.
    fn port_numbers(&self, hosts: &Hosts, partition: usize) -> Vec<u8> {
        if !hosts.has_several_ports() {
            return Vec::new();
        }
        let mut numbers = Vec::new();
        for home in self.partitions[partition].clone() {
            numbers.resize(numbers.len() + usize::from(self.switch_ports[home]), 0);
            for rank in &self.ranks[home] {
                numbers.extend(0..hosts.ports(Rank(*rank)).len() as u8);
            }
        }
        numbers
    }

    /// Where the ports of a partition are in the fabric.
    pub(crate) fn places(&self, fabric: &Fabric, hosts: &Hosts, partition: usize) -> Places {
        let range = self.partitions[partition].clone();
        let mut places =
            Places { switches: Vec::new(), names: String::new(), ends: Vec::new(), hosts: vec![] };
        let mut first = 0;
        for home in range {
            places.switches.push((first, self.switches[home], self.switch_ports[home]));
            places.names.push_str(&fabric.node(self.switches[home]).name);
            places.ends.push((places.names.len() as u32, places.hosts.len() as u32));
            places.hosts.extend(self.ranks[home].iter().flat_map(|rank| hosts.ports(Rank(*rank))));
            first += u32::from(self.switch_ports[home]) + self.adapter_ports(hosts, home);
        }
        places
    }
}

/// Rates in use.
#[derive(Default)]
struct Rates {
    all: BTreeSet<LinkRate>,
    /// Whether switches are cabled to each other, or to an adapter of another's home.
    trunks: bool,
    /// Whether an adapter is plugged into several switches.
    far: bool,
}

/// The fastest at which an adapter stores what has come, if that takes its time.
fn stores(p: &Parameters) -> Option<LinkRate> {
    let rates = [p.drain_rate, p.memory_rate].into_iter().flatten();
    // Rates are ordered by the time a byte takes.
    rates.filter_map(LinkRate::from_bits).min()
}

impl Rates {
    /// The fastest link by which a packet may leave a buffer that another switch fills: one to a
    /// host counts too. Nothing if no switch fills another's.
    fn fastest(&self) -> Option<LinkRate> {
        // Rates are ordered by the time a byte takes.
        self.all.first().copied().filter(|_| self.trunks)
    }
}

/// Links being joined.
struct Wiring<'a, B, const V: usize> {
    cabling: &'a Cabling,
    partition: u32,
    homes: Vec<Home>,
    ports: Vec<Port<B, V>>,
    classes: Vec<LinkClass>,
    far_ends: Vec<FarEnd>,
    flight: u64,
}

impl<B: PortSet, const V: usize> Wiring<'_, B, V> {
    fn connect(&mut self, fabric: &Fabric, hosts: &Hosts, p: &Parameters, rates: &mut Rates) {
        let forced = p.link_rate.and_then(LinkRate::from_bits);
        for link in fabric.links() {
            let [a, b] = [link.a, link.b].map(|end| self.end(end));
            if let (Some(a), Some(b)) = (a, b) {
                let rate = forced.unwrap_or(link.rate());
                rates.all.insert(rate);
                rates.trunks = true;
                let inner = self.class(LinkKind::Inner, rate);
                self.join(a, b, inner);
                self.join(b, a, inner);
            }
        }
        for port in 0..hosts.all_ports().len() as u32 {
            rates.all.insert(hosts.port_rate(port, p));
        }
        if !self.cabling.seats.is_empty() {
            return self.plug_all(fabric, hosts, p, rates);
        }
        for home in 0..self.homes.len() {
            let of = self.cabling.partitions[self.partition as usize].start + home;
            for (number, rank) in self.cabling.ranks[of].iter().enumerate() {
                let rate = hosts.rate(Rank(*rank), p);
                let place = u32::from(self.homes[home].switch_ports) + number as u32;
                let host = (self.partition, Address::new(home as u32, place));
                self.plug(fabric, hosts.end(Rank(*rank)), host, rate);
            }
        }
    }

    /// Joins all ports of all adapters: some of other partitions may be plugged into switches here.
    fn plug_all(&mut self, fabric: &Fabric, hosts: &Hosts, p: &Parameters, rates: &mut Rates) {
        for (rank, seat) in self.cabling.seats.iter().enumerate() {
            let first = hosts.first_ports()[rank];
            let (partition, home) = self.cabling.located(seat.home());
            for (number, port) in (0..).zip(hosts.ports(Rank(rank as u32))) {
                let switch = fabric.peer(*port).map(|peer| self.cabling.home_of[peer.node.index()]);
                let far = switch.is_some_and(|switch| switch != seat.home());
                (rates.far, rates.trunks) = (rates.far | far, rates.trunks | far);
                let host = (partition, Address::new(home, seat.place() + number));
                self.plug(fabric, *port, host, hosts.port_rate(first + number, p));
            }
        }
    }

    /// Joins an adapter's port and the switch's at the other end of its cable.
    fn plug(&mut self, fabric: &Fabric, port: Endpoint, host: (u32, Address), rate: LinkRate) {
        let Some(exit) = fabric.peer(port).and_then(|peer| self.end(peer)) else { return };
        let class = self.class(LinkKind::Host, rate);
        self.join(host, exit, class);
        let class = self.class(LinkKind::Exit, rate);
        self.join(exit, host, class);
    }

    /// Partition and address of a switch's port.
    fn end(&self, end: Endpoint) -> Option<(u32, Address)> {
        let home = self.cabling.home_of[end.node.index()];
        if home == u32::MAX {
            return None;
        }
        let (partition, home) = self.cabling.located(home);
        Some((partition, Address::new(home, u32::from(end.port.value()) - 1)))
    }

    /// The number of a class. There are at most three for each of the 45 rates of a cable.
    fn class(&mut self, kind: LinkKind, rate: LinkRate) -> ClassNumber {
        let class = LinkClass { kind, rate, flight: self.flight };
        let known = self.classes.iter().position(|known| *known == class);
        let number = known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        assert!(number < 256, "links of {number} classes");
        ClassNumber(number as u8)
    }

    /// Tells the port at `from`, if it is of this partition, that its link leads to `to`.
    fn join(&mut self, from: (u32, Address), to: (u32, Address), class: ClassNumber) {
        if from.0 != self.partition {
            return;
        }
        let peer = if to.0 == self.partition {
            to.1
        } else {
            self.far_ends.push(FarEnd { partition: to.0, address: to.1 });
            // A home of its own stands for the cut cable.
            Address::new((self.homes.len() + self.far_ends.len() - 1) as u32, 0)
        };
        let first = self.homes[from.1.home() as usize].first;
        let port = &mut self.ports[(first.0 + from.1.place()) as usize];
        (port.peer, port.class) = (peer, class);
    }
}

/// Where the ports of a partition are in the fabric: for reports of faults, deadlocks and channels.
pub(crate) struct Places {
    /// By home: its first port, the switch, and how many ports that has.
    switches: Vec<(u32, NodeId, u8)>,
    /// The names of all switches one after the other: few are needed, and a string each would be a
    /// tenth of all memory.
    names: String,
    /// By home: where the name ends, and its first slot.
    ends: Vec<(u32, u32)>,
    /// By slot.
    hosts: Vec<Endpoint>,
}

impl Places {
    fn home(&self, port: PortIndex) -> usize {
        self.switches.partition_point(|(first, ..)| *first <= port.0) - 1
    }

    /// Node and number of a port.
    pub(crate) fn end(&self, port: PortIndex) -> Endpoint {
        let home = self.home(port);
        let (first, node, switch_ports) = self.switches[home];
        let place = port.0 - first;
        if place >= switch_ports.into() {
            let slot = self.ends[home].1 + place - u32::from(switch_ports);
            return self.hosts[slot as usize];
        }
        // A switch has at most 254 ports, so the number is one.
        let number = PortNumber::new(place as u8 + 1).unwrap_or(PortNumber::MANAGEMENT);
        Endpoint { node, port: number }
    }

    /// Name of the switch the port belongs to; `host` for a host.
    pub(crate) fn name(&self, port: PortIndex) -> &str {
        let home = self.home(port);
        let (first, _, switch_ports) = self.switches[home];
        if port.0 - first >= switch_ports.into() {
            return "host";
        }
        let begin = home.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.names[begin as usize..self.ends[home].0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_runs_of_homes_with_about_the_same_work() {
        for (spec, homes) in [("torus:8x8", 64), ("fat-tree:648", 54), ("star:5", 1)] {
            let fabric = clearlane_fabric::topologies::build(spec).expect("it builds");
            let hosts = Hosts::of(&fabric);
            for count in [1, 2, 3, 8, 1000] {
                let cabling = Cabling::new(&fabric, &hosts, count);
                let parts = &cabling.partitions;
                assert_eq!(parts.len(), count.min(homes), "{spec}");
                assert!(parts.iter().all(|part| !part.is_empty()), "{spec}: {parts:?}");
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert_eq!((parts[0].start, parts[parts.len() - 1].end), (0, homes));
                let slots: usize = (0..parts.len()).map(|part| cabling.ranks(part).len()).sum();
                assert_eq!(slots, hosts.count());
            }
        }
    }

    /// Both ends of every cable know each other, in their partition or across.
    #[test]
    fn cables_are_cut_at_both_ends() {
        let fabric = clearlane_fabric::topologies::build("torus:4x4,hosts=2").expect("it builds");
        let hosts = Hosts::of(&fabric);
        let parameters = (crate::preset::ALL[0].parameters)();
        let cabling = Cabling::new(&fabric, &hosts, 3);
        let parts: Vec<Parts<u16, 2>> =
            (0..3).map(|part| cabling.parts(&fabric, &hosts, &parameters, part)).collect();
        let locate = |part: usize, address: Address| {
            let homes = parts[part].homes.len() as u32;
            match address.home().checked_sub(homes) {
                None => (part, address),
                Some(cut) => {
                    let far = parts[part].far_ends[cut as usize];
                    (far.partition as usize, far.address)
                }
            }
        };
        let mut cut = 0;
        for part in 0..3 {
            for (home, record) in parts[part].homes.iter().enumerate() {
                for place in 0..u32::from(record.switch_ports) + 2 {
                    let port = &parts[part].ports[(record.first.0 + place) as usize];
                    let (there, at) = locate(part, port.peer);
                    let far = &parts[there];
                    let first = far.homes[at.home() as usize].first.0;
                    let back = far.ports[(first + at.place()) as usize].peer;
                    assert_eq!(locate(there, back), (part, Address::new(home as u32, place)));
                    cut += usize::from(there != part);
                }
            }
        }
        assert!(cut > 0 && cut.is_multiple_of(2));
    }
}
