//! What each sender of a group gets: where many send, the sum can be level while some starve, or
//! while shares still move from one to another.

use super::warm_up::{batch_means, is_level};
use std::ops::Range;

/// A sender starves that is delivered at most this part of what the senders of its group are
/// delivered in the mean, each relative to what it offers.
const STARVED: f64 = 0.1;

/// Of a sender that offers fewer messages it is not said that it starves: of a Poisson number of 20
/// in the mean a tenth or less come once in two million times.
const STARVED_MESSAGES_MIN: f64 = 20.0;

/// Of a sender that offers fewer messages it is not said that it changes: ten batches of them are
/// too uneven.
const CHANGING_MESSAGES_MIN: f64 = 100.0;

/// How far the halves of what a single sender is delivered may lie apart: its messages come one by
/// one.
const DRIFT_MAX: f64 = 0.5;

/// How often at most a steady series is taken for one that changes: two tests, each of which errs
/// once in a hundred times where the change is half of the mean. Of 20,000 series of 100 messages,
/// Poisson in ten batches, 0.6 % were.
const CHANCE: f64 = 0.02;

/// A sender of a group.
pub(super) struct Sender<'a> {
    /// Delivered over offered bytes in the measured part.
    pub(super) share: f64,
    /// Messages it offers while it sends in the measured part, in the mean; unequal ones count as
    /// so many equal ones.
    pub(super) messages: f64,
    /// By flow, what is delivered by slice.
    pub(super) flows: Vec<&'a [u64]>,
}

/// How many of them starve.
pub(super) fn starved(senders: &[Sender<'_>]) -> usize {
    let mean = senders.iter().map(|sender| sender.share).sum::<f64>() / senders.len().max(1) as f64;
    let starves = |sender: &&Sender<'_>| {
        sender.messages >= STARVED_MESSAGES_MIN && sender.share <= STARVED * mean
    };
    senders.iter().filter(starves).count()
}

/// How many of them still gained or lost over these slices, if that is more than chance explains.
/// `share` is the part that the slices are of the time in which they send.
pub(super) fn changing(senders: &[Sender<'_>], slices: &Range<usize>, share: f64) -> usize {
    let told: Vec<&Sender<'_>> =
        senders.iter().filter(|sender| sender.messages * share >= CHANGING_MESSAGES_MIN).collect();
    let changes = |sender: &&&Sender<'_>| {
        let at =
            |index: usize| -> u64 { sender.flows.iter().filter_map(|flow| flow.get(index)).sum() };
        let series: Vec<f64> = slices.clone().map(|index| at(index) as f64).collect();
        !is_level(&batch_means(&series), DRIFT_MAX)
    };
    let count = told.iter().filter(changes).count();
    let by_chance = CHANCE * told.len() as f64;
    // Three standard deviations of a binomial count that is rarely anything.
    if count as f64 > by_chance + 3.0 * by_chance.sqrt() { count } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;

    fn sender(share: f64, messages: f64) -> Sender<'static> {
        Sender { share, messages, flows: Vec::new() }
    }

    fn of(flows: Vec<&[u64]>) -> Sender<'_> {
        Sender { share: 0.5, messages: 1e3, flows }
    }

    #[test]
    fn who_gets_a_tenth_of_the_others_starves_and_equals_do_not() {
        let mut all: Vec<Sender<'_>> = (0..9).map(|_| sender(1.0, 100.0)).collect();
        all.push(sender(0.05, 100.0));
        assert_eq!(starved(&all), 1);
        all.push(sender(0.0, 19.0));
        assert_eq!(starved(&all), 1, "nothing is said of who offers next to nothing");
        // Sixteen senders to one host: a sixteenth each is a fair share.
        let incast: Vec<Sender<'_>> = (0..16).map(|_| sender(1.0 / 16.0, 1e3)).collect();
        assert_eq!(starved(&incast), 0);
        assert_eq!(starved(&[sender(0.0, 1e3)]), 1, "who is delivered nothing at all");
    }

    #[test]
    fn two_that_change_places_are_seen_behind_a_level_sum() {
        let mut stream = Stream::new(1, "noise", 0);
        let mut noisy = |mean: u64| mean - mean / 20 + stream.below(mean / 10);
        let up: Vec<u64> = (0..100).map(|i| noisy(1_000 + 30 * i)).collect();
        let down: Vec<u64> = (0..100).map(|i| noisy(4_000 - 30 * i)).collect();
        let level: Vec<u64> = (0..100).map(|_| noisy(2_500)).collect();
        let slices = 0..100;
        assert_eq!(changing(&[of(vec![&up]), of(vec![&down])], &slices, 1.0), 2);
        assert_eq!(changing(&[of(vec![&level]), of(vec![&up, &down])], &slices, 1.0), 0);
        let few = Sender { messages: 150.0, ..of(vec![&up]) };
        assert_eq!(changing(&[few], &slices, 0.5), 0, "75 messages tell nothing");
    }

    #[test]
    fn noise_is_no_change_however_many_senders_there_are() {
        for count in [1, 16, 600] {
            let mut stream = Stream::new(7, "noise", count);
            let mut series = || -> Vec<u64> { (0..100).map(|_| stream.below(5) * 4096).collect() };
            let all: Vec<Vec<u64>> = (0..count).map(|_| series()).collect();
            let senders: Vec<Sender<'_>> = all
                .iter()
                .map(|one| Sender { share: 1.0, messages: 200.0, flows: vec![one] })
                .collect();
            assert_eq!(changing(&senders, &(0..100), 1.0), 0, "{count}");
        }
    }
}
