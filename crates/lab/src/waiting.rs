//! Ranks of programs that wait for what will never happen, named as the experiment names them.

use crate::prepare::Prepared;
use clearlane_sim::{Doing, Stuck};
use clearlane_workload::{FlowGroup, Rank};
use serde::Serialize;
use std::fmt;

/// An operation that a rank waits for, and that will never be complete.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WaitingRank {
    /// Name of the program's traffic.
    pub program: String,
    /// Its kind.
    pub kind: &'static str,
    /// The rank in it.
    pub rank: u32,
    /// The host it is on.
    pub host: String,
    /// What it waits for: `send`, `receive`, `put`, `get`, `work`, `probe`, or `time`.
    pub operation: &'static str,
    /// The other rank; nothing for any, or where there is none.
    pub peer: Option<u32>,
    /// The host that is on.
    pub peer_host: Option<String>,
    /// The tag; nothing for any, or where there is none.
    pub tag: Option<u32>,
    /// The context; nothing where there is none.
    pub context: Option<u16>,
}

impl WaitingRank {
    /// What the ranks of a variant's programs wait for, each operation by itself.
    pub(crate) fn all(stuck: &[Stuck], prepared: &Prepared) -> Vec<Self> {
        let programs: Vec<&FlowGroup> =
            prepared.groups.iter().filter(|group| group.program().is_some()).collect();
        let one = |stuck: &Stuck| -> Vec<Self> {
            let group = stuck.job.and_then(|job| programs.get(usize::from(job))).copied();
            match stuck.waits.as_slice() {
                [] => vec![WaitingRank::of(stuck, group, None, prepared)],
                waits => waits
                    .iter()
                    .map(|doing| WaitingRank::of(stuck, group, Some(doing), prepared))
                    .collect(),
            }
        };
        stuck.iter().flat_map(one).collect()
    }

    fn of(
        stuck: &Stuck,
        group: Option<&FlowGroup>,
        doing: Option<&Doing>,
        prepared: &Prepared,
    ) -> Self {
        let ranks = prepared.hosts.ranks();
        let host = |rank: Rank| {
            let host = group.map_or(Some(rank), |g| g.senders.get(rank.0 as usize).copied());
            host.filter(|host| (host.0 as usize) < prepared.hosts.count())
                .map_or(String::new(), |host| ranks.name(host).to_owned())
        };
        let (operation, peer, tag, context) = match doing {
            None => ("time", None, None, None),
            Some(Doing::Work) => ("work", None, None, None),
            Some(Doing::Put { to }) => ("put", Some(*to), None, None),
            Some(Doing::Get { from }) => ("get", Some(*from), None, None),
            Some(Doing::Send { to, tag, context }) => {
                ("send", Some(*to), Some(*tag), Some(*context))
            }
            Some(Doing::Receive(filter)) => {
                ("receive", filter.source, filter.tag, Some(filter.context))
            }
            Some(Doing::Probe(filter)) => {
                ("probe", filter.source, filter.tag, Some(filter.context))
            }
        };
        let kind = group.and_then(FlowGroup::program).map_or("", |program| program.name());
        WaitingRank {
            program: group.map_or(String::new(), |group| group.name.clone()),
            kind,
            rank: stuck.rank.0,
            host: host(stuck.rank),
            operation,
            peer: peer.map(|peer| peer.0),
            peer_host: peer.map(host),
            tag,
            context,
        }
    }
}

impl fmt::Display for WaitingRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitingRank { program, rank, host, operation, .. } = self;
        write!(f, "rank {rank} of {program} on {host} waits for ")?;
        let way = match *operation {
            "send" | "put" => "to",
            "receive" | "probe" | "get" => "from",
            // Neither has a peer, a tag or a context.
            "work" => return f.write_str("work of its own"),
            _ => return f.write_str("its time to come"),
        };
        write!(f, "a {operation}")?;
        match (self.peer, &self.peer_host) {
            (Some(peer), Some(host)) => write!(f, " {way} rank {peer} on {host}")?,
            _ => write!(f, " {way} any rank")?,
        }
        match (self.tag, self.context) {
            (Some(tag), Some(context)) => write!(f, ", tag {tag}, context {context}"),
            (None, Some(context)) => write!(f, ", any tag, context {context}"),
            _ => Ok(()),
        }
    }
}
