//! `[control]`: which congestion mechanisms decide when packets are injected and which path they
//! take, with their parameters. All of it is read by the registry of mechanisms.

use super::devices::plain;
use super::document::{self, Node};
use super::fabric::text_of;
use super::keys::{Field, Keys, nearest};
use super::policy::{self, PolicyFile};
use super::reference::Key;
use crate::LabError;
use clearlane_congestion::{
    Decides, Entry, Mechanism, Parameter, ParameterError, Preset, Range, Value, Values, mechanisms,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The mechanisms of a variant: one for each decision at most.
#[derive(Clone, Debug, Default)]
pub struct ControlSpec {
    /// Decides when packets are injected.
    pub when: Option<MechanismSpec>,
    /// Decides which path they take.
    pub which: Option<MechanismSpec>,
}

/// A mechanism and its parameters.
#[derive(Clone, Debug)]
pub struct MechanismSpec {
    /// Its entry in the registry.
    pub entry: &'static Entry,
    /// The named values that others are set upon, if any.
    pub preset: Option<&'static Preset>,
    /// The policy file that others are set upon, if any; then there is no preset.
    pub policy: Option<Arc<PolicyFile>>,
    /// What the preset, the policy file or the experiment sets.
    pub values: Values,
    /// Switch ports with settings of their own.
    pub ports: Vec<PortSpec>,
}

/// A switch port with settings of its own.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// Its name: `S1[3]`, or the same with the GUID of the switch.
    pub port: String,
    /// What differs from the whole fabric.
    pub values: Values,
    /// `file:line` of the name.
    pub(crate) place: String,
}

/// The name of the table.
pub(crate) const TABLE: &str = "control";
const WHEN: &str = "when";
const WHICH: &str = "which";
const PRESET: &str = "preset";
const POLICY: &str = "policy";
const PORT: &str = "port";

/// The word for no mechanism.
fn none() -> &'static str {
    mechanisms::none::ENTRY.name
}

/// Mechanisms that do something.
fn entries() -> impl Iterator<Item = &'static Entry> {
    mechanisms::ALL.iter().copied().filter(|entry| entry.name != none())
}

/// The key of `[control]` that names mechanisms which decide this.
fn key_of(decides: Decides) -> &'static str {
    match decides {
        Decides::When => WHEN,
        Decides::Which => WHICH,
    }
}

/// What is decided, in words.
fn decision(decides: Decides) -> &'static str {
    match decides {
        Decides::When => "when packets are injected",
        Decides::Which => "which path messages take",
    }
}

/// The keys that the table of a mechanism may have.
fn keys_of(entry: &Entry) -> Vec<&'static str> {
    let parameters = entry.parameters.iter().map(|parameter| parameter.name);
    let port = (!entry.port_parameters.is_empty()).then_some(PORT);
    let policy = policy::serves(entry).then_some(POLICY);
    [PRESET].into_iter().chain(policy).chain(parameters).chain(port).collect()
}

/// The mechanisms that a table names.
pub(crate) fn named(table: &Node) -> Vec<&str> {
    let word = |key: &str| match table.get(key).map(|node| &node.value) {
        Some(document::Value::Text(name)) => Some(name.as_str()),
        _ => None,
    };
    [WHEN, WHICH].into_iter().filter_map(word).collect()
}

/// Whether the table belongs to a mechanism that none of these names.
pub(crate) fn is_unnamed(table: &str, named: &[&str]) -> bool {
    entries().any(|entry| entry.name == table) && !named.contains(&table)
}

impl ControlSpec {
    /// Reads the table.
    pub(crate) fn read(mut keys: Keys<'_>) -> Result<Self, LabError> {
        let known: Vec<&'static str> =
            [WHEN, WHICH].into_iter().chain(entries().map(|entry| entry.name)).collect();
        keys.only(&known)?;
        let spec = ControlSpec {
            when: mechanism(&keys, Decides::When)?,
            which: mechanism(&keys, Decides::Which)?,
        };
        let named: Vec<&str> = spec.all().map(|mechanism| mechanism.entry.name).collect();
        for entry in entries().filter(|entry| is_unnamed(entry.name, &named)) {
            if let Some(field) = keys.optional(entry.name) {
                let problem = format!(
                    "is the table of a mechanism that is not used; write {} = \"{}\" in [{TABLE}] \
                     or drop it",
                    key_of(entry.decides),
                    entry.name
                );
                return Err(field.error_at(field.node.at, &problem));
            }
        }
        Ok(spec)
    }

