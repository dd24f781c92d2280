//! Clearlane's command line: flags to calls, results to stdout, everything else to stderr.

#![forbid(unsafe_code)]

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
use std::process::ExitCode;

fn main() -> ExitCode {
    failure::told_in_one_line();
    let outcome = arguments::parse(std::env::args_os()).and_then(|parsed| match parsed {
        Parsed::Text(text) => terminal::print(&text).map(|()| Verdict::Done),
        Parsed::Command(command, json) => {
            let words = std::env::args_os().skip(1).collect();
            let answer = commands::run(*command, words, json)?;
            let print = if answer.is_file { terminal::print_file } else { terminal::print };
            print(&answer.text).map(|()| answer.verdict)
        }
    });
    let code = match outcome {
        Ok(verdict) => verdict.code(),
        Err(failure) => {
            terminal::remark(&format!("clearlane: {}", failure.line()));
            failure.code()
        }
    };
    ExitCode::from(code)
}
