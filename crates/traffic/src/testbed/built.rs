//! A testbed on this machine: built, used, and taken away again.

use super::layout::Layout;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Why a testbed cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program is missing or may not be run.
    #[error(
        "cannot run {program}: {}; a testbed needs iproute2, and tcpdump for --tcpdump",
        clearlane_lab::plain(error)
    )]
    Program {
        /// Its name.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// No namespace can be made.
    #[error("cannot make a network namespace ({said}); run it as root")]
    Namespace {
        /// The last line of what `ip` said.
        said: String,
    },
    /// A command failed.
    #[error("{command}: {said}")]
    Command {
        /// The command.
        command: String,
        /// The last line it said.
        said: String,
    },
}

/// How the names of namespaces begin; the number of the process that made them follows, and a dash.
const PREFIX: &str = "clane";
/// The same of folders.
const SCRATCH: &str = "clearlane-testbed-";

/// How the names begin of what this process builds.
pub fn prefix() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// What the folder of keys and captures is called that this process makes.
pub fn scratch() -> String {
    format!("{SCRATCH}{}", std::process::id())
}

fn is_gone(process: u32) -> bool {
    !Path::new(&format!("/proc/{process}")).exists()
}

/// Takes away what testbeds left whose process was killed, with everything that runs there, and
/// their folders among `scratches`. Returns the names of their namespaces.
pub fn sweep(scratches: &Path) -> Vec<String> {
    for entry in fs::read_dir(scratches).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(SCRATCH).and_then(|number| number.parse().ok());
        if process.is_some_and(is_gone) {
            // Another user's is not ours to take away.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let said = |words: &[&str]| {
        let output = Command::new("ip").args(words).stdin(Stdio::null()).output();
        let output = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).into_owned()
    };
    let is_left = |name: &&str| {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let process = process.and_then(|(number, _)| number.parse::<u32>().ok());
        process.is_some_and(is_gone)
    };
    let names = said(&["netns", "list"]);
    let left: Vec<String> = names
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(is_left)
        .map(str::to_owned)
        .collect();
    for name in &left {
        for process in said(&["netns", "pids", name]).split_whitespace() {
            let _ = run(&["kill", "-KILL", process]);
        }
        let _ = run(&["ip", "netns", "del", name]);
    }
    left
}

/// Fails if this machine cannot have a testbed: a program is missing, or the right to make a
/// namespace.
pub fn must_work(with_tcpdump: bool) -> Result<(), BuildError> {
    run(&["ip", "-V"])?;
    run(&["tc", "-V"])?;
    if with_tcpdump {
        run(&["tcpdump", "--version"])?;
    }
    let name = format!("{}-t", prefix());
    run(&["ip", "netns", "add", &name]).map_err(|error| match error {
        BuildError::Command { said, .. } => BuildError::Namespace { said },
        error => error,
    })?;
    run(&["ip", "netns", "del", &name])
}

/// A testbed that is there until this is dropped.
#[derive(Debug)]
pub struct Built {
    namespaces: Vec<String>,
    children: Vec<Child>,
    telling: Vec<Child>,
}

fn run(words: &[&str]) -> Result<(), BuildError> {
    let [program, arguments @ ..] = words else { return Ok(()) };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| BuildError::Program { program: (*program).to_owned(), error })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said.lines().last().unwrap_or("it failed and said nothing").to_owned();
    Err(BuildError::Command { command: words.join(" "), said })
}

impl Built {
    /// Builds it. What was built is taken away again if it fails.
    pub fn new(layout: &Layout) -> Result<Self, BuildError> {
        let mut built = Built { namespaces: Vec::new(), children: Vec::new(), telling: Vec::new() };
        for namespace in &layout.namespaces {
            run(&["ip", "netns", "add", namespace])?;
            built.namespaces.push(namespace.clone());
            // Addresses that nobody asked for, and packets about them.
            let off = "net.ipv6.conf.default.disable_ipv6=1";
            // A machine without IPv6 has nothing to switch off.
            let _ = run(&["ip", "netns", "exec", namespace, "sysctl", "-qw", off]);
        }
        for command in &layout.commands {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            run(&words)?;
        }
        Ok(built)
    }

    /// Runs a program in a namespace until the testbed goes.
    pub fn spawn(&mut self, namespace: &str, command: &[&str]) -> Result<(), BuildError> {
        self.children.push(begun(namespace, command, Stdio::null())?);
        Ok(())
    }

    /// Runs a program that says in the end what came of it, until that is asked for.
    pub fn spawn_telling(&mut self, namespace: &str, command: &[&str]) -> Result<(), BuildError> {
        self.telling.push(begun(namespace, command, Stdio::piped())?);
        Ok(())
    }

    /// Ends those programs in good order. What each said on stderr.
    pub fn told(&mut self) -> Vec<String> {
        let said = |child: Child| {
            let _ = run(&["kill", "-INT", &child.id().to_string()]);
            let said = child.wait_with_output().map(|output| output.stderr).unwrap_or_default();
            String::from_utf8_lossy(&said).into_owned()
        };
        self.telling.drain(..).map(said).collect()
    }
}

/// Starts a program in a namespace. Ctrl-C does not reach it: who built the testbed ends it.
fn begun(namespace: &str, command: &[&str], stderr: Stdio) -> Result<Child, BuildError> {
    let mut program = within(namespace, command);
    let child = program.process_group(0).stdout(Stdio::null()).stderr(stderr).spawn();
    child.map_err(|error| BuildError::Program { program: "ip".into(), error })
}

/// A program in a namespace.
pub fn within(namespace: &str, command: &[&str]) -> Command {
    let mut words = Command::new("ip");
    words.args(["netns", "exec", namespace]).args(command).stdin(Stdio::null());
    words
}

impl Drop for Built {
    fn drop(&mut self) {
        let _ = self.told();
        for child in &mut self.children {
            // `ip netns exec` becomes the program, which ends in good order.
            let pid = child.id().to_string();
            let _ = run(&["kill", "-TERM", &pid]);
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        for namespace in &self.namespaces {
            // Ports and their queues go with it.
            let _ = run(&["ip", "netns", "del", namespace]);
        }
    }
}
