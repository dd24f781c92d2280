//! `[sim]`: a preset of delays, buffers and rates, and what differs from it.

use super::keys::{Field, Keys, nearest, word};
use crate::LabError;
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, wire};
use clearlane_sim::{
    AdapterQueueing, InputArbitration, InputQueueing, Parameters, Preset, preset, ranges,
};

/// Switches and adapters of a variant.
#[derive(Clone, Debug)]
pub struct DevicesSpec {
    /// Where the numbers come from.
    pub preset: &'static Preset,
    /// The numbers, overrides applied.
    pub parameters: Parameters,
}

const QUEUEING: &[(&str, AdapterQueueing)] = &[
    ("per-destination", AdapterQueueing::PerDestination),
    ("single-fifo", AdapterQueueing::SingleFifo),
];
const ARBITRATION: &[(&str, InputArbitration)] = &[
    ("round-robin", InputArbitration::RoundRobin),
    ("oldest-first", InputArbitration::OldestFirst),
    ("flow-fair", InputArbitration::FlowFair),
];
const INPUT_QUEUEING: &[(&str, InputQueueing)] =
    &[("fifo", InputQueueing::Fifo), ("voq", InputQueueing::Voq)];
pub(crate) const KEYS: &[&str] = &[
    "preset",
    "mtu",
    "header",
    "link_rate",
    "switch_delay",
    "cable_delay",
    "credit_delay",
    "buffer",
    "send_overhead",
    "receive_overhead",
    "dma_rate",
    "drain_rate",
    "injection_engines",
    "outstanding",
    "ack_coalescing",
    "queueing",
    "arbitration",
    "input_queueing",
    "crossbar_speedup",
];
/// Words for "no limit" or "as the fabric or transport has it".
const TRANSPORT: &str = "transport";
const CABLE: &str = "cable";
const UNLIMITED: &str = "unlimited";
const ALL: &str = "all";

/// How adapters and switches queue, and which packet is next.
fn queues(keys: &Keys<'_>, p: &mut Parameters) -> Result<(), LabError> {
    if let Some(field) = keys.optional("queueing") {
        p.queueing = field.choice(QUEUEING)?;
    }
    if let Some(field) = keys.optional("arbitration") {
        p.arbitration = field.choice(ARBITRATION)?;
    }
    if let Some(field) = keys.optional("input_queueing") {
        p.input_queueing = field.choice(INPUT_QUEUEING)?;
    }
    if let Some(field) = keys.optional("crossbar_speedup") {
        let (least, most) = ranges::CROSSBAR_SPEEDUP.into_inner();
        let number = field.number(f64::from(least) / 100.0, f64::from(most) / 100.0)?;
        p.crossbar_speedup = (number * 100.0).round() as u32;
    }
    Ok(())
}

