//! A testbed on this machine: built, used, and taken away again.

use super::layout::Layout;
use std::fmt;
use std::io;
use std::process::{Child, Command, Stdio};

/// Why a testbed cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program is missing or may not be run.
    #[error(
        "cannot run {program}: {}; a testbed needs iproute2, and root",
        clearlane_lab::plain(error)
    )]
    Program {
        /// Its name.
        program: String,
        /// What the system said.
        error: io::Error,
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

/// A testbed that is there until this is dropped.
#[derive(Debug)]
pub struct Built {
    namespaces: Vec<String>,
    children: Vec<Child>,
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
        let mut built = Built { namespaces: Vec::new(), children: Vec::new() };
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
        let child = within(namespace, command).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let failed = |error| BuildError::Program { program: "ip".into(), error };
        self.children.push(child.map_err(failed)?);
        Ok(())
    }
}

/// A program in a namespace.
pub fn within(namespace: &str, command: &[&str]) -> Command {
    let mut words = Command::new("ip");
    words.args(["netns", "exec", namespace]).args(command).stdin(Stdio::null());
    words
}

impl Drop for Built {
    fn drop(&mut self) {
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

impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} namespaces", self.namespaces.len())
    }
}
