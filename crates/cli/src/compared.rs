//! New tables beside those that a site has: how evenly each loads the links, and what changes.

use crate::table::{Align, Table, grouped};
use clearlane_fabric::Fabric;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{BalanceOptions, balance, credit_loop, usage};
use serde_json::{Value, json};

/// Shifts looked at: enough to tell tables apart, few enough for large fabrics.
const SHIFTS: usize = 200;
/// Bisection bandwidth differs between halvings; less than this is no difference, of 1.
const BISECTION_SEEN: f64 = 0.01;
/// The same for the mean of the flows on the worst link, relative.
const FLOWS_SEEN: f64 = 0.02;

/// Figures of one set of tables.
pub struct Figures {
    /// Flows on the worst link, mean over shifts.
    pub mean: f64,
    most: u32,
    /// Share of full bisection bandwidth, 0 to 1.
    pub bisection: f64,
    /// Data lanes.
    pub lanes: u8,
    /// Whether channels can wait for each other in a circle.
    pub has_loop: bool,
    /// Paths that do not arrive.
    pub lost: u64,
}

impl Figures {
    /// Measures tables.
    pub fn of(fabric: &Fabric, subnet: &Subnet) -> Self {
        let options = BalanceOptions { shifts: Some(SHIFTS), ..BalanceOptions::default() };
        let found = balance(fabric, subnet, &options);
        Figures {
            mean: found.shifts.mean,
            most: found.shifts.worst.as_ref().map_or(0, |worst| worst.flows),
            bisection: found.bisection.mean_share,
            lanes: subnet.sl_to_vl.lanes(),
            has_loop: !credit_loop(fabric, subnet).is_sane(),
            lost: usage(fabric, subnet).lost,
        }
    }

    /// As JSON.
    pub fn fields(&self) -> Value {
        json!({
            "worst_link_mean": self.mean,
            "worst_link_most": self.most,
            "bisection_share": self.bisection,
            "lanes": self.lanes,
            "credit_loop": self.has_loop,
            "paths_lost": self.lost,
        })
    }
}

/// Tables a site has, and those that are to take their place.
pub struct Compared {
    now: Figures,
    then: Figures,
    changed: u64,
    entries: u64,
}

impl Compared {
    /// Measures both.
    pub fn of(fabric: &Fabric, now: &Subnet, then: &Subnet) -> Self {
        let (mut changed, mut entries) = (0, 0);
        for switch in now.tables.switches() {
            for (lid, _) in now.lids.iter() {
                let (old, new) = (now.tables.port(*switch, lid), then.tables.port(*switch, lid));
                entries += u64::from(old.is_some() || new.is_some());
                changed += u64::from(old != new);
            }
        }
        let (now, then) = (Figures::of(fabric, now), Figures::of(fabric, then));
        Compared { now, then, changed, entries }
    }

    /// What is better and what is worse, in a sentence.
    pub fn verdict(&self) -> String {
        let Compared { now, then, .. } = self;
        let (mut better, mut worse) = (Vec::new(), Vec::new());
        let mut say = |is_better: bool, what: String| {
            if is_better { better.push(what) } else { worse.push(what) }
        };
        if now.lost != then.lost {
            let (then, now) = (grouped(then.lost), grouped(now.lost));
            say(self.then.lost < self.now.lost, format!("{then} paths lost instead of {now}"));
        }
        if now.has_loop != then.has_loop {
            let what = if then.has_loop { "a credit loop" } else { "no credit loop any more" };
            say(now.has_loop, what.into());
        }
        // What does not arrive loads no link: balance is compared only of whole tables.
        let is_whole = now.lost == 0 && then.lost == 0;
        if is_whole && (then.bisection - now.bisection).abs() >= BISECTION_SEEN {
            let [then, now] = [then.bisection, now.bisection].map(|share| 100.0 * share);
            let what = format!("{then:.1} % of full bisection bandwidth instead of {now:.1} %");
            say(self.then.bisection > self.now.bisection, what);
        }
        if is_whole && (then.mean - now.mean).abs() >= FLOWS_SEEN * now.mean {
            let (then, now) = (then.mean, now.mean);
            let what = format!("{then:.2} flows on the worst link in the mean instead of {now:.2}");
            say(self.then.mean < self.now.mean, what);
        }
        match (better.is_empty(), worse.is_empty()) {
            (true, true) => "no better and no worse than the tables there are".into(),
            (false, true) => format!("better: {}", better.join("; ")),
            (true, false) => format!("WORSE: {}", worse.join("; ")),
            (false, false) => format!("better: {}; WORSE: {}", better.join("; "), worse.join("; ")),
        }
    }

    /// The figures side by side.
    pub fn text(&self) -> String {
        let mut table = Table::plain(&[Align::Left, Align::Right, Align::Right]);
        let row = |label: &str, of: &dyn Fn(&Figures) -> String| {
            [label.to_owned(), of(&self.now), of(&self.then)]
        };
        table.row(["", "now", "these"]);
        table
            .row(row("flows on the worst link, mean of 200 shifts", &|f| format!("{:.2}", f.mean)));
        table.row(row("the same, most", &|f| f.most.to_string()));
        table.row(row("bisection bandwidth, %", &|f| format!("{:.1}", 100.0 * f.bisection)));
        table.row(row("lanes", &|f| f.lanes.to_string()));
        table.row(row("credit loop", &|f| if f.has_loop { "yes" } else { "none" }.into()));
        table.row(row("paths lost", &|f| grouped(f.lost)));
        let (changed, entries) = (grouped(self.changed), grouped(self.entries));
        let verdict = self.verdict();
        format!("{table}entries that change: {changed} of {entries}\nverdict: {verdict}\n")
    }

    /// The same as JSON.
    pub fn fields(&self) -> Value {
        json!({
            "now": self.now.fields(),
            "then": self.then.fields(),
            "entries": self.entries,
            "entries_changed": self.changed,
            "verdict": self.verdict(),
        })
    }
}
