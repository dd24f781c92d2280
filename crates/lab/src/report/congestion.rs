//! The congestion tree: which channel is held back by which, down to the output that is the cause.
//!
//! Definition, over one frame of time:
//!
//! * A channel (one direction of a cable) is *held back* if it had data but no credits for at least
//!   [`HELD_BACK`] of the frame: the buffer it leads into was full.
//! * That buffer empties through the outputs its packets go on to. Of those that are held back
//!   themselves, or busy for at least [`ROOT_BUSY_MIN`], the *cause* is the one with the largest
//!   share of the channel's traffic times (busy + held back): where most of it stands and waits.
//! * A *root* is where following causes ends: an output that sends without being held back, or one
//!   held back by a host that takes no more. Its tree are all channels whose causes lead to it; the
//!   *depth* of a branch counts the steps. Causes that go round are a deadlock in the making.
//!
//! A flow is held back where its channel is, if packets of its lane follow the causes from there;
//! and where it *stands behind* such packets, in the queue of a buffer on its way, on its lane.
//!
//! What goes on where is known from the tables and the payload of each flow over the run. Counters
//! of a channel do not tell its lanes apart; where the packets of a lane go does.
//!
//! Sources: trees of full buffers, Pfister and Norton, "Hot Spot Contention and Combining in
//! Multistage Interconnection Networks" (IEEE ToC 1985); the root as the output that has packets
//! and credits, Gran et al., "First experiences with congestion control in InfiniBand hardware"
//! (IPDPS 2010).

use super::paths::Path;
use crate::measure::HELD_BACK;
use std::collections::BTreeMap;

/// Share of a frame an output that is not held back must send to be a cause.
pub(super) const ROOT_BUSY_MIN: f64 = 0.5;

/// Least share of the packets in a queue that others stand behind.
const BEHIND_MIN: f64 = 0.01;
/// Steps after which causes are taken to go round.
const STEPS_MAX: usize = 256;

/// Where traffic goes on: by channel, and by queue, the packets of one lane that cross a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Onward {
    /// By channel: the channels its traffic goes on to, with their shares of it.
    next: Vec<Vec<(u32, f64)>>,
    /// Numbers of queues.
    queues: BTreeMap<(u32, u8), usize>,
    /// By queue: its channel.
    channels: Vec<u32>,
    /// By queue: those in which its packets go on, without those of next to nothing.
    behind: Vec<Vec<usize>>,
}

/// What holds a channel back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// Nothing does.
    Free,
    /// It is held back, and no output it leads to tells why.
    Unknown,
    /// The host it leads to takes no more: it is a root itself.
    Receiver,
    /// Another channel.
    Channel(u32),
}

impl Cause {
    /// As the page reads it; see `web/src/tree.ts`.
    pub(super) fn code(self, name: impl Fn(u32) -> Option<u32>) -> u32 {
        match self {
            Cause::Free => 0,
            Cause::Unknown => 1,
            Cause::Receiver => 2,
            Cause::Channel(channel) => name(channel).map_or(1, |name| name + 3),
        }
    }
}

