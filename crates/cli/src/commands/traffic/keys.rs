//! The folder of keys, and failures of the library in the terms of exit codes.

use crate::failure::Failure;
use clap::Args;
use clearlane_traffic::agent::AgentError;
use clearlane_traffic::controller::{Inventory, Known, Link, LinkError, RunError};
use clearlane_traffic::enrolment::EnrolmentError;
use clearlane_traffic::keys::{Keys, KeysError};
use std::path::PathBuf;

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
        Keys::read(&self.path()?).map_err(of_keys)
    }
}

pub fn of_keys(error: KeysError) -> Failure {
    Failure::Input(error.to_string())
}

pub fn of_enrolment(error: EnrolmentError) -> Failure {
    match error {
        EnrolmentError::Machine { .. } => Failure::Machine(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

pub fn of_agent(error: AgentError) -> Failure {
    match error {
        AgentError::Machine { .. } => Failure::Machine(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

pub fn of_run(error: RunError) -> Failure {
    match error {
        RunError::Machine(_) => Failure::Machine(error.to_string()),
        RunError::Interrupted => Failure::Interrupted(error.to_string()),
        error => Failure::Input(error.to_string()),
    }
}

/// The agents of these names, or at the addresses that names have with them; all that are known
/// without any.
pub fn agents(folder: &Folder, names: &[String]) -> Result<Vec<Known>, Failure> {
    let path = folder.path()?;
    let inventory = Inventory::read(&path).map_err(Failure::input)?;
    let has_addresses = !names.is_empty() && names.iter().all(|name| name.contains('@'));
    if inventory.all().is_empty() && !has_addresses {
        let path = path.display();
        return Err(Failure::Input(format!("{path}: no agent is enrolled; see traffic enrol")));
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
pub fn ask_all<T: Send>(
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
