//! One file per command: its flags and its call.

mod calibrate;
mod capture;
mod check;
mod compare;
mod completions;
mod control;
mod deploy;
mod diagnose;
mod docs;
mod experiment;
mod explain;
mod fabric;
mod list;
mod narrow;
mod overlay;
mod resume;
mod route;
mod run;
mod sweep;
mod traffic;
mod tune;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::fleet::Joined;
use crate::interrupt::Interrupts;
use clap::Subcommand;
use clearlane_lab::Unfinished;
use std::ffi::OsString;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Say from a site's files what is wrong, who would suffer under load, and what would help
    Diagnose(diagnose::Arguments),
    /// Run an experiment and put published numbers beside the results
    Run(run::Arguments),
    /// Run one workload over several variants and put them into one table
    Compare(compare::Arguments),
    /// Run an experiment at every point of a grid of values, such as loads
    Sweep(sweep::Arguments),
    /// Find the value of a parameter with which an experiment is fastest
    #[command(subcommand)]
    Tune(tune::Command),
    /// Measure how far flow mode is from packets, with an interval, and test the interval
    Calibrate(calibrate::Arguments),
    /// Continue a run, comparison or sweep that was interrupted or killed
    Resume(resume::Arguments),
    /// Check forwarding tables for lost paths, loops and credit loops, and measure their balance
    Check(check::Arguments),
    /// Fill forwarding tables and write them for OpenSM and ibdmchk
    Route(route::Arguments),
    /// Write what gives paths their lanes in a stock OpenSM, with steps and the way back
    Deploy(deploy::Arguments),
    /// Write an experiment's congestion control as options or a policy file of OpenSM, or read one
    Control(control::Arguments),
    /// Show, build, anonymize or damage a fabric
    #[command(subcommand)]
    Fabric(fabric::Command),
    /// Say from captures of InfiniBand or RoCE who is congested, who contributes, who suffers
    Capture(capture::Arguments),
    /// Have real hosts send what an experiment says, under central control
    #[command(subcommand)]
    Traffic(traffic::Command),
    /// List what has a name: topologies, engines, patterns, presets, measures, formats
    List(list::Arguments),
    /// Explain anything with a name: what it is, its parameters, where it comes from
    Explain(explain::Arguments),
    /// Print what a shell needs to complete commands and flags
    Completions(completions::Arguments),
    /// Write the reference: a page of Markdown per noun, the commands, the exit codes
    Docs(docs::Arguments),
    /// Write the man pages
    Man(docs::Arguments),
}

impl Command {
    /// The flags of a command that runs experiments.
    fn shared(&mut self) -> Option<&mut experiment::Shared> {
        match self {
            Command::Run(arguments) => Some(&mut arguments.shared),
            Command::Compare(arguments) => Some(&mut arguments.shared),
            Command::Sweep(arguments) => Some(&mut arguments.shared),
            _ => None,
        }
    }
}

/// Runs a command that was called with these words.
pub fn run(
    mut command: Command,
    words: Vec<OsString>,
    json: bool,
    joined: &Joined,
    unfinished: Unfinished,
) -> Result<Answer, Failure> {
    let mut json = json;
    let mut names = words.iter().filter_map(|word| word.to_str());
    let name = names.find(|word| !word.starts_with('-')).unwrap_or_default().to_owned();
    if let Command::Resume(arguments) = &command {
        (command, json) = resume::command(arguments, json)?;
    } else if let Some(shared) = command.shared() {
        shared.call = resume::Call::of(words);
    }
    match &command {
        Command::Run(_) | Command::Compare(_) => {}
        // It may have been resumed.
        Command::Sweep(_) => joined.alone("sweep")?,
        _ => joined.alone(&name)?,
    }
    let processes = &joined.processes;
    let interrupts = Interrupts::caught(unfinished)?;
    let unfinished = interrupts.unfinished();
    match &command {
        // One that was resumed is none of these.
        Command::Resume(_) => Err(Failure::Internal("a resumed command is resumed".into())),
        Command::Diagnose(arguments) => diagnose::run(arguments, json, &interrupts),
        Command::Run(arguments) => run::run(arguments, json, &interrupts, processes),
        Command::Compare(arguments) => compare::run(arguments, json, &interrupts, processes),
        Command::Sweep(arguments) => sweep::run(arguments, json, &interrupts),
        Command::Tune(command) => tune::run(command, json, &interrupts),
        Command::Calibrate(arguments) => calibrate::run(arguments, json, &interrupts),
        Command::Check(arguments) => check::run(arguments, json),
        Command::Route(arguments) => route::run(arguments, json, unfinished),
        Command::Deploy(arguments) => deploy::run(arguments, json, unfinished),
        Command::Control(arguments) => control::run(arguments, json, unfinished),
        Command::Capture(arguments) => capture::run(arguments, json, &interrupts),
        Command::Traffic(command) => traffic::run(command, json, &interrupts),
        Command::List(arguments) => list::run(arguments, json),
        Command::Explain(arguments) => explain::run(arguments, json),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Docs(arguments) => docs::reference(arguments, json, unfinished),
        Command::Man(arguments) => docs::man(arguments, json, unfinished),
        Command::Fabric(command) => fabric::run(command, json, unfinished),
    }
}
