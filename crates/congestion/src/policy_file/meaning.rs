//! What a policy means to DCQCN, and what of it cannot be simulated.

use super::keys::{self, Kind, Role};
use super::{Block, CongestionControlPolicy, Item, PolicyError, Setting, Written};
use crate::mechanisms::dcqcn;
use crate::parameter::{Parameter, Value, Values};
use clearlane_ib::{BitsPerSecond, Bytes, KEPT_CHARS_MAX, Picoseconds, short, ticked, within};

/// Picoseconds in a microsecond.
pub(super) const US: u64 = 1_000_000;
/// Bits per second in 1 Mb/s.
pub(super) const MBPS: u64 = 1_000_000;
/// Bytes in a unit of `rpg_byte_reset`.
pub(super) const BYTE_RESET_UNIT: u64 = 64;
/// Units of alpha and of what is kept of it in 1.
pub(super) const ALPHA_UNITS: f64 = 1024.0;
/// What `rpg_gd` is where a cut is by the whole of alpha.
pub(super) const GD_OF_ALL: u64 = 10;
/// The greatest that mlxconfig takes.
pub(super) const GD_MOST: u64 = 15;
/// A byte counter that never comes to its end.
pub(super) const NO_BYTE_COUNTER: Bytes = Bytes(1 << 40);
/// A queue that no output has: nothing is marked.
const NO_QUEUE: Bytes = Bytes(1 << 30);

/// What a policy means.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// The parameters of DCQCN.
    pub values: Values,
    /// Setting by setting in the order of the file.
    pub rows: Vec<Row>,
    /// What is assumed and what cannot be simulated, in a sentence each, without a full stop.
    pub unsaid: Vec<String>,
    /// Why nobody slows down by this policy, with file and line; nothing where adapters act.
    pub off: Option<String>,
}

/// What a setting means.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its line, from 1.
    pub line: usize,
    /// The block it is in, as far as it is [short]; empty outside all.
    pub block: String,
    /// Its key, as far as it is [short].
    pub key: String,
    /// Its value as written, without the middle of a long one.
    pub written: String,
    /// The unit of the key; empty if it has none.
    pub unit: &'static str,
    /// The parameter it becomes and its value.
    pub parameter: Option<(&'static Parameter, Value)>,
    /// Why it becomes none, or what more there is to know; may be empty.
    pub note: &'static str,
}

impl CongestionControlPolicy {
    /// What it means to DCQCN. Where the file leaves a key of adapters out, it is what their
    /// firmware has. Fails on a value that cannot be simulated and none like it can.
    pub fn meaning(&self, file: &str) -> Result<Meaning, PolicyError> {
        let mut meant = Meant { file, values: firmware(), unsaid: Vec::new() };
        let adapters = meant.chosen(self, keys::CA_CONFIG, "ALL_CAS", "adapters");
        meant.adapters(adapters)?;
        let switches = meant.chosen(self, keys::SWITCH_CONFIG, "ALL_SWITCHES", "switches");
        let profile = meant.profiles(self)?;
        meant.switches(switches);
        meant.unknown(self);
        let mut rows = Vec::new();
        let used = [adapters, profile].into_iter().flatten().collect::<Vec<_>>();
        list(&self.items, "", &used, &meant.values, &mut rows);
        let off = adapters.and_then(|block| meant.off(block));
        Ok(Meaning { values: meant.values, rows, unsaid: meant.unsaid, off })
    }
}

/// The values of the preset of firmware defaults.
fn firmware() -> Values {
    let mut values = Values::default();
    let preset = dcqcn::ENTRY.presets.iter().find(|preset| preset.name == dcqcn::FIRMWARE);
    for (parameter, value) in preset.map_or(&[][..], |preset| preset.values) {
        // They are in range: a test builds every preset.
        let _ = values.set(parameter, value.clone());
    }
    values
}

