//! `clearlane fabric`: what can be done with cables alone.

mod anonymize;
mod build;
mod convert;
mod cut;
mod show;
mod written;

use crate::answer::Answer;
use crate::failure::Failure;
use clap::Subcommand;
use clearlane_lab::Unfinished;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show what a fabric consists of, and list the oddities of its file
    Show(show::Arguments),
    /// Build a topology and write it as a netlist that ibsim and OpenSM read, or as a drawing
    Build(build::Arguments),
    /// Write a fabric in another format: a netlist, or a drawing for Graphviz or NetworkX
    Convert(convert::Arguments),
    /// Give a site's files made-up names and GUIDs
    Anonymize(anonymize::Arguments),
    /// Remove cables or nodes, or make cables slower
    Cut(cut::Arguments),
}

/// Runs a command.
pub fn run(command: &Command, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    match command {
        Command::Show(arguments) => show::run(arguments, json),
        Command::Build(arguments) => build::run(arguments, json, unfinished),
        Command::Convert(arguments) => convert::run(arguments, json, unfinished),
        Command::Anonymize(arguments) => anonymize::run(arguments, json, unfinished),
        Command::Cut(arguments) => cut::run(arguments, json, unfinished),
    }
}
