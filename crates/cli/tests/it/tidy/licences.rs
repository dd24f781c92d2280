//! Licences of what we link and bundle: they must let us pass our work on under ours.

use super::tree;
use serde_json::Value;
use std::process::Command;

/// Permissive licences, by SPDX identifier: all ask for a notice at most.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates from elsewhere, on this platform, whose licence is not in the list.
pub fn of_crates() -> Vec<String> {
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let foreign: Vec<_> = packages.iter().filter(|p| !p["source"].is_null()).collect();
    assert!(foreign.iter().any(|p| p["name"] == "serde_json"), "serde_json is not listed");
    foreign.into_iter().filter_map(|p| finding(&p["name"], &p["license"])).collect()
}

/// Packages of the report page, tools that build it included, whose licence is not in the list.
pub fn of_page() -> Vec<String> {
    let path = tree::root().join("web/package-lock.json");
    let text = std::fs::read_to_string(&path).expect("web/package-lock.json is there");
    let lock: Value = serde_json::from_str(&text).expect("web/package-lock.json is JSON");
    let packages = lock["packages"].as_object().expect("packages");
    let foreign: Vec<_> = packages.iter().filter(|(name, _)| !name.is_empty()).collect();
    assert!(!foreign.is_empty(), "web/package-lock.json lists nothing");
    let judge =
        |(name, entry): (&String, &Value)| finding(&Value::String(name.clone()), &entry["license"]);
    foreign.into_iter().filter_map(judge).collect()
}

fn finding(name: &Value, licence: &Value) -> Option<String> {
    match licence.as_str() {
        Some(text) if allowed(text) => None,
        Some(text) => Some(format!("{name}: {text}")),
        None => Some(format!("{name}: names no licence")),
    }
}

/// Whether an SPDX expression leaves a choice within the list. `/` is the old way to write OR.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (verdict, rest) = either(&words);
    verdict && rest.is_empty()
}

fn either<'a, 'b>(words: &'a [&'b str]) -> (bool, &'a [&'b str]) {
    let (mut verdict, mut rest) = both(words);
    while let ["OR", after @ ..] = rest {
        let (next, after) = both(after);
        (verdict, rest) = (verdict | next, after);
    }
    (verdict, rest)
}

fn both<'a, 'b>(words: &'a [&'b str]) -> (bool, &'a [&'b str]) {
    let (mut verdict, mut rest) = one(words);
    while let ["AND", after @ ..] = rest {
        let (next, after) = one(after);
        (verdict, rest) = (verdict & next, after);
    }
    (verdict, rest)
}

fn one<'a, 'b>(words: &'a [&'b str]) -> (bool, &'a [&'b str]) {
    match words {
        ["(", inside @ ..] => match either(inside) {
            (verdict, [")", rest @ ..]) => (verdict, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", exception, rest @ ..] => {
            (ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()), rest)
        }
        [licence, rest @ ..] => (ALLOWED.contains(licence), rest),
        [] => (false, words),
    }
}

fn cargo_metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(version.stdout).expect("rustc writes UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line");
    // The host's packages alone: the others were never downloaded.
    let arguments = ["metadata", "--format-version", "1", "--filter-platform", host];
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output =
        Command::new(cargo).args(arguments).current_dir(tree::root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

#[test]
fn expressions_are_judged_as_a_whole() {
    for good in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(allowed(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND LGPL-2.1", "(MIT", "MIT)"] {
        assert!(!allowed(bad), "{bad}");
    }
}