    /// The mechanisms there are.
    pub fn all(&self) -> impl Iterator<Item = &MechanismSpec> {
        self.when.iter().chain(&self.which)
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        for (key, mechanism) in [(WHEN, &self.when), (WHICH, &self.which)] {
            let name = mechanism.as_ref().map_or(none(), |mechanism| mechanism.entry.name);
            table.insert(key.into(), name.into());
        }
        for mechanism in self.all() {
            table.insert(mechanism.entry.name.into(), mechanism.resolved().into());
        }
        table
    }
}

/// What a text of mechanisms is called in errors.
const SPELT_OUT: &str = "control";

impl ControlSpec {
    /// The table with every parameter spelt out, and nothing that refers to a file or to a switch:
    /// what a host has to know.
    pub fn spelt_out(&self) -> String {
        let mut bare = self.clone();
        for spec in bare.when.iter_mut().chain(&mut bare.which) {
            (spec.preset, spec.policy) = (None, None);
            spec.ports.clear();
        }
        bare.resolved().to_string()
    }

    /// Reads such a text, whoever wrote it. Fails if it refers to a file, as nothing of that is
    /// read on anybody's behalf.
    pub fn of_spelt_out(text: &str) -> Result<Self, LabError> {
        let (document, root) = document::Document::parse(text, SPELT_OUT.as_ref())?;
        let keys = Keys::of(&document, TABLE, &root)?;
        for entry in entries() {
            let table = root.get(entry.name);
            if let Some(policy) = table.and_then(|table| table.get(POLICY)) {
                let problem = "policy: names a file, which a text of mechanisms may not";
                return Err(document.error(policy.at, problem));
            }
        }
        ControlSpec::read(keys)
    }
}

/// The mechanism that makes this decision.
fn mechanism(keys: &Keys<'_>, decides: Decides) -> Result<Option<MechanismSpec>, LabError> {
    let Some(field) = keys.optional(key_of(decides)) else { return Ok(None) };
    let name = field.text()?;
    if name == none() {
        return Ok(None);
    }
    let Some(entry) = mechanisms::by_name(name) else {
        let fits = mechanisms::ALL.iter().filter(|entry| entry.decides == decides);
        let names = fits.map(|entry| entry.name).chain([none()]);
        return Err(field.error(&format!("is no mechanism{}", nearest(name, names))));
    };
    if entry.decides != decides {
        let problem = format!(
            "decides {}, not {}; write {} = \"{name}\"",
            decision(entry.decides),
            decision(decides),
            key_of(entry.decides)
        );
        return Err(field.error(&problem));
    }
    match keys.optional(entry.name) {
        Some(field) => MechanismSpec::read(&field, entry).map(Some),
        None => {
            let (values, ports) = (Values::default(), Vec::new());
            Ok(Some(MechanismSpec { entry, preset: None, policy: None, values, ports }))
        }
    }
}

impl MechanismSpec {
    fn read(field: &Field<'_>, entry: &'static Entry) -> Result<Self, LabError> {
        let keys = field.keys(&keys_of(entry))?;
        let fault = |error: &ParameterError| field.error_at(field.node.at, &error.to_string());
        let mut values = Values::default();
        let preset = keys.optional(PRESET).map(|field| preset(&field, entry)).transpose()?;
        for (parameter, value) in preset.map_or(&[][..], |preset| preset.values) {
            values.set(parameter, value.clone()).map_err(|e| fault(&e))?;
        }
        let policy = if policy::serves(entry) { keys.optional(POLICY) } else { None };
        let policy = policy.map(|field| policy_file(&field, preset)).transpose()?;
        if let Some(policy) = &policy {
            values = policy.meaning.values.clone();
        }
        set(&keys, entry.parameters, &mut values)?;
        let at = |error: ParameterError| {
            let culprit = entry.parameters.iter().find(|p| p.name == error.parameter);
            let culprit = culprit.and_then(|parameter| keys.optional(parameter.name));
            field.error_at(culprit.map_or(field.node.at, |c| c.node.at), &error.to_string())
        };
        let mut built = (entry.build)(&values).map_err(at)?;
        let ports = match entry.port_parameters {
            [] => Vec::new(),
            own => match keys.optional(PORT) {
                None => Vec::new(),
                Some(field) => ports(&field, own, built.as_mut())?,
            },
        };
        Ok(MechanismSpec { entry, preset, policy, values, ports })
    }

