//! How far a long command is, on stderr: a bar for a person, a plain line now and then for a log.
//! Nothing in the first two seconds but how runs are divided, where that was asked for.

use crate::division::Asked;
use crate::terminal;
use clearlane_ib::Picoseconds;
use clearlane_lab::{Begun, Elapsed};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(2);
const REDRAWN: Duration = Duration::from_millis(200);
const LOGGED: Duration = Duration::from_secs(10);

/// Shown until dropped.
pub struct Progress {
    state: Arc<State>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    start: Instant,
    /// The work being done, and the time at which it began.
    label: Mutex<(String, Instant)>,
    /// What the command line asks for of the division of runs, and what was said of it so far.
    asked: Option<Asked>,
    said: Mutex<Vec<String>>,
    /// When the first run began.
    begun: OnceLock<Instant>,
    /// Share done in millionths; more than a million while unknown.
    millionths: AtomicU64,
    packet_hops: AtomicU64,
    /// What of both a command had done that this one goes on with: it took none of this one's time.
    earlier_millionths: AtomicU64,
    earlier_hops: AtomicU64,
    /// Of runs that end with their programs.
    elapsed: Mutex<Option<Elapsed>>,
    simulating: Mutex<Simulating>,
    /// CPU time of the process when this began.
    cpu: Duration,
}

/// Time for which at least one run was simulated.
#[derive(Default)]
struct Simulating {
    /// Runs that are, and since when at least one is: the instant, and the CPU time until then.
    runs: u32,
    since: Option<(Instant, Duration)>,
    /// Sum of the times before that, and of the CPU times.
    before: (Duration, Duration),
}

const MILLION: u64 = 1_000_000;
const BAR_LENGTH: u32 = 1000;

impl Progress {
    /// Begins to show `label`, at first without a share.
    pub fn start(label: &str) -> Self {
        Progress::of(label, None)
    }

    /// The same, and says how runs are divided once they begin.
    pub fn of_runs(label: &str, asked: Asked) -> Self {
        Progress::of(label, Some(asked))
    }

    fn of(label: &str, asked: Option<Asked>) -> Self {
        let state = Arc::new(State {
            start: now(),
            label: Mutex::new((label.to_owned(), now())),
            asked,
            said: Mutex::default(),
            begun: OnceLock::new(),
            millionths: AtomicU64::new(u64::MAX),
            packet_hops: AtomicU64::new(0),
            earlier_millionths: AtomicU64::new(0),
            earlier_hops: AtomicU64::new(0),
            elapsed: Mutex::default(),
            simulating: Mutex::default(),
            cpu: cpu_time(),
        });
        let (stop, stopped) = channel();
        let shown = Arc::clone(&state);
        // A machine that starts no thread shows nothing. What needs threads says so.
        let thread = std::thread::Builder::new().spawn(move || shown.show(&stopped)).ok();
        Progress { state, stop: Some(stop), thread }
    }

    /// What is being done now, its share not known.
    pub fn label(&self, label: &str) {
        self.state.millionths.store(u64::MAX, Ordering::Relaxed);
        let mut place = self.state.label.lock().unwrap_or_else(PoisonError::into_inner);
        *place = (label.to_owned(), now());
    }

    /// Says that runs are over and results are made of them.
    pub fn on_results(&self) {
        *self.state.elapsed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.label("making results");
    }

    /// Shows no more, and says how long it took since it began to be shown and how much of it was
    /// simulating, by the clock and in CPU time; nothing of what is done in a moment.
    pub fn end(self) {
        let (took, cpu) = (self.state.start.elapsed(), cpu_time().saturating_sub(self.state.cpu));
        let (simulating, of_cpu) = self.state.simulating().before;
        drop(self);
        if took >= QUIET {
            let [took, simulating] = [took, simulating].map(|time| time.as_secs_f64());
            let [cpu, of_cpu] = [cpu, of_cpu].map(|time| time.as_secs_f64());
            terminal::remark(&format!(
                "took {took:.1} s, {simulating:.1} s of it simulating; \
                 CPU {cpu:.1} s, {of_cpu:.1} s of it simulating"
            ));
        }
    }

    /// The share of it that is done, 0 to 1.
    pub fn done(&self, share: f64) {
        clearlane_lab::Progress::on_progress(self, share, 0);
    }
}