impl Onward {
    /// Of paths and the weight of each, over so many channels.
    pub(super) fn new<'a>(channels: usize, paths: impl Iterator<Item = (&'a Path, f64)>) -> Self {
        let mut onward = Onward::default();
        let mut sums: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); channels];
        let mut lanes: Vec<BTreeMap<usize, f64>> = Vec::new();
        for (path, weight) in paths {
            let queues: Vec<usize> = path.queues().map(|queue| onward.number(queue)).collect();
            lanes.resize(onward.channels.len(), BTreeMap::new());
            for (pair, queues) in path.channels.windows(2).zip(queues.windows(2)) {
                *sums[pair[0] as usize].entry(pair[1]).or_insert(0.0) += weight;
                *lanes[queues[0]].entry(queues[1]).or_insert(0.0) += weight;
            }
        }
        let many = |sums: BTreeMap<usize, f64>| {
            let many = shares(sums).into_iter().filter(|(_, share)| *share >= BEHIND_MIN);
            many.map(|(next, _)| next).collect()
        };
        onward.behind = lanes.into_iter().map(many).collect();
        onward.next = sums.into_iter().map(shares).collect();
        onward
    }

    fn number(&mut self, queue: (u32, u8)) -> usize {
        let next = self.channels.len();
        let number = *self.queues.entry(queue).or_insert(next);
        if number == next {
            self.channels.push(queue.0);
        }
        number
    }

    /// The queues of a path; those no flow it was made of has are left out.
    pub(super) fn queues(&self, path: &Path) -> Vec<usize> {
        path.queues().filter_map(|queue| self.queues.get(&queue).copied()).collect()
    }

    /// By queue, whether it is held back: whether some of its packets follow the causes all the
    /// way. Counters of a channel do not tell lanes apart; where its packets go does.
    pub(super) fn stuck(&self, causes: &[Cause]) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; self.channels.len()];
        for queue in 0..known.len() {
            self.follow(queue, causes, &mut known, 0);
        }
        known.into_iter().map(|stuck| stuck == Some(true)).collect()
    }

    fn follow(
        &self,
        queue: usize,
        causes: &[Cause],
        known: &mut [Option<bool>],
        steps: usize,
    ) -> bool {
        if let Some(stuck) = known[queue] {
            return stuck;
        }
        let stuck = match causes[self.channels[queue] as usize] {
            Cause::Free => false,
            Cause::Unknown | Cause::Receiver => true,
            Cause::Channel(_) if steps > STEPS_MAX => true,
            Cause::Channel(next) => self.behind[queue].iter().any(|onward| {
                self.channels[*onward] == next
                    && (causes[next as usize] == Cause::Free
                        || self.follow(*onward, causes, known, steps + 1))
            }),
        };
        known[queue] = Some(stuck);
        stuck
    }

    /// The channel that holds a path back: one of its own, or one it stands behind.
    pub(super) fn holder(&self, queues: &[usize], stuck: &[bool]) -> Option<u32> {
        let held = queues.iter().find_map(|queue| {
            let behind = || self.behind[*queue].iter().copied().find(|onward| stuck[*onward]);
            if stuck[*queue] { Some(*queue) } else { behind() }
        });
        held.map(|queue| self.channels[queue])
    }

    /// What holds each channel back, of the shares of a frame it was busy and waited.
    pub(super) fn causes(&self, busy: &[f64], wait: &[f64]) -> Vec<Cause> {
        let held = |channel: usize| wait[channel] >= HELD_BACK;
        let cause = |(channel, onward): (usize, &Vec<(u32, f64)>)| {
            if !held(channel) {
                return Cause::Free;
            }
            if onward.is_empty() {
                return Cause::Receiver;
            }
            let pressure = |(next, share): &(u32, f64)| {
                let next = *next as usize;
                let counts = held(next) || busy[next] >= ROOT_BUSY_MIN;
                counts.then(|| share * (busy[next] + wait[next]))
            };
            let mut best: Option<(u32, f64)> = None;
            for next in onward {
                // The first of equals, so that the order of channels decides.
                if let Some(pressure) = pressure(next)
                    && best.is_none_or(|(_, most)| pressure > most)
                {
                    best = Some((next.0, pressure));
                }
            }
            best.map_or(Cause::Unknown, |(next, _)| Cause::Channel(next))
        };
        self.next.iter().enumerate().map(cause).collect()
    }
}

/// Sums as shares of all of them.
fn shares<K>(sums: BTreeMap<K, f64>) -> Vec<(K, f64)> {
    let all: f64 = sums.values().sum();
    sums.into_iter().map(|(key, sum)| (key, sum / all)).collect()
}

/// By channel, the root of the tree it is a branch or the root of; nothing where it is free, where
/// causes go round and where they are not known.
pub(super) fn roots(causes: &[Cause]) -> Vec<Option<u32>> {
    let root = |channel: usize| {
        let mut at = channel;
        for _ in 0..causes.len() {
            match causes[at] {
                Cause::Channel(next) => at = next as usize,
                Cause::Receiver => return Some(at as u32),
                Cause::Unknown => return None,
                Cause::Free => return (at != channel).then_some(at as u32),
            }
        }
        None
    };
    let mut roots: Vec<Option<u32>> = (0..causes.len()).map(root).collect();
    for channel in 0..roots.len() {
        if let Some(root) = roots[channel] {
            roots[root as usize] = Some(root);
        }
    }
    roots
}

