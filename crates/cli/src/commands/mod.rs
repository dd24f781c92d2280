//! One file per command: its flags and its call.

pub mod explain;
pub mod fabric;
pub mod list;

use crate::answer::Answer;
use crate::failure::Failure;
use clap::Subcommand;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List what has a name: topologies, engines, patterns, presets, formats
    List(list::Arguments),
    /// Explain anything with a name: what it is, its parameters, where it comes from
    Explain(explain::Arguments),
    /// Show, build, anonymize or damage a fabric
    #[command(subcommand)]
    Fabric(fabric::Command),
}

/// Runs a command.
pub fn run(command: &Command, json: bool) -> Result<Answer, Failure> {
    match command {
        Command::List(arguments) => list::run(arguments, json),
        Command::Explain(arguments) => explain::run(arguments, json),
        Command::Fabric(command) => fabric::run(command, json),
    }
}