    /// Every parameter as (key, value of a file).
    fn written(&self) -> impl Iterator<Item = (&'static str, toml::Value)> {
        self.entry.parameters.iter().map(|parameter| {
            let value = self.values.get(parameter);
            (parameter.name, written(value))
        })
    }

    fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        if let Some(preset) = self.preset {
            table.insert(PRESET.into(), preset.name.into());
        }
        if let Some(policy) = &self.policy {
            table.insert(POLICY.into(), text_of(&policy.path));
        }
        table.extend(self.written().map(|(key, value)| (key.to_owned(), value)));
        let port = |port: &PortSpec| {
            let mut table = toml::Table::new();
            table.insert(PORT.into(), port.port.clone().into());
            for parameter in self.set_at(port) {
                table.insert(parameter.name.into(), written(port.values.get(parameter)));
            }
            toml::Value::Table(table)
        };
        if !self.ports.is_empty() {
            table.insert(PORT.into(), self.ports.iter().map(port).collect::<Vec<_>>().into());
        }
        table
    }

    /// What a port has of its own.
    fn set_at<'a>(&'a self, port: &'a PortSpec) -> impl Iterator<Item = &'static Parameter> + 'a {
        self.entry.port_parameters.iter().copied().filter(|own| port.values.is_set(own))
    }

    /// What differs from the defaults, as `threshold 3 (default 15)`, then what ports have of their
    /// own, as `S1[3]: threshold 8`.
    pub(crate) fn differences(&self) -> Vec<String> {
        let differs =
            |parameter: &&&'static Parameter| *self.values.get(parameter) != parameter.default;
        let of_fabric = self.entry.parameters.iter().filter(differs).map(|parameter| {
            let value = value_text(self.values.get(parameter));
            format!("{} {value} (default {})", parameter.name, value_text(&parameter.default))
        });
        of_fabric.chain(self.of_ports()).collect()
    }

    /// What ports have of their own, as `S1[3]: threshold 8`.
    pub(crate) fn of_ports(&self) -> impl Iterator<Item = String> + '_ {
        self.ports.iter().map(|port| {
            let own = self.set_at(port).map(|parameter| {
                format!("{} {}", parameter.name, value_text(port.values.get(parameter)))
            });
            format!("{}: {}", port.port, own.collect::<Vec<_>>().join(", "))
        })
    }

    /// Every parameter with its value and where that comes from.
    pub(crate) fn tagged(&self) -> Vec<(String, toml::Value, String)> {
        let of = |parameter: &&'static Parameter| {
            let value = self.values.get(parameter);
            let of_preset = self.preset.and_then(|preset| {
                let mut set = preset.values.iter();
                set.find(|(of, _)| std::ptr::eq(*of, *parameter)).map(|(_, v)| (v, preset))
            });
            let of_policy = self.policy.as_ref();
            let of_policy = of_policy.map(|policy| (policy.meaning.values.get(parameter), policy));
            let source = match of_preset {
                _ if let Some((theirs, policy)) = of_policy => match theirs == value {
                    true => policy.source(parameter),
                    false => {
                        let theirs = value_text(theirs);
                        format!("set by the experiment; the policy file has {theirs}")
                    }
                },
                Some((theirs, preset)) if theirs == value => preset.reference.to_owned(),
                None if *value == parameter.default => {
                    format!("default; {}", self.entry.reference)
                }
                Some((theirs, _)) => {
                    format!("set by the experiment; the preset has {}", value_text(theirs))
                }
                None => {
                    let default = value_text(&parameter.default);
                    format!("set by the experiment; the default is {default}")
                }
            };
            (format!("{TABLE}.{}.{}", self.entry.name, parameter.name), written(value), source)
        };
        let at_port = |port: &PortSpec| -> Vec<_> {
            let row = |parameter: &'static Parameter| {
                let fabric = value_text(self.values.get(parameter));
                let name = format!("{TABLE}.{}.{PORT}", self.entry.name);
                let source = format!("set by the experiment; other ports have {fabric}");
                let value = written(port.values.get(parameter));
                (format!("{name}.{}.{}", port.port, parameter.name), value, source)
            };
            self.set_at(port).map(row).collect()
        };
        let all = self.entry.parameters.iter().map(of);
        all.chain(self.ports.iter().flat_map(at_port)).collect()
    }
}

