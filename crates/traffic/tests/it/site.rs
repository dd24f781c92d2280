//! A site on loopback: a controller's keys, agents in threads of this process, all in a folder that
//! is gone in the end.

use clearlane_lab::Unfinished;
use clearlane_traffic::agent::{Agent, POLICY_FILE, write_policy};
use clearlane_traffic::audit::AUDIT_FILE;
use clearlane_traffic::controller::{Inventory, Known, Link, Options, Record, RunError, Watch};
use clearlane_traffic::keys::{Authority, Candidate, Keys, Replace};
use clearlane_traffic::name::{Identity, Role};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of a test. It only ends a test that would hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Connections to an address that say nothing.
pub fn silent_at(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(address).unwrap()).collect()
}

/// Whether the other end has not closed a connection on which it says nothing.
pub fn is_open(silent: &TcpStream) -> bool {
    silent.set_nonblocking(true).unwrap();
    matches!(silent.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A site.
pub struct Site {
    pub folder: PathBuf,
    pub authority: Authority,
    pub inventory: Inventory,
    agents: BTreeMap<String, (Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Site {
    /// With agents of these names.
    pub fn new(names: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, SeqCst);
        let name = format!("clearlane-traffic-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let authority = Authority::init(
            &folder.join("controller"),
            "boss".parse().unwrap(),
            &Unfinished::default(),
        )
        .unwrap();
        let inventory = Inventory::default();
        let mut site = Site { folder, authority, inventory, agents: BTreeMap::new() };
        names.iter().for_each(|name| site.add(name, |_| {}));
        site
    }

    /// Adds an agent; `change` may change what is in its folder before it starts.
    pub fn add(&mut self, name: &str, change: impl FnOnce(&Path)) {
        let folder = self.enrolled(name, Role::Agent);
        write_policy(&folder).unwrap();
        change(&folder);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let halt = Arc::new(AtomicBool::new(false));
        let agent = Agent::new(&folder, any, any, Arc::clone(&halt)).unwrap();
        let address = agent.control_address().unwrap();
        self.inventory.set(Known { name: name.parse().unwrap(), address });
        let serving = std::thread::spawn(move || agent.serve());
        self.agents.insert(name.to_owned(), (halt, serving));
    }

    /// Has an agent end, as by a signal.
    pub fn end(&self, name: &str) {
        self.agents[name].0.store(true, SeqCst);
    }

    /// A folder with keys of this name and role, signed by the site's authority.
    pub fn enrolled(&self, name: &str, role: Role) -> PathBuf {
        let folder = self.folder.join(format!("{role}-{name}"));
        let candidate = Candidate::new().unwrap();
        let identity = Identity { name: name.parse().unwrap(), role };
        let key = clearlane_traffic::keys::PublicKey::of_bytes(candidate.public()).unwrap();
        let signed = self.authority.signed(&identity, &key).unwrap();
        candidate
            .store(
                &folder,
                &signed,
                self.authority.certificate(),
                Replace::Nothing,
                &Unfinished::default(),
            )
            .unwrap();
        folder
    }

    /// The controller's keys.
    pub fn keys(&self) -> Keys {
        Keys::read(&self.folder.join("controller")).unwrap()
    }

    /// An agent.
    pub fn known(&self, name: &str) -> &Known {
        self.inventory.of_host(name).unwrap()
    }

    /// A control connection to an agent.
    pub fn link(&self, name: &str) -> Link {
        Link::connect(&self.keys(), self.known(name)).unwrap()
    }

    /// The folder of an agent.
    pub fn of_agent(&self, name: &str) -> PathBuf {
        self.folder.join(format!("agent-{name}"))
    }

    /// The audit log of an agent.
    pub fn audit(&self, name: &str) -> String {
        fs::read_to_string(self.of_agent(name).join(AUDIT_FILE)).unwrap_or_default()
    }

    /// Waits until an agent's audit log has a line with all these words.
    pub fn wait_for(&self, name: &str, words: &[&str]) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let audit = self.audit(name);
            let has = |line: &&str| words.iter().all(|word| line.contains(word));
            if let Some(line) = audit.lines().find(has) {
                return line.to_owned();
            }
            assert!(Instant::now() < until, "no line with {words:?} in\n{audit}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a plan.
    pub fn run(
        &self,
        plan: &clearlane_lab::HostPlan,
        watch: &dyn Watch,
    ) -> Result<Record, RunError> {
        let number = NUMBER.fetch_add(1, SeqCst);
        let folder = self.folder.join(format!("logs-{number}"));
        fs::create_dir(&folder).unwrap();
        let options = Options { packet_bytes: None, logs_max: 1 << 30, folder };
        clearlane_traffic::controller::run(plan, &self.keys(), &self.inventory, &options, watch)
    }
}

/// Puts a policy in place of an agent's own.
pub fn policy(folder: &Path, text: &str) {
    fs::write(folder.join(POLICY_FILE), text).unwrap();
}

impl Drop for Site {
    fn drop(&mut self) {
        self.agents.values().for_each(|(halt, _)| halt.store(true, SeqCst));
        for (_, agent) in std::mem::take(&mut self.agents).into_values() {
            let ended = agent.join();
            assert!(ended.is_ok() || std::thread::panicking(), "an agent panicked");
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Watches nothing, and stops when a flag is raised.
#[derive(Default)]
pub struct Quiet(pub AtomicBool);

impl Watch for Quiet {
    fn phase(&self, _: &str) {}

    fn received(&self, _: f64, _: &[u64]) {}

    fn collected(&self, _: f64) {}

    fn is_stopped(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// Raises a flag when it goes.
pub struct Raised<'a>(pub &'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
