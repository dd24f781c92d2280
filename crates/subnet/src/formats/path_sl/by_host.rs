//! SLs of paths that differ between hosts of the same two switches: hosts that are treated alike
//! become a group.

use super::{LevelDump, Placed, Ports, UNSET};
use crate::HostGroups;
use crate::formats::{DumpError, Oddity, Tally};
use crate::path_sl::GROUPS_MAX;
use clearlane_ib::ServiceLevel;
use std::collections::BTreeMap;

/// Most SLs that are held: a file of them all has some 25 bytes each.
const LEVELS_MAX: usize = 1 << 28;

/// The SL from host port to host port, source-major, by LID offset.
struct Matrix {
    hosts: usize,
    of_offset: Vec<Vec<u8>>,
    /// By host port: the one whose lines are its as well.
    source: Vec<usize>,
    /// By that one: all ports it stands for.
    same: Vec<Vec<usize>>,
}

impl Matrix {
    fn of(dump: &LevelDump, ports: &Ports<'_>, file: &str) -> Result<Self, DumpError> {
        let hosts = ports.hosts.len();
        let offsets = usize::from(ports.lids.lmc_max().lids());
        if hosts * hosts * offsets > LEVELS_MAX {
            let what = "SLs that differ between hosts of one switch, on a fabric of this size";
            let remedy = "one SL for all hosts of a pair of switches is what can be taken";
            return Err(DumpError::new(file, 1, what.to_owned(), remedy));
        }
        let mut of_offset = vec![vec![UNSET; hosts * hosts]; offsets];
        for Placed { from, to, offset, sl, line } in ports.placed(dump) {
            let level = &mut of_offset[offset][from * hosts + to];
            if *level != UNSET && *level != sl {
                let (from, to) = (ports.name(from), ports.name(to));
                let what = format!("SL {sl} from {from} to {to}, SL {level} above");
                return Err(DumpError::new(file, line, what, "a path has one SL; drop a line"));
            }
            *level = sl;
        }
        let source: Vec<usize> =
            ports.hosts.iter().map(|host| ports.first[&host.end.node]).collect();
        let mut same = vec![Vec::new(); hosts];
        source.iter().enumerate().for_each(|(host, first)| same[*first].push(host));
        Ok(Matrix { hosts, of_offset, source, same })
    }

    fn at(&self, offset: usize, from: usize, to: usize) -> u8 {
        self.of_offset[offset][self.source[from] * self.hosts + to]
    }

    /// The same, SL 0 where the file has none, and `own` where it has none from a host to itself.
    fn filled(&self, offset: usize, from: usize, to: usize, own: u8) -> u8 {
        match self.at(offset, from, to) {
            UNSET if self.source[from] == self.source[to] => own,
            UNSET => 0,
            level => level,
        }
    }