/// `word` means nothing, everything else is read.
fn unless<T>(
    field: &Field<'_>,
    word: &str,
    read: impl Fn(&Field<'_>) -> Result<T, LabError>,
) -> Result<Option<T>, LabError> {
    if field.text().is_ok_and(|text| text == word) { Ok(None) } else { read(field).map(Some) }
}

impl DevicesSpec {
    /// Reads the table.
    pub(crate) fn read(mut keys: Keys<'_>) -> Result<Self, LabError> {
        keys.only(KEYS)?;
        let field = keys.required("preset", "\"qdr\"")?;
        let name = field.text()?;
        let Some(preset) = preset::by_name(name) else {
            let names = preset::ALL.iter().map(|preset| preset.name);
            return Err(field.error(&format!("is no preset{}", nearest(name, names))));
        };
        let mut p = (preset.parameters)();
        let rate = |f: &Field<'_>| f.within(ranges::RATE);
        if let Some(field) = keys.optional("mtu") {
            p.mtu = field.quantity(Bytes(0), Bytes(4096))?.0 as u32;
            if !wire::MTUS.contains(&p.mtu) {
                return Err(field.error("is none of 256 B, 512 B, 1 KiB, 2 KiB, 4 KiB"));
            }
        }
        if let Some(field) = keys.optional("header") {
            p.header = unless(&field, TRANSPORT, |f| f.within(ranges::HEADER))?.map(|b| b.0 as u32);
        }
        if let Some(field) = keys.optional("link_rate") {
            p.link_rate = unless(&field, CABLE, rate)?;
        }
        for (key, range, place) in [
            ("switch_delay", ranges::DELAY, &mut p.switch_delay),
            ("cable_delay", ranges::CABLE_DELAY, &mut p.cable_delay),
            ("credit_delay", ranges::DELAY, &mut p.credit_delay),
            ("send_overhead", ranges::DELAY, &mut p.send_overhead),
            ("receive_overhead", ranges::DELAY, &mut p.receive_overhead),
        ] {
            if let Some(field) = keys.optional(key) {
                *place = field.within(range)?;
            }
        }
        if let Some(field) = keys.optional("buffer") {
            p.buffer = field.within(ranges::BUFFER)?;
        }
        for (key, place) in [("dma_rate", &mut p.dma_rate), ("drain_rate", &mut p.drain_rate)] {
            if let Some(field) = keys.optional(key) {
                *place = unless(&field, UNLIMITED, rate)?;
            }
        }
        if let Some(field) = keys.optional("injection_engines") {
            let count = |f: &Field<'_>| f.count(ranges::INJECTION_ENGINES);
            p.injection_engines = unless(&field, ALL, count)?;
        }
        if let Some(field) = keys.optional("outstanding") {
            p.outstanding = field.count(ranges::OUTSTANDING)?;
        }
        if let Some(field) = keys.optional("ack_coalescing") {
            p.ack_coalescing = field.count(ranges::OUTSTANDING)?;
            if p.ack_coalescing > p.outstanding {
                let most = p.outstanding;
                return Err(field.error(&format!("is more than the {most} packets outstanding")));
            }
        }
        queues(&keys, &mut p)?;
        Ok(DevicesSpec { preset, parameters: p })
    }

    /// Every parameter as (key, value of a file).
    fn values(p: &Parameters) -> Vec<(&'static str, toml::Value)> {
        let or = |value: Option<String>, none: &str| value.unwrap_or(none.to_owned()).into();
        let rate = |rate: Option<BitsPerSecond>| rate.map(exact_rate);
        let engines = match p.injection_engines {
            Some(count) => i64::from(count).into(),
            None => ALL.into(),
        };
        vec![
            ("mtu", exact_size(Bytes(p.mtu.into())).into()),
            ("header", or(p.header.map(|h| format!("{h} B")), TRANSPORT)),
            ("link_rate", or(rate(p.link_rate), CABLE)),
            ("switch_delay", exact_time(p.switch_delay).into()),
            ("cable_delay", exact_time(p.cable_delay).into()),
            ("credit_delay", exact_time(p.credit_delay).into()),
            ("buffer", exact_size(p.buffer).into()),
            ("send_overhead", exact_time(p.send_overhead).into()),
            ("receive_overhead", exact_time(p.receive_overhead).into()),
            ("dma_rate", or(rate(p.dma_rate), UNLIMITED)),
            ("drain_rate", or(rate(p.drain_rate), UNLIMITED)),
            ("injection_engines", engines),
            ("outstanding", i64::from(p.outstanding).into()),
            ("ack_coalescing", i64::from(p.ack_coalescing).into()),
            ("queueing", word(QUEUEING, &p.queueing)),
            ("arbitration", word(ARBITRATION, &p.arbitration)),
            ("input_queueing", word(INPUT_QUEUEING, &p.input_queueing)),
            ("crossbar_speedup", (f64::from(p.crossbar_speedup) / 100.0).into()),
        ]
    }

    /// Every parameter of a preset as an experiment writes it.
    pub(crate) fn of_preset(preset: &Preset) -> Vec<(&'static str, String)> {
        let values = Self::values(&(preset.parameters)());
        values.into_iter().map(|(key, value)| (key, plain(&value))).collect()
    }

    /// The table that reads back as this, every number spelt out.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("preset".into(), self.preset.name.into());
        table.extend(Self::values(&self.parameters).into_iter().map(|(k, v)| (k.to_owned(), v)));
        table
    }

    /// Every parameter with its value and where that comes from.
    pub(crate) fn tagged(&self) -> Vec<(&'static str, toml::Value, String)> {
        let theirs = Self::values(&(self.preset.parameters)());
        let tag = |((name, value), (_, default)): ((&'static str, toml::Value), _)| {
            let source = match value == default {
                false => format!("set by the experiment; the preset has {default}"),
                true => {
                    let sources = self.preset.sources.iter();
                    let found = sources.filter(|(known, _)| *known == name).map(|(_, s)| *s).next();
                    found.unwrap_or("assumed: as the cables have it").to_owned()
                }
            };
            (name, value, source)
        };
        Self::values(&self.parameters).into_iter().zip(theirs).map(tag).collect()
    }

    /// What differs from the preset, as `buffer 4224 B (preset 64 KiB)`.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let (ours, theirs) =
            (Self::values(&self.parameters), Self::values(&(self.preset.parameters)()));
        let pairs = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours.1 != theirs.1);
        pairs.map(|(a, b)| format!("{} {} (preset {})", a.0, plain(&a.1), plain(&b.1))).collect()
    }
}

/// A value without the quotes of TOML.
pub(super) fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A time in the largest unit that says it exactly.
pub(crate) fn exact_time(time: Picoseconds) -> String {
    let units = [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000)];
    for (unit, scale) in units {
        if time.0 > 0 && time.0.is_multiple_of(scale) {
            return format!("{} {unit}", time.0 / scale);
        }
    }
    format!("{} ps", time.0)
}

/// A size in the largest binary unit that says it exactly.
pub(crate) fn exact_size(size: Bytes) -> String {
    for (unit, scale) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if size.0 > 0 && size.0.is_multiple_of(scale) {
            return format!("{} {unit}", size.0 / scale);
        }
    }
    format!("{} B", size.0)
}

/// A rate exactly: in Gb/s with all decimals it has.
pub(super) fn exact_rate(rate: BitsPerSecond) -> String {
    let (whole, rest) = (rate.0 / 1_000_000_000, rate.0 % 1_000_000_000);
    let decimals = format!("{rest:09}");
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { format!("{whole} Gb/s") } else { format!("{whole}.{decimals} Gb/s") }
}
