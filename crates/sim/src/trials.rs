//! Trials of several threads and of one: several may take longer than one.
//!
//! Threads wait for each other after every window. If windows are short, or other programs take the
//! cores, they wait longer than they serve. So stretches of a run are served by all threads and by
//! one in turn, and the faster of both serves the longer stretches. Another program may disturb a
//! trial, and the slower threads then look faster. So both are tried once more before a new result
//! counts. No result of the run depends on it.

/// Length of a trial, in nanoseconds.
const TRIAL: u64 = 4_000_000;

/// Time that the faster one serves before both are tried again, in nanoseconds. It is `FIRST_STAY`
/// after trials with a new result, and doubles after trials with the same one, up to
/// `LONGEST_STAY`.
const FIRST_STAY: u64 = 16 * TRIAL;
const LONGEST_STAY: u64 = 256 * TRIAL;

/// The threads that serve a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Servers {
    /// All threads.
    All,
    /// One thread.
    One,
}

/// The purpose of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// To measure how fast these servers are.
    Trial,
    /// To serve by the faster ones.
    Stay,
}

/// The trials of a run. See the module.
#[derive(Clone, Debug)]
pub(crate) struct Trials {
    servers: Servers,
    purpose: Purpose,
    /// Nanoseconds that the stretch has taken so far, and events served in it.
    taken: (u64, u64),
    /// Events per nanosecond in the last trial of all threads, and of one.
    rates: [f64; 2],
    /// The servers of the stays.
    faster: Servers,
    /// Whether the last trials had another result, so that both are tried again.
    doubted: bool,
    stay: u64,
}

impl Default for Trials {
    fn default() -> Self {
        Trials {
            servers: Servers::All,
            purpose: Purpose::Trial,
            taken: (0, 0),
            rates: [0.0; 2],
            faster: Servers::All,
            doubted: false,
            stay: FIRST_STAY,
        }
    }
}

impl Trials {
    /// The threads that serve now.
    pub(crate) fn servers(&self) -> Servers {
        self.servers
    }

    /// Nanoseconds that they go on serving.
    pub(crate) fn left(&self) -> u64 {
        let length = match self.purpose {
            Purpose::Trial => TRIAL,
            Purpose::Stay => self.stay,
        };
        length.saturating_sub(self.taken.0)
    }

    /// Notes that they have served so many events in so many nanoseconds. Ends the stretch if it is
    /// long enough.
    pub(crate) fn note(&mut self, nanoseconds: u64, events: u64) {
        self.taken = (self.taken.0 + nanoseconds, self.taken.1 + events);
        if self.left() > 0 {
            return;
        }
        let (nanoseconds, events) = std::mem::take(&mut self.taken);
        match (self.purpose, self.servers) {
            (Purpose::Stay, _) => (self.purpose, self.servers) = (Purpose::Trial, Servers::All),
            (Purpose::Trial, servers) => {
                self.rates[servers as usize] = events as f64 / nanoseconds.max(1) as f64;
                match servers {
                    Servers::All => self.servers = Servers::One,
                    Servers::One => self.decide(),
                }
            }
        }
    }

    /// Chooses the faster ones, or has both tried again if the result is new.
    fn decide(&mut self) {
        let [all, one] = self.rates;
        let faster = if all > one { Servers::All } else { Servers::One };
        let same = faster == self.faster;
        if !same && !self.doubted {
            (self.doubted, self.servers) = (true, Servers::All);
            return;
        }
        self.stay = if same { (2 * self.stay).min(LONGEST_STAY) } else { FIRST_STAY };
        (self.doubted, self.faster) = (false, faster);
        (self.purpose, self.servers) = (Purpose::Stay, faster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves `total` nanoseconds in pieces, with so many events a microsecond by all threads and
    /// by one. Returns the time that each of both has served.
    fn serve(trials: &mut Trials, total: u64, per_us: [u64; 2]) -> [u64; 2] {
        let (mut times, mut done) = ([0; 2], 0);
        while done < total {
            let (servers, piece) = (trials.servers() as usize, trials.left().min(700_000));
            trials.note(piece, piece / 1000 * per_us[servers]);
            times[servers] += piece;
            done += piece;
        }
        times
    }

    #[test]
    fn the_faster_of_both_serves_most_of_the_time() {
        for (per_us, most) in [([10, 7], 0), ([1, 7], 1), ([7, 7], 1)] {
            let times = serve(&mut Trials::default(), 10_000_000_000, per_us);
            assert!(times[1 - most] * 50 < times[most], "{per_us:?}: {times:?}");
            assert!(times[1 - most] >= 5 * TRIAL, "{per_us:?}: {times:?}");
        }
    }

    #[test]
    fn one_disturbed_trial_changes_nothing() {
        let mut trials = Trials::default();
        serve(&mut trials, TRIAL, [1, 7]);
        let [all, one] = serve(&mut trials, 3 * TRIAL + FIRST_STAY, [10, 7]);
        assert!(one == 2 * TRIAL && all >= TRIAL + FIRST_STAY, "{all} {one}");
    }

    #[test]
    fn what_becomes_faster_is_found_out() {
        let mut trials = Trials::default();
        serve(&mut trials, 10_000_000_000, [10, 7]);
        let [all, one] = serve(&mut trials, 10_000_000_000, [1, 7]);
        assert!(all < 2 * LONGEST_STAY && one > 7 * all, "{all} {one}");
        let [all, one] = serve(&mut trials, 10_000_000_000, [10, 7]);
        assert!(one < 2 * LONGEST_STAY && all > 7 * one, "{all} {one}");
    }
}