fn preset(field: &Field<'_>, entry: &'static Entry) -> Result<&'static Preset, LabError> {
    let name = field.text()?;
    entry.presets.iter().find(|preset| preset.name == name).ok_or_else(|| {
        let names = entry.presets.iter().map(|preset| preset.name);
        let near = nearest(name, names.clone());
        let known = names.collect::<Vec<_>>().join(", ");
        let problem = match (near.is_empty(), known.is_empty()) {
            (false, _) => format!("is no preset of {}{near}", entry.name),
            (true, false) => format!("is no preset of {}, which has {known}", entry.name),
            (true, true) => format!("is no preset of {}, which has none; drop it", entry.name),
        };
        field.error(&problem)
    })
}

/// A policy file that the field names. Fails beside a preset, which it would leave nothing of.
fn policy_file(
    field: &Field<'_>,
    preset: Option<&'static Preset>,
) -> Result<Arc<PolicyFile>, LabError> {
    if let Some(preset) = preset {
        let problem = format!(
            "stands beside {PRESET} = \"{}\", and each of the two sets every parameter; write \
             only one of them",
            preset.name
        );
        return Err(field.error(&problem));
    }
    let path = field.path_of(field.text()?);
    let fault = |problem: &dyn std::fmt::Display| {
        field.error_at(field.node.at, &LabError::one_line(&problem.to_string()))
    };
    let file = PolicyFile::read(&path).map_err(|error| fault(&error))?;
    match &file.meaning.off {
        Some(off) => Err(fault(&format!("{off}; write when = \"none\""))),
        None => Ok(Arc::new(file)),
    }
}

