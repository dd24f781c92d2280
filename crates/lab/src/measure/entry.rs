//! What a measure is: an entry of the registry, found by its name.

use super::{Answers, Arguments, At, RecordView, RunView, Series};

/// A measure.
#[derive(Debug)]
pub struct Entry {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Unit; empty for a pure number, [`AS_WITHIN`] where the measure within decides.
    pub unit: &'static str,
    /// What it takes besides `kind`.
    pub takes: &'static [Parameter],
    /// When a value of one run is that of a steady state.
    pub settles: Settles,
    /// How it is answered.
    pub answer: Answer,
}

/// The unit of a measure that has one within.
pub const AS_WITHIN: &str = "that of the measure within";

/// How a measure is answered.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// From the figures of a run; nothing if it has none such.
    Figures(fn(&RunView<'_>, &Arguments) -> Option<f64>),
    /// From the record of a run, before it is put away: only what an experiment asks for costs
    /// anything.
    Record(fn(&RecordView<'_>, &Arguments) -> Option<f64>),
    /// From answers to the measure within it.
    Combined(fn(&Arguments, &dyn Answers, &At<'_>) -> Option<Series>),
}

/// When the value of a run is that of a steady state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settles {
    /// When the throughput of those it is about was level.
    Throughput,
    /// When their latencies were level too, and no queue grew.
    Latency,
    /// When the throughput of the victims was level.
    Victims,
    /// Always: it is drawn, of a span, or of what moves anyway.
    Always,
    /// Always, and a run that ended without it leaves the mean incomplete: it is of the end of
    /// programs.
    AtEnd,
    /// Always, deadlocked runs included.
    Ending,
}

/// What a measure takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameter {
    /// Whose figures are meant.
    Scope,
    /// When.
    Span,
    /// From which host to which.
    Flow,
    /// Which host.
    Source,
    /// Which output.
    Link,
    /// The measure within.
    Of,
    /// The variant below the line.
    Over,
    /// Several variants.
    Variants,
    /// Which points of a sweep.
    Points,
}

impl Parameter {
    /// Its keys in an experiment file.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Parameter::Scope => &["group", "class"],
            Parameter::Span => &["from", "until"],
            Parameter::Flow => &["from", "to"],
            Parameter::Source => &["source"],
            Parameter::Link => &["link"],
            Parameter::Of => &["of"],
            Parameter::Over => &["over"],
            Parameter::Variants => &["variants"],
            Parameter::Points => &["along", "within", "provided", "settled"],
        }
    }

    /// What is written, and what holds if it is not.
    pub const fn summary(self) -> &'static str {
        match self {
            Parameter::Scope => {
                "group = \"…\" or class = \"hot\" | \"victim\" | \"background\"; default all"
            }
            Parameter::Span => "from = time, default 0 ps; until = time, default the run's end",
            Parameter::Flow => "from = host, to = host: names or ranks",
            Parameter::Source => "source = host: a name or a rank",
            Parameter::Link => "link = an output of a switch, such as \"leaf01[19]\"",
            Parameter::Of => "of = { kind = … }",
            Parameter::Over => "over = \"the other variant\"",
            Parameter::Variants => "variants = [\"…\"], default all",
            Parameter::Points => {
                "along = [\"traffic.load\"], the keys of the sweep to go through, default all; \
                 within = { \"traffic.load\" = [0.1, 0.3] }, bounds of numbers in the unit of the \
                 key; settled = \"yes\" for settled points alone; provided = { measure = { kind = \
                 … }, variant = \"…\", least = number }"
            }
        }
    }
}

impl Entry {
    /// What it takes, in words; empty for nothing.
    pub fn parameters(&self) -> String {
        let all: Vec<&str> = self.takes.iter().map(|parameter| parameter.summary()).collect();
        all.join("; ")
    }

    /// Its name where names have no hyphens: columns of tables, keys of JSON.
    pub fn column(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Whether it takes this.
    pub fn takes(&self, parameter: Parameter) -> bool {
        self.takes.contains(&parameter)
    }
}
