//! What switches forward by, and the default routes of a subnet, for patterns that are made for
//! them.

use crate::port;
use clearlane_fabric::structure::Grid;
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{Lid, LinkRate, LinkSpeed, LinkWidth, PortNumber};
use clearlane_sim::{Forwarding, GridForwarder, Hosts, Parameters, SetupError, Ties};
use clearlane_subnet::Subnet;
use clearlane_workload::{Channel, Rank, Routes};

/// What switches forward by.
#[derive(Debug)]
pub(crate) enum Routed {
    Tables(Box<Subnet>),
    Rule(Grid, Ties),
}

impl Routed {
    pub(crate) fn forwarding(&self) -> Forwarding<'_> {
        match self {
            Routed::Tables(subnet) => Forwarding::Tables(subnet),
            Routed::Rule(grid, ties) => Forwarding::DimensionOrder(grid, *ties),
        }
    }
}

/// The rate of a channel that is none.
const SLOWEST: LinkRate = LinkRate::of(LinkWidth::X1, LinkSpeed::Sdr);

/// What a switch sends a packet on by.
enum By<'a> {
    /// Its table.
    Tables(&'a Subnet),
    /// The rule; by node the number of the switch, and by rank the number of its first port.
    Rule { rule: Box<GridForwarder>, switches: Vec<u32>, ports: Vec<u32> },
}

/// Walks the tables, or follows the rule, when asked; costs little until then.
pub(crate) struct DefaultRoutes<'a> {
    fabric: &'a Fabric,
    by: By<'a>,
    hosts: &'a Hosts,
    /// Rate of every link, if parameters say it.
    link_rate: Option<LinkRate>,
    /// By node: the number of its port 1. Adapters have none.
    first: Vec<u32>,
}

impl<'a> DefaultRoutes<'a> {
    /// Those that switches forward by. A pair that tables do not join has none. Fails where there
    /// is a rule that the fabric does not fit.
    pub(crate) fn of(
        fabric: &'a Fabric,
        routed: &'a Routed,
        hosts: &'a Hosts,
        parameters: &Parameters,
    ) -> Result<Self, SetupError> {
        let by = match routed {
            Routed::Tables(subnet) => By::Tables(subnet),
            Routed::Rule(grid, ties) => {
                let rule = Box::new(GridForwarder::new(fabric, (grid, *ties), hosts)?);
                let mut count = 0;
                let number = |node: &clearlane_fabric::Node| {
                    count += u32::from(node.is_switch());
                    count.saturating_sub(1)
                };
                let switches = fabric.nodes().iter().map(number).collect();
                let mut before = 0;
                let port = |rank: usize| {
                    before += hosts.ports(Rank(rank as u32)).len() as u32;
                    before - hosts.ports(Rank(rank as u32)).len() as u32
                };
                let ports = (0..hosts.count()).map(port).collect();
                By::Rule { rule, switches, ports }
            }
        };
        let link_rate = parameters.link_rate.and_then(LinkRate::from_bits);
        Ok(Self::by(fabric, by, hosts, link_rate))
    }

    /// Those of the tables of a subnet.
    #[cfg(test)]
    fn of_tables(fabric: &'a Fabric, subnet: &'a Subnet, hosts: &'a Hosts) -> Self {
        Self::by(fabric, By::Tables(subnet), hosts, None)
    }

    fn by(fabric: &'a Fabric, by: By<'a>, hosts: &'a Hosts, link_rate: Option<LinkRate>) -> Self {
        let mut first = vec![0];
        for node in fabric.nodes() {
            let ports = if node.is_switch() { u32::from(node.port_count()) } else { 0 };
            first.push(first.last().map_or(0, |first| first + ports));
        }
        DefaultRoutes { fabric, by, hosts, link_rate, first }
    }

    /// The output of the switch at one end of a cable on the way to an adapter's port, `there`, of
    /// a rank: at its own switch the port that it is plugged into.
    fn output(&self, at: Endpoint, there: Endpoint, rank: Rank, path: u16) -> Option<PortNumber> {
        match &self.by {
            By::Tables(subnet) => {
                let (base, _) = subnet.lids.base(there)?;
                let lid = Lid::new(base.value().checked_add(path)?)?;
                subnet.tables.port(at.node, lid)
            }
            By::Rule { rule, switches, ports } => {
                // All ports of a rank are at one switch of a grid.
                let port = ports.get(rank.0 as usize)?;
                let output = rule.output(switches[at.node.index()], *port);
                output.or_else(|| self.fabric.peer(there).map(|peer| peer.port))
            }
        }
    }

