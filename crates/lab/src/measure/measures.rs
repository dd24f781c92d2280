//! Measures: what a row of `[[published]]` asks of the results. A closed list; no text is
//! evaluated.

use super::{Estimate, Figures, Timed, timed};
use crate::result::{RunResult, SeedResult, VariantResult};
use clearlane_ib::{Picoseconds, wire};
use clearlane_workload::{Class, HostRef, ProgramSpec};

/// A measure's entry in the registry.
#[derive(Debug)]
pub struct Entry {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Unit; empty for a pure number.
    pub unit: &'static str,
    /// Parameters besides `kind`.
    pub parameters: &'static str,
}

const SCOPE: &str = "group = \"…\" or class = \"hot\" | \"victim\" | \"background\"; default all";

macro_rules! quantities {
    ($($variant:ident, $name:literal, $unit:literal, $parameters:expr, $summary:literal;)*) => {
        /// A figure of one run.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Quantity {
            $(#[doc = $summary] $variant,)*
        }

        impl Quantity {
            /// The quantity of that name.
            pub fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Quantity::$variant),)*
                    _ => None,
                }
            }

            /// Its entry.
            pub fn entry(self) -> &'static Entry {
                match self {
                    $(Quantity::$variant => {
                        const ENTRY: Entry = Entry {
                            name: $name, summary: $summary, unit: $unit, parameters: $parameters,
                        };
                        &ENTRY
                    })*
                }
            }
        }

        /// All measures.
        pub const ALL: &[Entry] = &[
            $(Entry { name: $name, summary: $summary, unit: $unit, parameters: $parameters },)*
            FLOW_SHARE, SATURATION, RATIO, SPREAD,
            timed::BECNS, timed::SPAN_LOAD, timed::PEAK_LOAD, timed::TIME_TO_RELIEF,
            timed::FIRST_PATH_OPEN, timed::LAST_PATH_OPEN, timed::PATHS_OPEN,
            timed::OSCILLATION_PERIOD, timed::OSCILLATION_AMPLITUDE,
        ];
    };
}

quantities! {
    OfferedLoad, "offered-load", "", SCOPE,
        "posted bytes, headers included, over the rate of the senders' links";
    DeliveredLoad, "delivered-load", "", SCOPE,
        "delivered bytes, headers included, over the rate of the senders' links";
    AcceptedLoad, "accepted-load", "", SCOPE,
        "delivered payload over the rate of the senders' links";
    AcceptedGbps, "accepted-gbps", "Gb/s", SCOPE, "delivered payload";
    Served, "served", "", SCOPE, "delivered over posted bytes";
    LatencyMean, "latency-mean", "us", SCOPE,
        "post of a message to its last byte, mean of those that arrived: who is starved \
         counts little";
    LatencyP50, "latency-p50", "us", SCOPE,
        "post of a message to its last byte, median of those that arrived: who is starved \
         counts little";
    LatencyP99, "latency-p99", "us", SCOPE,
        "post of a message to its last byte, 99th percentile of those that arrived: who is \
         starved counts little";
    CompletionTime, "completion-time", "us", SCOPE,
        "from the beginning of the run until the last rank of the programs has ended";
    OperationTime, "operation-time", "us", SCOPE,
        "completion time of a program over its operations one after another: half a round of a \
         ping-pong, one of several allreduces; MPI benchmarks report it";
    Jain, "jain", "", SCOPE, "Jain's fairness index over the senders, 1 for equal shares";
    Slowdown, "slowdown", "", "none",
        "victims' payload without the hot flows over their payload with them; if all victims are \
         programs, their completion time with the hot flows over that without";
    WorstLoad, "worst-load", "", "none", "busiest output of a switch, share of time";
    HeldBack, "held-back", "", "none",
        "largest share of time a switch output had data and no credits (PortXmitWait)";
    OutputsHeldBack, "outputs-held-back", "", "none",
        "switch outputs that had data and no credits for a tenth of the time or more";
    NotificationOverhead, "notification-overhead", "", "none",
        "bytes of CNPs over all bytes that switches sent in the run";
    Deadlocks, "deadlocks", "", "none", "share of the seeds that end in a deadlock";
}

