//! Calling the binary in a folder of its own.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder that is empty at first and gone at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// `name` is the test's own.
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What a file in it holds.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Puts a file into it.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// What lies in it, hidden files included, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The binary, to be called in this folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clearlane"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Calls the binary with words that hold no blanks.
    pub fn call(&self, line: &str) -> Called {
        self.call_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Calls the binary.
    pub fn call_words(&self, arguments: &[&str]) -> Called {
        Called::from(self.command(arguments).output().unwrap(), &arguments.join(" "))
    }
}

impl Scratch {
    /// Calls the binary and presses Ctrl-C after a second; also how long it took to end then.
    pub fn interrupted(&self, arguments: &[&str]) -> (Called, Duration) {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id().to_string();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        // The handler is there before the first event; should the call end sooner, it failed.
        if let Ok(output) = receive.recv_timeout(Duration::from_secs(1)) {
            panic!("ended before it was interrupted: {output:?}");
        }
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let pressed = now();
        let output = receive.recv_timeout(Duration::from_secs(60)).expect("it does not stop");
        (Called::from(output.unwrap(), &arguments.join(" ")), pressed.elapsed())
    }
}

#[expect(clippy::disallowed_methods, reason = "how long stopping takes is what is tested")]
fn now() -> Instant {
    Instant::now()
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a call came to.
#[derive(Debug)]
pub struct Called {
    line: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Called {
    pub fn from(output: Output, line: &str) -> Self {
        Called {
            line: line.into(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The text on stdout of a call that went well and had nothing to remark.
    pub fn text(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}: {}", self.line, self.stdout);
        &self.stdout
    }

    /// The only document on stdout; `code` is how the call ended.
    pub fn json(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}: {}", self.line, self.stderr);
        let value: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{}: {e}: {}", self.line, self.stdout));
        let schema = value["schema"].as_str().unwrap_or_default();
        assert!(schema.starts_with("clearlane-"), "{}: schema {schema:?}", self.line);
        value
    }

    /// The one line on stderr of a call that failed, without `clearlane: `.
    pub fn failure(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}: {}", self.line, self.stderr);
        let line = self.stderr.strip_suffix('\n').unwrap_or_default();
        assert!(!line.is_empty() && !line.contains('\n'), "{}: {line:?}", self.line);
        line.strip_prefix("clearlane: ").unwrap_or_else(|| panic!("{}: {line}", self.line))
    }
}

/// An experiment of uniform traffic at load 0.3.
pub fn uniform(name: &str, build: &str, engine: &str, duration: &str) -> String {
    format!(
        r#"schema = 1
name = "{name}"
fabric = {{ build = "{build}" }}
subnet = {{ engine = "{engine}" }}
sim = {{ preset = "qdr" }}
run = {{ duration = "{duration}" }}
[[traffic]]
name = "all"
class = "background"
pattern = {{ kind = "uniform" }}
load = 0.3
size = "2 KiB"
"#
    )
}

/// An all-to-all on a ring of eight: a program that has steps and shares links.
pub const RING: &str = r#"
schema = 1
name = "ring"
[fabric]
build = "torus:8"
[subnet]
forwarding = "dimension-order-up"
[sim]
preset = "nsim-2014"
[[traffic]]
name = "shift"
class = "background"
program = { kind = "ring-alltoall", size = "16 KiB" }
transport = "ud"
[run]
duration = "20 ms"
ends = "programs"
"#;
