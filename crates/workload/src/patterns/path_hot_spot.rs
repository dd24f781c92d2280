//! Pairs of hosts that have nothing in common but one link between two switches on their default
//! routes: the path is hot and no host is.

use super::{Destinations, Entry, Pattern};
use clearlane_ib::ticked;
use crate::{Channel, Rank, Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "path-hot-spot",
    summary: "disjoint host pairs whose default routes share one link between two switches, so \
              the link is overloaded but no host is; pairs with many other paths and few other \
              shared links are preferred; all other hosts are silent",
    parameters: "pairs: at least 2; link: the transmitting port, as in leaf03[19], by default \
                 chosen among the first 64 ports that can have this many pairs, in the order of \
                 switches and ports: the port whose pairs have most paths without a common link, \
                 then the port whose pairs share fewest other links. The pattern chooses the \
                 senders and needs tables",
    reference: "ours: a hot spot that a choice of paths can relieve, as in Franco, Garcés, Luque, \
                Distributed routing balancing, ICS 1999",
};

/// Of so many channels that can have the pairs the best is taken: those of a regular fabric are
/// alike, and pairs are not looked for on all channels of a large one.
const CANDIDATES: usize = 64;
/// Pairs named in the note.
const SHOWN_MAX: usize = 16;

/// How many pairs, and where.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// How many pairs, at least 2.
    pub pairs: u32,
    /// The transmitting port of the link that is shared; chosen if left out.
    #[serde(default)]
    pub link: Option<String>,
}

#[derive(Debug)]
struct PathHotSpot {
    /// By source.
    pairs: Vec<(Rank, Rank)>,
    note: String,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        routes: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let routes = routes.ok_or(
            "needs the routes of tables, but the switches forward by rule; write engine = \"dor\" \
             in [subnet] instead of forwarding",
        )?;
        let wanted = self.pairs as usize;
        if wanted < 2 {
            return Err(format!("pairs = {wanted} is too few; at least 2 pairs share a link"));
        }
        let search = Search::new(ranks, routes, wanted);
        let found = match &self.link {
            None => search.best().map_err(|most| {
                format!(
                    "pairs = {wanted}: no link between two switches is on the default routes of \
                     more than {most} pairs of different hosts; lower pairs"
                )
            })?,
            Some(port) => {
                let channel = routes
                    .find(port)
                    .map_err(|problem| format!("link = {}: {problem}", ticked(port)))?;
                search.on(channel).map_err(|most| {
                    format!(
                        "pairs = {wanted}: {} is on the default routes of at most {most} pairs of \
                         different hosts; lower pairs or name another link",
                        ticked(port)
                    )
                })?
            }
        };
        let note = found.note(ranks, routes);
        let mut pairs = found.pairs;
        pairs.sort_unstable();
        Ok(Arc::new(PathHotSpot { pairs, note }))
    }

    fn chooses_senders(&self) -> bool {
        true
    }
}

impl Destinations for PathHotSpot {
    fn draw(&self, source: Rank, _: &mut Stream) -> Option<Rank> {
        let at = self.pairs.binary_search_by_key(&source, |(from, _)| *from);
        at.ok().map(|at| self.pairs[at].1)
    }

    fn weight(&self, source: Rank) -> f64 {
        let sends = self.pairs.binary_search_by_key(&source, |(from, _)| *from).is_ok();
        if sends { 1.0 } else { 0.0 }
    }

    fn note(&self) -> Option<&str> {
        Some(&self.note)
    }
}

/// Pairs over one channel.
struct Found {
    channel: Channel,
    pairs: Vec<(Rank, Rank)>,
    /// Of each pair, how many of its paths have no link in common.
    different: Vec<u32>,
    sharing: Sharing,
}

/// What pairs share besides their channel; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Sharing {
    /// The most pairs on another channel.
    most: u32,
    /// Pairs beyond the first on each other channel, all together.
    beyond: u32,
}

impl Found {
    /// What is least is best: a hot spot of paths is one that other paths could relieve.
    fn rank(&self) -> (Reverse<u32>, Reverse<u32>, Sharing) {
        let least = self.different.iter().copied().min().unwrap_or(0);
        (Reverse(least), Reverse(self.different.iter().sum()), self.sharing)
    }

