//! `clearlane traffic agent`.

use super::keys::{Folder, of_agent, remind};
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::terminal;
use clap::Args;
use clearlane_traffic::agent::Agent;
use std::net::SocketAddr;

/// Where it listens.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  clearlane traffic agent --listen 10.0.0.1:7447\n  \
    clearlane traffic agent --listen 10.0.0.1:7447 --data 10.1.0.1:7448   data over IPoIB\n\n\
    What it may send and take is in policy.toml in the folder of keys, what was asked in \
    audit.jsonl there. It needs no privileges: run it as a user of its own.")]
pub struct Arguments {
    #[command(flatten)]
    folder: Folder,
    /// Where controllers come to
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7447")]
    listen: SocketAddr,
    /// Where data is taken: over which network flows go [default: the address of --listen, any
    /// free port]
    #[arg(long, value_name = "ADDRESS:PORT")]
    data: Option<SocketAddr>,
}

/// Works until it is interrupted.
pub fn run(arguments: &Arguments, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let data = arguments.data.unwrap_or(SocketAddr::new(arguments.listen.ip(), 0));
    let halt = interrupts.stop_silently();
    let folder = arguments.folder.path()?;
    let agent = Agent::new(&folder, arguments.listen, data, halt).map_err(of_agent)?;
    let at = agent.control_address().map_err(|e| Failure::Machine(e.to_string()))?;
    let data = agent.listening_for_data().map_err(|e| Failure::Machine(e.to_string()))?;
    let name = agent.name();
    terminal::remark(&format!("agent {name} listens at {at}, for data at {data}; it may"));
    for line in agent.policy_in_words() {
        terminal::remark(&format!("  {line}"));
    }
    remind(agent.keys());
    if let Some(more) = agent.raise_descriptors() {
        terminal::remark(&format!("note  {more}"));
    }
    agent.serve();
    Ok(Answer::text(String::new()))
}
