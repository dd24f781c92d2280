//! SLs of paths that differ between hosts of the same two switches: hosts that are treated alike
//! become a group.

use super::{LevelDump, Placed, Ports, UNSET};
use crate::HostGroups;
use crate::formats::{DumpError, Oddity, Tally};
use crate::path_sl::GROUPS_MAX;

/// Most SLs that are held: a file of them all has some 25 bytes each.
const LEVELS_MAX: usize = 1 << 28;

/// The SL from host port to host port, source-major, by LID offset.
struct Matrix {
    hosts: usize,
    of_offset: Vec<Vec<u8>>,
    /// By host port: the one whose lines are its as well.
    source: Vec<usize>,
}

fn agree(a: u8, b: u8) -> bool {
    a == b || a == UNSET || b == UNSET
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
        let source = ports.hosts.iter().map(|host| ports.first[&host.end.node]).collect();
        Ok(Matrix { hosts, of_offset, source })
    }

    fn at(&self, offset: usize, from: usize, to: usize) -> u8 {
        self.of_offset[offset][self.source[from] * self.hosts + to]
    }

    /// Whether two hosts are treated alike by all others, and by each other.
    fn alike(&self, a: usize, b: usize) -> bool {
        (0..self.of_offset.len()).all(|offset| {
            let to = |other| agree(self.at(offset, a, other), self.at(offset, b, other));
            let from = |other| agree(self.at(offset, other, a), self.at(offset, other, b));
            agree(self.at(offset, a, b), self.at(offset, b, a))
                && (0..self.hosts).all(|other| to(other) && from(other))
        })
    }
}

/// Groups of hosts that are treated alike, with the SLs between them.
pub(super) fn groups(
    dump: &LevelDump,
    ports: &Ports<'_>,
    oddities: &mut Vec<Oddity>,
    file: &str,
) -> Result<HostGroups, DumpError> {
    let matrix = Matrix::of(dump, ports, file)?;
    let mut first: Vec<usize> = Vec::new();
    let mut of_host = Vec::with_capacity(matrix.hosts);
    for host in 0..matrix.hosts {
        let known = first.iter().position(|first| matrix.alike(*first, host));
        let group = known.unwrap_or_else(|| {
            first.push(host);
            first.len() - 1
        });
        of_host.push(group as u16);
    }
    let count = first.len();
    if count > GROUPS_MAX {
        let what = format!("{count} hosts that are each treated differently");
        let remedy = "give SLs that are the same for groups of hosts";
        return Err(DumpError::new(file, 1, what, remedy));
    }
    let mut holes = Tally::default();
    let level = |offset: usize| {
        let mut levels = vec![UNSET; count * count];
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
        levels.iter_mut().filter(|level| **level == UNSET).for_each(|level| *level = 0);
        levels
    };
    let mut levels: Vec<Vec<u8>> = (0..matrix.of_offset.len()).map(level).collect();
    holes.tell(oddities, "pairs of hosts have no SL and are taken as others alike, or on SL 0");
    if levels.iter().all(|of| *of == levels[0]) {
        levels.truncate(1);
    }
    Ok(HostGroups::new(&ports.graph, ports.lids, (&ports.hosts, &of_host), levels))
}
