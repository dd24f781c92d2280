//! What stops a run before its end: signals, and memory that is nearly full.

use super::binary::{Called, Scratch, uniform};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// 281 s, the longest run there is, on a tree of 648 hosts.
fn long() -> String {
    uniform("long", "fat-tree:648", "fat-tree", "281 s")
}

/// Setting it up takes seconds, and there is no step in which to stop.
fn large() -> String {
    uniform("long", "fat-tree:11664", "fat-tree", "1 us")
}

#[expect(clippy::disallowed_methods, reason = "how long stopping takes is what is tested")]
fn now() -> Instant {
    Instant::now()
}

/// A call under way.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Running {
    fn of(scratch: &Scratch, line: &str) -> Self {
        let mut command = scratch.command(&line.split_whitespace().collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stderr }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// The next line on stderr.
    fn said(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// The next line on stderr that is not of progress.
    fn answered(&mut self) -> String {
        loop {
            let line = self.said();
            if !line.starts_with("running 1 variant") {
                return line;
            }
        }
    }

    /// Waits until packets move. Lines of progress during set-up have no rate.
    fn runs(&mut self) {
        loop {
            let line = self.said();
            assert!(line.starts_with("running 1 variant"), "{line}");
            if line.contains("packet-hops/s") {
                return;
            }
        }
    }

    /// Exit code and what was said last.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// Waits until the folder is claimed.
    fn claimed(&mut self, scratch: &Scratch) {
        while !scratch.path("out").exists() {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_signal_is_answered_at_once_and_a_partial_result_stands_soon() {
    let scratch = Scratch::new("signal-run");
    // Hours of simulation, and little to save.
    scratch.write("long.toml", &uniform("long", "star:16", "min-hop", "281 s"));
    // A busy machine may leave no time to make results. The run then ends without them.
    for _ in 0..5 {
        let mut running = Running::of(&scratch, "run long.toml --out out");
        running.runs();
        let pressed = now();
        running.signal("-TERM");
        assert_eq!(
            running.answered(),
            "clearlane: interrupted; what is finished goes into out, marked partial if anything \
             is missing; interrupt again to end at once\n"
        );
        assert!(pressed.elapsed() < Duration::from_secs(60), "{:?}", pressed.elapsed());
        let (code, said) = running.ended();
        assert_eq!(code, Some(4), "{said}");
        assert!(pressed.elapsed() < Duration::from_secs(60), "{:?}", pressed.elapsed());
        if scratch.path("out").exists() {
            assert!(scratch.read("out/summary.json").contains("\"partial\""));
            assert_eq!(scratch.names(), ["long.toml", "out", "out.checkpoint"]);
            return;
        }
        assert!(said.contains("no results are written"), "{said}");
        let _ = std::fs::remove_dir_all(scratch.path("out.checkpoint"));
    }
    panic!("no partial result was made");
}

#[test]
fn a_second_signal_ends_at_once() {
    let scratch = Scratch::new("signal-twice");
    scratch.write("long.toml", &uniform("long", "fat-tree:3456", "fat-tree", "100 ms"));
    // Results may be there before the second signal comes.
    for _ in 0..5 {
        let mut running = Running::of(&scratch, "run long.toml --out out --force");
        running.runs();
        running.signal("-TERM");
        let line = running.answered();
        assert!(line.ends_with("; interrupt again to end at once\n"), "{line}");
        running.signal("-TERM");
        let (code, last) = running.ended();
        assert_eq!(code, Some(4), "{last}");
        if last == "clearlane: interrupted again; out is left as it is\n" {
            assert_eq!(scratch.names(), ["long.toml"]);
            return;
        }
    }
    panic!("no second signal came before the results were there");
}

#[test]
fn a_signal_in_set_up_ends_at_once_and_what_lay_there_stays() {
    let scratch = Scratch::new("signal-early");
    scratch.write("large.toml", &large());
    scratch.write("long.toml", &uniform("long", "fat-tree:648", "fat-tree", "1 us"));
    scratch.call("run long.toml --out out").text();
    let before = scratch.read("out/summary.json");
    let mut running = Running::of(&scratch, "run large.toml --out out --force");
    // Time enough to begin with setting it up.
    let (_open, never) = channel::<()>();
    never.recv_timeout(Duration::from_millis(500)).unwrap_err();
    running.signal("-TERM");
    assert!(running.said().contains("nothing is written"));
    assert_eq!(running.ended().0, Some(4));
    assert_eq!(scratch.read("out/summary.json"), before);
    assert_eq!(scratch.names(), ["large.toml", "long.toml", "out"]);
}

#[test]
fn a_signal_while_a_run_is_set_up_ends_it_with_words() {
    let scratch = Scratch::new("signal-set-up");
    scratch.write("large.toml", &large());
    let mut running = Running::of(&scratch, "run large.toml --out out");
    running.claimed(&scratch);
    running.signal("-TERM");
    let (code, said) = running.ended();
    assert_eq!(code, Some(4), "{said}");
    assert!(said.starts_with("clearlane: interrupted"), "{said}");
    assert_eq!(scratch.names(), ["large.toml"]);
}

/// Calls the binary under limits that a shell sets.
fn limited(scratch: &Scratch, limit: &str, arguments: &str) -> Called {
    let script = format!("{limit}; exec {} {arguments}", env!("CARGO_BIN_EXE_clearlane"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(scratch.path("")).stdin(Stdio::null());
    Called::from(command.output().unwrap(), arguments)
}

#[test]
fn memory_that_is_nearly_full_ends_a_run_with_words() {
    let scratch = Scratch::new("memory");
    // Two millions of messages are posted by every microsecond, and a step is half a second.
    let incast = long()
        .replace("fat-tree:648", "star:200")
        .replace("engine = \"fat-tree\"", "engine = \"min-hop\"")
        .replace("281 s", "100 s")
        .replace("kind = \"uniform\"", "kind = \"incast\", to = 0")
        .replace("load = 0.3", "load = 4.0")
        .replace("2 KiB", "1 B");
    scratch.write("incast.toml", &incast);
    let begun = now();
    for (limit, what) in [
        ("ulimit -v 1048576", "the address space (ulimit -v) is nearly full"),
        ("ulimit -d 1048576", "the data segment (ulimit -d) is nearly full"),
    ] {
        for line in
            ["run incast.toml --out out", "sweep incast.toml --out out --over traffic.load=3,4"]
        {
            let called = limited(&scratch, limit, line);
            // Where other work makes it last long, lines of progress stand before the error.
            let said = called.stderr.lines().last().unwrap_or_default();
            assert_eq!(called.code, 5, "{called:?}");
            assert!(said.contains(what) && said.contains("messages wait at"), "{said}");
            assert_eq!(scratch.names(), ["incast.toml"]);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // What needs little, has it.
    scratch.write("light.toml", &uniform("long", "star:4", "fat-tree", "1 us"));
    let light = limited(&scratch, "ulimit -v 1048576", "run light.toml --out out");
    assert_eq!(light.code, 0, "{light:?}");
}

#[test]
fn memory_that_is_refused_at_once_is_the_machines_fault_too() {
    let scratch = Scratch::new("memory-refused");
    let called = limited(&scratch, "ulimit -v 200000", "fabric build hypercube:19 -o x.topo");
    let said = called.failure(5);
    assert!(said.starts_with("the address space (ulimit -v) is full, and "), "{called:?}");
    assert_eq!(scratch.names(), [] as [&str; 0]);
}

#[test]
fn threads_that_cannot_be_started_are_told_before_a_run() {
    let scratch = Scratch::new("threads-refused");
    scratch.write("wide.toml", &uniform("wide", "mesh:20x20", "min-hop", "1 us"));
    let line = "run wide.toml --out out --threads 400 --partitions 400";
    let called = limited(&scratch, "ulimit -v 700000", line);
    let told = "variant as-is: 400 threads cannot be started at once; lower --threads or --jobs, \
                or allow more (ulimit -u and -v)";
    assert_eq!(called.failure(5), told);
    assert_eq!(scratch.names(), ["wide.toml"]);
}

#[test]
fn a_name_is_not_a_way_to_another_folder() {
    let scratch = Scratch::new("name-folder");
    for name in ["../../evil", "/tmp/evil", ".", "..", "a/b"] {
        scratch.write("evil.toml", &uniform(name, "star:4", "min-hop", "1 us"));
        for command in ["run evil.toml", "sweep evil.toml --over traffic.load=0.1,0.2"] {
            let called = scratch.call(command);
            assert!(called.failure(2).contains("also names a folder"), "{called:?}");
        }
    }
    assert_eq!(scratch.names(), ["evil.toml"]);
}
