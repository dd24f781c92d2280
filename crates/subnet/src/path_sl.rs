//! The SL a subnet manager answers with in a PathRecord (IBA vol. 1, 15.2.5.16), and what it
//! depends on.

use crate::graph::{Host, SwitchGraph};
use crate::{Datelines, LidMap};
use clearlane_ib::{Lid, ServiceLevel};

/// The SL of every path. It depends on the [end](PathSl::end) of its source and of its destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathSl {
    /// One SL for every pair.
    Uniform(ServiceLevel),
    /// By the switches of source and destination, `rows × rows`, source-major, in the order of
    /// [`ForwardingTables::switches`](crate::ForwardingTables::switches).
    BySwitch {
        /// Number of switches.
        stride: usize,
        /// The SLs.
        levels: Vec<u8>,
    },
    /// By the groups that the two hosts are in.
    ByGroup(HostGroups),
    /// By the places of the two switches in a torus: which datelines the path crosses.
    Datelines(Datelines),
    /// By the destination's LID offset: that of offset o is the one at o mod their number; SL 0
    /// where there is none. None of them is `ByGroup` or `ByOffset`.
    ByOffset(Vec<PathSl>),
}

/// Hosts in groups, and the SL from each group to each: what a QoS policy of OpenSM can say with
/// port groups and match rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostGroups {
    /// By LID, those of all offsets included: the group of the host port. [`NO_GROUP`] elsewhere.
    of_lid: Vec<u16>,
    /// By row: the groups of the hosts at that switch, ascending.
    at_row: Vec<Vec<usize>>,
    count: usize,
    /// `count × count`, source-major: of LID offset o those at o mod their number.
    levels: Vec<Vec<u8>>,
}

/// Most groups of hosts: one for each LID would be as many tables of SLs as there are hosts.
pub(crate) const GROUPS_MAX: usize = 16_384;

const NO_GROUP: u16 = u16::MAX;

impl HostGroups {
    /// `of_host` has the group of every host port in the order of `hosts`; `levels` by LID offset
    /// the SLs between all groups, source-major. At most [`GROUPS_MAX`] groups.
    pub(crate) fn new(
        graph: &SwitchGraph,
        lids: &LidMap,
        (hosts, of_host): (&[Host], &[u16]),
        levels: Vec<Vec<u8>>,
    ) -> Self {
        let count = of_host.iter().map(|group| usize::from(*group) + 1).max().unwrap_or(0);
        Self::of(graph, lids, (hosts, of_host), count, levels)
    }

    /// The same of `count` groups, of which some may have no hosts.
    pub(crate) fn of(
        graph: &SwitchGraph,
        lids: &LidMap,
        (hosts, of_host): (&[Host], &[u16]),
        count: usize,
        levels: Vec<Vec<u8>>,
    ) -> Self {
        let mut groups = HostGroups {
            of_lid: vec![NO_GROUP; lids.table_len()],
            at_row: vec![Vec::new(); graph.rows()],
            count,
            levels,
        };
        for (host, group) in hosts.iter().zip(of_host) {
            let Some((base, lmc)) = lids.base(host.end) else { continue };
            let first = usize::from(base.value());
            let last = (first + usize::from(lmc.lids())).min(groups.of_lid.len());
            groups.of_lid[first..last].fill(*group);
            let here = &mut groups.at_row[host.row as usize];
            if let Err(place) = here.binary_search(&usize::from(*group)) {
                here.insert(place, usize::from(*group));
            }
        }
        groups
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The group of the host port that answers to a LID; nothing for LIDs of switches.
    pub fn group(&self, lid: Lid) -> Option<usize> {
        let group = self.of_lid.get(usize::from(lid.value())).copied()?;
        (group != NO_GROUP).then_some(usize::from(group))
    }

    /// The SL from a host of one group to LID offset `offset` of a host of another.
    pub fn level(&self, source: usize, destination: usize, offset: u16) -> ServiceLevel {
        let levels = self.levels.get(usize::from(offset) % self.offsets());
        let level = levels.and_then(|levels| levels.get(source * self.count + destination));
        level.and_then(|level| ServiceLevel::new(*level)).unwrap_or_default()
    }

    /// How many LID offsets have SLs of their own.
    pub fn offsets(&self) -> usize {
        self.levels.len().max(1)
    }

    /// Groups with and without hosts keep their numbers; the SLs are those of one offset.
    fn at_offset(&self, offset: u16) -> Self {
        let levels = self.levels.get(usize::from(offset) % self.offsets());
        HostGroups { levels: levels.into_iter().cloned().collect(), ..self.clone() }
    }
}

impl PathSl {
    /// The SLs that paths have at any LID offset, ascending.
    pub fn levels(&self) -> Vec<ServiceLevel> {
        let used = self.mask();
        (0..16).filter(|sl| used & (1 << sl) != 0).filter_map(ServiceLevel::new).collect()
    }