const FLOW_SHARE: Entry = Entry {
    name: "flow-share",
    summary: "share of one flow in all the payload its destination receives",
    unit: "",
    parameters: "from = host, to = host: names or ranks",
};
const SATURATION: Entry = Entry {
    name: "saturation",
    summary: "largest delivered load over the variants, which offer more and more",
    unit: "",
    parameters: "variants = [\"…\"], default all; group or class, default all",
};
const RATIO: Entry = Entry {
    name: "ratio",
    summary: "a measure of the row's variant over the same of another variant, seed by seed",
    unit: "",
    parameters: "of = { kind = … }, over = \"the other variant\"",
};
const SPREAD: Entry = Entry {
    name: "spread",
    summary: "how far variants are apart in a measure, seed by seed: the largest over the \
              smallest, less 1",
    unit: "",
    parameters: "of = { kind = … }, variants = [\"…\"], default all",
};

/// An output that waits for credits for this share of the time or more is held back.
pub(crate) const HELD_BACK: f64 = 0.1;

/// Whose figures are meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything.
    All,
    /// One class.
    Class(Class),
    /// One flow group, by name.
    Group(String),
}

/// What a row of `[[published]]` asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Measure {
    /// A figure of a run.
    Value {
        /// Which.
        quantity: Quantity,
        /// Whose.
        scope: Scope,
    },
    /// A flow's share in what its destination receives.
    FlowShare {
        /// Source.
        from: HostRef,
        /// Destination.
        to: HostRef,
    },
    /// The largest delivered load over variants.
    Saturation {
        /// Whose.
        scope: Scope,
        /// Which variants; all if empty.
        variants: Vec<String>,
    },
    /// A ratio of two variants.
    Ratio {
        /// Of which measure.
        of: Box<Measure>,
        /// The variant below the line.
        over: String,
    },
    /// How far variants are apart.
    Spread {
        /// In which measure.
        of: Box<Measure>,
        /// Which variants; all if empty.
        variants: Vec<String>,
    },
    /// Something over time.
    Timed(Timed),
}

impl Quantity {
    /// Whether it is measured per group and class.
    pub fn is_scoped(self) -> bool {
        self.entry().parameters == SCOPE
    }
}

