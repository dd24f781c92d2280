//! The list of keys that `explain` and the reference print is what the readers of experiments do.

use clearlane_congestion::{Decides, mechanisms};
use clearlane_lab::reference::{Key, keys};
use clearlane_lab::{Experiment, Sweep};
use std::path::Path;

const SOUND: &str = r#"
schema = 1
name = "sound"
run = { duration = "100 us" }
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }

[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.5
size = "2 KiB"
"#;

/// Tables within tables whose keys need others beside them: table, key, and what goes with it.
const BESIDE: &[(&str, &str, &str)] = &[
    ("fabric.cut_random", "seed", "links=1"),
    ("fabric.cut_random", "keep_uplinks", "links=1"),
    ("subnet.lane_policy", "hot", "kind=\"by-class\""),
    ("subnet.lane_policy", "seed", "kind=\"random\""),
    ("subnet.lane_policy", "link_lanes", "kind=\"vftree\""),
    ("subnet.vl_arbitration", "high", "low=[[0, 64]]"),
    ("subnet.vl_arbitration", "high_limit", "low=[[0, 64]]"),
    ("traffic.senders", "offset", "every=2"),
    ("traffic.senders", "seed", "share=0.5"),
    ("traffic.size", "min", "max=\"2 KiB\""),
    ("traffic.size", "max", "min=\"1 B\""),
];

/// What is wrong with the sound experiment if these keys are set in it; nothing if nothing is.
fn refused(table: &str, overs: &[String]) -> Option<String> {
    // The table of a mechanism is read where the mechanism is named.
    let named = |entry: &&&clearlane_congestion::Entry| table.split('.').nth(1) == Some(entry.name);
    let control = match mechanisms::ALL.iter().find(named).filter(|_| table.starts_with("control."))
    {
        None => String::new(),
        Some(entry) => {
            let key = if entry.decides == Decides::When { "when" } else { "which" };
            format!("[control]\n{key} = \"{}\"\n", entry.name)
        }
    };
    let text = format!("{SOUND}{control}");
    Sweep::parse(&text, Path::new("x.toml"), overs, &[]).err().map(|error| error.to_string())
}

/// Keys of tables within tables, those of rows apart.
fn nested() -> Vec<Key> {
    // What is read before a sweep lays anything over it.
    let outside = |key: &Key| key.table.contains('.') && !key.table.starts_with("axis");
    keys().into_iter().filter(outside).collect()
}

/// What is said if a key called `name` in the place of `key` has this value, and beside it stands
/// what has to.
fn set(key: &Key, name: &str, value: &str) -> String {
    let table = &key.table;
    let overs: Vec<String> = if table.ends_with(".port") {
        // A list of tables, a port each.
        let port = if key.name == "port" { "" } else { "port=\"switch[1]\"," };
        vec![format!("{table}=[{{{port}{name}={value}}}]")]
    } else {
        let beside = BESIDE.iter().filter(|(of, key_of, _)| (*of, *key_of) == (table, key.name));
        let beside = beside.map(|(.., what)| format!("{table}.{what}"));
        beside.chain([format!("{table}.{name}={value}")]).collect()
    };
    refused(table, &overs).unwrap_or_default()
}

/// A reader that knows a key complains of its value, one that does not of the key.
#[test]
fn every_key_of_a_table_within_a_table_is_read_and_no_other() {
    let nested = nested();
    for key in &nested {
        // No key takes a list of lists of lists.
        let said = set(key, key.name, "[[[]]]");
        let value = [format!(".{} = ", key.name), format!(".{}[0] ", key.name)];
        assert!(value.iter().any(|at| said.contains(at)), "{}: {said}", key.dotted());
        let said = set(key, &format!("{}z", key.name), "1");
        let no_key = format!(" has no key `{}z`", key.name);
        assert!(said.contains(&no_key), "{}: {said}", key.dotted());
    }
    for table in
        ["fabric.cut_random", "subnet.lane_policy", "subnet.vl_arbitration", "traffic.size"]
    {
        assert!(nested.iter().any(|key| key.table == table), "{table}");
    }
    for entry in mechanisms::ALL.iter().filter(|entry| entry.name != "none") {
        let table = format!("control.{}", entry.name);
        // What only some mechanisms have.
        let own = |key: &&Key| key.table == table && !["port", "policy"].contains(&key.name);
        let listed = nested.iter().filter(own).count();
        assert_eq!(listed, entry.parameters.len() + 1, "{table}: its parameters and `preset`");
    }
}

/// What a key with a number or a word for its default has in the resolved experiment.
fn written(resolved: &toml::Table, key: &Key) -> Option<String> {
    let table = match &*key.table {
        "run" => resolved["run"].as_table(),
        "traffic" => resolved["variant"][0]["traffic"][0].as_table(),
        "subnet" => resolved["variant"][0]["subnet"].as_table(),
        _ => None,
    };
    let value = table?.get(key.name)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

#[test]
fn defaults_that_are_listed_are_those_an_experiment_gets() {
    let experiment = Experiment::parse(SOUND, Path::new("x.toml")).unwrap();
    let resolved: toml::Table = experiment.resolved().parse().unwrap();
    let mut tried = Vec::new();
    for key in keys() {
        // A whole word or quantity; "the subnet's" and the like say what it depends on.
        let literal = key.default.starts_with(|first: char| first.is_ascii_digit())
            || key.range.split(", ").any(|word| word == key.default);
        let at = ["run", "traffic", "subnet"].contains(&&*key.table);
        if literal && at && !key.default.contains(';') {
            assert_eq!(
                written(&resolved, &key).as_deref(),
                Some(&*key.default),
                "{}",
                key.dotted()
            );
            tried.push(key.dotted());
        }
    }
    assert!(tried.len() >= 8, "{tried:?}");
}