/// `[[control.iba-cc.port]]`, tried out on a mechanism.
fn ports(
    field: &Field<'_>,
    own: &[&'static Parameter],
    built: &mut dyn Mechanism,
) -> Result<Vec<PortSpec>, LabError> {
    let known: Vec<_> = [PORT].into_iter().chain(own.iter().map(|p| p.name)).collect();
    let mut ports: Vec<PortSpec> = Vec::new();
    for item in field.items()? {
        let keys = item.keys(&known)?;
        let name = keys.required(PORT, "\"S1[3]\"")?;
        let port = name.name()?;
        if ports.iter().any(|known| known.port == port) {
            return Err(name.error("has two tables; write its settings in one"));
        }
        let mut values = Values::default();
        set(&keys, own, &mut values)?;
        if values == Values::default() {
            let names = own.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
            return Err(name.error(&format!("has no settings of its own; set one of {names}")));
        }
        let fault = |error: ParameterError| item.error_at(item.node.at, &error.to_string());
        built.override_port(0, 0, &values).map_err(fault)?;
        ports.push(PortSpec { port, values, place: name.place() });
    }
    Ok(ports)
}

/// Sets those parameters whose keys are there.
fn set(
    keys: &Keys<'_>,
    parameters: &[&'static Parameter],
    values: &mut Values,
) -> Result<(), LabError> {
    for parameter in parameters {
        if let Some(field) = keys.optional(parameter.name) {
            let value = value(&field, &parameter.range)?;
            values.set(parameter, value).map_err(|error| field.error(&error.problem))?;
        }
    }
    Ok(())
}

fn value(field: &Field<'_>, range: &Range) -> Result<Value, LabError> {
    Ok(match range {
        Range::Integer(least, most) => Value::Integer(field.integer(*least, *most)?),
        Range::Number(least, most) => Value::Number(field.number(*least, *most)?),
        Range::Time(least, most) => Value::Time(field.quantity(*least, *most)?),
        Range::Size(least, most) => Value::Size(field.quantity(*least, *most)?),
        Range::Rate(least, most) => Value::Rate(field.quantity(*least, *most)?),
        Range::Word(words) => {
            let words: Vec<(&str, &'static str)> =
                words.iter().map(|word| (*word, *word)).collect();
            Value::Word(field.choice(&words)?)
        }
        Range::Table(_) => {
            let entries = field.items()?.iter().map(entry).collect::<Result<_, _>>()?;
            Value::Table(entries)
        }
    })
}

/// `"shift:multiplier"`.
fn entry(field: &Field<'_>) -> Result<(u8, u16), LabError> {
    let pair = field.text()?.split_once(':');
    let pair = pair.and_then(|(shift, multiplier)| {
        Some((shift.trim().parse().ok()?, multiplier.trim().parse().ok()?))
    });
    pair.ok_or_else(|| field.error("is no entry shift:multiplier, such as \"0:12\""))
}

/// A value as a file writes it.
fn written(value: &Value) -> toml::Value {
    match value {
        Value::Integer(number) => i64::try_from(*number).unwrap_or(i64::MAX).into(),
        Value::Number(number) => (*number).into(),
        Value::Time(time) => time.exact().into(),
        Value::Size(size) => size.exact().into(),
        Value::Rate(rate) => rate.exact().into(),
        Value::Word(word) => (*word).into(),
        Value::Table(entries) => {
            let entry = |(shift, multiplier): &(u8, u16)| format!("{shift}:{multiplier}");
            entries.iter().map(entry).collect::<Vec<_>>().into()
        }
    }
}

/// A value as people read it.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Table(entries) if entries.is_empty() => "none".into(),
        value => plain(&written(value)),
    }
}

/// What kind of value a parameter takes.
fn kind(range: &Range) -> &'static str {
    match range {
        Range::Integer(..) => "whole number",
        Range::Number(..) => "number",
        Range::Time(..) => "time",
        Range::Size(..) => "size",
        Range::Rate(..) => "rate",
        Range::Word(_) => "word",
        Range::Table(_) => "list of texts",
    }
}

