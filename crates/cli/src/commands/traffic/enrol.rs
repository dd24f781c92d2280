//! `clearlane traffic enrol`.

use super::keys::{Folder, of_enrolment, of_keys};
use crate::answer::{Answer, Verdict};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::terminal;
use clap::{Args, ValueEnum};
use clearlane_traffic::audit::Audit;
use clearlane_traffic::controller::{Inventory, Known};
use clearlane_traffic::disk::{ANSWER_MAX, Disk};
use clearlane_traffic::enrolment::{Enrolment, Joining};
use clearlane_traffic::keys::Authority;
use clearlane_traffic::name::{Identity, Name, Role};
use ring::rand::SystemRandom;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    let inventory = Inventory::read(&folder).map_err(Failure::input)?;
    let (who, agents) = named(arguments)?;
    must_be_reached(arguments.listen, &agents, &inventory)?;
    let audit = Audit::open(&folder).map_err(|e| Failure::writing(&folder, &e))?;
    let enrolment = Enrolment::new(&keys, authority, arguments.listen, who, &SystemRandom::new());
    let enrolment = enrolment.map_err(of_enrolment)?;
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
    // A disk that hangs ends the waiting with an error after `ANSWER_MAX`. Until then signals are
    // answered.
    let disk = Disk::new("inventory", inventory).map_err(|e| Failure::writing(&folder, &e))?;
    let (joined, unsure) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let told = |identity: &Identity, joining: Joining| {
        if let Some(known) = agents.iter().find(|known| known.name == identity.name) {
            let (known, folder) = (known.clone(), folder.clone());
            let unfinished = interrupts.unfinished().clone();
            disk.ask(ANSWER_MAX, move |inventory: &mut Inventory| {
                inventory.set(known);
                inventory.write(&folder, &unfinished)
            })?;
        }
        let name = identity.name.to_string();
        match joining {
            Joining::Stored => {
                terminal::remark(&format!("{identity} has joined"));
                locked(&joined).push(name);
            }
            Joining::Unsure => {
                terminal::remark(&format!(
                    "{identity} was sent its certificate and did not say that it has it; if join \
                     failed there, enrol it again"
                ));
                locked(&unsure).push(name);
            }
        }
        Ok(())
    };
    enrolment.wait(&audit, &halt, &told).map_err(|e| Failure::writing(&folder, &e))?;
    let (joined, unsure) = (locked(&joined).clone(), locked(&unsure).clone());
    let missing: Vec<String> =
        enrolment.tokens().iter().map(|token| token.identity.name.to_string()).collect();
    Ok(answer(&joined, &unsure, &missing, json))
}

/// What is said in the end.
fn answer(joined: &[String], unsure: &[String], missing: &[String], json: bool) -> Answer {
    let verdict = match (missing.is_empty(), unsure.is_empty()) {
        (true, true) => Verdict::Done,
        (true, false) => Verdict::BadNews,
        (false, _) => Verdict::Interrupted,
    };
    if json {
        let fields = json!({ "joined": joined, "unsure": unsure, "missing": missing });
        return Answer::json("clearlane-traffic-enrol/1", fields).with(verdict);
    }
    let mut told = format!("{} joined", joined.len());
    for (names, what) in [(unsure, "may have"), (missing, "did not")] {
        if !names.is_empty() {
            told += &format!("; {} {what}", names.join(", "));
        }
    }
    Answer::text(told + "\n").with(verdict)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is to be enrolled, and the addresses of the agents among them.
fn named(arguments: &Arguments) -> Result<(Vec<Identity>, Vec<Known>), Failure> {
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
    Ok((who, agents))
}

/// Fails if hosts cannot come to where they are told to.
fn must_be_reached(listen: SocketAddr, agents: &[Known], known: &Inventory) -> Result<(), Failure> {
    if listen.ip().is_unspecified() {
        return Err(Failure::Input(format!(
            "--listen {listen} is no address that hosts can come to; name the one by which they \
             reach this host"
        )));
    }
    for Known { name, address } in agents {
        if address.ip().is_unspecified() {
            return Err(Failure::Input(format!(
                "{name}@{address} is no address of one host; name the one by which the controller \
                 reaches it"
            )));
        }
        if listen.ip().is_loopback() && !address.ip().is_loopback() {
            return Err(Failure::Input(format!(
                "{name}@{address} cannot come to --listen {listen}, which is this host alone; name \
                 the address by which hosts reach this one: --listen ADDRESS:{}",
                listen.port()
            )));
        }
        let others = agents.iter().chain(known.all());
        if let Some(other) =
            others.into_iter().find(|other| other.address == *address && other.name != *name)
        {
            return Err(Failure::Input(format!(
                "{name}@{address}: {} listens there; two agents need two ports",
                other.name
            )));
        }
    }
    Ok(())
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