impl clearlane_lab::Progress for Progress {
    fn on_begin(&self, run: &Begun) {
        self.state.begun.get_or_init(now);
        let mut simulating = self.state.simulating();
        simulating.runs += 1;
        simulating.since.get_or_insert_with(|| (now(), cpu_time()));
        drop(simulating);
        let millionths = (run.earlier * MILLION as f64) as u64;
        self.state.earlier_millionths.fetch_add(millionths, Ordering::Relaxed);
        self.state.earlier_hops.fetch_add(run.earlier_hops, Ordering::Relaxed);
        let sentence = |asked: &Asked| asked.sentence(run, terminal::cores());
        let Some(sentence) = self.state.asked.as_ref().and_then(sentence) else { return };
        let mut said = self.state.said.lock().unwrap_or_else(PoisonError::into_inner);
        // Runs of one fabric are divided alike.
        if !said.contains(&sentence) {
            said.push(sentence);
        }
    }

    fn on_progress(&self, done: f64, packet_hops: u64) {
        let millionths = (done.clamp(0.0, 1.0) * MILLION as f64) as u64;
        self.state.millionths.store(millionths, Ordering::Relaxed);
        self.state.packet_hops.store(packet_hops, Ordering::Relaxed);
    }

    fn on_elapsed(&self, elapsed: Elapsed) {
        self.state.packet_hops.store(elapsed.packet_hops, Ordering::Relaxed);
        let mut place = self.state.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(elapsed);
    }

