//! An agent: what a host runs to send and receive under central control.

mod bucket;
mod control;
mod datagrams;
mod door;
mod governors;
mod receiving;
mod run;
mod sending;
mod session;
mod spool;

use crate::audit::{Audit, Came};
use crate::channel::Channel;
use crate::keys::{self, Keys, KeysError};
use crate::name::Role;
use crate::policy;
use crate::tls;
use rustls::ServerConfig;
use session::Session;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the policy is called.
pub const POLICY_FILE: &str = "policy.toml";
/// How the reason begins of a run that somebody had stopped.
pub const STOPPED_BY: &str = "stopped by ";
/// A policy that is read.
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// Control connections at a time.
const CALLERS_MAX: usize = 32;

/// Why an agent cannot work.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The folder holds keys of another role.
    #[error("{} holds the keys of {role} {name}; an agent has its own: enrol it", folder.display())]
    Role {
        /// The folder.
        folder: PathBuf,
        /// The role.
        role: Role,
        /// The name.
        name: crate::name::Name,
    },
    /// Its policy.
    #[error("{0}")]
    Policy(String),
    /// The machine refused.
    #[error("{what}: {}", clearlane_lab::plain(error))]
    Machine {
        /// What failed.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

/// An agent.
pub struct Agent {
    folder: PathBuf,
    keys: Keys,
    audit: Arc<Audit>,
    tls: Arc<ServerConfig>,
    control: TcpListener,
    data: TcpListener,
    guests: Arc<door::Guests>,
    running: Mutex<Option<Arc<Session>>>,
    halt: Arc<AtomicBool>,
}

/// Puts the policy that an agent begins with into its folder, if there is none.
pub fn write_policy(folder: &Path) -> Result<(), KeysError> {
    match folder.join(POLICY_FILE).exists() {
        true => Ok(()),
        false => keys::write(folder, POLICY_FILE, policy::DEFAULT.as_bytes(), 0o644),
    }
}

/// The text of a policy, which nobody but its owner may write.
fn policy_text(path: &Path) -> Result<String, String> {
    let fault = |error: io::Error| format!("{}: {}", path.display(), clearlane_lab::plain(&error));
    let known = fs::metadata(path).map_err(fault)?;
    if known.mode() & 0o022 != 0 {
        let path = path.display();
        return Err(format!("{path}: others than its owner may write it; chmod go-w {path}"));
    }
    if known.len() > POLICY_BYTES_MAX {
        return Err(format!("{}: has {} B; 1 MiB is read", path.display(), known.len()));
    }
    fs::read_to_string(path).map_err(fault)
}

impl Agent {
    /// Listens at `control` for controllers, and at `data` for senders.
    pub fn new(
        folder: &Path,
        control: SocketAddr,
        data: SocketAddr,
        halt: Arc<AtomicBool>,
    ) -> Result<Self, AgentError> {
        let keys = Keys::read(folder)?;
        if keys.identity.role != Role::Agent {
            let (role, name) = (keys.identity.role, keys.identity.name.clone());
            return Err(AgentError::Role { folder: folder.to_owned(), role, name });
        }
        let machine = |what: String| move |error| AgentError::Machine { what, error };
        let audit = Audit::open(folder);
        let audit = audit.map_err(machine(format!("{}: the audit log", folder.display())))?;
        let listen = |at: SocketAddr| {
            TcpListener::bind(at).map_err(machine(format!("cannot listen at {at}")))
        };
        let agent = Agent {
            folder: folder.to_owned(),
            tls: tls::server(&keys)?,
            keys,
            audit: Arc::new(audit),
            control: listen(control)?,
            data: listen(data)?,
            guests: Arc::default(),
            running: Mutex::default(),
            halt,
        };
        agent.policy().map_err(AgentError::Policy)?;
        spool::Spool::clear(folder).map_err(machine(folder.display().to_string()))?;
        Ok(agent)
    }

    /// Who it is.
    pub fn name(&self) -> &crate::name::Name {
        &self.keys.identity.name
    }

    /// Where it listens for controllers.
    pub fn control_address(&self) -> io::Result<SocketAddr> {
        self.control.local_addr()
    }

    /// What its policy allows, a line each.
    pub fn policy_in_words(&self) -> Result<Vec<String>, AgentError> {
        self.policy().map(|policy| policy.in_words()).map_err(AgentError::Policy)
    }

    /// Works until the flag it was made with is raised.
    pub fn serve(self) -> Result<(), AgentError> {
        let machine = |error| AgentError::Machine { what: "cannot listen".into(), error };
        self.control.set_nonblocking(true).map_err(machine)?;
        let (callers, agent) = (AtomicUsize::new(0), &self);
        std::thread::scope(|scope| {
            let door =
                scope.spawn(|| door::keep(&agent.data, &agent.guests, &agent.audit, &agent.halt));
            while !agent.halt.load(SeqCst) {
                let (tcp, from) = match agent.control.accept() {
                    Ok(come) => come,
                    Err(_) => {
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                };
                if callers.fetch_add(1, SeqCst) >= CALLERS_MAX {
                    callers.fetch_sub(1, SeqCst);
                    let (who, why) = (from.to_string(), "too many control connections");
                    let _ = agent.audit.note(Came::Refused, &who, "control connection", why);
                    continue;
                }
                let count = &callers;
                let served = move || {
                    if tcp.set_nonblocking(false).is_ok() {
                        control::serve(agent, tcp);
                    }
                    count.fetch_sub(1, SeqCst);
                };
                // A machine without threads to give refuses the caller, and not the run.
                let thread = std::thread::Builder::new().name("control".into());
                if thread.spawn_scoped(scope, served).is_err() {
                    callers.fetch_sub(1, SeqCst);
                }
            }
            door.join().unwrap_or(Ok(())).map_err(machine)
        })
    }

    /// Where senders connect to: the address of data, or where that is any, the one that the
    /// controller has come to.
    fn data_address(&self, channel: &Channel) -> SocketAddr {
        let own = channel.own_address().map_or(IpAddr::from([127, 0, 0, 1]), |own| own.ip());
        match self.data.local_addr() {
            Ok(data) if data.ip().is_unspecified() => SocketAddr::new(own, data.port()),
            Ok(data) => data,
            Err(_) => SocketAddr::new(own, 0),
        }
    }
}