    fn channel(&self, end: Endpoint) -> Channel {
        Channel(self.first[end.node.index()] + u32::from(end.port.value()) - 1)
    }

    fn end(&self, channel: Channel) -> Option<Endpoint> {
        // Adapters share the number of the next switch; the last of them is that switch.
        let node = self.first.partition_point(|first| *first <= channel.0) - 1;
        let port = PortNumber::new((channel.0 - self.first[node] + 1) as u8)?;
        let node = clearlane_fabric::NodeId(node as u32);
        Some(Endpoint { node, port })
    }

    fn is_switch(&self, end: Endpoint) -> bool {
        self.fabric.node(end.node).is_switch()
    }
}

impl Routes for DefaultRoutes<'_> {
    fn channels(&self) -> usize {
        self.first.last().map_or(0, |count| *count as usize)
    }

    fn name(&self, channel: Channel) -> String {
        let end = self.end(channel);
        let peer = end.and_then(|end| self.fabric.peer(end));
        let name = |end: Option<Endpoint>| end.map_or("?".into(), |e| self.fabric.describe(e));
        format!("{} → {}", name(end), name(peer))
    }

    fn find(&self, text: &str) -> Result<Channel, String> {
        let end = port::named(self.fabric, text)?;
        let peer = self.fabric.peer(end).filter(|peer| self.is_switch(*peer));
        match peer {
            Some(_) if self.is_switch(end) => Ok(self.channel(end)),
            _ => {
                Err("is not between two switches; name the transmitting port of one that is".into())
            }
        }
    }

    fn rate(&self, channel: Channel) -> LinkRate {
        let link = || self.fabric.link_at(self.end(channel)?).map(|link| self.fabric.link(link));
        let own = || link().map(|link| link.rate());
        self.link_rate.or_else(own).unwrap_or(SLOWEST)
    }

    fn switch(&self, rank: Rank) -> u32 {
        // Hosts are plugged into switches.
        self.fabric.peer(self.hosts.end(rank)).map_or(u32::MAX, |peer| peer.node.0)
    }

    fn paths(&self, destination: Rank) -> u16 {
        let By::Tables(subnet) = &self.by else { return 1 };
        let base = subnet.lids.base(self.hosts.end(destination));
        base.map_or(1, |(_, lmc)| lmc.lids())
    }

    fn walk(&self, source: Rank, destination: Rank, path: u16, route: &mut Vec<Channel>) {
        route.clear();
        let (here, there) = self.hosts.ports_between(source, destination);
        let Some(mut at) = self.fabric.peer(here) else { return };
        loop {
            let port = self.output(at, there, destination, path);
            let end = port.map(|port| Endpoint { node: at.node, port });
            match end.and_then(|end| Some((end, self.fabric.peer(end)?))) {
                Some((end, peer)) if self.is_switch(peer) && route.len() < self.channels() => {
                    route.push(self.channel(end));
                    at = peer;
                }
                Some((_, peer)) if peer == there => return,
                _ => return route.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::{damage, topologies};
    use clearlane_ib::random::Stream;
    use clearlane_subnet::check;
    use clearlane_subnet::engines::{self, RouteOptions};
    use clearlane_workload::PatternSpec;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// A fabric, how many of its cables are cut, and an engine whose routes are shortest ones.
    const CASES: &[(&str, usize, &str)] = &[
        ("torus:8x8", 0, "dor"),
        ("torus:5x4,hosts=2", 0, "dor"),
        ("mesh:3x3x2", 0, "dor"),
        ("leaf-spine:leaves=5,spines=3,hosts=4", 0, "min-hop"),
        ("leaf-spine:leaves=6,spines=2,hosts=3", 3, "min-hop"),
        ("xgft:3,3,2;1,2,2", 0, "fat-tree"),
        ("torus:4x4,hosts=2", 6, "min-hop"),
        ("hypercube:4", 5, "min-hop"),
        ("dragonfly:a=4,p=2,h=2,g=4", 0, "min-hop"),
        ("star:6", 0, "min-hop"),
    ];

    struct Site {
        fabric: Fabric,
        subnet: Subnet,
        hosts: Hosts,
    }

    /// Nothing if the cuts leave it in parts.
    fn cut_site((spec, cut, engine): (&str, usize, &str), seed: u64) -> Option<Site> {
        let mut fabric = topologies::build(spec).unwrap();
        let choice = damage::Choice { links: cut, seed, uplinks_min: 1 };
        let dead = damage::choose(&fabric, &choice).unwrap();
        damage::cut(&mut fabric, &dead);
        let options = RouteOptions { lanes: 2, ..RouteOptions::default() };
        let subnet = engines::route(engine, &fabric, &options).ok()?;
        let hosts = Hosts::of(&fabric);
        check::reachability(&fabric, &subnet).is_sane().then_some(Site { fabric, subnet, hosts })
    }

    fn site(spec: &str, engine: &str) -> Site {
        cut_site((spec, 0, engine), 1).unwrap()
    }

    fn spec(pairs: u32, link: Option<&str>) -> PatternSpec {
        let link = link.map_or(String::new(), |link| format!("link = \"{link}\"\n"));
        toml::from_str(&format!("kind = \"path-hot-spot\"\npairs = {pairs}\n{link}")).unwrap()
    }

    type Pairs = Vec<(u32, u32)>;

    fn built(site: &Site, pairs: u32, link: Option<&str>) -> Result<(Pairs, String), String> {
        let routes = DefaultRoutes::of_tables(&site.fabric, &site.subnet, &site.hosts);
        let built = spec(pairs, link).build(site.hosts.ranks(), Some(&routes));
        let built = built.map_err(|error| error.to_string())?;
        let mut stream = Stream::new(1, "test", 0);
        let mut to = |rank| Some((rank, built.draw(Rank(rank), &mut stream)?.0));
        let pairs = (0..site.hosts.count() as u32).filter_map(&mut to).collect();
        Ok((pairs, built.note().unwrap().to_owned()))
    }

    /// By switch output that leads to a switch: the pairs over it.
    fn over_links(site: &Site) -> BTreeMap<Endpoint, Pairs> {
        let mut over: BTreeMap<Endpoint, Pairs> = BTreeMap::new();
        let ends = site.hosts.ends().iter().enumerate();
        for (source, from) in ends.clone() {
            for (destination, to) in ends.clone().filter(|(rank, _)| *rank != source) {
                let lid = site.subnet.lids.base(*to).unwrap().0;
                let mut at = site.fabric.peer(*from).unwrap();
                while at != *to {
                    let port = site.subnet.tables.port(at.node, lid).unwrap();
                    let out = Endpoint { node: at.node, port };
                    at = site.fabric.peer(out).unwrap();
                    if at != *to {
                        over.entry(out).or_default().push((source as u32, destination as u32));
                    }
                }
            }
        }
        over
    }

    /// The most of these pairs that have no host in common, if nobody is source and destination.
    fn most_apart(pairs: &Pairs) -> usize {
        fn augment(
            source: u32,
            pairs: &Pairs,
            seen: &mut BTreeSet<u32>,
            of: &mut BTreeMap<u32, u32>,
        ) -> bool {
            for (_, to) in pairs.iter().filter(|(from, _)| *from == source) {
                if seen.insert(*to) {
                    let before = of.get(to).copied();
                    if before.is_none_or(|before| augment(before, pairs, seen, of)) {
                        of.insert(*to, source);
                        return true;
                    }
                }
            }
            false
        }
        let sources: BTreeSet<u32> = pairs.iter().map(|(from, _)| *from).collect();
        let destinations: BTreeSet<u32> = pairs.iter().map(|(_, to)| *to).collect();
        assert!(sources.is_disjoint(&destinations), "a shortest route turned back");
        let mut of = BTreeMap::new();
        let found = |source: &&u32| augment(**source, pairs, &mut BTreeSet::new(), &mut of);
        sources.iter().filter(found).count()
    }

    /// The links all pairs share; panics if a host is in two of them.
    fn shared(site: &Site, pairs: &Pairs) -> Vec<String> {
        let hosts: BTreeSet<u32> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
        assert_eq!(hosts.len(), 2 * pairs.len(), "{pairs:?}");
        let over = over_links(site).into_iter();
        let by_all = over.filter(|(_, over)| pairs.iter().all(|pair| over.contains(pair)));
        by_all.map(|(end, _)| site.fabric.describe(end)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// On any fabric the pairs share the link the note names, and no fewer are had than exist.
        #[test]
        fn pairs_share_a_link_and_nobody_is_in_two(
            case in prop::sample::select(CASES),
            seed in 1..1000u64,
            pairs in 2..9u32,
        ) {
            let site = cut_site(case, seed);
            prop_assume!(case.1 == 0 || site.is_some());
            let site = site.unwrap();
            let most = over_links(&site).values().map(most_apart).max().unwrap_or(0);
            match built(&site, pairs, None) {
                Ok((found, note)) => {
                    prop_assert_eq!(found.len(), pairs as usize);
                    let shared = shared(&site, &found);
                    let named = note.split(" → ").next().unwrap().to_owned();
                    prop_assert!(shared.contains(&named), "{} of {:?}", note, shared);
                    prop_assert_eq!(built(&site, pairs, None), Ok((found, note)));
                }
                Err(error) => {
                    prop_assert!(most < pairs as usize, "{}", error);
                    let said = format!("more than {most} pairs");
                    prop_assert!(error.contains(&said), "{} of {}", error, said);
                }
            }
        }
    }

    #[test]
    fn a_torus_has_four_pairs_on_a_link_and_names_it() {
        let site = site("torus:8x8", "dor");
        let (pairs, note) = built(&site, 4, None).unwrap();
        assert_eq!(shared(&site, &pairs).len(), 1, "{note}");
        assert!(note.ends_with("is on the routes of at most 3"), "{note}");
        let error = built(&site, 5, None).unwrap_err();
        assert!(error.contains("pairs = 5: no link") && error.contains("more than 4"), "{error}");
        // From (1, 0) to (2, 0): what a file asks for is taken.
        let (pairs, note) = built(&site, 4, Some("sw-1-0[1]")).unwrap();
        assert!(shared(&site, &pairs).contains(&"sw-1-0[1]".to_owned()));
        assert!(note.starts_with("sw-1-0[1] → sw-2-0[2] is on the routes of 4 pairs"), "{note}");
    }

    #[test]
    fn pairs_are_those_with_other_ways_around() {
        let fabric = topologies::build("torus:8x8").unwrap();
        let lmc = clearlane_ib::Lmc::new(2).unwrap();
        let options = RouteOptions { lanes: 8, lmc, ..RouteOptions::default() };
        let subnet = engines::route("multipath", &fabric, &options).unwrap();
        let site = Site { hosts: Hosts::of(&fabric), fabric, subnet };
        let (pairs, note) = built(&site, 3, None).unwrap();
        assert!(!shared(&site, &pairs).is_empty(), "{note}");
        // Half way around in both dimensions: there, and only there, four shortest ways go apart.
        assert!(note.ends_with("; 4 paths of each pair have no link in common"), "{note}");
        for (from, to) in pairs {
            let apart = |a: u32, b: u32| a.abs_diff(b);
            assert_eq!((apart(from % 8, to % 8), apart(from / 8, to / 8)), (4, 4));
        }
    }

    #[test]
    fn the_uplink_of_a_leaf_is_shared_and_nothing_else() {
        let site = site("leaf-spine:leaves=5,spines=3,hosts=4", "min-hop");
        let (pairs, note) = built(&site, 4, None).unwrap();
        assert_eq!(pairs.iter().map(|(from, _)| *from).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(note.ends_with("is on the routes of at most 1"), "{note}");
    }

    #[test]
    fn a_link_that_is_none_is_refused_with_what_would_be() {
        let site = site("torus:4x4", "dor");
        let error = |link| built(&site, 2, Some(link)).unwrap_err();
        let end = |text: &str| format!("pattern `path-hot-spot`: link = {text}");
        assert_eq!(
            error("sw-0-0"),
            end("`sw-0-0`: is no port; write the switch and the port, as in S1[3]")
        );
        assert!(error("sw-9-0[1]").contains("no node is named \"sw-9-0\"; did you mean"));
        let to_host = "is not between two switches; name the transmitting port of one that is";
        assert_eq!(error("sw-0-0[5]"), end(&format!("`sw-0-0[5]`: {to_host}")));
        assert!(error("sw-0-0[200]").ends_with("has no cable; name one that has"));
    }

    #[test]
    fn every_channel_has_its_name() {
        let site = site("dragonfly:a=4,p=2,h=2,g=4", "min-hop");
        let routes = DefaultRoutes::of_tables(&site.fabric, &site.subnet, &site.hosts);
        let mut seen = BTreeSet::new();
        for end in over_links(&site).into_keys() {
            let text = site.fabric.describe(end);
            let channel = routes.find(&text).unwrap();
            assert!(routes.name(channel).starts_with(&format!("{text} → ")));
            assert!(seen.insert(channel) && channel.index() < routes.channels());
        }
    }
}
