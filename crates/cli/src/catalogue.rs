//! Everything that has a name, in one list: what `list` and `explain` read.

use clap::ValueEnum;
use clearlane_capture::files;
use clearlane_congestion::{Decides, Parameter, mechanisms};
use clearlane_diagnose::facts;
use clearlane_fabric::{formats, topologies};
use clearlane_lab::measure::{self, kinds};
use clearlane_lab::reference;
use clearlane_lab::{
    Described, PACKET_LOG_COLUMNS, PACKET_LOG_FILE, POINTS_COLUMNS, POINTS_FILE, TABLES,
};
use clearlane_sim::preset;
use clearlane_subnet::formats as dumps;
use clearlane_subnet::{engines, lanes};
use clearlane_workload::{patterns, programs};
use serde::Serialize;
use std::fmt;

/// A registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Fabrics that `fabric build` builds
    #[value(alias = "topology")]
    Topologies,
    /// Fabric files that are read or written
    #[value(alias = "format")]
    Formats,
    /// Routing engines
    #[value(alias = "engine")]
    Engines,
    /// Lane policies: which virtual lanes paths take
    #[value(alias = "lane")]
    Lanes,
    /// Forwarding table files that are read
    #[value(alias = "table")]
    Tables,
    /// Traffic patterns
    #[value(alias = "pattern")]
    Patterns,
    /// Kinds of programs
    #[value(alias = "program")]
    Programs,
    /// Congestion mechanisms
    #[value(alias = "mechanism")]
    Mechanisms,
    /// Parameter sets of switches and adapters
    #[value(alias = "preset")]
    Presets,
    /// What results are measured by
    #[value(alias = "measure")]
    Measures,
    /// Parquet files of results, and their columns
    #[value(alias = "result", alias = "columns")]
    Results,
    /// Facts of cables and tables that `diagnose` looks for
    #[value(alias = "fact")]
    Facts,
    /// Files of captured packets that are read
    #[value(alias = "capture")]
    Captures,
    /// Keys of experiment files
    #[value(alias = "key")]
    Keys,
}

impl Kind {
    /// The registry's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Topologies => "topologies",
            Kind::Formats => "formats",
            Kind::Engines => "engines",
            Kind::Lanes => "lanes",
            Kind::Tables => "tables",
            Kind::Patterns => "patterns",
            Kind::Programs => "programs",
            Kind::Mechanisms => "mechanisms",
            Kind::Presets => "presets",
            Kind::Measures => "measures",
            Kind::Results => "results",
            Kind::Facts => "facts",
            Kind::Captures => "captures",
            Kind::Keys => "keys",
        }
    }

    /// What one of its entries is.
    pub fn singular(self) -> &'static str {
        match self {
            Kind::Topologies => "topology",
            Kind::Formats => "fabric file format",
            Kind::Engines => "routing engine",
            Kind::Lanes => "lane policy",
            Kind::Tables => "forwarding table format",
            Kind::Patterns => "traffic pattern",
            Kind::Programs => "kind of program",
            Kind::Mechanisms => "congestion mechanism",
            Kind::Presets => "preset",
            Kind::Measures => "measure",
            Kind::Results => "table of results",
            Kind::Facts => "kind of fact",
            Kind::Captures => "capture format",
            Kind::Keys => "experiment key",
        }
    }

    /// What one line of help says of it.
    pub fn summary(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|v| v.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something with a name.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its registry.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// What more is known: (`parameters`, sentence), (`reference`, …).
    pub facts: Vec<(String, String)>,
}

/// All entries of a kind, in the registry's order.
pub fn entries(kind: Kind) -> Vec<Entry> {
    match kind {
        Kind::Topologies => topologies::ALL.iter().map(topology).collect(),
        Kind::Formats => formats::ALL.iter().map(format).collect(),
        Kind::Engines => engines::ALL.iter().map(engine).collect(),
        Kind::Lanes => lanes::ALL.iter().map(lane_policy).collect(),
        Kind::Tables => dumps::ALL.iter().map(dump).collect(),
        Kind::Patterns => patterns::ALL.iter().map(|entry| pattern(entry)).collect(),
        Kind::Programs => programs::ALL.iter().map(|entry| program(entry)).collect(),
        Kind::Mechanisms => mechanisms::ALL.iter().map(|entry| mechanism(entry)).collect(),
        Kind::Presets => preset::ALL.iter().map(parameter_set).collect(),
        Kind::Measures => kinds::ALL.iter().map(|entry| measure(entry)).collect(),
        Kind::Results => results(),
        Kind::Facts => facts::ALL.iter().map(fact).collect(),
        Kind::Captures => files::ALL.iter().map(|entry| capture(entry)).collect(),
        Kind::Keys => reference::keys().iter().map(key).collect(),
    }
}

