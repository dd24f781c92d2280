//! An agent: what a host runs to send and receive under central control.

mod bucket;
mod control;
mod data_listener;
mod datagrams;
mod give_way;
mod receiving;
mod run;
mod sending;
mod session;
mod spool;

use crate::audit::{AUDIT_FILE, Audit};
use crate::channel::Channel;
use crate::disk::Disk;
use crate::keys::{self, Keys, KeysError};
use crate::name::Role;
use crate::policy::{self, Policy};
use crate::small_file::SmallFile;
use crate::tls;
use crate::unproven::{Unproven, listener};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use session::Session;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the policy is called.
pub const POLICY_FILE: &str = "policy.toml";
/// How the reason begins of a run that somebody had stopped.
pub const STOPPED_BY: &str = "stopped by ";
/// A policy that is read.
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// File descriptors that are none of a run's connections.
const DESCRIPTORS_BESIDE: u64 = 640;
/// Longest wait of a starting agent for its disk.
const STARTING_MAX: Duration = Duration::from_secs(30);
/// Time between two checks whether to go on.
const LOOK: Duration = Duration::from_millis(50);

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
    /// It was told to end while it waited for its disk.
    #[error("interrupted; the disk of {} has not answered until then", .0.display())]
    Interrupted(PathBuf),
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
    /// Its policy when it began. What is asked later is judged by the policy as it is then.
    began_with: Policy,
    /// The thread that reads files of the folder.
    files: Disk<PathBuf>,
    spool: Arc<Disk<spool::Files>>,
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

/// The contents of its folder that an agent needs.
struct Opened {
    keys: Keys,
    lock: File,
    audit: Audit,
    policy: Policy,
    spool: spool::Files,
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

/// The policy in a folder. Fails if anybody but root and the current user may write it.
fn policy_in(folder: &Path) -> Result<Policy, String> {
    let path = folder.join(POLICY_FILE);
    let read = |path| SmallFile::open(path, POLICY_BYTES_MAX)?.trusted()?.text();
    let text = read(&path).map_err(|error| match error.is_not_there() {
        true => format!(
            "{}: is not there, so nothing is allowed; write it as docs/traffic.md says, or join \
             anew with --force",
            path.display()
        ),
        false => format!("{}: {error}", path.display()),
    })?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}

impl Opened {
    /// Opens the folder of an agent. Fails if an agent could not work with it.
    fn of(folder: &Path) -> Result<Self, AgentError> {
        let machine = |what: PathBuf| {
            move |error| AgentError::Machine { what: what.display().to_string(), error }
        };
        let keys = Keys::read(folder)?;
        if keys.identity.role != Role::Agent {
            let (role, name) = (keys.identity.role, keys.identity.name.clone());
            return Err(AgentError::Role { folder: folder.to_owned(), role, name });
        }
        let lock = locked(folder)?;
        let audit = Audit::open(folder).map_err(machine(folder.join(AUDIT_FILE)))?;
        let policy = policy_in(folder).map_err(AgentError::Policy)?;
        let spool = spool::Files::of(folder);
        spool.clear().map_err(machine(spool.folder().to_owned()))?;
        Ok(Opened { keys, lock, audit, policy, spool })
    }
}

impl Agent {
    /// Listens at `control` for controllers, and at `data` for senders. Waits for a disk that hangs
    /// until `halt` is raised, and half a minute at most.
    pub fn new(
        folder: &Path,
        control: SocketAddr,
        data: SocketAddr,
        halt: Arc<AtomicBool>,
    ) -> Result<Self, AgentError> {
        let machine = |what: &str| {
            let what = what.to_owned();
            move |error| AgentError::Machine { what, error }
        };
        let files = Disk::new("files", folder.to_owned()).map_err(machine("a thread"))?;
        let until = Instant::now() + STARTING_MAX;
        let waits = || !halt.load(SeqCst) && Instant::now() < until;
        let opened = files.ask_while(waits, |folder| Ok(Opened::of(folder)));
        let Opened { keys, lock, audit, policy, spool } =
            opened.map_err(|error| match halt.load(SeqCst) {
                true => AgentError::Interrupted(folder.to_owned()),
                false => machine(&folder.display().to_string())(error),
            })??;
        let listen = |at: SocketAddr| {
            listener(at).map_err(|error| {
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
        Ok(Agent {
            folder: folder.to_owned(),
            tls: tls::server(&keys)?,
            keys,
            began_with: policy,
            files,
            spool: Arc::new(Disk::new("spool", spool).map_err(machine("a thread"))?),
            audit: Arc::new(audit),
            control: listen(control)?,
            data: listen(data)?,
            expected_connections: Arc::default(),
            running: Mutex::default(),
            callers: Mutex::default(),
            halt,
            _lock: lock,
        })
    }

    /// The policy as it is now. Fails if the disk does not answer `within` this time.
    fn policy(&self, within: Duration) -> Result<Policy, String> {
        let read = self.files.ask(within, |folder| Ok(policy_in(folder)));
        read.unwrap_or_else(|error| {
            let path = self.folder.join(POLICY_FILE);
            Err(format!("{}: {}", path.display(), clearlane_lab::plain(&error)))
        })
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

    /// Lines that say what the first policy of the agent allows.
    pub fn policy_in_words(&self) -> Vec<String> {
        self.began_with.in_words()
    }

    /// Lets the process have the files and connections that it may have. Returns what is to be
    /// said if the connections of the policy that it began with need more.
    pub fn raise_descriptors(&self) -> Option<String> {
        let connections = self.began_with.limits.connections;
        // Each has a socket or two, and a log.
        let needed = 3 * u64::from(connections) + DESCRIPTORS_BESIDE;
        let may = descriptors();
        (may < needed).then(|| {
            format!(
                "this process may have {may} open files, {connections} connections may need \
                 {needed}; allow more (ulimit -Hn, or LimitNOFILE= of its unit)"
            )
        })
    }

    /// Works until the flag it was made with is raised.
    pub fn serve(self) {
        let (unproven, agent) = (Unproven::default(), &self);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Agent { data, expected_connections, audit, halt, .. } = agent;
                data_listener::listen(data, expected_connections, audit, halt);
            });
            while !agent.halt.load(SeqCst) {
                let Some(newcomer) = unproven.next(&agent.control, LOOK) else { continue };
                // If there is no thread for the caller, it is refused, and the run goes on.
                let thread = std::thread::Builder::new().name("control".into());
                let _ = thread.spawn_scoped(scope, || control::serve(agent, newcomer));
            }
            unproven.close();
        });
        // Threads of connections may hold the log until the process ends, so none drops it.
        self.audit.finish();
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
