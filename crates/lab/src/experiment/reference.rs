//! Every key of an experiment file in one list: what `explain` and `docs/reference` say of it. That
//! it says what the readers do is tested below.

use super::{DevicesSpec, control, devices};
use clearlane_congestion::Value;
use clearlane_sim::Preset;
use clearlane_sim::parameters::KEYS as KEYS_OF_DEVICES;
use std::borrow::Cow;

/// A key of an experiment file.
#[derive(Clone, Debug)]
pub struct Key {
    /// The table it belongs to, `sim` or `traffic.senders`; empty at the top.
    pub table: Cow<'static, str>,
    /// Its name.
    pub name: &'static str,
    /// What kind of value it takes, with the unit.
    pub kind: Cow<'static, str>,
    /// Which values, as error messages say it; empty where any will do.
    pub range: Cow<'static, str>,
    /// What holds without it; `required` where nothing does.
    pub default: Cow<'static, str>,
    /// One sentence.
    pub summary: &'static str,
}

impl Key {
    /// `sim.buffer`.
    pub fn dotted(&self) -> String {
        if self.table.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.table, self.name)
        }
    }
}

/// Every parameter of a preset by its key in `[sim]`, with the value that says the same there and
/// where that comes from.
pub fn parameters(preset: &Preset) -> Vec<(&'static str, String, &'static str)> {
    let sources = KEYS_OF_DEVICES.iter().map(|key| preset.source(key));
    let values = DevicesSpec::of_preset(preset).into_iter();
    values.zip(sources).map(|((name, value), source)| (name, value, source)).collect()
}

/// A value of a mechanism's parameter as an experiment writes it, without quotes.
pub fn value(value: &Value) -> String {
    control::value_text(value)
}

/// All keys, by table in the order of a file.
pub fn keys() -> Vec<Key> {
    let at = KEYS.iter().position(|key| key.table == "traffic").unwrap_or(KEYS.len());
    let (before, after) = KEYS.split_at(at);
    let mut keys = before.to_vec();
    keys.extend(KEYS_OF_DEVICES.iter().map(of_devices));
    keys.extend(control::keys());
    keys.extend_from_slice(after);
    keys
}

/// The experiment key of a device parameter.
fn of_devices(of: &clearlane_sim::parameters::Key) -> Key {
    let (kind, range) = devices::in_words(&of.access);
    Key {
        table: Cow::Borrowed("sim"),
        name: of.name,
        kind: kind.into(),
        range: range.into(),
        default: Cow::Borrowed("the preset's"),
        summary: of.summary,
    }
}

/// The keys below the top: those that `--over` and `[sweep]` take.
pub(crate) fn swept() -> Vec<Key> {
    const NOT_SWEPT: [&str; 5] = ["", "variant", "published", "axis", "axis.settings"];
    let mut keys = keys();
    keys.retain(|key| !NOT_SWEPT.contains(&&*key.table));
    keys
}