impl Measure {
    /// Its unit; empty for a pure number.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::Value { quantity, .. } => quantity.entry().unit,
            Measure::Timed(timed) => timed.entry().unit,
            _ => "",
        }
    }

    /// The variants it names itself.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &str> {
        let named: Vec<&str> = match self {
            Measure::Saturation { variants, .. } => variants.iter().map(String::as_str).collect(),
            Measure::Ratio { of, over } => of.variants().chain([over.as_str()]).collect(),
            Measure::Spread { variants, .. } => variants.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        named.into_iter()
    }

    /// The flow group it names.
    pub(crate) fn group(&self) -> Option<&str> {
        match self {
            Measure::Value { scope: Scope::Group(group), .. }
            | Measure::Saturation { scope: Scope::Group(group), .. } => Some(group),
            Measure::Ratio { of, .. } | Measure::Spread { of, .. } => of.group(),
            _ => None,
        }
    }

    /// The hosts it names.
    pub(crate) fn hosts(&self) -> Vec<&HostRef> {
        match self {
            Measure::FlowShare { from, to } => vec![from, to],
            Measure::Timed(timed) => timed.hosts(),
            Measure::Ratio { of, .. } | Measure::Spread { of, .. } => of.hosts(),
            _ => Vec::new(),
        }
    }

    /// What it measures over time.
    pub(crate) fn timed(&self) -> Option<&Timed> {
        match self {
            Measure::Timed(timed) => Some(timed),
            Measure::Ratio { of, .. } | Measure::Spread { of, .. } => of.timed(),
            _ => None,
        }
    }

    /// What the results say; nothing if no run has it.
    pub fn evaluate(&self, result: &RunResult, variant: &VariantResult) -> Option<Estimate> {
        match self {
            Measure::Saturation { scope, variants } => {
                let load =
                    Measure::Value { quantity: Quantity::DeliveredLoad, scope: scope.clone() };
                let wanted = result
                    .variants
                    .iter()
                    .filter(|variant| variants.is_empty() || variants.contains(&variant.name));
                let loads = wanted.filter_map(|variant| load.evaluate(result, variant));
                loads.max_by(|a, b| a.mean.total_cmp(&b.mean))
            }
            Measure::Ratio { of, over } => {
                let below = result.variants.iter().find(|variant| variant.name == *over)?;
                let ratio = |above: &SeedResult| {
                    let same = below.runs.iter().find(|run| run.seed == above.seed)?;
                    let (above, below) = (of.of_run(variant, above)?, of.of_run(below, same)?);
                    Some(above / below).filter(|ratio| below != 0.0 && !ratio.is_nan())
                };
                let settled = of.is_settled(variant) && of.is_settled(below);
                Some(Estimate::over(variant.runs.iter().map(ratio))?.with_converged(settled))
            }
            Measure::Spread { of, variants } => {
                let named = |variant: &&VariantResult| {
                    variants.is_empty() || variants.contains(&variant.name)
                };
                let named: Vec<&VariantResult> = result.variants.iter().filter(named).collect();
                let spread = |run: &SeedResult| {
                    let of_seed = |variant: &&VariantResult| {
                        let same = variant.runs.iter().find(|same| same.seed == run.seed)?;
                        of.of_run(variant, same)
                    };
                    let values = named.iter().map(of_seed).collect::<Option<Vec<f64>>>()?;
                    let least = values.iter().copied().reduce(f64::min)?;
                    let most = values.iter().copied().reduce(f64::max)?;
                    Some(most / least - 1.0).filter(|spread| spread.is_finite())
                };
                let settled = named.iter().all(|variant| of.is_settled(variant));
                let runs = named.first()?.runs.iter();
                Some(Estimate::over(runs.map(spread))?.with_converged(settled))
            }
            _ => {
                let estimate =
                    Estimate::over(variant.runs.iter().map(|run| self.of_run(variant, run)))?;
                Some(estimate.with_converged(self.is_settled(variant)))
            }
        }
    }

    /// Whether every run that has the figure had settled in it, and, of the end of programs, every
    /// run that ended has it.
    fn is_settled(&self, variant: &VariantResult) -> bool {
        let settled = |run: &SeedResult| match self {
            Measure::Value { quantity, scope } => is_settled(*quantity, scope, variant, run),
            // Of a span, or of what moves anyway: no steady state is claimed.
            Measure::Timed(_) => true,
            _ => run.figures.all.throughput_converged,
        };
        let whether_deadlocked =
            matches!(self, Measure::Value { quantity: Quantity::Deadlocks, .. });
        let ended = |run: &SeedResult| !run.interrupted && !run.is_deadlock();
        // Seeds with which a program had not ended are not left out of its mean unsaid.
        let of_all = self.is_of_programs();
        let runs = variant.runs.iter();
        let mut runs = runs.map(|run| (run, self.of_run(variant, run).is_some()));
        runs.all(|(run, has)| match (has, whether_deadlocked) {
            (false, _) => !of_all || !ended(run),
            (true, true) => !run.interrupted,
            (true, false) => ended(run) && settled(run),
        })
    }

    /// Whether it is of the end of programs.
    fn is_of_programs(&self) -> bool {
        use Quantity::{CompletionTime, OperationTime};
        matches!(self, Measure::Value { quantity: CompletionTime | OperationTime, .. })
    }

    fn of_run(&self, variant: &VariantResult, run: &SeedResult) -> Option<f64> {
        match self {
            Measure::Value { quantity, scope } => value(*quantity, scope, variant, run),
            Measure::FlowShare { from, to } => {
                let ranks = variant.prepared.hosts.ranks();
                let (from, to) = (ranks.resolve(from).ok()?, ranks.resolve(to).ok()?);
                if run.figures.flows_dropped {
                    return None;
                }
                let into = run.figures.flows.iter().filter(|flow| flow.destination == to);
                let (mut own, mut all) = (0u64, 0u64);
                for flow in into {
                    all += flow.payload_bytes;
                    own += if flow.source == from { flow.payload_bytes } else { 0 };
                }
                (all > 0).then(|| own as f64 / all as f64)
            }
            Measure::Timed(timed) => {
                run.timed.iter().find(|(known, _)| known == timed).and_then(|(_, value)| *value)
            }
            Measure::Saturation { .. } | Measure::Ratio { .. } | Measure::Spread { .. } => None,
        }
    }
}