    fn note(&self, ranks: &Ranks, routes: &dyn Routes) -> String {
        let pair =
            |(from, to): &(Rank, Rank)| format!("{} to {}", ranks.name(*from), ranks.name(*to));
        let named: Vec<String> = self.pairs.iter().take(SHOWN_MAX).map(pair).collect();
        let more = if self.pairs.len() > SHOWN_MAX { ", …" } else { "" };
        let single = self.pairs.iter().all(|(_, to)| routes.paths(*to) == 1);
        let (least, most) = (self.different.iter().min(), self.different.iter().max());
        let different = match (least, most) {
            (Some(least), Some(most)) if !single && least == most => {
                format!("; {least} paths of each pair have no link in common")
            }
            (Some(least), Some(most)) if !single => {
                format!("; {least} to {most} paths of a pair have no link in common")
            }
            _ => String::new(),
        };
        format!(
            "{} is on the routes of {} pairs: {}{more}; every other link between switches is on \
             the routes of at most {}{different}",
            routes.name(self.channel),
            self.pairs.len(),
            named.join(", "),
            self.sharing.most,
        )
    }
}

/// By destination: the leaves whose hosts reach it over a channel.
type Users = BTreeMap<Rank, Vec<u32>>;

/// Looks for pairs. A leaf here is a switch with hosts: what holds for one of them holds for all.
struct Search<'a> {
    routes: &'a dyn Routes,
    wanted: usize,
    /// Hosts by leaf, ascending.
    hosts: Vec<Vec<Rank>>,
    /// The leaf of each rank.
    leaf: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(ranks: &Ranks, routes: &'a dyn Routes, wanted: usize) -> Self {
        let mut by_switch: BTreeMap<u32, Vec<Rank>> = BTreeMap::new();
        for rank in (0..ranks.count()).map(Rank) {
            by_switch.entry(routes.switch(rank)).or_default().push(rank);
        }
        let hosts: Vec<Vec<Rank>> = by_switch.into_values().collect();
        let mut leaf = vec![0; ranks.count() as usize];
        for (index, hosts) in hosts.iter().enumerate() {
            hosts.iter().for_each(|host| leaf[host.0 as usize] = index as u32);
        }
        Search { routes, wanted, hosts, leaf }
    }

    /// The best pairs of the first candidates that can have so many; else how many pairs the
    /// channel can have that can have most.
    fn best(&self) -> Result<Found, usize> {
        let bounds = self.bounds();
        let bound = |channel: &Channel| bounds[channel.index()] as usize;
        let mut order: Vec<Channel> = (0..bounds.len() as u32).map(Channel).collect();
        order.retain(|channel| bound(channel) > 0);
        // Those that may do come first and in their own order, then those that may have most.
        order.sort_by_key(|channel| Reverse(bound(channel).min(self.wanted)));
        let mut most = 0;
        for candidates in order.chunks(CANDIDATES) {
            if bound(&candidates[0]) <= most {
                break;
            }
            let users = self.users(candidates);
            let found = candidates.iter().zip(&users).map(|(channel, users)| {
                let found = self.choose(*channel, users);
                most = most.max(found.pairs.len());
                found
            });
            let enough = found.filter(|found| found.pairs.len() == self.wanted);
            // Of equals the first.
            if let Some(best) = enough.min_by_key(Found::rank) {
                return Ok(best);
            }
        }
        Err(most)
    }

    /// The pairs over one channel; else how many it can have.
    fn on(&self, channel: Channel) -> Result<Found, usize> {
        let users = self.users(&[channel]);
        let found = self.choose(channel, &users[0]);
        if found.pairs.len() == self.wanted { Ok(found) } else { Err(found.pairs.len()) }
    }

    /// Calls `on_route` with every (leaf, destination) and the channels between them.
    fn every_route(&self, mut on_route: impl FnMut(u32, Rank, &[Channel])) {
        let mut route = Vec::new();
        for (destination, own) in self.leaf.iter().enumerate() {
            let destination = Rank(destination as u32);
            for (leaf, hosts) in self.hosts.iter().enumerate() {
                if leaf as u32 != *own {
                    self.routes.walk(hosts[0], destination, 0, &mut route);
                    on_route(leaf as u32, destination, &route);
                }
            }
        }
    }

    /// By channel: the hosts that send over it or those that are sent to, whichever are fewer.
    fn bounds(&self) -> Vec<u32> {
        let channels = self.routes.channels();
        let mut known = vec![vec![0u64; self.hosts.len().div_ceil(64)]; channels];
        let (mut sources, mut destinations) = (vec![0u32; channels], vec![0u32; channels]);
        let mut last = vec![None; channels];
        self.every_route(|leaf, destination, route| {
            for channel in route.iter().map(|channel| channel.index()) {
                let (word, bit) = (leaf as usize / 64, 1 << (leaf % 64));
                if known[channel][word] & bit == 0 {
                    known[channel][word] |= bit;
                    sources[channel] += self.hosts[leaf as usize].len() as u32;
                }
                if last[channel].replace(destination) != Some(destination) {
                    destinations[channel] += 1;
                }
            }
        });
        sources.iter().zip(&destinations).map(|(a, b)| *a.min(b)).collect()
    }

    /// Who uses these channels.
    fn users(&self, channels: &[Channel]) -> Vec<Users> {
        let mut place = vec![None; self.routes.channels()];
        channels.iter().enumerate().for_each(|(at, channel)| place[channel.index()] = Some(at));
        let mut users = vec![Users::new(); channels.len()];
        self.every_route(|leaf, destination, route| {
            for at in route.iter().filter_map(|channel| place[channel.index()]) {
                users[at].entry(destination).or_default().push(leaf);
            }
        });
        users
    }

    /// How many paths of a pair have no link in common, the default route one of them; each further
    /// one is taken if it crosses none that is taken already.
    fn different(&self, source: Rank, destination: Rank) -> u32 {
        let (mut taken, mut route, mut count) = (Vec::new(), Vec::new(), 0);
        for path in 0..self.routes.paths(destination) {
            self.routes.walk(source, destination, path, &mut route);
            if route.iter().all(|channel| !taken.contains(channel)) {
                taken.extend_from_slice(&route);
                count += 1;
            }
        }
        count
    }

    /// As many pairs over a channel as are wanted or there can be, one after the other: each time
    /// one with most paths that have no link in common, of equals that which makes the pairs share
    /// least else, and which leaves room for the rest.
    fn choose(&self, channel: Channel, users: &Users) -> Found {
        let mut taken = vec![false; self.leaf.len()];
        let target = self.disjoint(users, &taken, self.wanted);
        let mut load = vec![0u32; self.routes.channels()];
        let mut found = Found {
            channel,
            pairs: Vec::new(),
            different: Vec::new(),
            sharing: Sharing::default(),
        };
        let mut route = Vec::new();
        let mut different = BTreeMap::new();
        while found.pairs.len() < target {
            let mut choices = Vec::new();
            for (destination, leaves) in users.iter().filter(|(to, _)| !taken[to.0 as usize]) {
                for leaf in leaves {
                    let hosts = &self.hosts[*leaf as usize];
                    let Some(source) = hosts.iter().find(|host| !taken[host.0 as usize]) else {
                        continue;
                    };
                    self.routes.walk(*source, *destination, 0, &mut route);
                    let sharing = with(found.sharing, channel, &route, &load);
                    let beside = hosts.iter().filter(|host| taken[host.0 as usize]).count();
                    // Hosts of a leaf have the same paths.
                    let different = different
                        .entry((*leaf, *destination))
                        .or_insert_with(|| self.different(*source, *destination));
                    choices.push((Reverse(*different), sharing, beside, *source, *destination));
                }
            }
            choices.sort_unstable();
            let left = target - found.pairs.len() - 1;
            let fits = choices.into_iter().find(|(.., source, destination)| {
                let mut taken = taken.clone();
                take(&mut taken, *source, *destination);
                self.disjoint(users, &taken, left) == left
            });
            // Where a host may be on either side, the order of choices can leave less than hoped.
            let Some((Reverse(different), sharing, _, source, destination)) = fits else { break };
            take(&mut taken, source, destination);
            self.routes.walk(source, destination, 0, &mut route);
            route.iter().for_each(|channel| load[channel.index()] += 1);
            found.sharing = sharing;
            found.different.push(different);
            found.pairs.push((source, destination));
        }
        found
    }

    /// How many pairs can be made of hosts not taken, `wanted` at most. Exact where no leaf is on
    /// both sides of the channel, as with shortest routes: augmenting paths in a bipartite graph.
    fn disjoint(&self, users: &Users, taken: &[bool], wanted: usize) -> usize {
        let free = |host: &Rank| !taken[host.0 as usize];
        let room = self.hosts.iter().map(|hosts| hosts.iter().filter(|host| free(host)).count());
        let mut matching =
            Matching { users, room: room.collect(), senders: vec![Vec::new(); self.hosts.len()] };
        let mut count = 0;
        for destination in users.keys().filter(|host| free(host)) {
            if count == wanted {
                break;
            }
            let own = self.leaf[destination.0 as usize] as usize;
            if matching.room[own] == 0 {
                continue;
            }
            matching.room[own] -= 1;
            if matching.add(*destination, &mut vec![false; self.hosts.len()]) {
                count += 1;
            } else {
                matching.room[own] += 1;
            }
        }
        count
    }
}

