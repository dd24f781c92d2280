//! Nodes and the ends' listings of their cables, put together into a fabric. All formats list a
//! cable once per end, so what the ends disagree on is found here.

use super::ibnetdiscover::netlist_id;
use super::oddities::Oddities;
use super::{FormatError, Oddity, OddityKind, PORTS_MAX, Problem, Reading, file_name};
use crate::{Endpoint, Fabric, Link, Node, NodeId, NodeKind};
use clearlane_ib::{KEPT_CHARS_MAX, Lid, LinkRate, LinkSpeed, LinkWidth, PortNumber, quoted};
use std::collections::BTreeMap;

/// GUIDs made up for nodes without one; locally administered, as in `topologies`.
const MADE_UP_GUID: u64 = 0x0ac1_eaff_0000_0000;

/// One end's view of a cable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) line: usize,
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) width: Option<LinkWidth>,
    pub(super) speed: Option<LinkSpeed>,
}

/// A cable with the lines its ends are listed in.
struct Cable {
    link: Link,
    line: usize,
    confirmed: bool,
    rate: (Option<LinkWidth>, Option<LinkSpeed>),
}

/// A file being put together.
pub(super) struct Assembly<'a> {
    file: &'a str,
    pub(super) nodes: Vec<Node>,
    lines: Vec<usize>,
    listings: Vec<Listing>,
    oddities: Oddities,
    ports: usize,
    noise: Option<(usize, usize, String)>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Assembly {
            file,
            nodes: Vec::new(),
            lines: Vec::new(),
            listings: Vec::new(),
            oddities: Oddities::default(),
            ports: 0,
            noise: None,
        }
    }

    /// An error at a line of this file.
    pub(super) fn error(&self, line: usize, problem: Problem) -> FormatError {
        FormatError { file: file_name(self.file), line, problem }
    }

    /// A line of the format that does not parse.
    pub(super) fn syntax(&self, line: usize, expected: &'static str, text: &str) -> FormatError {
        self.error(line, Problem::Syntax { expected, found: quoted(text) })
    }

    /// Notes something odd.
    pub(super) fn odd(&mut self, line: usize, kind: OddityKind, text: String) {
        self.oddities.add(Oddity { line, last_line: line, kind, text });
    }

    /// Notes a line that is no part of the format; runs of them become one oddity.
    pub(super) fn noise(&mut self, line: usize, text: &str) {
        if let Some((_, last, _)) = &mut self.noise
            && *last + 1 == line
        {
            *last = line;
            return;
        }
        self.end_noise();
        self.noise = Some((line, line, quoted(text)));
    }

    fn end_noise(&mut self) {
        if let Some((line, last_line, text)) = self.noise.take() {
            let text = format!("{} line(s) of another kind skipped: {text}", last_line - line + 1);
            self.oddities.add(Oddity { line, last_line, kind: OddityKind::Noise, text });
        }
    }

    /// Adds a node with its header's line. One without a name is called what a netlist calls it,
    /// and a name nobody could read is cut.
    pub(super) fn node(&mut self, line: usize, mut node: Node) -> Result<NodeId, FormatError> {
        self.count_ports(line, node.ports.len())?;
        if node.name.is_empty() {
            node.name = netlist_id(&node);
        }
        if let Some((cut, _)) = node.name.char_indices().nth(KEPT_CHARS_MAX) {
            let count = node.name.chars().count();
            let text = format!("{} has {count} characters; cut", quoted(&node.name));
            self.odd(line, OddityKind::LongName, text);
            node.name.truncate(node.name[..cut].trim_end().len());
        }
        self.nodes.push(node);
        self.lines.push(line);
        Ok(NodeId((self.nodes.len() - 1) as u32))
    }

    fn count_ports(&mut self, line: usize, more: usize) -> Result<(), FormatError> {
        self.ports += more;
        if self.ports > PORTS_MAX { Err(self.error(line, Problem::TooLarge)) } else { Ok(()) }
    }

    /// Sees to it that a node of unknown size has this port.
    pub(super) fn grow(&mut self, line: usize, end: Endpoint) -> Result<(), FormatError> {
        let (have, wanted) =
            (self.nodes[end.node.index()].ports.len(), usize::from(end.port.value()) + 1);
        if wanted > have {
            self.count_ports(line, wanted - have)?;
            self.nodes[end.node.index()].ports.resize(wanted, Default::default());
        }
        Ok(())
    }

    /// Fails if a node of known size has no such port.
    fn check_port(&self, line: usize, end: Endpoint) -> Result<(), FormatError> {
        let node = &self.nodes[end.node.index()];
        let (port, ports) = (end.port.value(), node.port_count());
        if port >= 1 && port <= ports {
            return Ok(());
        }
        Err(self.error(line, Problem::NoSuchPort { node: quoted(&node.name), port, ports }))
    }

    /// Adds an end's view of a cable.
    pub(super) fn listing(&mut self, listing: Listing) -> Result<(), FormatError> {
        self.check_port(listing.line, listing.from)?;
        self.check_port(listing.line, listing.to)?;
        self.listings.push(listing);
        Ok(())
    }

    /// Sets the LID of a port (a switch's is that of port 0); the first one given stays.
    pub(super) fn lid(&mut self, line: usize, end: Endpoint, lid: Option<Lid>) {
        let Some(lid) = lid else { return };
        let node = &mut self.nodes[end.node.index()];
        let number = if node.is_switch() { 0 } else { usize::from(end.port.value()) };
        let Some(port) = node.ports.get_mut(number) else { return };
        match port.lid {
            None => port.lid = Some(lid),
            Some(first) if first != lid => {
                let name = quoted(&node.name);
                let text =
                    format!("{name} has LID {lid} here, {first} elsewhere; {first} is taken");
                self.odd(line, OddityKind::LidContradiction, text);
            }
            Some(_) => {}
        }
    }

    /// Fails if a node met before is of another kind or size now.
    pub(super) fn same_node(
        &self,
        line: usize,
        id: NodeId,
        kind: NodeKind,
        ports: Option<u8>,
    ) -> Result<(), FormatError> {
        let node = &self.nodes[id.index()];
        if node.kind == kind && ports.is_none_or(|ports| ports == node.port_count()) {
            return Ok(());
        }
        let (node, first) = (quoted(&node.name), self.lines[id.index()]);
        Err(self.error(line, Problem::NodeChanged { node, line: first }))
    }

    fn describe(&self, end: Endpoint) -> String {
        let name = quoted(&self.nodes[end.node.index()].name);
        format!("{name}[{}]", end.port)
    }

    /// Makes up a GUID for a node without one, from its place in the file.
    pub(super) fn made_up_guid(&self) -> u64 {
        MADE_UP_GUID + ((self.nodes.len() as u64) << 8)
    }

    /// Puts everything together.
    pub(super) fn finish(mut self) -> Result<Reading, FormatError> {
        self.end_noise();
        if self.nodes.is_empty() {
            return Err(self.error(1, Problem::Empty));
        }
        let cables = self.pair_ends()?;
        self.together(cables)
    }

    /// The same for a format in which a cable without its other end says that the file is cut off:
    /// `last` is the line it ends with.
    pub(super) fn finish_whole(mut self, last: usize) -> Result<Reading, FormatError> {
        self.end_noise();
        if self.nodes.is_empty() {
            return Err(self.error(1, Problem::Empty));
        }
        let cables = self.pair_ends()?;
        let mut alone = cables.iter().filter(|cable| !cable.confirmed);
        if let Some(first) = alone.next() {
            let Link { a, b, .. } = first.link;
            let problem = Problem::EndsMissing {
                cables: 1 + alone.count(),
                of: cables.len(),
                first: format!("{}-{}", self.describe(a), self.describe(b)),
                line: first.line,
            };
            return Err(self.error(last, problem));
        }
        self.together(cables)
    }

    fn together(mut self, cables: Vec<Cable>) -> Result<Reading, FormatError> {
        self.note_names();
        let mut fabric = Fabric::new();
        for index in 0..self.nodes.len() {
            let hollow = Node::new(self.nodes[index].kind, self.nodes[index].guid, "", 1);
            let node = std::mem::replace(&mut self.nodes[index], hollow);
            let added = fabric.add_node(node);
            added.map_err(|e| self.error(self.lines[index], Problem::Fabric(e)))?;
        }
        for cable in &cables {
            let Link { a, b, width, speed } = cable.link;
            let joined = fabric.join(a, b, width, speed);
            joined.map_err(|e| self.error(cable.line, Problem::Fabric(e)))?;
        }
        self.note_bare(&fabric);
        self.note_lids(&fabric);
        self.note_slow(&fabric, &cables);
        Ok(Reading { fabric, oddities: self.oddities.listed() })
    }

    /// Pairs the two ends' listings of every cable, in the order of the first one.
    fn pair_ends(&mut self) -> Result<Vec<Cable>, FormatError> {
        let mut cables: Vec<Cable> = Vec::new();
        let mut at: BTreeMap<Endpoint, usize> = BTreeMap::new();
        for listing in std::mem::take(&mut self.listings) {
            let Listing { line, from, to, .. } = listing;
            if from == to {
                let text = format!("{} is plugged into itself; left out", self.describe(from));
                self.odd(line, OddityKind::SelfLoop, text);
                continue;
            }
            match (at.get(&from), at.get(&to)) {
                (None, None) => {
                    at.insert(from, cables.len());
                    at.insert(to, cables.len());
                    let (width, speed) = rate_or_sdr((listing.width, listing.speed));
                    let link = Link { a: from, b: to, width, speed };
                    let rate = (listing.width, listing.speed);
                    cables.push(Cable { link, line, confirmed: false, rate });
                }
                (Some(here), Some(there)) if here == there => {
                    let cable = &mut cables[*here];
                    if cable.link.a == from || cable.confirmed {
                        let text = format!("{} is listed again; skipped", self.describe(from));
                        self.odd(line, OddityKind::Repeated, text);
                        continue;
                    }
                    cable.confirmed = true;
                    self.compare_ends(&listing, cable);
                }
                (here, there) => {
                    let index = *here.or(there).expect("one of the ends is taken in this arm");
                    let earlier = &cables[index];
                    let (a, b) = (self.describe(earlier.link.a), self.describe(earlier.link.b));
                    let problem = Problem::Contradiction {
                        end: self.describe(from),
                        here: self.describe(to),
                        line: earlier.line,
                        other: format!("{a} leads to {b}"),
                    };
                    return Err(self.error(line, problem));
                }
            }
        }
        self.note_cables(&cables);
        Ok(cables)
    }

    /// The second end's view of a cable: the slower of two different rates is taken.
    fn compare_ends(&mut self, listing: &Listing, cable: &mut Cable) {
        let (first, second) = (cable.rate, (listing.width, listing.speed));
        let known = |rate: (Option<_>, Option<_>)| rate.0.is_some() && rate.1.is_some();
        if first == second {
            return;
        }
        let (width, speed) = rate_or_sdr(second);
        if !known(first) || !known(second) {
            let (lost, line, there) = if known(first) {
                (listing.from, listing.line, cable.line)
            } else {
                (cable.link.a, cable.line, listing.line)
            };
            let text = format!("{} has no known speed; line {there} says it", self.describe(lost));
            self.odd(line, OddityKind::UnknownRate, text);
            if !known(first) {
                (cable.rate, cable.link.width, cable.link.speed) = (second, width, speed);
            }
            return;
        }
        let link = &mut cable.link;
        let text = format!(
            "{} says {width} {speed}, but line {} says {} {}; the slower is taken",
            self.describe(listing.from),
            cable.line,
            link.width,
            link.speed
        );
        if slower(LinkRate::of(width, speed), link.rate()) {
            (link.width, link.speed) = (width, speed);
        }
        self.odd(listing.line, OddityKind::EndsDiffer, text);
    }

    fn note_cables(&mut self, cables: &[Cable]) {
        let known = |cable: &Cable| cable.rate.0.is_some() && cable.rate.1.is_some();
        let none_known = !cables.iter().any(known);
        if let Some(first) = cables.first().filter(|_| none_known) {
            let text = "no cable has a known speed; all are taken as SDR, and as 4x where the \
                        width is not known";
            self.odd(first.line, OddityKind::UnknownRate, text.into());
        }
        for cable in cables {
            let (line, Link { a, b, width, speed }) = (cable.line, cable.link);
            let name = format!("{}-{}", self.describe(a), self.describe(b));
            if !cable.confirmed {
                let text = format!("{name} is listed from its one end only; taken as whole");
                self.odd(line, OddityKind::OneSided, text);
            }
            if a.node == b.node {
                let text = format!("{name} has both ends in one node; kept");
                self.odd(line, OddityKind::SelfLoop, text);
            }
            if !known(cable) && !none_known {
                let text = format!("{name} has no known speed; taken as {width} {speed}");
                self.odd(line, OddityKind::UnknownRate, text);
            }
        }
    }

    fn note_names(&mut self) {
        let mut named: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (node, line) in self.nodes.iter().zip(&self.lines) {
            named.entry(&node.name).or_insert((0, *line)).0 += 1;
        }
        let many = named.into_iter().filter(|(_, (count, _))| *count > 1);
        let found: Vec<_> = many
            .map(|(name, (count, line))| {
                (line, format!("{count} nodes are named {}", quoted(name)))
            })
            .collect();
        for (line, text) in found {
            let text = format!("{text}; GUIDs tell them apart");
            self.odd(line, OddityKind::DuplicateName, text);
        }
    }

    /// Nodes without any cable: nothing reaches them.
    fn note_bare(&mut self, fabric: &Fabric) {
        for (index, node) in fabric.nodes().iter().enumerate() {
            if node.ports.iter().all(|port| port.link.is_none()) {
                let text = format!("{} has no cable at all", quoted(&node.name));
                self.odd(self.lines[index], OddityKind::NoPeer, text);
            }
        }
    }

    fn note_lids(&mut self, fabric: &Fabric) {
        if !fabric.nodes().iter().any(|node| node.ports.iter().any(|port| port.lid.is_some())) {
            let line = self.lines.first().copied().unwrap_or(1);
            self.odd(line, OddityKind::NoLid, "the file has no LIDs".into());
            return;
        }
        let mut owners: BTreeMap<Lid, Endpoint> = BTreeMap::new();
        for (index, node) in fabric.nodes().iter().enumerate() {
            let id = NodeId(index as u32);
            for (number, port) in node.ports.iter().enumerate() {
                let Some(number) = PortNumber::new(number as u8) else { continue };
                let end = Endpoint { node: id, port: number };
                let needed =
                    if node.is_switch() { number.value() == 0 } else { port.link.is_some() };
                let Some(lid) = port.lid else {
                    if needed {
                        let text = format!("{} has no LID", fabric_end(fabric, end));
                        self.odd(self.lines[index], OddityKind::NoLid, text);
                    }
                    continue;
                };
                if let Some(first) = owners.insert(lid, end) {
                    let (a, b) = (fabric_end(fabric, first), fabric_end(fabric, end));
                    let text = format!("{a} and {b} both have LID {lid}; both kept");
                    self.odd(self.lines[index], OddityKind::LidContradiction, text);
                }
            }
        }
    }

    /// Cables slower than the most common rate among those of the same kind, to hosts or to
    /// switches, at one of their switches; a rate that over a quarter of them run at is no oddity.
    fn note_slow(&mut self, fabric: &Fabric, cables: &[Cable]) {
        let is_switch = |id: NodeId| fabric.node(id).is_switch();
        let mut rates = vec![[BTreeMap::new(), BTreeMap::new()]; fabric.nodes().len()];
        for (index, counts) in rates.iter_mut().enumerate() {
            let id = NodeId(index as u32);
            if !is_switch(id) {
                continue;
            }
            for (_, link, peer) in fabric.neighbours(id).filter(|(_, _, peer)| peer.node != id) {
                let Link { width, speed, .. } = *fabric.link(link);
                *counts[usize::from(is_switch(peer.node))].entry((width, speed)).or_insert(0) += 1;
            }
        }
        for (index, link) in fabric.links().iter().enumerate() {
            let between = usize::from(is_switch(link.a.node) && is_switch(link.b.node));
            if link.a.node == link.b.node {
                continue;
            }
            let own = (link.width, link.speed);
            let usual = |id: NodeId| {
                let counts: &BTreeMap<_, usize> = &rates[id.index()][between];
                let rare = counts.get(&own)? * 4 <= counts.values().sum();
                most_common(counts).filter(|_| rare)
            };
            let faster = [link.a.node, link.b.node]
                .into_iter()
                .filter_map(usual)
                .find(|(width, speed)| slower(link.rate(), LinkRate::of(*width, *speed)));
            if let Some((width, speed)) = faster {
                let name = format!("{}-{}", fabric_end(fabric, link.a), fabric_end(fabric, link.b));
                let text = format!(
                    "{name} runs at {} {}, its neighbours at {width} {speed}",
                    link.width, link.speed
                );
                self.odd(cables[index].line, OddityKind::Slow, text);
            }
        }
    }
}

fn fabric_end(fabric: &Fabric, end: Endpoint) -> String {
    format!("{}[{}]", quoted(&fabric.node(end.node).name), end.port)
}

/// The rate more than one cable has and no other has as often; among equals the fastest.
fn most_common(counts: &BTreeMap<(LinkWidth, LinkSpeed), usize>) -> Option<(LinkWidth, LinkSpeed)> {
    let rank = |entry: &(&(LinkWidth, LinkSpeed), &usize)| {
        (*entry.1, LinkRate::of(entry.0.0, entry.0.1).bits_per_second())
    };
    let (rate, count) = counts.iter().max_by_key(rank)?;
    (*count > 1).then_some(*rate)
}

fn slower(a: LinkRate, b: LinkRate) -> bool {
    a.femtoseconds_per_byte() > b.femtoseconds_per_byte()
}

/// 4x and SDR where the width or speed is not known, as ibsim takes them.
fn rate_or_sdr(rate: (Option<LinkWidth>, Option<LinkSpeed>)) -> (LinkWidth, LinkSpeed) {
    (rate.0.unwrap_or(LinkWidth::X4), rate.1.unwrap_or(LinkSpeed::Sdr))
}
