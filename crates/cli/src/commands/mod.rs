//! One file per command: its flags and its call.

mod check;
mod compare;
mod experiment;
mod explain;
mod fabric;
mod list;
mod narrow;
mod route;
mod run;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt;
use clap::Subcommand;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an experiment and put published numbers beside the results
    Run(run::Arguments),
    /// Run one workload over several variants and put them into one table
    Compare(compare::Arguments),
    /// Prove forwarding tables sane, or show the loop or dead end; measure their balance
    Check(check::Arguments),
    /// Fill forwarding tables and write them for OpenSM and ibdmchk
    Route(route::Arguments),
    /// Show, build, anonymize or damage a fabric
    #[command(subcommand)]
    Fabric(fabric::Command),
    /// List what has a name: topologies, engines, patterns, presets, measures, formats
    List(list::Arguments),
    /// Explain anything with a name: what it is, its parameters, where it comes from
    Explain(explain::Arguments),
}

/// Runs a command.
pub fn run(command: &Command, json: bool) -> Result<Answer, Failure> {
    // Experiments watch for themselves, to hand over what is finished.
    if !matches!(command, Command::Run(_) | Command::Compare(_)) {
        interrupt::end_at_once()?;
    }
    match command {
        Command::Run(arguments) => run::run(arguments, json),
        Command::Compare(arguments) => compare::run(arguments, json),
        Command::Check(arguments) => check::run(arguments, json),
        Command::Route(arguments) => route::run(arguments, json),
        Command::List(arguments) => list::run(arguments, json),
        Command::Explain(arguments) => explain::run(arguments, json),
        Command::Fabric(command) => fabric::run(command, json),
    }
}