/// What a key of adapters other than a flag becomes; an error says what would do.
fn value(key: &str, number: u64) -> Result<Value, String> {
    let us = || Value::Time(Picoseconds(number.saturating_mul(US)));
    let rate = || Value::Rate(BitsPerSecond(number.saturating_mul(MBPS)));
    Ok(match key {
        "rpg_byte_reset" if number == 0 => Value::Size(NO_BYTE_COUNTER),
        "rpg_byte_reset" => Value::Size(Bytes(number.saturating_mul(BYTE_RESET_UNIT))),
        "rpg_threshold" => Value::Integer(number),
        "rpg_gd" if (GD_OF_ALL..=GD_MOST).contains(&number) => {
            Value::Number(f64::powi(0.5, (number - GD_OF_ALL) as i32))
        }
        "rpg_gd" => return Err(format!("is outside {GD_OF_ALL} to {GD_MOST}")),
        "rpg_min_dec_fac" => Value::Number(number as f64 / 100.0),
        "rate_to_set_on_first_cnp" if number == 0 => Value::Rate(dcqcn::RATE_MOST),
        "dce_tcp_g" => Value::Number(1.0 - number as f64 / ALPHA_UNITS),
        "initial_alpha_value" => Value::Number(number as f64 / ALPHA_UNITS),
        "rpg_max_rate"
        | "rpg_ai_rate"
        | "rpg_hai_rate"
        | "rpg_min_rate"
        | "rate_to_set_on_first_cnp" => rate(),
        _ => us(),
    })
}

/// The parameter that a known key of a block becomes.
fn role(block: &str, key: &str) -> Option<(Role, &'static str)> {
    let known = keys::of_block(block)?.iter().find(|known| known.name == key)?;
    Some((known.role, known.unit))
}

struct Meant<'a> {
    file: &'a str,
    values: Values,
    unsaid: Vec<String>,
}

