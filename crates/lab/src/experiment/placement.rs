//! Where the ranks of programs are that are not told their hosts: several programs share a fabric
//! host by host.

use super::keys::Field;
use super::traffic::{Senders, TrafficSpec};
use crate::LabError;
use clearlane_ib::random::Stream;
use clearlane_workload::{Rank, Ranks};

/// How programs take free hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// The first ones that are free.
    Packed,
    /// One host after the other, program by program.
    RoundRobin,
    /// Drawn once, by a seed apart from the run's.
    Random(u64),
}

const WORDS: [&str; 3] = ["packed", "round-robin", "random"];

/// Reads `place` with `ranks` and `seed` beside it.
pub(super) fn read(
    place: &Field<'_>,
    ranks: Option<Field<'_>>,
    seed: Option<u64>,
) -> Result<Senders, LabError> {
    let placing = match place.choice(&[(WORDS[0], 0), (WORDS[1], 1), (WORDS[2], 2)])? {
        0 => Placing::Packed,
        1 => Placing::RoundRobin,
        _ => Placing::Random(seed.unwrap_or(1)),
    };
    let ranks = ranks.map(|field| field.integer(2, 1 << 24)).transpose()?;
    Ok(Senders::Placed { placing, ranks: ranks.map(|ranks| ranks as u32) })
}

/// By group: the hosts of a program that takes free ones; nothing of all others. Free are hosts on
/// which no other program is by name. Fails if there are not enough, in words of the group.
pub(crate) fn placed(
    traffic: &[TrafficSpec],
    ranks: &Ranks,
) -> Result<Vec<Option<Vec<Rank>>>, (usize, String)> {
    let mut free = vec![true; ranks.count() as usize];
    for (number, spec) in traffic.iter().enumerate() {
        let named = !matches!(spec.senders, Senders::All | Senders::Placed { .. });
        if named && spec.job().is_some() {
            let hosts = spec.senders.ranks(ranks).map_err(|problem| (number, problem))?;
            hosts.iter().for_each(|host| free[host.0 as usize] = false);
        }
    }
    let wants = traffic.iter().enumerate().filter_map(|(number, spec)| match spec.senders {
        Senders::Placed { placing, ranks } => Some((number, placing, ranks.or(spec.ranks()))),
        _ => None,
    });
    let mut all = vec![None; traffic.len()];
    let mut in_turns: Vec<(usize, u32)> = Vec::new();
    for (number, placing, count) in wants {
        let Some(count) = count else {
            let problem = "places ranks and does not say how many; write ranks in senders";
            return Err((number, problem.to_owned()));
        };
        if placing == Placing::RoundRobin {
            in_turns.push((number, count));
            continue;
        }
        let mut hosts = hosts_left(&free);
        if let Placing::Random(seed) = placing {
            let mut stream = Stream::new(seed, "placement", number as u64);
            for last in (1..hosts.len()).rev() {
                hosts.swap(last, stream.below(last as u64 + 1) as usize);
            }
        }
        let left = hosts.len();
        hosts.truncate(count as usize);
        enough(number, count, left)?;
        hosts.iter().for_each(|host| free[host.0 as usize] = false);
        all[number] = Some(hosts);
    }
    take_turns(&in_turns, &hosts_left(&free), &mut all)?;
    Ok(all)
}

fn hosts_left(free: &[bool]) -> Vec<Rank> {
    (0..).zip(free).filter(|(_, free)| **free).map(|(host, _)| Rank(host)).collect()
}

fn enough(number: usize, wanted: u32, left: usize) -> Result<(), (usize, String)> {
    match wanted as usize <= left {
        true => Ok(()),
        false => {
            let problem = format!("places {wanted} ranks, and {left} hosts are free; lower ranks");
            Err((number, problem))
        }
    }
}

/// Gives hosts to programs in turns.
fn take_turns(
    programs: &[(usize, u32)],
    hosts: &[Rank],
    all: &mut [Option<Vec<Rank>>],
) -> Result<(), (usize, String)> {
    let mut left = hosts.iter().copied();
    let mut taken: Vec<Vec<Rank>> = vec![Vec::new(); programs.len()];
    loop {
        let mut is_over = true;
        for ((number, count), taken) in programs.iter().zip(&mut taken) {
            if taken.len() < *count as usize {
                is_over = false;
                match left.next() {
                    Some(host) => taken.push(host),
                    None => enough(*number, *count, taken.len())?,
                }
            }
        }
        if is_over {
            break;
        }
    }
    for ((number, _), hosts) in programs.iter().zip(taken) {
        all[*number] = Some(hosts);
    }
    Ok(())
}
