//! `[run]`: how long, from when on it counts, and how often.

use super::document::Value;
use super::keys::{Field, word};
use crate::LabError;
use clearlane_ib::Picoseconds;

/// When measuring begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmUp {
    /// Detected in the series of delivered throughput (MSER-5).
    Auto,
    /// At a given time.
    Until(Picoseconds),
}

/// Length, warm-up and seeds of every run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Simulated time of a run.
    pub duration: Picoseconds,
    /// When measuring begins.
    pub warm_up: WarmUp,
    /// How many seeds, 1 to 1000.
    pub seeds: u32,
    /// The first seed; the others follow.
    pub seed: u64,
    /// Slices of the time series, 20 to 2000. A run that ends with its programs has more than
    /// half as many, unless it is shorter than they are narrow.
    pub slices: u32,
    /// What ends a run.
    pub ends: Ends,
    /// What is simulated.
    pub mode: Mode,
}

/// What is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Packets, with buffers, credits and lanes.
    Packets,
    /// Messages as flows at max-min fair rates: bounds for scans that packets cannot afford.
    Flow,
}

const MODES: &[(&str, Mode)] = &[("packets", Mode::Packets), ("flow", Mode::Flow)];

/// What ends a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// Its duration.
    Duration,
    /// The end of all programs, or its duration if that comes first.
    Programs,
}

const ENDS: &[(&str, Ends)] = &[("duration", Ends::Duration), ("programs", Ends::Programs)];

/// The narrowest slice of a run that ends with its programs.
const SLICE_LEAST: Picoseconds = Picoseconds(100_000);

/// The largest first seed: a TOML integer that has room for all that follow.
pub(crate) const SEED_MAX: u64 = (i64::MAX as u64) - 1000;
/// The most seeds of an experiment.
pub(crate) const SEEDS_MAX: u32 = 1000;

/// The keys of the table.
pub(crate) const KEYS: &[&str] =
    &["duration", "warm_up", "seeds", "seed", "slices", "ends", "mode"];

impl Plan {
    /// Reads the table.
    pub(crate) fn read(field: &Field<'_>) -> Result<Self, LabError> {
        let keys = field.keys(KEYS)?;
        let field = keys.required("duration", "\"2 ms\"")?;
        let duration = field.quantity(Picoseconds(1_000_000), Picoseconds::MAX_RUN)?;
        let warm_up = match keys.optional("warm_up") {
            None => WarmUp::Auto,
            Some(field) if matches!(&field.node.value, Value::Text(text) if text == "auto") => {
                WarmUp::Auto
            }
            Some(field) => {
                let until = field.quantity(Picoseconds(0), Picoseconds::MAX_RUN)?;
                if until >= duration {
                    return Err(field.error("leaves nothing of the run to measure; lower it"));
                }
                WarmUp::Until(until)
            }
        };
        let number = |key, least, most, default| {
            let field = keys.optional(key);
            field.map_or(Ok(default), |field| field.integer(least, most))
        };
        let plan = Plan {
            duration,
            warm_up,
            seeds: number("seeds", 1, u64::from(SEEDS_MAX), 1)? as u32,
            seed: number("seed", 0, SEED_MAX, 1)?,
            slices: number("slices", 20, 2000, 100)? as u32,
            ends: keys.optional("ends").map_or(Ok(Ends::Duration), |field| field.choice(ENDS))?,
            mode: keys.optional("mode").map_or(Ok(Mode::Packets), |field| field.choice(MODES))?,
        };
        Ok(plan)
    }

    /// The seeds in order.
    pub fn all_seeds(&self) -> impl Iterator<Item = u64> + use<> {
        self.seed..self.seed + u64::from(self.seeds)
    }

    /// Length of a slice as a run begins: the last may be shorter than the others by less than the
    /// number of them. Of a run that ends with its programs it doubles with the length of the run.
    pub fn slice(&self) -> Picoseconds {
        let even = Picoseconds(self.duration.0.div_ceil(u64::from(self.slices)).max(1));
        match self.ends {
            Ends::Duration => even,
            Ends::Programs => even.min(SLICE_LEAST),
        }
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let warm_up = match self.warm_up {
            WarmUp::Auto => "auto".to_owned(),
            WarmUp::Until(time) => time.exact(),
        };
        let mut table = toml::Table::new();
        table.insert("duration".into(), self.duration.exact().into());
        table.insert("warm_up".into(), warm_up.into());
        table.insert("seeds".into(), i64::from(self.seeds).into());
        table.insert("seed".into(), (self.seed as i64).into());
        table.insert("slices".into(), i64::from(self.slices).into());
        table.insert("ends".into(), word(ENDS, &self.ends));
        table.insert("mode".into(), word(MODES, &self.mode));
        table
    }
}