impl Meant<'_> {
    fn error(&self, line: usize, what: String, remedy: impl Into<String>) -> PolicyError {
        PolicyError::new(self.file, line, what, remedy)
    }

    fn say(&mut self, sentence: impl Into<String>) {
        self.unsaid.push(sentence.into());
    }

    /// The block of that name that is taken for all: that of the whole group, or the first.
    fn chosen<'p>(
        &mut self,
        policy: &'p CongestionControlPolicy,
        name: &'p str,
        whole: &str,
        whose: &str,
    ) -> Option<&'p Block> {
        let all: Vec<&Block> = policy.blocks(name).collect();
        let is_whole = |block: &&&Block| block.text("group").is_none_or(|group| group == whole);
        let chosen = *all.iter().find(is_whole).or(all.first())?;
        let line = chosen.place.0;
        if all.len() > 1 {
            self.say(format!(
                "{} blocks {name} give {whose} different settings; all have those of line {line}",
                all.len()
            ));
        } else if let Some(group) = chosen.text("group").filter(|group| *group != whole) {
            let group = ticked(group);
            self.say(format!("the {name} of group {group} is taken for all {whose}"));
        }
        Some(chosen)
    }

    fn adapters(&mut self, block: Option<&Block>) -> Result<(), PolicyError> {
        let Some(block) = block else {
            self.say(format!(
                "there is no {}; adapters are taken to have the defaults of their firmware",
                keys::CA_CONFIG
            ));
            return Ok(());
        };
        let mut left_out = Vec::new();
        for key in keys::OF_ADAPTERS {
            let (Role::Parameter(parameter), Kind::Number(_)) = (key.role, key.kind) else {
                continue;
            };
            match block.number(key.name) {
                None => left_out.push(key.name),
                Some(_) if std::ptr::eq(parameter, &raw const dcqcn::CLAMP_TARGET) => {}
                Some((number, line)) => {
                    let remedy = "write a value that is simulated";
                    let fault = |problem: String| {
                        self.error(line, format!("{} {number} {problem}", key.name), remedy)
                    };
                    let value = value(key.name, number).map_err(fault)?;
                    self.values.set(parameter, value).map_err(|error| {
                        let what = format!("{} {number}: {error}", key.name);
                        PolicyError::new(self.file, line, what, remedy)
                    })?;
                }
            }
        }
        self.clamp(block);
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            self.say(format!("left out and taken as the firmware has them are {names}"));
        }
        self.not_simulated(block);
        Ok(())
    }

    /// The two flags of clamping, which make one word.
    fn clamp(&mut self, block: &Block) {
        let is_set =
            |key: &str, default: bool| block.number(key).map_or(default, |(number, _)| number != 0);
        let always = is_set("enable_clamp_tgt_rate", false);
        let after_time = is_set("enable_clamp_tgt_rate_after_time_inc", true);
        let word = match (always, after_time) {
            (true, _) => dcqcn::ALWAYS,
            (false, true) => dcqcn::AFTER_RISE,
            (false, false) => dcqcn::AFTER_BYTES,
        };
        // It is one of the parameter's words.
        let _ = self.values.set(&dcqcn::CLAMP_TARGET, Value::Word(word));
    }

    /// What keeps adapters from notifying or from slowing down, if anything does: said, and the
    /// first of it with file and line.
    fn off(&mut self, block: &Block) -> Option<String> {
        let flags = [
            ("enable_notify", "destinations do not notify"),
            ("enable_react", "sources do not slow down"),
        ];
        let mut first = None;
        for (key, what) in flags {
            if let Some((_, line)) = block.number(key).filter(|(number, _)| *number == 0) {
                let sentence = format!("{key} 0: {what}, so there is no congestion control");
                first.get_or_insert_with(|| format!("{}:{line}: {sentence}", self.file));
                self.unsaid.push(sentence);
            }
        }
        first
    }

    fn not_simulated(&mut self, block: &Block) {
        let number = |key: &str| block.number(key).map(|(number, _)| number);
        if number("cnp_sl_mode").is_some_and(|mode| mode != 0) || number("cnp_sl").is_some() {
            self.say(
                "notifications on an SL of their own (cnp_sl_mode, cnp_sl) are not simulated; \
                 here they take the SL of the packets that they answer",
            );
        }
        if number("rpg_byte_reset").is_some_and(|units| units > 0) {
            self.say(
                "rpg_byte_reset is taken in units of 64 B; sources do not agree, some say bytes",
            );
        }
        if let Some(rate) = number("rate_to_set_on_first_cnp").filter(|rate| *rate > 0) {
            self.say(format!(
                "where a link has less than the {rate} Mb/s of rate_to_set_on_first_cnp, a first \
                 notification slows nobody down"
            ));
        }
        let (cnp, alpha) =
            (self.values.time(&dcqcn::CNP_INTERVAL), self.values.time(&dcqcn::ALPHA_TIMER));
        if cnp < alpha {
            self.say(
                "alpha rises at each notification here, in firmware once per dce_tcp_rtt at most; \
                 min_time_between_cnps is below that",
            );
        }
    }

    /// The profile that all mark by; nothing if there is none.
    fn profiles<'p>(
        &mut self,
        policy: &'p CongestionControlPolicy,
    ) -> Result<Option<&'p Block>, PolicyError> {
        let all: Vec<&Block> = policy.blocks(keys::PROFILES).collect();
        let lanes = self.chosen(policy, keys::VL_CONFIG, "SWITCH_PORTS", "lanes");
        let levels = self.chosen(policy, keys::SL_CONFIG, "SWITCH_PORTS", "SLs");
        let Some(first) = all.first() else {
            self.say("there are no profiles; switches mark by the defaults of kmin, kmax and pmax");
            return Ok(None);
        };
        let named = lanes.and_then(|block| block.setting("vl_profiles"));
        let sets: Vec<&Block> = match named.map(|setting| &setting.written) {
            Some(Written::Names(names)) => {
                let of = |name: &String| {
                    all.iter().copied().find(|set| set.text("name") == Some(name.as_str()))
                };
                names.iter().filter_map(of).collect()
            }
            _ => {
                if all.len() > 1 {
                    self.say("no vl_profiles names a set; all lanes have the first one");
                }
                vec![*first]
            }
        };
        let numbered = levels.and_then(|block| block.setting("sl_profiles"));
        let numbers = match numbered.map(|setting| &setting.written) {
            Some(Written::Numbers(numbers)) => numbers.clone(),
            _ => vec![1],
        };
        let set = sets.first().copied().unwrap_or(first);
        let number = numbers.first().copied().unwrap_or(1);
        let Some(profile) = nth(set, number) else {
            let line = numbered.map_or(set.place.0, |setting| setting.place.0);
            let name = ticked(set.text("name").unwrap_or_default());
            let what = format!("set {name} has no profile {number}");
            return Err(self.error(line, what, "add it, or write another number in sl_profiles"));
        };
        let marks = self.marks(profile)?;
        let mut others = sets.iter().flat_map(|set| numbers.iter().map(|number| nth(set, *number)));
        let differ = others.any(|other| match other {
            None => true,
            Some(other) => ["percent", "min", "max"]
                .iter()
                .zip(marks)
                .any(|(key, mark)| other.number(key).map(|(number, _)| number) != Some(mark)),
        });
        if differ {
            self.say(format!(
                "SLs or VLs have different profiles; here all mark by that of SL 0 and VL 0, \
                 begun in line {}",
                profile.place.0
            ));
        }
        self.say(
            "min and max of a profile are taken as bytes of the queue of an output and lane, and \
             percent as the probability of a mark at max: neither is published",
        );
        Ok(Some(profile))
    }

    /// `percent`, `min` and `max` of the profile that all mark by.
    fn marks(&mut self, profile: &Block) -> Result<[u64; 3], PolicyError> {
        let mut marks = [0; 3];
        let parameters = [&dcqcn::PMAX, &dcqcn::KMIN, &dcqcn::KMAX];
        let keys = ["percent", "min", "max"];
        for ((key, parameter), mark) in keys.into_iter().zip(parameters).zip(&mut marks) {
            let Some((number, line)) = profile.number(key) else {
                let what = format!("the profile lacks {key}");
                return Err(self.error(
                    profile.place.0,
                    what,
                    format!("write {key}: and a number"),
                ));
            };
            let value = match key {
                "percent" => Value::Number(number as f64 / 100.0),
                _ => Value::Size(Bytes(number)),
            };
            *mark = number;
            self.values.set(parameter, value).map_err(|error| {
                let what = format!("{key} {number}: {error}");
                PolicyError::new(self.file, line, what, "write a value that is simulated")
            })?;
        }
        if marks[1] > marks[2] {
            let line = profile.setting("min").map_or(profile.place.0, |setting| setting.place.0);
            let what = format!("min {} is above max, {}", marks[1], marks[2]);
            return Err(self.error(line, what, "lower it or raise max"));
        }
        Ok(marks)
    }

    fn switches(&mut self, block: Option<&Block>) {
        let Some(block) = block else {
            self.say(format!("there is no {}; switches are taken to mark", keys::SWITCH_CONFIG));
            return;
        };
        if block.number("enable").is_some_and(|(number, _)| number == 0) {
            for parameter in [&dcqcn::KMIN, &dcqcn::KMAX] {
                // It is the end of their range.
                let _ = self.values.set(parameter, Value::Size(NO_QUEUE));
            }
            self.say(
                "enable 0 keeps switches from marking: kmin and kmax are beyond every queue here",
            );
        }
    }

    /// What is kept and says nothing here.
    fn unknown(&mut self, policy: &CongestionControlPolicy) {
        let mut names: Vec<&str> = Vec::new();
        let blocks = policy.items.iter().filter_map(Item::block);
        for block in blocks {
            let unknown = |setting: &&Setting| {
                matches!(role(&block.name, &setting.key), Some((Role::Unknown, _)))
            };
            for setting in block.settings().filter(unknown) {
                if !names.contains(&setting.key.as_str()) {
                    names.push(&setting.key);
                }
            }
        }
        if !names.is_empty() {
            let names = names.join(", ");
            self.say(format!("the meaning of {names} is not published; here they do nothing"));
        }
        if policy.blocks(keys::CA_ALGO_IMPORT).next().is_some() {
            self.say(
                "programmable algorithms (ca_algo_import) are not simulated; adapters are taken to \
                 run DCQCN",
            );
        }
    }
}