/// All entries of all kinds.
pub fn all() -> Vec<Entry> {
    Kind::value_variants().iter().flat_map(|kind| entries(*kind)).collect()
}

/// The name that resembles `wanted` most, if any does.
pub fn nearest(wanted: &str) -> Option<String> {
    let all = all();
    clearlane_ib::nearest(wanted, all.iter().map(|entry| entry.name.as_str())).map(str::to_owned)
}

fn entry(kind: Kind, name: &str, summary: &str, facts: &[(&str, &str)]) -> Entry {
    let facts = facts.iter().filter(|(_, text)| !text.is_empty());
    Entry {
        kind,
        name: name.to_owned(),
        summary: summary.to_owned(),
        facts: facts.map(|(label, text)| ((*label).to_owned(), (*text).to_owned())).collect(),
    }
}

fn topology(of: &topologies::Entry) -> Entry {
    let example = format!("clearlane fabric build {} -o fabric.topo", of.example);
    let facts = [("parameters", of.parameters), ("example", &example), ("reference", of.reference)];
    entry(Kind::Topologies, of.name, of.summary, &facts)
}

fn format(of: &formats::Entry) -> Entry {
    let use_of = match (of.reader.is_some(), of.write.is_some()) {
        (true, true) => "read and written",
        (true, false) => "read",
        (false, _) => "written",
    };
    let endings: Vec<String> = of.endings.iter().map(|ending| format!(".{ending}")).collect();
    let example = of.endings.first().map_or(String::new(), |ending| {
        format!("clearlane fabric convert fat-tree:648 -o fabric.{ending}")
    });
    let facts = [("is", use_of), ("endings", &endings.join(", ")), ("example", &example)];
    entry(Kind::Formats, of.name, of.summary, &facts)
}

fn capture(of: &files::Entry) -> Entry {
    entry(Kind::Captures, of.name, of.summary, &[("example", "clearlane capture h1.pcap h4.pcap")])
}

fn engine(of: &engines::Entry) -> Entry {
    let mut claims = Vec::new();
    if of.claims.minimal {
        claims.push("shortest paths".to_owned());
    }
    if of.claims.deadlock_free {
        claims.push("free of deadlock".to_owned());
    }
    if !of.claims.balanced_on.is_empty() {
        claims.push(format!("balanced on {}", of.claims.balanced_on));
    }
    let facts = [
        ("takes", of.claims.accepts),
        ("claims", &claims.join("; ")),
        ("parameters", of.parameters),
        ("reference", of.reference),
    ];
    entry(Kind::Engines, of.name, of.summary, &facts)
}

fn lane_policy(of: &lanes::Entry) -> Entry {
    let both = match of.symmetric {
        true => "the same lane both ways",
        false => "a reply takes the lane of whom it goes to",
    };
    let example = format!("lane_policy = {{ kind = \"{}\" }} in [subnet]", of.name);
    let facts = [
        ("is", both),
        ("parameters", of.parameters),
        ("example", &example),
        ("reference", of.reference),
    ];
    entry(Kind::Lanes, of.name, of.summary, &facts)
}

fn dump(of: &dumps::Entry) -> Entry {
    entry(Kind::Tables, of.name, of.summary, &[])
}

fn measure(of: &measure::Entry) -> Entry {
    let parameters = of.parameters();
    let facts = [("unit", of.unit), ("parameters", &parameters)];
    entry(Kind::Measures, of.name, of.summary, &facts)
}

fn fact(entry: &facts::Entry) -> Entry {
    let (name, summary) = (entry.name.to_owned(), entry.summary.to_owned());
    Entry { kind: Kind::Facts, name, summary, facts: Vec::new() }
}

