//! `clearlane list`: the names of a registry, or the registries.

use crate::answer::{self, Answer};
use crate::catalogue::{self, Kind};
use crate::failure::Failure;
use crate::table::{Align, Table};
use clap::{Args, ValueEnum};
use serde_json::json;

/// What to list.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  clearlane list\n  clearlane list engines --json")]
pub struct Arguments {
    /// Kind of names; without it, the list of kinds
    kind: Option<Kind>,
}

/// Lists.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    match arguments.kind {
        Some(kind) => of_kind(kind, json),
        None => Ok(kinds(json)),
    }
}

fn of_kind(kind: Kind, json: bool) -> Result<Answer, Failure> {
    let entries = catalogue::entries(kind);
    if json {
        let fields = json!({ "kind": kind, "entries": answer::value(&entries)? });
        return Ok(Answer::json("clearlane-list/1", fields));
    }
    let mut table = Table::plain(&[Align::Left, Align::Left]);
    for entry in entries {
        table.row([entry.name, entry.summary]);
    }
    Ok(Answer::text(table.to_string()))
}

fn kinds(json: bool) -> Answer {
    let all = Kind::value_variants();
    if json {
        let names: Vec<_> = all.iter().map(|kind| kind.name()).collect();
        return Answer::json("clearlane-list/1", json!({ "kinds": names }));
    }
    let mut table = Table::plain(&[Align::Left, Align::Right, Align::Left]);
    for kind in all {
        let count = catalogue::entries(*kind).len().to_string();
        table.row([kind.name(), &count, &kind.summary()]);
    }
    Answer::text(table.to_string())
}