fn take(taken: &mut [bool], source: Rank, destination: Rank) {
    taken[source.0 as usize] = true;
    taken[destination.0 as usize] = true;
}

/// `before`, and one more pair with this route.
fn with(before: Sharing, shared: Channel, route: &[Channel], load: &[u32]) -> Sharing {
    let others = route.iter().filter(|channel| **channel != shared);
    others.fold(before, |sum, channel| {
        let pairs = load[channel.index()] + 1;
        Sharing { most: sum.most.max(pairs), beyond: sum.beyond + u32::from(pairs > 1) }
    })
}

/// Destinations given to leaves that send to them.
struct Matching<'a> {
    users: &'a Users,
    /// Hosts of a leaf that are neither source nor destination yet.
    room: Vec<usize>,
    /// The destinations a leaf sends to.
    senders: Vec<Vec<Rank>>,
}

impl Matching<'_> {
    /// Finds a sender for one more destination, if need be by giving others to other leaves. As
    /// deep as there are destinations with a sender.
    fn add(&mut self, destination: Rank, seen: &mut [bool]) -> bool {
        let users = self.users;
        let leaves = users.get(&destination).map_or(&[][..], Vec::as_slice);
        if let Some(leaf) = leaves.iter().map(|leaf| *leaf as usize).find(|l| self.room[*l] > 0) {
            self.room[leaf] -= 1;
            self.senders[leaf].push(destination);
            return true;
        }
        for leaf in leaves.iter().map(|leaf| *leaf as usize) {
            if std::mem::replace(&mut seen[leaf], true) {
                continue;
            }
            for at in 0..self.senders[leaf].len() {
                if self.add(self.senders[leaf][at], seen) {
                    self.senders[leaf][at] = destination;
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ranks;
    use super::*;

    /// Switches in a row or, all turning the same way, in a ring, with so many hosts each. Channel
    /// 2 i leads from switch i to the next, channel 2 i + 1 from that back.
    struct Line {
        switches: u32,
        hosts: u32,
        ring: bool,
    }

    impl Routes for Line {
        fn channels(&self) -> usize {
            2 * self.switches as usize
        }

        fn name(&self, channel: Channel) -> String {
            format!("c{}", channel.0)
        }

        fn find(&self, port: &str) -> Result<Channel, String> {
            let number = port.strip_prefix('c').and_then(|number| number.parse().ok());
            number.map(Channel).ok_or_else(|| "is no port".into())
        }

        fn rate(&self, _: Channel) -> clearlane_ib::LinkRate {
            use clearlane_ib::{LinkSpeed, LinkWidth};
            clearlane_ib::LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr)
        }

        fn switch(&self, rank: Rank) -> u32 {
            rank.0 / self.hosts
        }

        fn paths(&self, _: Rank) -> u16 {
            1
        }

        fn walk(&self, source: Rank, destination: Rank, _: u16, route: &mut Vec<Channel>) {
            route.clear();
            let (mut at, to) = (self.switch(source), self.switch(destination));
            while at != to {
                let forward = self.ring || at < to;
                route.push(Channel(if forward { 2 * at } else { 2 * at - 1 }));
                at = if forward { (at + 1) % self.switches } else { at - 1 };
            }
        }
    }

    fn build(line: &Line, pairs: u32, link: Option<&str>) -> Result<Arc<dyn Destinations>, String> {
        let params = Params { pairs, link: link.map(str::to_owned) };
        params.build(&ranks(line.switches * line.hosts), Some(line))
    }

    fn pairs(line: &Line, built: &dyn Destinations) -> Vec<(u32, u32)> {
        let mut stream = Stream::new(1, "test", 0);
        let mut to = |rank| Some((rank, built.draw(Rank(rank), &mut stream)?.0));
        let all = (0..line.switches * line.hosts).filter_map(&mut to).collect();
        for rank in 0..line.switches * line.hosts {
            let sends = built.draw(Rank(rank), &mut stream).is_some();
            assert_eq!(built.weight(Rank(rank)), if sends { 1.0 } else { 0.0 });
        }
        all
    }

    #[test]
    fn pairs_beside_their_link_share_nothing_where_they_can() {
        let row = Line { switches: 4, hosts: 2, ring: false };
        let built = build(&row, 2, None).unwrap();
        assert_eq!(pairs(&row, &*built), [(0, 2), (1, 3)]);
        assert_eq!(
            built.note(),
            Some(
                "c0 is on the routes of 2 pairs: host000 to host002, host001 to host003; every \
                 other link between switches is on the routes of at most 0"
            )
        );
        let built = build(&row, 2, Some("c3")).unwrap();
        assert_eq!(pairs(&row, &*built), [(4, 2), (5, 3)]);
    }

    #[test]
    fn more_pairs_come_from_further_away() {
        let row = Line { switches: 4, hosts: 2, ring: false };
        // Only over the middle do four pairs go; two of them share the links beside it.
        let built = build(&row, 4, None).unwrap();
        let found = pairs(&row, &*built);
        let (from, to): (Vec<u32>, Vec<u32>) = found.iter().copied().unzip();
        assert_eq!(from, [0, 1, 2, 3]);
        assert!(to.iter().all(|to| *to >= 4), "{found:?}");
        let note = built.note().unwrap();
        assert!(note.starts_with("c2 is on") && note.ends_with("routes of at most 2"), "{note}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let row = Line { switches: 4, hosts: 2, ring: false };
        let error = |pairs, link| build(&row, pairs, link).unwrap_err();
        assert_eq!(
            error(5, None),
            "pairs = 5: no link between two switches is on the default routes of more than 4 \
             pairs of different hosts; lower pairs"
        );
        assert_eq!(
            error(3, Some("c0")),
            "pairs = 3: `c0` is on the default routes of at most 2 pairs of different hosts; lower \
             pairs or name another link"
        );
        assert_eq!(error(2, Some("x\n")), "link = `x\\n`: is no port");
        assert_eq!(error(1, None), "pairs = 1 is too few; at least 2 pairs share a link");
        let star = Line { switches: 1, hosts: 9, ring: false };
        assert!(build(&star, 2, None).unwrap_err().contains("more than 0 pairs"));
    }

    #[test]
    fn nobody_is_in_two_pairs_though_everybody_could() {
        // Around a ring in one direction every host uses every link, as source and as destination.
        let ring = Line { switches: 7, hosts: 1, ring: true };
        for wanted in [2, 3] {
            let built = build(&ring, wanted, None).unwrap();
            let found = pairs(&ring, &*built);
            assert_eq!(found.len(), wanted as usize);
            let mut hosts: Vec<u32> = found.iter().flat_map(|(from, to)| [*from, *to]).collect();
            hosts.sort_unstable();
            hosts.dedup();
            assert_eq!(hosts.len(), 2 * wanted as usize, "{found:?}");
        }
        assert!(build(&ring, 4, None).unwrap_err().contains("more than 3 pairs"));
    }

    #[test]
    fn room_is_made_for_the_last_pair() {
        // Destination 0 can have both leaves, destination 1 the first alone.
        let users = Users::from([(Rank(2), vec![0, 1]), (Rank(3), vec![0])]);
        let line = Line { switches: 4, hosts: 1, ring: false };
        let search = Search::new(&ranks(4), &line, 2);
        assert_eq!(search.disjoint(&users, &[false; 4], 2), 2);
        assert_eq!(search.disjoint(&users, &[false, true, false, false], 2), 1);
    }
}