const fn key(
    table: &'static str,
    name: &'static str,
    [kind, range, default]: [&'static str; 3],
    summary: &'static str,
) -> Key {
    Key {
        table: Cow::Borrowed(table),
        name,
        kind: Cow::Borrowed(kind),
        range: Cow::Borrowed(range),
        default: Cow::Borrowed(default),
        summary,
    }
}

const REQUIRED: &str = "required";

/// All keys but those of `[control]`, which the registry of mechanisms gives, and the parameters of
/// `[sim]`, which their table does.
const KEYS: &[Key] = &[
    key("", "schema", ["whole number", "1 to 1", REQUIRED], "version of the file's form"),
    key(
        "",
        "name",
        ["text", "1 to 80 printable characters", REQUIRED],
        "name in tables and of the folder",
    ),
    key("", "summary", ["text", "", "none"], "what the experiment asks, in one line"),
    key(
        "",
        "include",
        ["path or list", "", "none"],
        "experiment files to take over; keys of this file win over theirs, and their lists come \
         first",
    ),
    key(
        "",
        "run",
        ["table", "", REQUIRED],
        "duration of a run, start of the measurement, number \
                                             of seeds",
    ),
    key(
        "",
        "fabric",
        ["table", "", REQUIRED],
        "the cables: a file or a topology to build, and \
                                                the cables to cut",
    ),
    key("", "subnet", ["table", "", REQUIRED], "the routing engine, LMC, lanes, VL arbitration"),
    key(
        "",
        "sim",
        ["table", "", REQUIRED],
        "switches and adapters: a preset, and parameters that differ from it",
    ),
    key(
        "",
        "control",
        ["table", "", "no mechanism"],
        "congestion mechanisms: when packets are injected and which path they take",
    ),
    key("", "traffic", ["list of tables", "1 to 1000 groups", REQUIRED], "the flow groups"),
    key(
        "",
        "axis",
        ["list of tables", "", "none"],
        "one kind of alternatives; every combination of the axes is a variant",
    ),
    key(
        "",
        "variant",
        ["list of tables", "1 to 1000 variants", "one, as-is"],
        "alternatives: each says what it changes",
    ),
    key(
        "",
        "published",
        ["list of tables", "", "none"],
        "published numbers, each with the measure to compare",
    ),
    key("", "sweep", ["table", "", "none"], "keys and the values `clearlane sweep` gives them"),
    key(
        "run",
        "duration",
        ["time", "1 us to 281.475 s", REQUIRED],
        "simulated time of a run; only the limit if the run ends with its programs",
    ),
    key(
        "run",
        "warm_up",
        ["time or \"auto\"", "0 ps to 281.475 s", "auto"],
        "when the measurement begins; auto finds it by MSER-5, and is 0 if runs end with their \
         programs",
    ),
    key(
        "run",
        "seeds",
        ["whole number", "1 to 1000", "1"],
        "runs of each variant, each with another seed",
    ),
    key(
        "run",
        "seed",
        ["whole number", "0 to 9223372036854774807", "1"],
        "the first seed; the others follow",
    ),
    key(
        "run",
        "slices",
        ["whole number", "20 to 2000", "100"],
        "slices of the time series; the maximum if runs end with their programs",
    ),
    key(
        "run",
        "ends",
        ["text", "duration, programs", "duration"],
        "what ends a run: its duration, or the end of all programs before that",
    ),
    key(
        "run",
        "mode",
        ["text", "packets, flow", "packets"],
        "what is simulated: packets, or messages as flows at max-min fair rates, without buffers, \
         credits or mechanisms, for scans that packets cannot afford",
    ),
    key(
        "fabric",
        "file",
        ["path", "", "or build"],
        "a file in one of the formats, from the experiment's folder",
    ),
    key(
        "fabric",
        "build",
        ["text", "1 to 80 printable characters", "or file"],
        "a topology to build, such as fat-tree:648",
    ),
    key(
        "fabric",
        "node_name_map",
        ["text", "path of a file", "none"],
        "names of nodes by GUID, as ibnetdiscover --node-name-map takes them",
    ),
    key(
        "fabric",
        "cut",
        ["list of texts", "", "none"],
        "cables to remove, named by one port or by both",
    ),
    key(
        "fabric",
        "cut_random",
        ["table", "", "none"],
        "number of cables between switches to remove at random",
    ),
    key(
        "fabric.cut_random",
        "links",
        ["whole number", "1 to 1000000", REQUIRED],
        "how many cables",
    ),
    key(
        "fabric.cut_random",
        "seed",
        ["whole number", "0 to 9223372036854775807", "1"],
        "seed of that choice, independent of the run's seed",
    ),
    key(
        "fabric.cut_random",
        "keep_uplinks",
        ["whole number", "0 to 254", "1"],
        "cables to other switches that every leaf keeps",
    ),
    key(
        "subnet",
        "engine",
        ["text", "a routing engine", "or forwarding"],
        "routing engine that fills the tables; file reads the tables of lft",
    ),
    key(
        "subnet",
        "lft",
        ["path or list of paths", "", "--lft"],
        "the site's tables, SL2VL and SLs of paths, in any order",
    ),
    key(
        "subnet",
        "forwarding",
        ["text", "dimension-order, dimension-order-up", "or engine"],
        "forwarding by rule, for fabrics that are too large for a subnet; packets that have as far \
         one way around as the other go either way, or all of them up",
    ),
    key(
        "subnet",
        "lmc",
        ["whole number", "0 to 7", "0"],
        "LID mask control: a port has 2^LMC LIDs",
    ),
    key(
        "subnet",
        "lanes",
        ["whole number", "1 to 15", "1; layered 8; the lane policy's"],
        "number of data lanes, for engines that let you choose",
    ),
    key(
        "subnet",
        "adaptive",
        ["text", "no, yes", "no"],
        "switches choose among the ports the engine allows",
    ),
    key(
        "subnet",
        "roots",
        ["list of texts", "engine up-down", "the engine's"],
        "root switches of engine up-down, by name or GUID",
    ),
    key(
        "subnet",
        "lane_policy",
        ["table", "", "the engine's lanes"],
        "which lanes paths take, after routing; the tables stay as they are",
    ),
    key(
        "subnet.lane_policy",
        "kind",
        ["text", "a lane policy, or none", REQUIRED],
        "the policy; explain names its source",
    ),
    key(
        "subnet.lane_policy",
        "hot",
        ["list of names or ranks", "", "required by some kinds"],
        "hosts that are congested; only policies that ask take notice",
    ),
    key(
        "subnet.lane_policy",
        "seed",
        ["whole number", "0 to 9223372036854775807", "1"],
        "seed of kind random, independent of the run's seed",
    ),
    key(
        "subnet.lane_policy",
        "link_lanes",
        ["list of [port, lanes]", "1 to 15 lanes", "as lanes"],
        "links with fewer data lanes: SL s is there on VL s mod their number",
    ),
    key(
        "subnet",
        "vl_arbitration",
        ["table", "", "the engine's"],
        "VL arbitration of every output",
    ),
    key(
        "subnet.vl_arbitration",
        "high",
        ["list of [vl, weight]", "0 to 64 entries", "none"],
        "the high-priority table",
    ),
    key(
        "subnet.vl_arbitration",
        "low",
        ["list of [vl, weight]", "0 to 64 entries", REQUIRED],
        "the low-priority table; a weight counts 64 B",
    ),
    key(
        "subnet.vl_arbitration",
        "high_limit",
        ["whole number", "0 to 255", "0"],
        "limit of high priority, in 4 KiB; 255 is none",
    ),
    key(
        "sim",
        "preset",
        ["text", "a preset", REQUIRED],
        "where the numbers come from; explain names every source",
    ),
    key(
        "traffic",
        "name",
        ["text", "1 to 80 printable characters", REQUIRED],
        "name of the flow group",
    ),
    key(
        "traffic",
        "class",
        ["text", "hot, victim, background", REQUIRED],
        "role of the group: hot spot, victims of it, or neither",
    ),
    key(
        "traffic",
        "program",
        ["table", "kind = a program", "none"],
        "what the group's ranks do, numbered by ascending host; it replaces pattern, load, size, \
         arrivals, ramp, start, stop and queue_pairs",
    ),
    key(
        "traffic",
        "gap",
        ["number or text", "0 to 100000, mod, hops, timetable, none", "no gap"],
        "packet pacing: idle time after each packet of a program, in times of a packet: the same \
         for all, by step the most messages on a link of the route less one, its hops less one, or \
         by the program's own timetable",
    ),
    key(
        "traffic",
        "mapping",
        ["text or a table", "linear, random, { seed }, { file }", "as hosts are"],
        "which rank of a program is at which of its hosts: as hosts are numbered, drawn, or as \
         the lines of a file name them",
    ),
    key(
        "traffic",
        "pattern",
        ["table", "kind = a pattern", "required without program"],
        "who sends to whom; explain names a pattern's keys",
    ),
    key("traffic", "senders", ["\"all\" or a table", "", "all"], "who sends"),
    key(
        "traffic",
        "load",
        ["number", "0.000001 to 4", "required without program"],
        "offered share of a sender's link, headers included; with a matrix a factor on the loads \
         of its lines",
    ),
    key(
        "traffic",
        "size",
        ["size or a table", "1 B to 1 GiB", "required without program"],
        "message size, a range or a mix",
    ),
    key(
        "traffic",
        "arrivals",
        ["text", "poisson, periodic, ramp", "poisson"],
        "when messages are posted: at random, evenly, or evenly after the load has grown from \
         zero",
    ),
    key(
        "traffic",
        "ramp",
        ["time", "1 ns to 281.475 s", "required with ramp"],
        "how long the load grows from the start of the group, with arrivals = \"ramp\"",
    ),
    key(
        "traffic",
        "start",
        ["time", "0 ps to 281.475 s", "0 ps"],
        "first instant of posting, before the run's end",
    ),
    key(
        "traffic",
        "stop",
        ["time", "0 ps to 281.475 s", "the run's end"],
        "no message is posted from here on",
    ),
    key(
        "traffic",
        "queue_pairs",
        ["whole number", "1 to 64", "1"],
        "queue pairs from each sender to each destination; each offers its part of the load",
    ),
    key(
        "traffic",
        "transport",
        ["text", "rc, ud", "rc"],
        "reliable connection or unreliable datagram",
    ),
    key(
        "traffic",
        "sl",
        ["whole number", "0 to 15", "the subnet's"],
        "service level of the group's packets",
    ),
    key("traffic.senders", "hosts", ["list of names or ranks", "", "one of five"], "these send"),
    key(
        "traffic.senders",
        "place",
        ["text", "packed, round-robin, random", "one of five"],
        "ranks of a program take hosts that no other program has: the first ones, in turns with \
         other programs, or drawn",
    ),
    key(
        "traffic.senders",
        "ranks",
        ["whole number", "2 to 16777216", "those of the trace"],
        "how many ranks take hosts, with place",
    ),
    key(
        "traffic.senders",
        "except",
        ["list of names or ranks", "", "one of five"],
        "all but these send",
    ),
    key(
        "traffic.senders",
        "every",
        ["whole number", "1 to 1048576", "one of five"],
        "one host in this many sends",
    ),
    key("traffic.senders", "offset", ["whole number", "0 to 1048576", "0"], "first rank of every"),
    key(
        "traffic.senders",
        "share",
        ["number", "0.000001 to 1", "one of five"],
        "this share of the hosts, drawn once, sends",
    ),
    key(
        "traffic.senders",
        "seed",
        ["whole number", "0 to 9223372036854775807", "1"],
        "seed of that draw, independent of the run's seed",
    ),
    key(
        "traffic.size",
        "min",
        ["size", "1 B to 1 GiB", "with max"],
        "smallest of sizes drawn evenly",
    ),
    key(
        "traffic.size",
        "max",
        ["size", "1 B to 1 GiB", "with min"],
        "largest of sizes drawn evenly",
    ),
    key(
        "traffic.size",
        "mix",
        ["list of [size, weight]", "1 B to 1 GiB", "or min, max"],
        "sizes and how often each is drawn",
    ),
    key(
        "axis",
        "settings",
        ["list of tables", "1 or more", REQUIRED],
        "alternatives of one kind; every combination with the other axes is a variant, named \
         after its settings",
    ),
    key(
        "axis.settings",
        "name",
        ["text", "1 to 80 printable characters", REQUIRED],
        "its part in the names of variants",
    ),
    key("axis.settings", "summary", ["text", "", "none"], "what is different, in one line"),
    key("axis.settings", "fabric", ["table", "", "as above"], "keys of [fabric] that differ"),
    key("axis.settings", "subnet", ["table", "", "as above"], "keys of [subnet] that differ"),
    key("axis.settings", "sim", ["table", "", "as above"], "keys of [sim] that differ"),
    key("axis.settings", "control", ["table", "", "as above"], "keys of [control] that differ"),
    key(
        "axis.settings",
        "traffic",
        ["list of tables", "", "as above"],
        "groups that differ, by name, or are new",
    ),
    key("variant", "name", ["text", "1 to 80 printable characters", REQUIRED], "name in tables"),
    key("variant", "summary", ["text", "", "none"], "what is different, in one line"),
    key(
        "variant",
        "like",
        ["text", "a variant before it", "none"],
        "an earlier variant; its settings are taken over",
    ),
    key("variant", "fabric", ["table", "", "as above"], "keys of [fabric] that differ"),
    key("variant", "subnet", ["table", "", "as above"], "keys of [subnet] that differ"),
    key("variant", "sim", ["table", "", "as above"], "keys of [sim] that differ"),
    key("variant", "control", ["table", "", "as above"], "keys of [control] that differ"),
    key(
        "variant",
        "traffic",
        ["list of tables", "", "as above"],
        "groups that differ, by name, or are new",
    ),
    key(
        "published",
        "name",
        ["text", "1 to 80 printable characters", REQUIRED],
        "what the number is",
    ),
    key(
        "published",
        "measure",
        ["table", "kind = a measure", REQUIRED],
        "the measure to compare; clearlane explain shows the keys of a measure",
    ),
    key("published", "variant", ["text", "a variant", "the first"], "where it is measured"),
    key(
        "published",
        "each",
        ["text or list", "patterns of names", "none"],
        "repeats the row for every variant whose name matches; {word} stands for a part without a \
         comma, also in the row's texts, and {variant} for the whole name",
    ),
    key("published", "published", ["text", "", "none"], "the number as its source prints it"),
    key(
        "published",
        "value",
        ["number or [least, most]", "", "that of published"],
        "the published number, if `published` is not a number",
    ),
    key(
        "published",
        "moved_by",
        ["text", "a published row", "none"],
        "row of a variant in which one parameter differs; it shows how far that moves this row \
         towards the published value",
    ),
    key("published", "unit", ["text", "", "the measure's"], "unit of both numbers"),
    key("published", "note", ["text", "", "none"], "where it is published and why the two differ"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use std::collections::BTreeSet;
    use std::path::Path;

    const SOUND: &str = "schema = 1\nname = \"sound\"\nrun = { duration = \"100 us\" }\n\
        fabric = { build = \"star:4\" }\nsubnet = { engine = \"min-hop\" }\n\
        sim = { preset = \"qdr\" }\n[[traffic]]\nname = \"all\"\nclass = \"background\"\n\
        pattern = { kind = \"uniform\" }\nload = 0.5\nsize = \"2 KiB\"\n\
        [[published]]\nname = \"load\"\nmeasure = { kind = \"accepted-load\" }\n";

    fn error(table: &str, value: &str) -> String {
        let over = [format!("{table}={value}")];
        match crate::Sweep::parse(SOUND, Path::new("x.toml"), &over, &[]) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_are_those_the_readers_know() {
        // Those of tables within tables have no list: what is none would be answered as such.
        for key in swept().iter().filter(|key| key.table.contains('.')) {
            let said = error(&key.dotted(), "1");
            assert!(!said.contains("has no key"), "{}: {said}", key.dotted());
        }
        assert!(error("fabric.cut_random.lniks", "1").contains("has no key"));
        let names: BTreeSet<_> = keys().iter().map(Key::dotted).collect();
        assert_eq!(names.len(), keys().len());
        let of = |table| KEYS.iter().filter(|k| k.table == table).map(|k| k.name).collect();
        let of: fn(&'static str) -> BTreeSet<_> = of;
        assert_eq!(of("traffic"), super::super::traffic::KEYS.iter().copied().collect());
        assert_eq!(of("subnet"), super::super::subnet::KEYS.iter().copied().collect());
        assert_eq!(of("run"), super::super::plan::KEYS.iter().copied().collect());
        assert_eq!(of("fabric"), super::super::fabric::KEYS.iter().copied().collect());
        assert_eq!(of("published"), super::super::published::KEYS.iter().copied().collect());
        assert_eq!(of(""), super::super::KEYS.iter().copied().collect());
        assert_eq!(of("variant"), super::super::variants::VARIANT_KEYS.iter().copied().collect());
    }

    #[test]
    fn ranges_are_those_the_readers_hold() {
        let mut tried = 0;
        // A gap goes with a program, which the sound experiment has none of.
        let here = |key: &&Key| {
            key.range.contains(" to ") && !key.table.contains('.') && key.name != "gap"
        };
        for key in swept().iter().filter(here) {
            let value = match key.kind.split(' ').next().unwrap() {
                "time" => "\"9999 s\"",
                "size" => "\"99 GiB\"",
                "rate" => "\"99 Tb/s\"",
                "number" => "99",
                "whole" => "-1",
                _ => continue,
            };
            let said = error(&key.dotted(), value);
            let range = match &*key.kind {
                "whole number" => format!("from {}", key.range),
                _ => key.range.to_string(),
            };
            assert!(said.contains(&range), "{}: {said}", key.dotted());
            tried += 1;
        }
        assert!(tried > 20, "{tried}");
    }

    #[test]
    fn defaults_are_those_of_the_resolved_experiment() {
        let resolved = Experiment::parse(SOUND, Path::new("x.toml")).unwrap().resolved();
        for key in KEYS.iter().filter(|key| ["run", "traffic"].contains(&&*key.table)) {
            if !key.default.chars().next().is_some_and(char::is_numeric) {
                continue;
            }
            let number = format!("{} = {}", key.name, key.default);
            let text = format!("{} = \"{}\"", key.name, key.default);
            assert!(resolved.contains(&number) || resolved.contains(&text), "{}", key.dotted());
        }
    }
}
