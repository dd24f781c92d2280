//! The pages of `docs/reference` and the man pages, written from what the program itself reads: its
//! registries, its command line and its exit codes.

use crate::arguments;
use crate::catalogue::{self, Kind};
use crate::exit_codes;
use clap::ValueEnum;
use std::io;

/// A page's file name and text.
pub type Page = (String, Vec<u8>);

const HEAD: &str = "<!-- Written by `make docs`; to change this text, change the program. -->\n\n";

/// The pages of the reference: one per noun, one for the commands, one for the exit codes.
pub fn pages() -> Vec<Page> {
    let mut pages: Vec<(String, String)> =
        Kind::value_variants().iter().map(|kind| (file(*kind), noun(*kind))).collect();
    pages.push(("commands.md".into(), commands()));
    pages.push(("exit-codes.md".into(), codes()));
    pages.push(("README.md".into(), index()));
    pages.into_iter().map(|(name, text)| (name, format!("{HEAD}{text}").into_bytes())).collect()
}

/// The man pages: `clearlane.1` and one for each command.
pub fn man_pages() -> io::Result<Vec<Page>> {
    let mut root = arguments::definition();
    root.build();
    let mut pages = Vec::new();
    man(&root, "clearlane", &mut pages)?;
    Ok(pages)
}

fn man(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    let mut page = Vec::new();
    // A page has no date: the same program writes the same bytes.
    clap_mangen::Man::new(command.clone()).date("").render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for inner in command.get_subcommands() {
        man(inner, &format!("{name}-{}", inner.get_name()), pages)?;
    }
    Ok(())
}

fn file(kind: Kind) -> String {
    format!("{}.md", kind.name())
}

fn index() -> String {
    let mut text = "# Reference\n\nThe same as `clearlane list`, `explain` and `--help` say.\n\n\
        | page | what |\n|---|---|\n"
        .to_owned();
    for kind in Kind::value_variants() {
        let (name, count) = (kind.name(), catalogue::entries(*kind).len());
        text.push_str(&format!("| [{name}]({name}.md) | {}: {count} |\n", kind.summary()));
    }
    text.push_str("| [commands](commands.md) | every command with its flags |\n");
    text.push_str("| [exit codes](exit-codes.md) | how a command ended |\n");
    text
}

fn noun(kind: Kind) -> String {
    let name = kind.name();
    let mut text = format!("# {}{}\n\n{}.\n", name[..1].to_uppercase(), &name[1..], kind.summary());
    if kind == Kind::Keys {
        return text + &keys();
    }
    for entry in catalogue::entries(kind) {
        text.push_str(&format!("\n## {}\n\n{}\n", entry.name, sentence(&entry.summary)));
        if !entry.facts.is_empty() {
            text.push('\n');
        }
        for (label, fact) in &entry.facts {
            text.push_str(&format!("* {label}: {}\n", plain(fact)));
        }
    }
    text
}

/// The keys of experiment files as a table for each table.
fn keys() -> String {
    let mut text = String::new();
    let mut table = None;
    for entry in catalogue::entries(Kind::Keys) {
        let (of, name) = entry.name.rsplit_once('.').unwrap_or(("", &entry.name));
        if table.as_deref() != Some(of) {
            let title = if of.is_empty() { "At the top".to_owned() } else { format!("[{of}]") };
            text.push_str(&format!("\n## {title}\n\n| key | type | range | default | |\n"));
            text.push_str("|---|---|---|---|---|\n");
            table = Some(of.to_owned());
        }
        let fact = |label: &str| {
            let found = entry.facts.iter().find(|(known, _)| known == label);
            found.map_or(String::new(), |(_, fact)| cell(fact))
        };
        let [kind, range, default] = ["type", "range", "default"].map(fact);
        let summary = cell(&entry.summary);
        text.push_str(&format!("| `{name}` | {kind} | {range} | {default} | {summary} |\n"));
    }
    text
}

fn commands() -> String {
    let mut text = "# Commands\n".to_owned();
    let mut root = arguments::definition();
    root.build();
    command(&root, "clearlane", &mut text);
    text
}

fn command(of: &clap::Command, name: &str, text: &mut String) {
    let mut command = of.clone().bin_name(name);
    let help = command.render_long_help().to_string();
    text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", lines(&help)));
    for inner in of.get_subcommands() {
        self::command(inner, &format!("{name} {}", inner.get_name()), text);
    }
}

fn codes() -> String {
    let mut text = "# Exit codes\n\n| code | meaning |\n|---|---|\n".to_owned();
    for (code, meaning) in exit_codes::ALL {
        text.push_str(&format!("| {code} | {meaning} |\n"));
    }
    text
}

/// Without blanks at the ends of lines.
fn lines(text: &str) -> String {
    text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn sentence(text: &str) -> String {
    let mut letters = plain(text).chars().collect::<Vec<_>>();
    if let Some(first) = letters.first_mut() {
        *first = first.to_ascii_uppercase();
    }
    let text: String = letters.into_iter().collect();
    if text.ends_with('.') { text } else { format!("{text}.") }
}

/// What Markdown would take for its own, as it is.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "\\<").replace('*', "\\*")
}

fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}