    /// By host port: a sum over all that it sends to and receives from, whatever it has with itself
    /// left out. Sums of hosts that are treated alike differ in that alone.
    fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0u64; self.hosts];
        for offset in 0..self.of_offset.len() {
            for from in 0..self.hosts {
                for to in (0..self.hosts).filter(|to| !self.is_open(offset, from, *to)) {
                    let level = self.filled(offset, from, to, 0);
                    let sent = mixed([offset, to, usize::from(level), 0]);
                    let received = mixed([offset, from, usize::from(level), 1]);
                    sums[from] = sums[from].wrapping_add(sent);
                    sums[to] = sums[to].wrapping_add(received);
                }
            }
        }
        sums
    }

    /// Whether the file leaves out what a host has with itself, as it may.
    fn is_open(&self, offset: usize, from: usize, to: usize) -> bool {
        self.source[from] == self.source[to] && self.at(offset, from, to) == UNSET
    }

    /// What is missing in the sum of a host port if it has this SL with itself.
    fn open_part(&self, host: usize, own: u8) -> u64 {
        let mut part = 0u64;
        for offset in 0..self.of_offset.len() {
            for other in &self.same[self.source[host]] {
                let level = usize::from(own);
                if self.is_open(offset, host, *other) {
                    part = part.wrapping_add(mixed([offset, *other, level, 0]));
                }
                if self.is_open(offset, *other, host) {
                    part = part.wrapping_add(mixed([offset, *other, level, 1]));
                }
            }
        }
        part
    }

    /// Whether two host ports are treated alike, having this SL with themselves.
    fn alike(&self, a: usize, b: usize, own: u8) -> bool {
        let level = |offset, from, to| self.filled(offset, from, to, own);
        (0..self.of_offset.len()).all(|offset| {
            (0..self.hosts).all(|other| {
                level(offset, a, other) == level(offset, b, other)
                    && level(offset, other, a) == level(offset, other, b)
            })
        })
    }

    /// The group of every host port, in the order of their first ports, and their number; none if
    /// there are more than [`GROUPS_MAX`].
    fn groups(&self) -> Option<(Vec<u16>, usize)> {
        let sums = self.sums();
        let mut of_host: Vec<Option<u16>> = vec![None; self.hosts];
        let mut with: Vec<BTreeMap<u64, Vec<usize>>> = Vec::new();
        for own in 0..ServiceLevel::COUNT {
            let mut alike: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for (host, sum) in sums.iter().enumerate() {
                let sum = sum.wrapping_add(self.open_part(host, own as u8));
                alike.entry(sum).or_default().push(host);
            }
            with.push(alike);
        }
        let mut count = 0;
        for host in 0..self.hosts {
            if of_host[host].is_some() {
                continue;
            }
            if count == GROUPS_MAX {
                return None;
            }
            // With whom it is most alike: the SL it has with itself is open.
            let mates = |own: &usize| -> Vec<usize> {
                let sum = sums[host].wrapping_add(self.open_part(host, *own as u8));
                let others = with[*own].get(&sum).into_iter().flatten().copied();
                let free = others.filter(|other| *other != host && of_host[*other].is_none());
                free.filter(|other| self.alike(host, *other, *own as u8)).collect()
            };
            let best = (0..ServiceLevel::COUNT).map(|own| mates(&own)).max_by_key(Vec::len);
            for member in best.into_iter().flatten().chain([host]) {
                of_host[member] = Some(count as u16);
            }
            count += 1;
        }
        Some((of_host.into_iter().flatten().collect(), count))
    }
}

/// A number that tells these apart from others, as good as surely.
fn mixed(words: [usize; 4]) -> u64 {
    let mut mixed = 0u64;
    for word in words {
        // The steps of SplitMix64 (Steele, Lea, Flood 2014).
        mixed = mixed.wrapping_add(word as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    mixed
}

/// Groups of hosts that are treated alike, with the SLs between them.
pub(super) fn groups(
    dump: &LevelDump,
    ports: &Ports<'_>,
    oddities: &mut Vec<Oddity>,
    file: &str,
) -> Result<HostGroups, DumpError> {
    let matrix = Matrix::of(dump, ports, file)?;
    let Some((of_host, count)) = matrix.groups() else {
        let what = format!("more than {GROUPS_MAX} hosts that are each treated differently");
        let remedy = "give SLs that are the same for groups of hosts";
        return Err(DumpError::new(file, 1, what, remedy));
    };
    let mut holes = Tally::default();
    let level = |offset: usize| {
        let mut levels = vec![0; count * count];
        for from in 0..matrix.hosts {
            for to in 0..matrix.hosts {
                let sl = matrix.at(offset, from, to);
                if sl != UNSET {
                    levels[usize::from(of_host[from]) * count + usize::from(of_host[to])] = sl;
                } else if ports.hosts[from].end.node != ports.hosts[to].end.node {
                    holes.add(0, || format!("{} to {}", ports.name(from), ports.name(to)));
                }
            }
        }
        levels
    };
    let mut levels: Vec<Vec<u8>> = (0..matrix.of_offset.len()).map(level).collect();
    holes.tell(oddities, "pairs of hosts have no SL and are on SL 0");
    if levels.iter().all(|of| *of == levels[0]) {
        levels.truncate(1);
    }
    Ok(HostGroups::new(&ports.graph, ports.lids, (&ports.hosts, &of_host), levels))
}