fn results() -> Vec<Entry> {
    let points = "a row per point and variant of a sweep";
    let tables =
        TABLES.iter().map(|table| table_of_results(table.file, table.summary, table.columns));
    let packets = "every packet that hosts sent and received, of `traffic run`";
    let others = [
        table_of_results(POINTS_FILE, points, POINTS_COLUMNS),
        table_of_results(PACKET_LOG_FILE, packets, PACKET_LOG_COLUMNS),
    ];
    tables.chain(others).collect()
}

fn table_of_results(file: &str, summary: &str, columns: &[Described]) -> Entry {
    let column = |column: &Described| {
        let unit = match column.unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        (column.name.to_owned(), format!("{}{unit}; {}", column.kind, column.summary))
    };
    Entry {
        kind: Kind::Results,
        name: file.to_owned(),
        summary: summary.to_owned(),
        facts: columns.iter().map(column).collect(),
    }
}

fn key(of: &reference::Key) -> Entry {
    let facts = [("type", &*of.kind), ("range", &*of.range), ("default", &*of.default)];
    entry(Kind::Keys, &of.dotted(), of.summary, &facts)
}

fn pattern(of: &patterns::Entry) -> Entry {
    let facts = [("parameters", of.parameters), ("reference", of.reference)];
    entry(Kind::Patterns, of.name, of.summary, &facts)
}

fn program(of: &programs::Entry) -> Entry {
    let facts =
        [("parameters", of.parameters), ("example", of.example), ("reference", of.reference)];
    entry(Kind::Programs, of.name, of.summary, &facts)
}

fn mechanism(of: &clearlane_congestion::Entry) -> Entry {
    let decides = match of.decides {
        Decides::When => "when packets are injected; named by control.when",
        Decides::Which => "which path messages take; named by control.which",
    };
    let value = |(of, value): &(&Parameter, _)| format!("{} {}", of.name, reference::value(value));
    let mut facts = vec![("decides".to_owned(), decides.to_owned())];
    for parameter in of.parameters {
        let Parameter { name, summary, default, range } = parameter;
        let default = reference::value(default);
        let port = of.port_parameters.iter().any(|own| std::ptr::eq(*own, *parameter));
        let port = if port { "; a port may have its own" } else { "" };
        let text = format!("{summary}; {range}; default {default}{port}");
        facts.push(((*name).to_owned(), text));
    }
    for preset in of.presets {
        let values: Vec<String> = preset.values.iter().map(value).collect();
        let text = format!("{} ({})", values.join(", "), preset.reference);
        facts.push((format!("preset {}", preset.name), text));
    }
    facts.push(("reference".to_owned(), of.reference.to_owned()));
    facts.extend((!of.notes.is_empty()).then(|| ("notes".to_owned(), of.notes.to_owned())));
    Entry { kind: Kind::Mechanisms, name: of.name.into(), summary: of.summary.into(), facts }
}

fn parameter_set(of: &preset::Preset) -> Entry {
    let link = format!("{} {}", of.link.0, of.link.1);
    let mut facts = vec![("link".to_owned(), link)];
    for (name, value, source) in reference::parameters(of) {
        facts.push((name.to_owned(), format!("{value} ({source})")));
    }
    let values = reference::parameters(of);
    for line in of.table {
        let value = |key: &&str| {
            let found = values.iter().find(|(name, ..)| name == key);
            found.map(|(name, value, _)| format!("{name} = {value}"))
        };
        let mut here: Vec<String> = line.keys.iter().filter_map(value).collect();
        here.extend((!line.remark.is_empty()).then(|| line.remark.to_owned()));
        let text = format!("{} published; here {}", line.published, here.join(", "));
        facts.push((format!("table: {}", line.name), text));
    }
    facts.extend(of.reference.map(|reference| ("reference".to_owned(), reference.to_owned())));
    Entry { kind: Kind::Presets, name: of.name.into(), summary: of.summary.into(), facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_in_their_kind_and_said_in_one_line() {
        for kind in Kind::value_variants() {
            let mut names: Vec<_> = entries(*kind).into_iter().map(|e| e.name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{kind}");
        }
        assert!(all().iter().all(|e| !e.summary.is_empty() && !e.summary.contains('\n')));
    }

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("tours").as_deref(), Some("torus"));
        assert_eq!(nearest("qqqq"), None);
    }
}
