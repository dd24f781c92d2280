//! The folder of keys, and failures of the library in the terms of exit codes.

use crate::failure::Failure;
use crate::terminal;
use clap::Args;
use clearlane_traffic::agent::AgentError;
use clearlane_traffic::controller::{Inventory, Known, Link, LinkError, RunError};
use clearlane_traffic::enrolment::EnrolmentError;
use clearlane_traffic::keys::{Keys, KeysError};
use clearlane_traffic::name::Role;
use std::path::PathBuf;

/// So long before the end of a certificate it is said that it ends.
const REMINDED_DAYS: i64 = 30;

/// The flag of all commands.
#[derive(Args, Debug)]
pub struct Folder {
    /// Folder of keys [default: .clearlane in the home folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Folder {
    /// Its path.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let home = || std::env::home_dir().map(|home| home.join(".clearlane"));
        self.dir.clone().or_else(home).ok_or_else(|| {
            Failure::Input("there is no home folder; name a folder of keys with --dir".into())
        })
    }

    /// The keys in it.
    pub fn keys(&self) -> Result<Keys, Failure> {
        let keys = Keys::read(&self.path()?).map_err(of_keys)?;
        remind(&keys);
        Ok(keys)
    }

    /// The keys in it, which are to be a controller's.
    pub fn of_controller(&self) -> Result<Keys, Failure> {
        let keys = self.keys()?;
        match keys.identity.role {
            Role::Controller => Ok(keys),
            _ => Err(Failure::Input(format!(
                "{} holds the keys of {}; this needs those of the controller, in the folder that \
                 `clearlane traffic init` made (--dir)",
                keys.folder.display(),
                keys.identity
            ))),
        }
    }
}

/// Says when a certificate is about to end, and how it is renewed.
pub fn remind(keys: &Keys) {
    let ends = match () {
        () if keys.ends_within(0) => "has ended".to_owned(),
        () if keys.ends_within(REMINDED_DAYS) => format!("ends within {REMINDED_DAYS} days"),
        () => return,
    };
    let renewed = match keys.identity.role {
        Role::Controller => "clearlane traffic init --renew",
        Role::Agent | Role::Viewer => "enrol it again, and clearlane traffic join --force TOKEN",
    };
    let who = &keys.identity;
    terminal::remark(&format!("note  the certificate of {who} {ends}; renew it: {renewed}"));
}

/// Keys that are missing or wrong.
pub fn of_keys(error: KeysError) -> Failure {
    Failure::Input(error.to_string())
}

/// An enrolment that failed: here, or for what was given.
pub fn of_enrolment(error: EnrolmentError) -> Failure {
    match error {
        EnrolmentError::Machine { .. } => Failure::Machine(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

/// An agent that cannot work: here, or for what was given.
pub fn of_agent(error: AgentError) -> Failure {
    match error {
        AgentError::Machine { .. } => Failure::Machine(error.to_string()),
        AgentError::Interrupted(_) => Failure::Interrupted(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

/// A run without a result: here, interrupted, or for what was asked for.
pub fn of_run(error: RunError) -> Failure {
    match error {
        RunError::Machine(_) | RunError::Lost(_) => Failure::Machine(error.to_string()),
        RunError::Interrupted => Failure::Interrupted(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

/// The flags of commands that ask agents.
#[derive(Args, Debug)]
pub struct Asked {
    /// Agents, by name or as NAME@ADDRESS:PORT; all that are enrolled without any
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
    #[command(flatten)]
    folder: Folder,
}

/// An agent, and what it says.
pub type Told<T> = (Known, Result<T, LinkError>);

impl Asked {
    /// What each agent says.
    pub fn ask<T: Send>(
        &self,
        ask: impl Fn(&mut Link) -> Result<T, LinkError> + Sync,
    ) -> Result<Vec<Told<T>>, Failure> {
        let keys = self.folder.keys()?;
        let agents = agents(&self.folder, &self.agents)?;
        let answers = ask_all(&keys, &agents, ask);
        Ok(agents.into_iter().zip(answers).collect())
    }
}

/// The agents of these names, or at the addresses that names have with them; all that are known
/// without any.
fn agents(folder: &Folder, names: &[String]) -> Result<Vec<Known>, Failure> {
    let path = folder.path()?;
    let inventory = Inventory::read(&path).map_err(Failure::input)?;
    let has_addresses = !names.is_empty() && names.iter().all(|name| name.contains('@'));
    if inventory.all().is_empty() && !has_addresses {
        let path = path.display();
        return Err(Failure::Input(format!(
            "{path}: no agent is known here; the controller enrols them (clearlane traffic enrol), \
             a viewer names them: NAME@ADDRESS:PORT"
        )));
    }
    if names.is_empty() {
        return Ok(inventory.all().to_vec());
    }
    let one = |text: &String| {
        if let Some((name, address)) = text.split_once('@') {
            let wrong = || Failure::Input(format!("{text} is no NAME@ADDRESS:PORT of an agent"));
            let name = name.parse().map_err(|_| wrong())?;
            return Ok(Known { name, address: address.parse().map_err(|_| wrong())? });
        }
        let is_it = |known: &&Known| known.name.as_str().eq_ignore_ascii_case(text);
        inventory.all().iter().find(is_it).cloned().ok_or_else(|| {
            let all: Vec<&str> = inventory.all().iter().map(|known| known.name.as_str()).collect();
            Failure::Input(format!("{text} is no agent; there are {}", all.join(", ")))
        })
    };
    names.iter().map(one).collect()
}

/// What each agent says, all asked at once: one that is gone keeps nobody waiting.
fn ask_all<T: Send>(
    keys: &Keys,
    agents: &[Known],
    ask: impl Fn(&mut Link) -> Result<T, LinkError> + Sync,
) -> Vec<Result<T, LinkError>> {
    std::thread::scope(|scope| {
        let one = |known| {
            let ask = &ask;
            scope.spawn(move || Link::connect(keys, known).and_then(|mut link| ask(&mut link)))
        };
        let threads: Vec<_> = agents.iter().map(one).collect();
        let answers = threads.into_iter().zip(agents);
        answers
            .map(|(thread, known)| {
                thread.join().unwrap_or_else(|_| {
                    let agent = known.name.to_string();
                    Err(LinkError::Answer { agent, question: "anything" })
                })
            })
            .collect()
    })
}
