//! Machines that refuse, processes that are killed, folders that are not what they seem.

use super::binary::{Called, Scratch, uniform};
use std::process::{Command, Stdio};

/// A star of eight hosts at three loads.
fn star(duration: &str) -> String {
    on("star:8", duration)
}

fn on(build: &str, duration: &str) -> String {
    uniform("star", build, "min-hop", duration)
        + "[sweep]
traffic.load = [0.1, 0.2, 0.3]
"
}

/// Long enough that nobody waits for its end.
fn endless(scratch: &Scratch) {
    scratch.write("endless.toml", &star("30 s"));
}

/// Calls the binary with a small disk mounted at `disk`, seen by this process alone; nothing where
/// nobody may mount one.
#[expect(clippy::print_stdout, reason = "who runs the tests learns what was skipped")]
fn on_disk(scratch: &Scratch, options: &str, arguments: &str) -> Option<Called> {
    std::fs::create_dir_all(scratch.path("disk")).unwrap();
    let mount = format!("mount -t tmpfs -o {options} tmpfs disk");
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script]);
        command.current_dir(scratch.path("")).stdin(Stdio::null()).output()
    };
    if !run(&mount).is_ok_and(|output| output.status.success()) {
        println!("skipped: a disk cannot be mounted here");
        return None;
    }
    let binary = env!("CARGO_BIN_EXE_clearlane");
    let script = format!("{mount} && {binary} {arguments}; code=$?; ls -A disk >&2; exit $code");
    Some(Called::from(run(&script).unwrap(), arguments))
}

#[test]
fn a_full_disk_is_told_in_one_line_and_nothing_half_written_stays() {
    let scratch = Scratch::new("disk-full");
    scratch.write("star.toml", &star("300 us"));
    for command in ["run star.toml --out disk/out", "sweep star.toml --out disk/out"] {
        let Some(called) = on_disk(&scratch, "size=16k", command) else { return };
        assert_eq!((called.code, called.stdout.as_str()), (5, ""), "{called:?}");
        let lines: Vec<&str> = called.stderr.lines().collect();
        let told = "the disk is full; ";
        assert!(lines[0].starts_with("clearlane: disk/out"), "{called:?}");
        assert!(lines[0].contains(told), "{called:?}");
        // A sweep keeps the points it has; of a run nothing is left.
        let left = if command.starts_with("run") { 1 } else { 2 };
        assert_eq!(lines.len(), left, "{called:?}");
    }
    let route = "route star:8 --engine min-hop -o disk/tables";
    let Some(called) = on_disk(&scratch, "size=4k", route) else { return };
    assert_eq!(called.code, 5, "{called:?}");
    assert!(called.stderr.contains("the disk is full"), "{called:?}");
}

#[test]
fn a_read_only_disk_is_told_before_anything_is_run() {
    let scratch = Scratch::new("disk-read-only");
    endless(&scratch);
    for command in ["run", "compare", "sweep"] {
        let line = format!("{command} endless.toml --out disk/out");
        let Some(called) = on_disk(&scratch, "size=64k,ro", &line) else { return };
        assert_eq!(called.failure(5), "disk/out: the disk is read-only; choose another folder");
    }
}

