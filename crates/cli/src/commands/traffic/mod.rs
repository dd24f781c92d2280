//! `clearlane traffic`: real hosts send what an experiment says, under central control.

mod agent;
mod enrol;
mod init;
mod join;
mod keys;
mod live;
mod phases;
mod run;
mod status;
mod stop;
#[expect(clippy::disallowed_methods, reason = "programs of a testbed take time to start")]
mod testbed;

use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use clap::Subcommand;

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make the keys of a site: a certificate authority of its own, and the controller's
    Init(init::Arguments),
    /// Let hosts join: print a token for each, and wait until they have
    Enrol(enrol::Arguments),
    /// Join a site with a token: make this host's key, and have it signed
    Join(join::Arguments),
    /// Send and receive on this host, as far as its policy allows
    Agent(agent::Arguments),
    /// Have hosts send what an experiment says, and collect when each packet was sent and received
    Run(run::Arguments),
    /// Build a plan's fabric as network namespaces of this machine, and run it there and simulated
    Testbed(testbed::Arguments),
    /// Ask agents what they do and what they allow
    Status(status::Arguments),
    /// Stop what agents send, whoever started it
    Stop(stop::Arguments),
}

/// Runs a command.
pub fn run(command: &Command, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    match command {
        Command::Init(arguments) => init::run(arguments, json, interrupts.unfinished()),
        Command::Enrol(arguments) => enrol::run(arguments, json, interrupts),
        Command::Join(arguments) => join::run(arguments, json, interrupts.unfinished()),
        Command::Agent(arguments) => agent::run(arguments, interrupts),
        Command::Run(arguments) => run::run(arguments, json, interrupts),
        Command::Testbed(arguments) => testbed::run(arguments, json, interrupts),
        Command::Status(arguments) => status::run(arguments, json),
        Command::Stop(arguments) => stop::run(arguments, json),
    }
}
