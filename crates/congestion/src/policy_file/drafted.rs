//! A policy that says what DCQCN's parameters are.

use super::keys::{self, Kind, Role};
use super::meaning::{ALPHA_UNITS, BYTE_RESET_UNIT, GD_MOST, GD_OF_ALL, MBPS, NO_BYTE_COUNTER, US};
use super::{Block, CongestionControlPolicy, Item, Place, Setting, Written};
use crate::mechanisms::dcqcn;
use crate::parameter::{Parameter, ParameterError, Value, Values};

/// The set of profiles that is written.
const SET: &str = "Clearlane";

/// Numbers of a file being found for values.
struct Draft<'a> {
    values: &'a Values,
    /// What was rounded or cannot be said, in a sentence each.
    said: Vec<String>,
}

impl CongestionControlPolicy {
    /// The policy of these values of DCQCN, and what it says otherwise than they do, in a sentence
    /// each. Fails on a value that no number of the file comes near to.
    pub fn of(values: &Values) -> Result<(Self, Vec<String>), ParameterError> {
        let mut draft = Draft { values, said: Vec::new() };
        let mut adapters = vec![text("group", "ALL_CAS")];
        adapters.extend([number("enable_notify", 1), number("enable_react", 1)]);
        for key in keys::OF_ADAPTERS {
            if let Role::Parameter(parameter) = key.role {
                adapters.push(number(key.name, draft.number(key.name, parameter, key.kind)?));
            }
        }
        let marks: Vec<Item> = keys::OF_PROFILES
            .iter()
            .map(|key| match key.role {
                Role::Parameter(of) => Ok(number(key.name, draft.number(key.name, of, key.kind)?)),
                _ => Ok(number(key.name, 0)),
            })
            .collect::<Result<_, ParameterError>>()?;
        draft.say(
            "cnp_sl_mode, cnp_sl, aqs_weight, aqs_time and mode are left out: no parameter is one \
             of them, and the meaning of most is not published",
        );
        draft.say_of_interval();
        let set = vec![text("name", SET), block(keys::PROFILE, marks)];
        let switches = vec![text("group", "ALL_SWITCHES"), number("enable", 1)];
        let ports = || text("group", "SWITCH_PORTS");
        let levels = setting("sl_profiles", Written::Numbers(vec![1]));
        let lanes = setting("vl_profiles", Written::Names(vec![SET.to_owned()]));
        let items = vec![
            block(keys::CA_CONFIG, adapters),
            block(keys::SWITCH_CONFIG, switches),
            block(keys::PROFILES, set),
            block(keys::SL_CONFIG, vec![ports(), levels]),
            block(keys::VL_CONFIG, vec![ports(), lanes]),
        ];
        Ok((CongestionControlPolicy { items }, draft.said))
    }

    /// This policy with those of these values that differ from what it means, `meant`, and what is
    /// said otherwise. Everything else stays as it is. Fails as [`CongestionControlPolicy::of`].
    pub fn with(
        &self,
        meant: &Values,
        values: &Values,
    ) -> Result<(Self, Vec<String>), ParameterError> {
        let mut draft = Draft { values, said: Vec::new() };
        draft.say_of_interval();
        let mut policy = self.clone();
        for name in [keys::CA_CONFIG, keys::PROFILE] {
            for key in keys::of_block(name).unwrap_or_default() {
                let Role::Parameter(parameter) = key.role else { continue };
                if meant.get(parameter) == values.get(parameter) {
                    continue;
                }
                let new = draft.number(key.name, parameter, key.kind)?;
                match policy.items.iter_mut().map(|item| put(item, name, key.name, new)).sum() {
                    0 => draft.say(format!(
                        "{} is not written: the policy has no block {name}; add one to it",
                        parameter.name
                    )),
                    1 => {}
                    several => draft.say(format!(
                        "{} is written into all {several} blocks {name} of the policy",
                        parameter.name
                    )),
                }
            }
        }
        Ok((policy, draft.said))
    }
}

/// Gives every block of that name, at any depth, the number. Returns how many there are.
fn put(item: &mut Item, name: &str, key: &str, new: u64) -> usize {
    let Item::Block(block) = item else { return 0 };
    let within: usize = block.items.iter_mut().map(|item| put(item, name, key, new)).sum();
    if block.name != name {
        return within;
    }
    let is_key = |item: &&mut Item| item.setting().is_some_and(|setting| setting.key == key);
    match block.items.iter_mut().find(is_key) {
        Some(item) => *item = number(key, new),
        None => block.items.push(number(key, new)),
    }
    within + 1
}

fn setting(key: &str, written: Written) -> Item {
    Item::Setting(Setting { key: key.to_owned(), written, place: Place(0) })
}

fn number(key: &str, number: u64) -> Item {
    setting(key, Written::Number(number))
}

fn text(key: &str, text: &str) -> Item {
    setting(key, Written::Text(text.to_owned()))
}

fn block(name: &str, items: Vec<Item>) -> Item {
    Item::Block(Block { name: name.to_owned(), place: Place(0), items })
}

