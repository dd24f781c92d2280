//! A run as it goes on, on stderr: for a person a line for each flow, for a log one now and then.

use crate::progress::Progress;
use crate::terminal;
use clearlane_lab::HostPlan;
use clearlane_traffic::controller::Watch;
use clearlane_traffic::results::jain;
use clearlane_traffic::testbed::Cores;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Flows that are shown; of more, those with most.
const SHOWN_MAX: usize = 16;
/// How often the terminal is drawn anew, at most.
const DRAWN_HZ: u8 = 4;
/// Between lines of a log, s.
const LOGGED_S: f64 = 10.0;
/// How long a rate is taken over at least, s.
const RATE_S: f64 = 0.5;

/// What is shown.
pub struct Live {
    halt: Arc<AtomicBool>,
    names: Vec<String>,
    /// When each flow may send, s.
    spans: Vec<(f64, f64)>,
    duration_s: f64,
    state: Mutex<State>,
}

struct State {
    bars: Vec<ProgressBar>,
    total: Option<ProgressBar>,
    all: MultiProgress,
    /// Bytes by flow at a time, s.
    before: (f64, Vec<u64>),
    rates: Vec<f64>,
    logged_s: f64,
    collecting: Option<Progress>,
    /// Of this machine, when sending began.
    cores: Option<Cores>,
    busy: Option<f64>,
}

impl Live {
    /// Shows a run of a plan until it is dropped.
    pub fn new(plan: &HostPlan, halt: Arc<AtomicBool>) -> Self {
        // Flows of the same ends are told apart by their groups.
        let ends = |flow: &clearlane_lab::HostFlow| (flow.source.clone(), flow.destination.clone());
        let mut count = BTreeMap::new();
        plan.flows.iter().for_each(|flow| *count.entry(ends(flow)).or_insert(0) += 1);
        let name = |flow: &clearlane_lab::HostFlow| match count[&ends(flow)] {
            1 => format!("{} → {}", flow.source, flow.destination),
            _ => format!("{} → {} {}", flow.source, flow.destination, flow.group),
        };
        let names: Vec<String> = plan.flows.iter().map(name).collect();
        let span =
            |flow: &clearlane_lab::HostFlow| (flow.start.as_seconds(), flow.stop.as_seconds());
        let spans = plan.flows.iter().map(span).collect();
        let state = State {
            bars: Vec::new(),
            total: None,
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWN_HZ)),
            before: (0.0, vec![0; names.len()]),
            rates: vec![0.0; names.len()],
            logged_s: 0.0,
            collecting: None,
            cores: None,
            busy: None,
        };
        Live {
            halt,
            names,
            spans,
            duration_s: plan.duration.as_seconds(),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of the time of sending for which this machine's cores were busy.
    pub fn cores_busy(&self) -> Option<f64> {
        self.state().busy
    }

    /// Draws the flows with most.
    fn draw(&self, state: &mut State, seconds: f64) {
        let total: f64 = state.rates.iter().sum();
        // Of those that may send at this time.
        let may = |(_, (start, stop)): &(&f64, &(f64, f64))| (*start..*stop).contains(&seconds);
        let sending: Vec<f64> =
            state.rates.iter().zip(&self.spans).filter(may).map(|(rate, _)| *rate).collect();
        let fair = jain(sending.iter().copied()).filter(|_| sending.len() > 1);
        let fair = fair.map_or(String::new(), |jain| format!(", Jain {jain:.3}"));
        let line = format!(
            "{:.1} of {} s: {total:.3} Gb/s{fair}",
            seconds.min(self.duration_s),
            self.duration_s
        );
        if !terminal::is_watched() {
            if seconds - state.logged_s >= LOGGED_S {
                state.logged_s = seconds;
                terminal::remark(&line);
            }
            return;
        }
        let mut order: Vec<usize> = (0..state.rates.len()).collect();
        order.sort_by(|a, b| state.rates[*b].total_cmp(&state.rates[*a]).then(a.cmp(b)));
        let mut shown: Vec<usize> = order.into_iter().take(SHOWN_MAX).collect();
        shown.sort_unstable();
        if state.total.is_none() {
            let plain =
                ProgressStyle::with_template("{msg}").unwrap_or(ProgressStyle::default_bar());
            let bar = || state.all.add(ProgressBar::new(1000).with_style(plain.clone()));
            let total = bar();
            let row = ProgressStyle::with_template("  {prefix} {bar:24} {msg}");
            let row = row.unwrap_or(ProgressStyle::default_bar());
            let bars = shown.iter().map(|_| bar().with_style(row.clone())).collect();
            (state.total, state.bars) = (Some(total), bars);
        }
        state.total.iter().for_each(|bar| bar.set_message(line.clone()));
        let widest = shown.iter().map(|at| self.names[*at].chars().count()).max().unwrap_or(0);
        for (bar, at) in state.bars.iter().zip(shown) {
            let share = if total > 0.0 { state.rates[at] / total } else { 0.0 };
            bar.set_position((share * 1000.0) as u64);
            bar.set_prefix(format!("{:<widest$}", self.names[at]));
            bar.set_message(format!("{:.3} Gb/s {:3.0} %", state.rates[at], share * 100.0));
        }
    }
}

impl Watch for Live {
    fn phase(&self, what: &str) {
        let mut state = self.state();
        if what == "sending" {
            state.cores = Cores::now();
        }
        if what == "collecting" {
            let now = Cores::now().zip(state.cores);
            state.busy = now.and_then(|(now, then)| now.busy_since(then));
            let _ = state.all.clear();
            state.bars.iter().chain(&state.total).for_each(ProgressBar::finish_and_clear);
            state.collecting = Some(Progress::start("collecting the logs of packets"));
        }
    }

    fn received(&self, seconds: f64, bytes: &[u64]) {
        let mut state = self.state();
        let (then, before) = &state.before;
        let span = seconds - then;
        if span < RATE_S || bytes.len() != before.len() {
            return;
        }
        let rate = |(now, before): (&u64, &u64)| now.saturating_sub(*before) as f64 * 8e-9 / span;
        state.rates = bytes.iter().zip(before).map(rate).collect();
        state.before = (seconds, bytes.to_vec());
        self.draw(&mut state, seconds);
    }

    fn collected(&self, share: f64) {
        self.state().collecting.iter().for_each(|progress| progress.done(share));
    }

    fn is_stopped(&self) -> bool {
        self.halt.load(Ordering::SeqCst)
    }
}