#[test]
fn of_two_runs_into_one_folder_the_second_says_so() {
    let scratch = Scratch::new("two-runs");
    endless(&scratch);
    scratch.write("star.toml", &star("300 us"));
    let mut first = scratch.command(&["run", "endless.toml", "--out", "out", "--jobs", "1"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The folder is there from the claim on.
    while !scratch.path("out").exists() {
        assert!(first.try_wait().unwrap().is_none(), "the first ended");
        std::thread::yield_now();
    }
    let said = "out: another clearlane is writing there; wait for it or choose another folder";

    for line in ["run star.toml --out out", "sweep star.toml --out out --force"] {
        assert_eq!(scratch.call(line).failure(2), said, "{line}");
    }
    // Killed, it leaves a folder that the next may use, and what it had aside goes.
    first.kill().unwrap();
    first.wait().unwrap();
    std::fs::create_dir(scratch.path(".out.4711.unfinished")).unwrap();
    std::fs::create_dir(scratch.path(".out.mine.unfinished")).unwrap();
    scratch.call("run star.toml --out out").text();
    assert_eq!(scratch.names(), [".out.mine.unfinished", "endless.toml", "out", "star.toml"]);
    assert!(scratch.read("out/summary.json").contains("\"complete\""));
}

#[test]
fn a_link_to_a_folder_is_followed_and_stays() {
    let scratch = Scratch::new("links");
    scratch.write("star.toml", &star("300 us"));
    std::fs::create_dir_all(scratch.path("elsewhere/real")).unwrap();
    std::os::unix::fs::symlink("elsewhere/real", scratch.path("out")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("lost")).unwrap();
    scratch.call("run star.toml --out out").text();
    scratch.call("run star.toml --out out --force").text();
    assert!(scratch.path("out").is_symlink());
    assert!(scratch.path("elsewhere/real/summary.json").is_file());
    for command in ["run", "sweep"] {
        let lost = scratch.call(&format!("{command} star.toml --out lost"));
        let said = "lost: is a link to a folder that does not exist; repair it or choose another \
                    folder";
        assert_eq!(lost.failure(2), said);
    }
    scratch.write("file", "x");
    let file = scratch.call("sweep star.toml --out file");
    assert_eq!(file.failure(2), "file: is a file; choose another folder");
    let within = scratch.call("run star.toml --out file/out");
    assert!(within.failure(5).contains("file"), "{within:?}");
}

#[test]
fn a_sweep_that_is_killed_goes_on() {
    let scratch = Scratch::new("killed");
    // Points of some hundred milliseconds each.
    scratch.write("star.toml", &star("20 ms"));
    let mut command = scratch.command(&["sweep", "star.toml", "--out", "out", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let points = || std::fs::read_to_string(scratch.path("out/points.jsonl")).unwrap_or_default();
    while points().lines().count() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = points().lines().count();
    let text = scratch.call("sweep star.toml --out out").text().to_owned();
    assert!(text.contains(&format!("3 points, {kept} of them from before")), "{kept}: {text}");
    let again = scratch.call("sweep star.toml --out out --json").json(0);
    assert_eq!(
        (again["status"].as_str(), again["points_finished"].as_u64()),
        (Some("complete"), Some(3))
    );
}

#[test]
fn a_file_larger_than_allowed_is_told_and_nothing_half_written_stays() {
    let scratch = Scratch::new("file-size");
    scratch.write("star.toml", &star("300 us"));
    let route = "route fat-tree:648 --engine min-hop -o out";
    let build = "fabric build fat-tree:648 -o out";
    for line in ["run star.toml --out out", route, build] {
        let script = format!("ulimit -f 8; exec {} {line}", env!("CARGO_BIN_EXE_clearlane"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(scratch.path("")).stdin(Stdio::null());
        let called = Called::from(command.output().unwrap(), line);
        let said = called.failure(5);
        assert!(said.contains("the file is larger than allowed (ulimit -f)"), "{said}");
        assert_eq!(scratch.names(), ["star.toml"], "{line}");
    }
}

#[test]
fn a_fabric_no_subnet_can_address_is_refused_at_once_with_what_helps() {
    let scratch = Scratch::new("too-many-lids");
    let large = on("torus:160x160", "300 us");
    scratch.write("large.toml", &large);
    let needs = "this fabric needs 51200 LIDs at lmc 0, and a subnet has 49151; take one of fewer \
        hosts and switches";
    let rule = "or, if it is a grid, forward by rule: forwarding = \"dimension-order\"";
    for command in ["run", "compare", "sweep"] {
        let called = scratch.call(&format!("{command} large.toml --out out"));
        assert_eq!(called.failure(2), format!("variant as-is: {needs}, {rule}"));
    }
    let route = scratch.call("route torus:160x160 --engine dor -o out");
    assert_eq!(route.failure(2), needs);
    assert_eq!(scratch.names(), ["large.toml"]);
    // By rule it may run, and where a lower LMC helps, that is said.
    let lmc = on("torus:64x64,hosts=3", "300 us");
    let lmc = lmc.replace("engine = \"min-hop\"", "engine = \"min-hop\", lmc = 2");
    scratch.write("lmc.toml", &lmc);
    let called = scratch.call("run lmc.toml --out out");
    assert!(called.failure(2).contains("needs 53248 LIDs at lmc 2, and a subnet has 49151; lower"));
}