impl Draft<'_> {
    fn say(&mut self, sentence: impl Into<String>) {
        self.said.push(sentence.into());
    }

    /// What no key says of the interval between notifications.
    fn say_of_interval(&mut self) {
        if self.values.word(&dcqcn::CNP_INTERVAL_OF) != "port" {
            self.say("cnp_interval_of is qp: min_time_between_cnps is for a port as a whole");
        }
    }

    /// The number of a key for the value of its parameter.
    fn number(
        &mut self,
        key: &'static str,
        parameter: &'static Parameter,
        kind: Kind,
    ) -> Result<u64, ParameterError> {
        let Kind::Number(most) = kind else { return Ok(0) };
        match self.values.get(parameter) {
            Value::Word(word) => Ok(u64::from(match key {
                "enable_clamp_tgt_rate" => *word == dcqcn::ALWAYS,
                _ => *word != dcqcn::AFTER_BYTES,
            })),
            Value::Integer(count) => self.near(key, parameter, *count, 1, (0, most)),
            Value::Time(time) => {
                let least = u64::from(key == "rate_reduce_monitor_period");
                self.near(key, parameter, time.0, US, (least, most))
            }
            Value::Rate(rate) if key == "rate_to_set_on_first_cnp" => {
                if rate.0 == 0 {
                    self.say(
                        "rate_first 0, a first notification that cuts like any other, cannot be \
                         written: rate_to_set_on_first_cnp 0 sets the port's rate, the next one \
                         cuts",
                    );
                }
                if *rate == dcqcn::RATE_MOST {
                    Ok(0)
                } else {
                    self.rate(key, parameter, rate.0, most)
                }
            }
            Value::Rate(rate) => self.rate(key, parameter, rate.0, most),
            Value::Size(size) if key == "rpg_byte_reset" => match *size {
                NO_BYTE_COUNTER => Ok(0),
                size => self.near(key, parameter, size.0, BYTE_RESET_UNIT, (1, most)),
            },
            Value::Size(size) => self.near(key, parameter, size.0, 1, (0, most)),
            Value::Number(number) => self.real(key, parameter, *number),
            Value::Table(_) => Ok(0),
        }
    }

    fn rate(
        &mut self,
        key: &str,
        parameter: &Parameter,
        rate: u64,
        most: u64,
    ) -> Result<u64, ParameterError> {
        // 0 is the port's where a rate is a limit; below 1 Mb/s nothing else rounds to it.
        let least = u64::from(rate > 0 && matches!(key, "rpg_max_rate" | "rpg_min_rate"));
        self.near(key, parameter, rate, MBPS, (least, most))
    }

    /// A count in units, rounded to the nearest whole number in range if it is close to one.
    fn near(
        &mut self,
        key: &str,
        parameter: &Parameter,
        count: u64,
        unit: u64,
        (least, most): (u64, u64),
    ) -> Result<u64, ParameterError> {
        let units = count / unit + u64::from(count % unit >= unit.div_ceil(2) && unit > 1);
        if units > most {
            let problem =
                format!("is {units} in {key} of a policy file, which holds {most}; lower it");
            return Err(parameter.error(problem));
        }
        let written = units.max(least);
        self.rounded(key, parameter, written, written.saturating_mul(unit) == count);
        Ok(written)
    }

    /// Says that a number is not the value, if so.
    fn rounded(&mut self, key: &str, parameter: &Parameter, written: u64, is_exact: bool) {
        if !is_exact {
            let name = parameter.name;
            self.say(format!("{name} is rounded: {key} {written} is the nearest there is"));
        }
    }

    /// A real number, rounded.
    fn real(
        &mut self,
        key: &str,
        parameter: &Parameter,
        value: f64,
    ) -> Result<u64, ParameterError> {
        if key == "rpg_gd" {
            let steps = -value.log2();
            if !(0.0..=(GD_MOST - GD_OF_ALL) as f64 + 0.5).contains(&steps) {
                let problem = format!(
                    "is {value}, and rpg_gd of a policy file says powers of two from 1 to 1/{}; \
                     take one of them",
                    1 << (GD_MOST - GD_OF_ALL)
                );
                return Err(parameter.error(problem));
            }
            let steps = (steps.round() as u64).min(GD_MOST - GD_OF_ALL);
            let is_exact = f64::powi(0.5, steps as i32) == value;
            self.rounded(key, parameter, GD_OF_ALL + steps, is_exact);
            return Ok(GD_OF_ALL + steps);
        }
        let (exact, least, most) = match key {
            "dce_tcp_g" => ((1.0 - value) * ALPHA_UNITS, 0.0, ALPHA_UNITS - 1.0),
            "initial_alpha_value" => (value * ALPHA_UNITS, 0.0, ALPHA_UNITS - 1.0),
            _ => (value * 100.0, 0.0, 100.0),
        };
        let written = exact.round().clamp(least, most);
        self.rounded(key, parameter, written as u64, (written - exact).abs() < 1e-9);
        Ok(written as u64)
    }
}