/// The keys of `[control]` and of the tables of its mechanisms, by the registry.
pub(super) fn keys() -> Vec<Key> {
    let owned = |text: String| -> Cow<'static, str> { Cow::Owned(text) };
    let mut keys = Vec::new();
    for (decides, summary) in [
        (Decides::When, "the mechanism that decides when packets are injected"),
        (Decides::Which, "the mechanism that decides which path messages take"),
    ] {
        let fits = entries().filter(|entry| entry.decides == decides).map(|entry| entry.name);
        let names: Vec<&str> = [none()].into_iter().chain(fits).collect();
        keys.push(Key {
            table: TABLE.into(),
            name: key_of(decides),
            kind: "word".into(),
            range: owned(names.join(", ")),
            default: none().into(),
            summary,
        });
    }
    for entry in entries() {
        let table = format!("{TABLE}.{}", entry.name);
        let parameter = |table: &str, parameter: &Parameter, default: Option<&'static str>| Key {
            table: owned(table.to_owned()),
            name: parameter.name,
            kind: kind(&parameter.range).into(),
            range: owned(parameter.range.to_string()),
            default: default.map_or_else(|| owned(value_text(&parameter.default)), Cow::from),
            summary: parameter.summary,
        };
        let simple = |name, kind: &'static str, range: String, summary: &'static str| Key {
            table: owned(table.clone()),
            name,
            kind: kind.into(),
            range: owned(range),
            default: "none".into(),
            summary,
        };
        if !entry.presets.is_empty() {
            let names: Vec<&str> = entry.presets.iter().map(|preset| preset.name).collect();
            let summary = "named values that the other keys are set upon";
            keys.push(simple(PRESET, "word", names.join(", "), summary));
        }
        if policy::serves(entry) {
            let summary = "a congestion control policy file of NVIDIA's OpenSM that the other keys \
                           are set upon";
            keys.push(simple(POLICY, "path", String::new(), summary));
        }
        keys.extend(entry.parameters.iter().map(|of| parameter(&table, of, None)));
        if !entry.port_parameters.is_empty() {
            let summary = "switch ports with settings of their own";
            keys.push(simple(PORT, "list of tables", String::new(), summary));
            let of_port = format!("{table}.{PORT}");
            keys.push(Key {
                table: owned(of_port.clone()),
                name: PORT,
                kind: "text".into(),
                range: "a cabled port of a switch".into(),
                default: "required".into(),
                summary: "the port, as in S1[3], or with the GUID of the switch",
            });
            let own = entry.port_parameters.iter();
            keys.extend(own.map(|of| parameter(&of_port, of, Some("that of the fabric"))));
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use std::path::Path;

    const SOUND: &str = "schema = 1\nname = \"sound\"\nrun = { duration = \"100 us\" }\n\
        fabric = { build = \"star:4\" }\nsubnet = { engine = \"min-hop\" }\n\
        sim = { preset = \"qdr\" }\n[[traffic]]\nname = \"all\"\nclass = \"background\"\n\
        pattern = { kind = \"uniform\" }\nload = 0.5\nsize = \"2 KiB\"\n[control]\n";

    fn read(entry: &Entry, line: &str) -> Result<Experiment, LabError> {
        let (key, name) = (key_of(entry.decides), entry.name);
        let text = format!("{SOUND}{key} = \"{name}\"\n[control.{name}]\n{line}\n");
        Experiment::parse(&text, Path::new("x.toml"))
    }

    #[test]
    fn every_parameter_reads_its_default_and_refuses_what_is_out_of_range() {
        for entry in entries() {
            for parameter in entry.parameters {
                let place = format!("{}.{}", entry.name, parameter.name);
                let line = format!("{} = {}", parameter.name, written(&parameter.default));
                let read_back = read(entry, &line).unwrap_or_else(|error| panic!("{error}"));
                let spec = read_back.variants[0].control.all().next().unwrap();
                assert_eq!(spec.values.get(parameter), &parameter.default, "{place}");
                assert!(spec.differences().is_empty(), "{place}");
                let beyond = match parameter.range {
                    Range::Integer(..) => "-1",
                    Range::Number(..) => "1e99",
                    Range::Time(..) => "\"9999 s\"",
                    Range::Size(..) => "\"999999 GiB\"",
                    Range::Rate(..) => "\"9999 Tb/s\"",
                    Range::Word(_) => "\"no such word\"",
                    Range::Table(_) => "[\"4:0\"]",
                };
                let line = format!("{} = {beyond}", parameter.name);
                let said = read(entry, &line).err().map(|error| error.to_string());
                let said = said.unwrap_or_else(|| panic!("{place} takes {beyond}"));
                let range = parameter.range.to_string();
                assert!(said.contains(&place) && said.contains(&range), "{said}");
            }
        }
    }

    #[test]
    fn every_preset_is_read_and_every_key_is_told_once() {
        for entry in entries() {
            for preset in entry.presets {
                let read = read(entry, &format!("preset = \"{}\"", preset.name)).unwrap();
                let spec = read.variants[0].control.all().next().unwrap();
                for (parameter, value) in preset.values {
                    assert_eq!(spec.values.get(parameter), value, "{}", parameter.name);
                }
            }
            let mut known = keys_of(entry);
            known.sort_unstable();
            known.dedup();
            assert_eq!(known.len(), keys_of(entry).len(), "{}", entry.name);
            let table = format!("{TABLE}.{}", entry.name);
            let told = keys().iter().filter(|key| key.table == table).count();
            let presets = usize::from(entry.presets.is_empty());
            assert_eq!(told + presets, known.len(), "{}", entry.name);
        }
    }
}