    fn on_simulated(&self) {
        let mut simulating = self.state.simulating();
        simulating.runs = simulating.runs.saturating_sub(1);
        if simulating.runs == 0
            && let Some((since, cpu)) = simulating.since.take()
        {
            simulating.before.0 += since.elapsed();
            simulating.before.1 += cpu_time().saturating_sub(cpu);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that only draws has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl State {
    fn simulating(&self) -> MutexGuard<'_, Simulating> {
        self.simulating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, stopped: &Receiver<()>) {
        let watched = terminal::is_watched();
        let (first, then) = if watched { (QUIET, REDRAWN) } else { (LOGGED, LOGGED) };
        let mut bar = None;
        let (mut due, mut shown) = (first, 0);
        while stopped.recv_timeout(REDRAWN) == Err(RecvTimeoutError::Timeout) {
            self.show_said(&mut shown, bar.as_ref().map(|(_, bar)| bar));
            let elapsed = self.start.elapsed();
            if elapsed < due {
                continue;
            }
            due = elapsed + then;
            if watched {
                self.draw(&mut bar, elapsed.as_secs_f64());
            } else {
                terminal::remark(&self.line(elapsed.as_secs_f64()));
            }
        }
        if let Some((_, bar)) = &bar {
            bar.finish_and_clear();
        }
        self.show_said(&mut shown, None);
    }

    /// What was said since the last look, after which so many had been `shown`, above the bar if
    /// there is one.
    fn show_said(&self, shown: &mut usize, bar: Option<&ProgressBar>) {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for sentence in &said[std::mem::replace(shown, said.len())..] {
            match bar {
                Some(bar) => bar.suspend(|| terminal::remark(sentence)),
                None => terminal::remark(sentence),
            }
        }
    }

    /// Label, share done and what is known of speed and remaining time.
    fn figures(&self, elapsed: f64) -> (String, Option<f64>, String) {
        let (label, since) = self.label.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let millionths = self.millionths.load(Ordering::Relaxed);
        let known = *self.elapsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known {
            return (label, None, self.elapsed(known, elapsed));
        }
        if millionths > MILLION {
            return (label, None, format!("{} so far", span(elapsed)));
        }
        let done = millionths as f64 / MILLION as f64;
        // Tables are filled and networks built before the first run begins.
        let running = self.begun.get().map_or(elapsed, |begun| begun.elapsed().as_secs_f64());
        let earlier = self.earlier_millionths.load(Ordering::Relaxed) as f64 / MILLION as f64;
        let hops = self.since(self.packet_hops.load(Ordering::Relaxed)) / running.max(0.001);
        // Tables have no packets, and what was done before them took its own time.
        let (mut message, taken) = match hops > 0.0 {
            true => (format!("{} packet-hops/s", rate(hops)), running),
            false => (format!("{} so far", span(elapsed)), since.elapsed().as_secs_f64()),
        };
        if done > earlier {
            let left = taken * (1.0 - done) / (done - earlier);
            message.push_str(&format!("  ETA {}", span(left)));
        }
        (label, Some(done), message)
    }

    /// The packet-hops that this command did.
    fn since(&self, packet_hops: u64) -> f64 {
        packet_hops.saturating_sub(self.earlier_hops.load(Ordering::Relaxed)) as f64
    }

    /// How far runs are that end with their programs: nobody knows how long that takes, so there
    /// is neither a share nor a time left.
    fn elapsed(&self, known: Elapsed, elapsed: f64) -> String {
        let Elapsed { ended, all, simulated, packet_hops } = known;
        let running = self.begun.get().map_or(elapsed, |begun| begun.elapsed().as_secs_f64());
        let hops = rate(self.since(packet_hops) / running.max(0.001));
        let simulated = short_time(simulated);
        format!("{ended} of {all} ended  {simulated} simulated  {hops} packet-hops/s")
    }

    fn draw(&self, shown: &mut Option<(bool, ProgressBar)>, elapsed: f64) {
        let (label, done, message) = self.figures(elapsed);
        let position = done.map(|done| (done * f64::from(BAR_LENGTH)) as u64);
        let with_share = position.is_some();
        if let Some((_, old)) = shown.take_if(|(had_share, _)| *had_share != with_share) {
            old.finish_and_clear();
        }
        let (_, bar) = shown.get_or_insert_with(|| (with_share, new_bar(with_share)));
        bar.set_prefix(label);
        bar.set_message(message);
        bar.set_position(position.unwrap_or(0));
        bar.tick();
    }

    fn line(&self, elapsed: f64) -> String {
        let (label, done, message) = self.figures(elapsed);
        match done {
            Some(done) => format!("{label}  {:.0} %  {message}", 100.0 * done),
            None => format!("{label}  {message}"),
        }
    }
}

/// A bar, or where no share is known the label alone.
fn new_bar(with_share: bool) -> ProgressBar {
    let template = match with_share {
        true => "{prefix}  {bar:24}  {percent:>3} %  {msg}",
        false => "{spinner} {prefix}  {msg}",
    };
    let style = ProgressStyle::with_template(template);
    // The templates are fixed; were one wrong, indicatif's own would do.
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("█▌░");
    let bar = ProgressBar::hidden().with_style(style);
    bar.set_length(u64::from(BAR_LENGTH));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}

/// 7.1 M.
fn rate(per_second: f64) -> String {
    match per_second {
        x if x >= 1e6 => format!("{:.1} M", x / 1e6),
        x if x >= 1e3 => format!("{:.0} k", x / 1e3),
        x => format!("{x:.0}"),
    }
}

/// 12.3 us, 4.5 ms, 1.2 s.
fn short_time(time: Picoseconds) -> String {
    match time.as_seconds() {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// 4 s, 12 min, 3 h 5 min.
fn span(seconds: f64) -> String {
    let seconds = seconds.round().clamp(0.0, 1e9) as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "speed and remaining time are for the person waiting"
)]
fn now() -> Instant {
    Instant::now()
}

/// CPU time that the process has had, all its threads together.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_lab::Progress as _;

    #[test]
    fn a_line_tells_share_speed_and_time_left() {
        let progress = Progress::start("running");
        assert_eq!(progress.state.line(5.0), "running  5 s so far");
        progress.on_progress(0.25, 30_000_000);
        assert_eq!(progress.state.line(10.0), "running  25 %  3.0 M packet-hops/s  ETA 30 s");
        let simulated = Picoseconds(1_500_000_000);
        let elapsed = Elapsed { ended: 3, all: 8, simulated, packet_hops: 50_000_000 };
        let programs = Progress::start("running");
        programs.on_elapsed(elapsed);
        assert_eq!(
            programs.state.line(10.0),
            "running  3 of 8 ended  1.5 ms simulated  5.0 M packet-hops/s"
        );
        let resumed = Progress::start("running");
        resumed.state.earlier_millionths.store(MILLION / 5, Ordering::Relaxed);
        resumed.state.earlier_hops.store(20_000_000, Ordering::Relaxed);
        resumed.on_progress(0.25, 30_000_000);
        assert_eq!(resumed.state.line(10.0), "running  25 %  1.0 M packet-hops/s  ETA 2 min");
        progress.label("loading links");
        assert_eq!(progress.state.line(10.0), "loading links  10 s so far");
        progress.done(0.5);
        let line = progress.state.line(10.0);
        assert!(line.starts_with("loading links  50 %") && line.contains("so far  ETA "), "{line}");
    }

    #[test]
    fn times_are_as_exact_as_anybody_cares() {
        let spans = [0.4, 119.0, 120.0, 7199.0, 11_100.0].map(span);
        assert_eq!(spans, ["0 s", "119 s", "2 min", "119 min", "3 h 5 min"]);
    }
}