fn value(
    quantity: Quantity,
    scope: &Scope,
    variant: &VariantResult,
    run: &SeedResult,
) -> Option<f64> {
    let of_whole_run = matches!(
        quantity,
        Quantity::NotificationOverhead
            | Quantity::Deadlocks
            | Quantity::CompletionTime
            | Quantity::OperationTime
    );
    if run.figures.measured.is_empty() && !of_whole_run {
        // Stopped in its warm-up: a zero would be no measurement.
        return None;
    }
    let figures = scoped(scope, variant, run);
    match quantity {
        Quantity::OfferedLoad => Some(figures?.offered_load),
        Quantity::DeliveredLoad => Some(figures?.delivered_load),
        Quantity::AcceptedLoad => Some(figures?.accepted_load),
        Quantity::AcceptedGbps => Some(figures?.accepted_gbps),
        Quantity::LatencyMean => figures?.latency_mean_us,
        Quantity::LatencyP50 => figures?.latency_p50_us,
        Quantity::LatencyP99 => figures?.latency_p99_us,
        Quantity::CompletionTime => completion(scope, variant, run),
        Quantity::OperationTime => operation(scope, variant, run),
        Quantity::Jain => figures?.jain,
        Quantity::Served => Some(figures?)
            .filter(|f| f.offered_load > 0.0)
            .map(|figures| figures.delivered_load / figures.offered_load),
        Quantity::Slowdown => run.slowdown,
        Quantity::OutputsHeldBack => {
            let waits = variant.switch_channels(run).filter(|channel| channel.wait >= HELD_BACK);
            Some(waits.count() as f64)
        }
        Quantity::NotificationOverhead => {
            // PortXmitData leaves the VCRC out.
            let bytes = variant
                .switch_channels(run)
                .map(|c| c.port_xmit_data * 4 + c.port_xmit_pkts * u64::from(wire::VCRC));
            let cnps = run.totals.cnp_hops * u64::from(wire::CNP);
            Some(bytes.sum::<u64>()).filter(|all| *all > 0).map(|all| cnps as f64 / all as f64)
        }
        Quantity::WorstLoad => variant.switch_channels(run).map(|c| c.load).reduce(f64::max),
        Quantity::HeldBack => variant.switch_channels(run).map(|c| c.wait).reduce(f64::max),
        Quantity::Deadlocks => Some(f64::from(u8::from(run.is_deadlock()))),
    }
}

/// Whether a figure of a run that ended is one of a steady state.
fn is_settled(
    quantity: Quantity,
    scope: &Scope,
    variant: &VariantResult,
    run: &SeedResult,
) -> bool {
    let scope = match quantity {
        Quantity::Slowdown => &Scope::Class(Class::Victim),
        _ => scope,
    };
    let Some(figures) = scoped(scope, variant, run) else { return true };
    match quantity {
        // What is offered is drawn and depends on no network.
        Quantity::OfferedLoad | Quantity::Deadlocks | Quantity::NotificationOverhead => true,
        // It has an end, and is no part of what goes on and on.
        Quantity::CompletionTime | Quantity::OperationTime => true,
        Quantity::LatencyMean | Quantity::LatencyP50 | Quantity::LatencyP99 => {
            figures.latency_converged
        }
        _ => figures.throughput_converged,
    }
}

/// When the last of the programs meant had ended; nothing if one had not, or there is none.
fn completion(scope: &Scope, variant: &VariantResult, run: &SeedResult) -> Option<f64> {
    let ends: Option<Vec<_>> = programs(scope, variant, run).map(|(_, end)| end).collect();
    ends?.into_iter().max().map(|end| end.as_microseconds())
}

/// What one operation of a program took; nothing of several programs, which do not take turns.
fn operation(scope: &Scope, variant: &VariantResult, run: &SeedResult) -> Option<f64> {
    let mut programs = programs(scope, variant, run);
    let (program, end) = programs.next()?;
    let alone = programs.next().is_none();
    end.filter(|_| alone).map(|end| end.as_microseconds() / program.operations() as f64)
}

/// The programs meant, and when they had ended.
fn programs<'a>(
    scope: &'a Scope,
    variant: &'a VariantResult,
    run: &'a SeedResult,
) -> impl Iterator<Item = (&'a ProgramSpec, Option<Picoseconds>)> {
    let groups = variant.prepared.groups.iter().zip(&run.completions);
    let meant = groups.filter(|(group, _)| match scope {
        Scope::All => true,
        Scope::Class(class) => group.class == *class,
        Scope::Group(name) => group.name == *name,
    });
    meant.filter_map(|(group, end)| Some((group.program()?, *end)))
}

fn scoped<'a>(scope: &Scope, variant: &VariantResult, run: &'a SeedResult) -> Option<&'a Figures> {
    match scope {
        Scope::All => Some(&run.figures.all),
        Scope::Class(class) => {
            run.figures.classes.iter().find(|(known, _)| known == class).map(|(_, f)| f)
        }
        Scope::Group(name) => {
            let index = variant.prepared.groups.iter().position(|group| group.name == *name)?;
            run.figures.groups.get(index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        let mut names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for entry in ALL {
            if let Some(quantity) = Quantity::by_name(entry.name) {
                assert_eq!(quantity.entry().name, entry.name);
            }
        }
        assert!(Quantity::LatencyP99.is_scoped() && !Quantity::Slowdown.is_scoped());
    }
}
