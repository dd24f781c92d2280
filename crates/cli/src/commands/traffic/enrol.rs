//! `clearlane traffic enrol`.

use super::keys::{Folder, of_enrolment, of_keys};
use crate::answer::{Answer, Verdict};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::terminal;
use clap::{Args, ValueEnum};
use clearlane_traffic::audit::Audit;
use clearlane_traffic::controller::{Inventory, Known};
use clearlane_traffic::enrolment::Enrolment;
use clearlane_traffic::keys::Authority;
use clearlane_traffic::name::{Identity, Name, Role};
use ring::rand::SystemRandom;
use serde_json::json;
use std::net::SocketAddr;

/// Whom to enrol.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  clearlane traffic enrol --listen 10.0.0.9:7446 H1@10.0.0.1:7447 \
    H4@10.0.0.4:7447\n\nGive each token to the administrator of its host, who runs \
    `clearlane traffic join TOKEN`. A token is good once, and while this command waits."
)]
pub struct Arguments {
    /// Names, of agents with the address at which each will listen for controllers
    #[arg(value_name = "NAME@ADDRESS:PORT", required = true)]
    who: Vec<String>,
    #[command(flatten)]
    folder: Folder,
    /// Where hosts that join come to
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7446")]
    listen: SocketAddr,
    /// What they may do
    #[arg(long, value_enum, default_value_t)]
    role: EnrolledRole,
}

/// Roles that are enrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum EnrolledRole {
    /// Send and receive
    #[default]
    Agent,
    /// Ask for status, and nothing else; a name without an address
    Viewer,
}

/// Enrols them.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let folder = arguments.folder.path()?;
    let keys = arguments.folder.keys()?;
    let authority = Authority::read(&folder).map_err(of_keys)?;
    let mut inventory = Inventory::read(&folder).map_err(Failure::input)?;
    let mut agents = Vec::new();
    let mut who = Vec::new();
    for text in &arguments.who {
        let (name, address) = read(text, arguments.role)?;
        if who.iter().any(|known: &Identity| known.name == name) {
            return Err(Failure::Input(format!("{name} is named twice; name it once")));
        }
        let role = match arguments.role {
            EnrolledRole::Agent => Role::Agent,
            EnrolledRole::Viewer => Role::Viewer,
        };
        who.push(Identity { name: name.clone(), role });
        agents.extend(address.map(|address| Known { name, address }));
    }
    let audit = Audit::open(&folder).map_err(|e| Failure::writing(&folder, &e))?;
    let enrolment = Enrolment::new(&keys, authority, arguments.listen, who, &SystemRandom::new());
    let mut enrolment = enrolment.map_err(of_enrolment)?;
    let tokens: Vec<String> = enrolment.tokens().iter().map(ToString::to_string).collect();
    for token in &tokens {
        // They are wanted before the command ends; a document stands alone on stdout.
        let line = format!("clearlane traffic join {token}");
        if json {
            terminal::remark(&line);
        } else {
            terminal::print(&format!("{line}\n"))?;
        }
    }
    terminal::remark("waiting for them to join; interrupt to wait no longer");
    let halt = interrupts.stop_silently();
    let mut joined = Vec::new();
    while !enrolment.tokens().is_empty() {
        let next = enrolment.next(&audit, &halt).map_err(|e| Failure::writing(&folder, &e))?;
        let Some(identity) = next else { break };
        if let Some(known) = agents.iter().find(|known| known.name == identity.name) {
            inventory.set(known.clone());
            inventory.write(&folder).map_err(|e| Failure::writing(&folder, &e))?;
        }
        terminal::remark(&format!("{identity} has joined"));
        joined.push(identity.name.to_string());
    }
    let missing: Vec<String> =
        enrolment.tokens().iter().map(|token| token.identity.name.to_string()).collect();
    let verdict = if missing.is_empty() { Verdict::Done } else { Verdict::Interrupted };
    if json {
        let fields = json!({ "joined": joined, "missing": missing });
        return Ok(Answer::json("clearlane-traffic-enrol/1", fields).with(verdict));
    }
    let told = match missing.is_empty() {
        true => format!("{} joined\n", joined.len()),
        false => format!("{} joined; {} did not\n", joined.len(), missing.join(", ")),
    };
    Ok(Answer::text(told).with(verdict))
}

fn read(text: &str, role: EnrolledRole) -> Result<(Name, Option<SocketAddr>), Failure> {
    let (name, address) = match text.split_once('@') {
        None => (text, None),
        Some((name, address)) => (name, Some(address)),
    };
    let name: Name = name.parse().map_err(Failure::input)?;
    match (role, address) {
        (EnrolledRole::Agent, None) => Err(Failure::Input(format!(
            "{name}: at which address will its agent listen? write {name}@10.0.0.1:7447"
        ))),
        (EnrolledRole::Viewer, Some(_)) => {
            Err(Failure::Input(format!("{name}: a viewer listens nowhere; write {name}")))
        }
        (_, address) => {
            let read = |text: &str| {
                text.parse().map_err(|_| {
                    let example = format!("{name}@10.0.0.1:7447 or {name}@[fd00::1]:7447");
                    Failure::Input(format!("{text} is no address with a port; write {example}"))
                })
            };
            Ok((name.clone(), address.map(read).transpose()?))
        }
    }
}
