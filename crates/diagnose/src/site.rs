//! What is known of a site before anything is simulated.

use clearlane_fabric::formats::Oddity;
use clearlane_fabric::{Endpoint, Fabric, Link, LinkId, NodeId, NodeKind};
use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{CreditLoopReport, Usage, credit_loop, usage};
use std::collections::BTreeMap;

/// A site: its cables and, where they are known, its tables.
#[derive(Debug)]
pub struct Site {
    /// File or specification the cables are from.
    pub name: String,
    /// The cables.
    pub fabric: Fabric,
    /// What was odd in the file.
    pub oddities: Vec<Oddity>,
    /// How fast cables are and should be.
    pub cables: Cables,
    /// The tables; nothing where there are none.
    pub tables: Option<Tables>,
}

/// Tables and what walking them shows.
#[derive(Debug)]
pub struct Tables {
    /// The tables.
    pub subnet: Subnet,
    /// Paths over each link, and where others end.
    pub usage: Usage,
    /// Whether channels can wait for each other in a circle.
    pub credit_loop: CreditLoopReport,
}

impl Tables {
    /// Walks every path.
    pub fn of(fabric: &Fabric, subnet: Subnet) -> Self {
        let (usage, credit_loop) = (usage(fabric, &subnet), credit_loop(fabric, &subnet));
        Tables { subnet, usage, credit_loop }
    }
}

impl Site {
    /// Looks at cables and tables. Nodes of one name get their GUIDs behind it.
    pub fn new(
        name: impl Into<String>,
        mut fabric: Fabric,
        oddities: Vec<Oddity>,
        subnet: Option<Subnet>,
    ) -> Self {
        fabric.tell_apart();
        let cables = Cables::of(&fabric);
        let tables = subnet.map(|subnet| Tables::of(&fabric, subnet));
        Site { name: name.into(), fabric, oddities, cables, tables }
    }

    /// Adapters with a cable to a switch.
    pub fn hosts(&self) -> Vec<NodeId> {
        let fabric = &self.fabric;
        let cabled = |host: &NodeId| {
            fabric.neighbours(*host).any(|(_, _, peer)| fabric.node(peer.node).is_switch())
        };
        fabric.ids(NodeKind::ChannelAdapter).filter(cabled).collect()
    }

    /// A port as people name it, `leaf01[7]`.
    pub fn port(&self, end: Endpoint) -> String {
        format!("{}[{}]", self.node(end.node), end.port)
    }

    /// A cable as people name it, `leaf01[7]-spine02[1]`.
    pub fn cable(&self, link: &Link) -> String {
        format!("{}-{}", self.port(link.a), self.port(link.b))
    }

    /// A node as people name it; with its GUID where several have the name.
    pub fn node(&self, node: NodeId) -> String {
        self.fabric.node(node).name.escape_debug().to_string()
    }
}

/// Width and speed of a cable.
type Rate = (LinkWidth, LinkSpeed);

/// A cable that is slower than others of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cable {
    /// Which.
    pub link: LinkId,
    /// Whether it joins switches.
    pub is_trunk: bool,
    /// What those around it run at.
    pub expected: (LinkWidth, LinkSpeed),
}

/// How fast cables are, and how fast they should be by those around them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cables {
    /// Those that are slower than they should be.
    pub slow: Vec<Cable>,
}

/// How many cables of a kind a node has at each rate.
type Counts = BTreeMap<Rate, usize>;

impl Cables {
    /// Compares every cable with those of the same kind at its ends, and where these are too few
    /// to tell with all of the kind. A cable between switches has to be slower than most at both
    /// ends: an old switch is not a fault of its cables.
    pub fn of(fabric: &Fabric) -> Self {
        let is_trunk =
            |link: &Link| [link.a, link.b].iter().all(|end| fabric.node(end.node).is_switch());
        let mut at: BTreeMap<(NodeId, bool), Counts> = BTreeMap::new();
        let mut all: [Counts; 2] = Default::default();
        for link in fabric.links().iter().filter(|link| link.a.node != link.b.node) {
            let (trunk, rate) = (is_trunk(link), (link.width, link.speed));
            *all[usize::from(trunk)].entry(rate).or_default() += 1;
            for end in [link.a, link.b] {
                *at.entry((end.node, trunk)).or_default().entry(rate).or_default() += 1;
            }
        }
        let mut slow = Vec::new();
        for (number, link) in fabric.links().iter().enumerate() {
            let trunk = is_trunk(link);
            let rate = (link.width, link.speed);
            let around =
                |end: Endpoint| at.get(&(end.node, trunk)).and_then(|all| faster(all, rate));
            let kind = || faster(&all[usize::from(trunk)], rate);
            let switches = [link.a, link.b].into_iter();
            let switches = switches.filter(|end| fabric.node(end.node).is_switch());
            // It has to be slower than most at both ends; where these have too few to tell, than
            // most of its kind.
            let has_few = |end: &Endpoint| {
                at.get(&(end.node, trunk)).is_none_or(|all| all.values().sum::<usize>() < TO_TELL)
            };
            let known: Option<Vec<Rate>> = switches.clone().map(around).collect();
            let known = known.filter(|rates| !rates.is_empty());
            let by_kind = if switches.clone().any(|end| has_few(&end)) { kind() } else { None };
            if known.is_none() && by_kind.is_none() || link.a.node == link.b.node {
                continue;
            }
            // It should be as fast as most at the faster end, as far as the other end goes.
            let fastest = |end: Endpoint| {
                let rates = at.get(&(end.node, trunk)).into_iter().flat_map(BTreeMap::keys);
                rates.copied().max_by_key(|rate| bits(*rate))
            };
            let limit = switches.filter_map(fastest).min_by_key(|rate| bits(*rate));
            let most = known.iter().flatten().copied().max_by_key(|rate| bits(*rate));
            let expected = most.into_iter().chain(limit).min_by_key(|rate| bits(*rate));
            if let Some(expected) = known.as_ref().and(expected).or(by_kind) {
                let link = LinkId(number as u32);
                slow.push(Cable { link, is_trunk: trunk, expected });
            }
        }
        Cables { slow }
    }
}

impl Cable {
    /// The share of the rate it should have that is missing, 0 to 1.
    pub fn missing(&self, fabric: &Fabric) -> f64 {
        let link = fabric.link(self.link);
        1.0 - bits((link.width, link.speed)) as f64 / bits(self.expected) as f64
    }
}

fn bits((width, speed): Rate) -> u64 {
    LinkRate::of(width, speed).bits_per_second().0
}

/// How many cables of a kind it takes to tell how fast one should be.
const TO_TELL: usize = 3;

/// What most of those have that are faster, if more than half of three cables or more are.
fn faster(counts: &Counts, than: Rate) -> Option<Rate> {
    let all: usize = counts.values().sum();
    let faster = || counts.iter().filter(|(rate, _)| bits(**rate) > bits(than));
    let number: usize = faster().map(|(_, count)| *count).sum();
    let most = faster().max_by_key(|(rate, count)| (**count, std::cmp::Reverse(bits(**rate))))?;
    (all >= TO_TELL && 2 * number > all).then_some(*most.0)
}