/// The profile of that number in a set, from 1.
fn nth(set: &Block, number: u64) -> Option<&Block> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    set.blocks(keys::PROFILE).nth(index)
}

/// A row for each setting, blocks within included.
fn list(items: &[Item], block: &str, used: &[&Block], values: &Values, rows: &mut Vec<Row>) {
    list_of(items, block, true, used, values, rows);
}

fn list_of(
    items: &[Item],
    block: &str,
    is_used: bool,
    used: &[&Block],
    values: &Values,
    rows: &mut Vec<Row>,
) {
    for item in items {
        match item {
            Item::Verbatim(_) => {}
            Item::Block(inner) => {
                let is_used = used.iter().any(|used| std::ptr::eq(*used, inner));
                list_of(&inner.items, &inner.name, is_used, used, values, rows);
            }
            Item::Setting(setting) => rows.push(row(setting, block, is_used, values)),
        }
    }
}

fn row(setting: &Setting, block: &str, is_used: bool, values: &Values) -> Row {
    let (parameter, unit, note) = match role(block, &setting.key) {
        None => (None, "", "not known; kept as it is"),
        Some((Role::Unknown, unit)) => (None, unit, "meaning not published; kept as it is"),
        Some((Role::NotSimulated, unit)) => (None, unit, "not simulated"),
        Some((Role::Structure, unit)) => (None, unit, ""),
        Some((Role::Parameter(_), unit)) if !is_used => (None, unit, "another is taken for all"),
        Some((Role::Parameter(of), unit)) => {
            let note = match setting.key.as_str() {
                "rpg_byte_reset" => "unit assumed",
                "min" | "max" => "bytes assumed",
                _ => "",
            };
            (Some((of, values.get(of).clone())), unit, note)
        }
    };
    Row {
        line: setting.place.0,
        block: short(block),
        key: short(&setting.key),
        written: within(&setting.written.to_string(), KEPT_CHARS_MAX).into_owned(),
        unit,
        parameter,
        note,
    }
}