/// By channel, the steps to the root: 0 for the root itself; nothing for what no
/// root holds back.
pub(super) fn depths(causes: &[Cause], roots: &[Option<u32>]) -> Vec<Option<usize>> {
    let steps = |channel: usize| {
        let root = roots[channel]? as usize;
        let (mut at, mut steps) = (channel, 0);
        while at != root {
            let Cause::Channel(next) = causes[at] else { return None };
            (at, steps) = (next as usize, steps + 1);
        }
        Some(steps)
    };
    (0..causes.len()).map(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two senders (0, 1) share an uplink (2); one goes on by 3 to a hot receiver (4), the other
    /// by 5 to somebody else (6).
    fn onward() -> Onward {
        let (hot, victim) = (path(&[0, 2, 3, 4], 0), path(&[1, 2, 5, 6], 0));
        Onward::new(7, [(&hot, 3.0), (&victim, 1.0)].into_iter())
    }

    fn path(channels: &[u32], lane: u8) -> Path {
        Path { channels: channels.to_vec(), lanes: vec![lane; channels.len()] }
    }

    #[test]
    fn branches_lead_to_the_output_that_is_full() {
        let busy = [0.3, 0.1, 0.5, 0.7, 1.0, 0.2, 0.2];
        let wait = [0.7, 0.5, 0.5, 0.3, 0.0, 0.0, 0.0];
        let causes = onward().causes(&busy, &wait);
        let [two, three, four] = [2, 3, 4].map(Cause::Channel);
        assert_eq!(causes, [two, two, three, four, Cause::Free, Cause::Free, Cause::Free]);
        let four = Some(4);
        assert_eq!(roots(&causes), [four, four, four, four, four, None, None]);
        let steps = depths(&causes, &roots(&causes));
        assert_eq!(steps, [Some(3), Some(3), Some(2), Some(1), Some(0), None, None]);
    }

    #[test]
    fn an_output_that_is_hardly_used_is_no_cause() {
        let busy = [0.3, 0.1, 0.5, 0.4, 0.4, 0.2, 0.2];
        let wait = [0.7, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0];
        let causes = onward().causes(&busy, &wait);
        assert_eq!(causes[0], Cause::Channel(2));
        assert_eq!(causes[2], Cause::Unknown);
        assert_eq!(roots(&causes), [None; 7]);
    }

    #[test]
    fn a_slow_receiver_is_the_root() {
        let busy = [0.5, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0];
        let wait = [0.5, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0];
        let causes = onward().causes(&busy, &wait);
        assert_eq!(causes[4], Cause::Receiver);
        assert_eq!(roots(&causes)[0], Some(4));
    }

    #[test]
    fn who_stands_behind_the_hot_packets_is_held_back_on_their_lane_only() {
        // Only the last switch before the receiver is full: 2 sends freely into its queue.
        let causes = [0, 0, 0, 1, 0, 0, 0].map(|held| match held {
            0 => Cause::Free,
            _ => Cause::Channel(4),
        });
        let (hot, victim) = (path(&[0, 2, 3, 4], 0), path(&[1, 2, 5, 6], 0));
        let lanes = [path(&[1, 2, 5, 6], 1), path(&[1, 2, 3], 1)];
        let weighed = [(&hot, 3.0), (&victim, 1.0), (&lanes[0], 1.0), (&lanes[1], 1.0)];
        let onward = Onward::new(7, weighed.into_iter());
        let stuck = onward.stuck(&causes);
        let holder = |path: &Path| onward.holder(&onward.queues(path), &stuck);
        assert_eq!(holder(&hot), Some(3));
        assert_eq!(holder(&victim), Some(3));
        // On lane 1 nobody goes on to the hot receiver, not even who crosses 3.
        assert_eq!(lanes.each_ref().map(holder), [None, None]);
    }

    #[test]
    fn a_circle_has_no_root() {
        let ring = path(&[0, 1, 2, 0], 0);
        let causes = Onward::new(3, [(&ring, 1.0)].into_iter()).causes(&[0.0; 3], &[1.0; 3]);
        assert_eq!(causes, [1, 2, 0].map(Cause::Channel));
        assert_eq!(roots(&causes), [None; 3]);
    }
}
