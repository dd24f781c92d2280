//! The arrows between the modules of the simulator and of the lab.

use super::source::{self, blank_rust};
use std::collections::BTreeMap;

/// The modules of `crates/sim` from the bottom up, a folder being one: ARCHITECTURE.md, "Inside the
/// simulator". Each may import from those before it.
const ORDER: &[&str] = &[
    "error",
    "port_set",
    "ranges",
    "parameters",
    "preset",
    "records",
    "list",
    "finder",
    "hosts",
    "forwarding",
    "packet",
    "outcome",
    "saved",
    "queue",
    "port",
    "mail",
    "arbiter",
    "model",
    "recorder",
    "network",
    "forward",
    "addressing",
    "switch",
    "control",
    "adapter",
    "ranks",
    "cabling",
    "partition",
    "view",
    "barrier",
    "fleet",
    "across",
    "deadlock",
    "invariants",
    "received",
    "checkpoint",
    "setup",
    "team",
    "trials",
    "gathering",
    "windows",
    "builder",
    "instances",
    "simulation",
];

/// Those of `crates/lab`: ARCHITECTURE.md, "Inside the lab".
const LAB_ORDER: &[&str] = &[
    "error",
    "text",
    "port",
    "table",
    "fact",
    "halt",
    "processes",
    "part",
    "verdict",
    "folder",
    "measure",
    "experiment",
    "question",
    "routes",
    "control",
    "queue_pairs",
    "reachable",
    "ideal",
    "prepare",
    "host_plan",
    "opensm_conf",
    "policy_conf",
    "control_file",
    "figures",
    "waiting",
    "simulator",
    "capturing",
    "checkpoint",
    "advance",
    "result",
    "alone",
    "run",
    "headline",
    "status",
    "remarks",
    "columns",
    "report",
    "results",
    "sweep",
    "tune",
    "calibrate",
];

/// Crates whose modules have an order.
const CRATES: [(&str, &[&str]); 2] = [("crates/sim/src/", ORDER), ("crates/lab/src/", LAB_ORDER)];

/// Every import that points upwards, and every module that the order does not know.
pub fn upward() -> Vec<String> {
    let sources = source::all();
    let upward = |(folder, order): &(&str, &[&str])| {
        let modules =
            sources.iter().filter_map(|s| s.path.strip_prefix(folder).map(|p| (p, &s.text)));
        upward_in(folder, order, &modules.collect::<Vec<_>>())
    };
    CRATES.iter().flat_map(upward).collect()
}

fn upward_in(folder: &str, order: &[&str], modules: &[(&str, &String)]) -> Vec<String> {
    let exports = exports(modules.iter().find(|(path, _)| *path == "lib.rs").map_or("", |m| m.1));
    let mut findings = Vec::new();
    for (path, text) in modules.iter().filter(|(path, _)| *path != "lib.rs") {
        let name = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        let Some(own) = order.iter().position(|known| *known == name) else {
            findings.push(format!("{folder}{path}: {name} is not in the order of modules"));
            continue;
        };
        let code = blank_rust(text);
        for word in imported(source::before_tests(&code)) {
            let module = exports.get(&word).unwrap_or(&word);
            match order.iter().position(|known| known == module) {
                Some(other) if other <= own => {}
                _ => findings.push(format!("{folder}{path}: imports {word} of {module}")),
            }
        }
    }
    findings
}

/// What the crate's root exports, and from which module.
fn exports(text: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in words(names) {
            exports.insert(name, module.trim().to_owned());
        }
    }
    exports
}

/// The first words behind `crate::`, those of a list one by one.
fn imported(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(firsts(list)),
            None => {
                found.extend(words(rest.split(['\n', ';']).next().unwrap_or("")).into_iter().next())
            }
        }
    }
    found
}

/// The first words of the items of a list that ends with the brace it was opened by.
fn firsts(list: &str) -> Vec<String> {
    let (mut depth, mut item, mut found) = (0, String::new(), Vec::new());
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.extend(words(&std::mem::take(&mut item)).into_iter().next()),
            _ if depth == 0 => item.push(letter),
            _ => {}
        }
    }
    found.extend(words(&item).into_iter().next());
    found
}

fn words(text: &str) -> Vec<String> {
    let part = |c: char| !(c.is_alphanumeric() || c == '_');
    text.split(part).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn imports_are_found() {
    let code =
        "use crate::port::Port;\nuse crate::{Hosts, model::Model};\nlet a = crate::queue::x();";
    assert_eq!(imported(code), ["port", "Hosts", "model", "queue"]);
    let nested = "use crate::{\n    a::{X, Y},\n    windows::Z,\n};\nuse crate::b::c;";
    assert_eq!(imported(nested), ["a", "windows", "b"]);
    let exports = exports("mod a;\npub use adapter::GroupSettings;\npub use a::{\n B, C,\n};");
    assert_eq!(exports.get("C").map(String::as_str), Some("a"));
    assert_eq!(exports.get("GroupSettings").map(String::as_str), Some("adapter"));
}
