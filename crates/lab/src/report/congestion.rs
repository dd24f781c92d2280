//! The congestion tree: which channel is held back by which, down to the output that is the cause.
//!
//! Definition, over one frame of time:
//!
//! * A channel (one direction of a cable) is *held back* if it had data but no credits for at least
//!   [`HELD_BACK_MIN`] of the frame: the buffer it leads into was full.
//! * That buffer empties through the outputs its packets go on to. Of those that are held back
//!   themselves, or busy for at least [`ROOT_BUSY_MIN`], the *cause* is the one with the largest
//!   share of the channel's traffic times (busy + held back): where most of it stands and waits.
//! * A *root* is where following causes ends: an output that sends without being held back, or one
//!   held back by a host that takes no more. Its tree are all channels whose causes lead to it; the
//!   *depth* of a branch counts the steps. Causes that go round are a deadlock in the making.
//!
//! What goes on where is known from the tables and the payload of each flow over the run; lanes are
//! not told apart. Sources of the picture: Pfister and Norton, "Hot Spot Contention and Combining
//! in Multistage Interconnection Networks" (IEEE ToC 1985), tree saturation; the root as the output
//! with waiters and free credits: Gran et al., "First experiences with congestion control in
//! InfiniBand hardware" (IPDPS 2010).

use std::collections::BTreeMap;

/// Share of a frame from which on waiting counts as being held back.
pub(super) const HELD_BACK_MIN: f64 = 0.1;
/// Share of a frame an output that is not held back must send to be a cause.
pub(super) const ROOT_BUSY_MIN: f64 = 0.5;

/// By channel: the channels its traffic goes on to, with their shares of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Onward(Vec<Vec<(u32, f64)>>);

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
    pub(super) fn new<'a>(channels: usize, paths: impl Iterator<Item = (&'a [u32], f64)>) -> Self {
        let mut sums: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); channels];
        for (path, weight) in paths {
            for pair in path.windows(2) {
                *sums[pair[0] as usize].entry(pair[1]).or_insert(0.0) += weight;
            }
        }
        let shares = |sums: BTreeMap<u32, f64>| {
            let all: f64 = sums.values().sum();
            sums.into_iter().map(|(next, sum)| (next, sum / all)).collect()
        };
        Onward(sums.into_iter().map(shares).collect())
    }

    /// What holds each channel back, of the shares of a frame it was busy and waited.
    pub(super) fn causes(&self, busy: &[f64], wait: &[f64]) -> Vec<Cause> {
        let held = |channel: usize| wait[channel] >= HELD_BACK_MIN;
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
        self.0.iter().enumerate().map(cause).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two senders (0, 1) share an uplink (2); one goes on by 3 to a hot receiver (4), the other
    /// by 5 to somebody else (6).
    fn onward() -> Onward {
        let hot: &[u32] = &[0, 2, 3, 4];
        let victim: &[u32] = &[1, 2, 5, 6];
        Onward::new(7, [(hot, 3.0), (victim, 1.0)].into_iter())
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
    fn a_circle_has_no_root() {
        let ring: &[u32] = &[0, 1, 2, 0];
        let causes = Onward::new(3, [(ring, 1.0)].into_iter()).causes(&[0.0; 3], &[1.0; 3]);
        assert_eq!(causes, [1, 2, 0].map(Cause::Channel));
        assert_eq!(roots(&causes), [None; 3]);
    }
}
