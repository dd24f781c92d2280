//! An agent: what a host runs to send and receive under central control.

mod bucket;
mod control;
mod data_listener;
mod datagrams;
mod receiving;
mod run;
mod sending;
mod session;
mod spool;

use crate::audit::Audit;
use crate::channel::Channel;
use crate::keys::{self, Keys, KeysError};
use crate::name::Role;
use crate::policy;
use crate::tls;
use crate::unproven::Unproven;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use session::Session;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the policy is called.
pub const POLICY_FILE: &str = "policy.toml";
/// How the reason begins of a run that somebody had stopped.
pub const STOPPED_BY: &str = "stopped by ";
/// A policy that is read.
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// File descriptors that are none of a run's connections.
const DESCRIPTORS_BESIDE: u64 = 512;

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
    /// Another agent works there.
    #[error(
        "{}: an agent with these keys is running; stop it first, or enrol another name in a folder \
         of its own (--dir)",
        .0.display()
    )]
    Taken(PathBuf),
    /// It cannot listen there.
    #[error("cannot listen at {at}: {}{remedy}", clearlane_lab::plain(error))]
    Listen {
        /// The address.
        at: SocketAddr,
        /// What the system said.
        error: io::Error,
        /// What to do.
        remedy: &'static str,
    },
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
    expected_connections: Arc<data_listener::ExpectedConnections>,
    running: Mutex<Option<Arc<Session>>>,
    callers: Mutex<BTreeMap<String, usize>>,
    halt: Arc<AtomicBool>,
    /// Held while the agent lives.
    _lock: File,
}

/// Puts the policy that an agent begins with into its folder, if there is none.
pub fn write_policy(folder: &Path) -> Result<(), KeysError> {
    match folder.join(POLICY_FILE).exists() {
        true => Ok(()),
        false => keys::write(folder, POLICY_FILE, policy::DEFAULT.as_bytes(), 0o644),
    }
}

/// Takes the lock of a folder. Where folders cannot be locked (some network disks), the address of
/// `--listen` still keeps a second agent out.
fn locked(folder: &Path) -> Result<File, AgentError> {
    let fault = |error| AgentError::Machine { what: folder.display().to_string(), error };
    let lock = File::open(folder).map_err(fault)?;
    match lock.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(AgentError::Taken(folder.to_owned())),
        _ => Ok(lock),
    }
}

/// Lets this process have as many files and connections as it may, and says how many that is.
fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // What cannot be raised stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The text of a policy, which nobody but its owner may write.
fn policy_text(path: &Path) -> Result<String, String> {
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{}: is not there, so nothing is allowed; write it as docs/traffic.md says, or join \
             anew with --force",
            path.display()
        ),
        _ => format!("{}: {}", path.display(), clearlane_lab::plain(&error)),
    };
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
        let lock = locked(folder)?;
        let audit = Audit::open(folder);
        let audit = audit.map_err(machine(format!("{}: the audit log", folder.display())))?;
        let listen = |at: SocketAddr| {
            TcpListener::bind(at).map_err(|error| {
                let remedy = match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        "; another program has that port: choose another with --listen or --data"
                    }
                    io::ErrorKind::AddrNotAvailable => {
                        "; no interface of this host has that address: see `ip address`"
                    }
                    _ => "",
                };
                AgentError::Listen { at, error, remedy }
            })
        };
        let agent = Agent {
            folder: folder.to_owned(),
            tls: tls::server(&keys)?,
            keys,
            audit: Arc::new(audit),
            control: listen(control)?,
            data: listen(data)?,
            expected_connections: Arc::default(),
            running: Mutex::default(),
            callers: Mutex::default(),
            halt,
            _lock: lock,
        };
        agent.policy().map_err(AgentError::Policy)?;
        spool::Spool::clear(folder).map_err(machine(folder.display().to_string()))?;
        Ok(agent)
    }

    /// Who it is.
    pub fn name(&self) -> &crate::name::Name {
        &self.keys.identity.name
    }

    /// Where it takes data.
    pub fn listening_for_data(&self) -> io::Result<SocketAddr> {
        self.data.local_addr()
    }

    /// Its keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Where it listens for controllers.
    pub fn control_address(&self) -> io::Result<SocketAddr> {
        self.control.local_addr()
    }

    /// What its policy allows, a line each.
    pub fn policy_in_words(&self) -> Result<Vec<String>, AgentError> {
        self.policy().map(|policy| policy.in_words()).map_err(AgentError::Policy)
    }

    /// Lets the process have the files and connections that it may have. Returns what is to be
    /// said if the policy's connections need more.
    pub fn raise_descriptors(&self) -> Result<Option<String>, AgentError> {
        let connections = self.policy().map_err(AgentError::Policy)?.limits.connections;
        // Each has a socket or two, and a log.
        let needed = 3 * u64::from(connections) + DESCRIPTORS_BESIDE;
        let may = descriptors();
        Ok((may < needed).then(|| {
            format!(
                "this process may have {may} open files, {connections} connections may need \
                 {needed}; allow more (ulimit -Hn, or LimitNOFILE= of its unit)"
            )
        }))
    }

    /// Works until the flag it was made with is raised.
    pub fn serve(self) -> Result<(), AgentError> {
        let machine = |error| AgentError::Machine { what: "cannot listen".into(), error };
        self.control.set_nonblocking(true).map_err(machine)?;
        let (unproven, agent) = (Unproven::default(), &self);
        std::thread::scope(|scope| {
            let data = scope.spawn(|| {
                let Agent { data, expected_connections, audit, halt, .. } = agent;
                data_listener::listen(data, expected_connections, audit, halt)
            });
            while !agent.halt.load(SeqCst) {
                let Ok((tcp, _)) = agent.control.accept() else {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                // Without descriptors or threads to give, the caller is refused, and not the run.
                let Ok(entered) = unproven.enter(&tcp) else { continue };
                let served = move || {
                    if tcp.set_nonblocking(false).is_ok() {
                        control::serve(agent, tcp, entered);
                    }
                };
                let thread = std::thread::Builder::new().name("control".into());
                let _ = thread.spawn_scoped(scope, served);
            }
            data.join().unwrap_or(Ok(())).map_err(machine)
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
