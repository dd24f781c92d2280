//! `clearlane explain`: what a name means.

use crate::answer::{self, Answer};
use crate::arguments::{Flag, flag};
use crate::catalogue::{self, Entry, Kind};
use crate::failure::Failure;
use crate::table;
use clap::{Args, ValueEnum};
use serde_json::json;

/// What to explain.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  clearlane explain fat-tree\n  clearlane explain qdr\n  \
    clearlane explain traffic.load")]
pub struct Arguments {
    /// A topology, engine, pattern, mechanism, preset, format, measure, experiment key or flag
    #[arg(allow_hyphen_values = true)]
    name: String,
}

/// Explains every entry of that name.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let wanted = arguments.name.as_str();
    let all = catalogue::all();
    let mut found: Vec<_> = all.iter().filter(|entry| entry.name == wanted).collect();
    if found.is_empty() {
        // `buffer` means `sim.buffer`.
        let last = |entry: &&Entry| entry.name.rsplit('.').next() == Some(wanted);
        found = all.iter().filter(|entry| entry.kind == Kind::Keys).filter(last).collect();
    }
    if found.is_empty() {
        // A preset of a mechanism is explained with it.
        let label = format!("preset {wanted}");
        let has = |entry: &&Entry| entry.facts.iter().any(|(known, _)| *known == label);
        found = all.iter().filter(|entry| entry.kind == Kind::Mechanisms).filter(has).collect();
    }
    if let Some(flag) = flag(wanted).filter(|_| found.is_empty()) {
        return Ok(explained_flag(&flag, json));
    }
    if let (true, Ok(kind)) = (found.is_empty(), Kind::from_str(wanted, true)) {
        let many = format!("`{wanted}` are many; see `clearlane list {kind}`");
        return Err(Failure::Input(many));
    }
    if found.is_empty() {
        return Err(Failure::Input(format!(
            "nothing is named `{wanted}`; {}",
            remedy(wanted, &all)
        )));
    }
    if json {
        let fields = json!({ "entries": answer::value(&found)? });
        return Ok(Answer::json("clearlane-explain/1", fields));
    }
    let texts: Vec<_> = found.into_iter().map(paragraph).collect();
    Ok(Answer::text(texts.join("\n")))
}

/// What to ask for instead: what speaks of the word, else the name that resembles it most.
fn remedy(wanted: &str, all: &[Entry]) -> String {
    let word = wanted.to_lowercase();
    let speaks = |text: &str| {
        text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|spoken| spoken == word)
    };
    // No word at all is between any two commas.
    let of_it = all.iter().filter(|entry| !word.is_empty() && speaks(&entry.summary));
    let names: Vec<_> = of_it.take(SPOKEN_MAX).map(|entry| format!("`{}`", entry.name)).collect();
    match catalogue::nearest(wanted) {
        _ if !names.is_empty() => format!("it is spoken of at {}", names.join(", ")),
        Some(name) => format!("did you mean `{name}`?"),
        None => "see `clearlane list`".to_owned(),
    }
}

/// How many entries that speak of a word are named.
const SPOKEN_MAX: usize = 4;

fn explained_flag(flag: &Flag, json: bool) -> Answer {
    let Flag { name, command, help } = flag;
    if json {
        let entry = json!({ "name": name, "kind": "flag", "command": command, "summary": help });
        return Answer::json("clearlane-explain/1", json!({ "entries": [entry] }));
    }
    let mut text = format!("{name}, flag of `{command}`\n");
    for line in table::wrap(help, COLUMNS - INDENT) {
        text.push_str(&format!("{}{line}\n", " ".repeat(INDENT)));
    }
    Answer::text(text)
}

const COLUMNS: usize = 96;
const INDENT: usize = 2;

/// ```text
/// torus, topology
///   A torus of switches …
///
///   parameters  torus:4x4x4, …
/// ```
fn paragraph(entry: &Entry) -> String {
    let indent = " ".repeat(INDENT);
    let mut text = format!("{}, {}\n", entry.name, entry.kind.singular());
    for line in table::wrap(&entry.summary, COLUMNS - INDENT) {
        text.push_str(&format!("{indent}{line}\n"));
    }
    let labels = entry.facts.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    if labels > 0 {
        text.push('\n');
    }
    for (label, fact) in &entry.facts {
        for (index, line) in table::wrap(fact, COLUMNS - INDENT - labels - 2).iter().enumerate() {
            let label = if index == 0 { label.as_str() } else { "" };
            text.push_str(&format!("{indent}{label:labels$}  {line}\n"));
        }
    }
    text
}