    /// Bit s: some path has SL s.
    fn mask(&self) -> u16 {
        let all = |levels: &[u8]| {
            let bit = |level: &u8| 1u16.checked_shl((*level).into()).unwrap_or(0);
            levels.iter().fold(0, |all, level| all | bit(level))
        };
        match self {
            PathSl::Uniform(sl) => 1 << sl.value(),
            PathSl::BySwitch { levels, .. } => all(levels),
            PathSl::ByGroup(groups) => groups.levels.iter().fold(0, |mask, of| mask | all(of)),
            PathSl::Datelines(datelines) => datelines.levels(),
            PathSl::ByOffset(of) => of.iter().fold(0, |all, of| all | of.mask()),
        }
    }

    /// What the SL depends on at a host port with this LID at the switch of this row: a number
    /// below [`PathSl::ends`], the host's group or the row.
    pub fn end(&self, row: usize, lid: Lid) -> usize {
        match self {
            PathSl::ByGroup(groups) => groups.group(lid).unwrap_or(0),
            _ => row,
        }
    }

    /// How many [ends](PathSl::end) there are on a fabric of so many switches.
    pub fn ends(&self, rows: usize) -> usize {
        match self {
            PathSl::ByGroup(groups) => groups.count,
            _ => rows,
        }
    }

    /// The ends that hosts at the switch of this row have.
    pub(crate) fn ends_at(&self, row: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let (groups, alone) = match self {
            PathSl::ByGroup(groups) => (groups.at_row.get(row), None),
            _ => (None, Some(row)),
        };
        groups.into_iter().flatten().copied().chain(alone)
    }

    /// The SL of a path to the base LID of a host, between two [ends](PathSl::end).
    pub fn level(&self, source: usize, destination: usize) -> ServiceLevel {
        self.level_at(source, destination, 0)
    }

    /// The SL of a path to LID offset `offset` of a host, and of the acknowledgement, which goes to
    /// the same offset of the source.
    pub fn level_at(&self, source: usize, destination: usize, offset: u16) -> ServiceLevel {
        match self {
            PathSl::Uniform(sl) => *sl,
            PathSl::BySwitch { stride, levels } => {
                ServiceLevel::new(levels[source * stride + destination]).unwrap_or_default()
            }
            PathSl::ByGroup(groups) => groups.level(source, destination, offset),
            PathSl::Datelines(datelines) => datelines.level(source, destination),
            PathSl::ByOffset(of) => of
                .get(usize::from(offset) % of.len().max(1))
                .map_or(ServiceLevel::default(), |one| one.level_at(source, destination, offset)),
        }
    }

    /// How many LID offsets are told apart: 1 where the SL is that of the two ends alone.
    pub fn offsets(&self) -> usize {
        match self {
            PathSl::ByOffset(of) => of.len().max(1),
            PathSl::ByGroup(groups) => groups.offsets(),
            _ => 1,
        }
    }

    /// The SLs of one LID offset.
    pub fn of_offset(&self, offset: u16) -> PathSl {
        match self {
            PathSl::ByOffset(of) if !of.is_empty() => of[usize::from(offset) % of.len()].clone(),
            PathSl::ByGroup(groups) => PathSl::ByGroup(groups.at_offset(offset)),
            other => other.clone(),
        }
    }
}
