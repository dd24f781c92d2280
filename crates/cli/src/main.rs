//! Clearlane's command line: flags to calls, results to stdout, everything else to stderr.

#![deny(unsafe_code)]

mod answer;
mod arguments;
mod best;
mod catalogue;
mod commands;
mod compared;
mod disjoint;
mod division;
mod exit_codes;
mod failure;
mod files;
mod fleet;
mod hot;
mod interrupt;
mod lanes;
mod memory;
mod progress;
mod reference;
mod routing;
mod site;
mod table;
mod terminal;
mod writing;

use answer::Verdict;
use arguments::Parsed;
use clearlane_lab::Unfinished;
use failure::Failure;
use fleet::Joined;
use memory::Allocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let unfinished = Unfinished::default();
    failure::told_in_one_line(&unfinished);
    if let Err(failure) = memory::keep(&unfinished) {
        return ExitCode::from(told(&failure));
    }
    let joined = match Joined::join() {
        Ok(joined) => joined,
        Err(failure) => return ExitCode::from(told(&failure)),
    };
    ExitCode::from(match outcome(&joined, unfinished) {
        Ok(verdict) => verdict.code(),
        Err(failure) => {
            joined.let_first_speak();
            let code = told(&failure);
            joined.abort(code);
            code
        }
    })
}

/// Does what was asked.
fn outcome(joined: &Joined, unfinished: Unfinished) -> Result<Verdict, Failure> {
    match arguments::parse(std::env::args_os())? {
        Parsed::Text(text) => terminal::print(&text).map(|()| Verdict::Done),
        Parsed::Command(command, json) => {
            let words = std::env::args_os().skip(1).collect();
            let answer = commands::run(*command, words, json, joined, unfinished)?;
            let print = if answer.is_file { terminal::print_file } else { terminal::print };
            print(&answer.text).map(|()| answer.verdict)
        }
    }
}

/// Says why there is no answer. Returns the exit code.
fn told(failure: &Failure) -> u8 {
    terminal::remark(&format!("clearlane: {}", failure.line()));
    failure.code()
}
