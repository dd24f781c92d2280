//! Traces as programs, and programs that share a fabric host by host.

use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, Status, run};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const HEAD: &str = "schema = 1\nname = \"jobs\"\n\
    run = { duration = \"50 ms\", ends = \"programs\" }\nfabric = { build = \"torus:4x4\" }\n\
    subnet = { engine = \"dor\", lanes = 2 }\nsim = { preset = \"qdr\" }\n";

/// Two ranks: one works, then sends; the other answers.
const GOAL: &str = "num_ranks 2\nrank 0 {\nw: calc 5000\ns: send 1024b to 1 tag 7\n\
    r: recv 64b from 1\ns requires w\n}\nrank 1 {\nr: recv 1024b from 0 tag 7\n\
    s: send 64b to 0\ns requires r\n}\n";

fn job(name: &str, program: &str, senders: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nclass = \"background\"\nprogram = {program}\n\
         senders = {senders}\n"
    )
}

fn ran(text: &str) -> Result<RunResult, String> {
    let experiment = Experiment::parse(text, Path::new("x.toml")).map_err(|e| e.to_string())?;
    let resolved = experiment.resolved();
    let again = Experiment::parse(&resolved, Path::new("x.toml")).map_err(|e| e.to_string())?;
    assert_eq!(again.resolved(), resolved, "what is resolved reads back");
    let result = run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false));
    result.map_err(|error| error.to_string())
}

/// The hosts of flows by their first group's, as a summary has them: ranks that sent.
fn hosts(result: &RunResult, group: usize) -> Vec<u32> {
    let flows = &result.variants[0].runs[0].figures.flows;
    let mut of: Vec<u32> =
        flows.iter().filter(|flow| flow.group == group).map(|flow| flow.source.0).collect();
    of.sort_unstable();
    of.dedup();
    of
}

fn file(name: &str, text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("clearlane-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn trace(path: &Path) -> String {
    format!("{{ kind = \"trace\", file = \"{}\" }}", path.display())
}

#[test]
fn programs_take_hosts_that_are_free() {
    let ring = "{ kind = \"ring-exchange\", size = \"1 KiB\" }";
    let both = |first: &str, second: &str| {
        let text = format!("{HEAD}{}{}", job("one", ring, first), job("two", ring, second));
        let result = ran(&text).unwrap();
        assert_eq!(result.status(), Status::Complete);
        [hosts(&result, 0), hosts(&result, 1)]
    };
    let packed = "{ place = \"packed\", ranks = 3 }";
    assert_eq!(both(packed, packed), [vec![0, 1, 2], vec![3, 4, 5]]);
    let turns = "{ place = \"round-robin\", ranks = 3 }";
    assert_eq!(both(turns, turns), [vec![0, 2, 4], vec![1, 3, 5]]);
    // Who is named has its hosts first, whatever its place in the file.
    assert_eq!(both(packed, "{ hosts = [0, 2, 4] }"), [vec![1, 3, 5], vec![0, 2, 4]]);
    let drawn = |seed: u32| format!("{{ place = \"random\", ranks = 8, seed = {seed} }}");
    let [one, two] = both(&drawn(1), &drawn(1));
    let all: std::collections::BTreeSet<u32> = one.iter().chain(&two).copied().collect();
    assert_eq!(all.len(), 16, "no host has two");
    assert_eq!(both(&drawn(1), &drawn(1)), [one.clone(), two]);
    assert_ne!(both(&drawn(2), &drawn(1))[0], one);
}

#[test]
fn a_trace_is_run_on_as_many_hosts_as_it_has_ranks() {
    let path = file("pair.goal", GOAL);
    let text = format!("{HEAD}{}", job("pair", &trace(&path), "{ place = \"packed\" }"));
    let result = ran(&text).unwrap();
    let end = result.variants[0].runs[0].completions[0].unwrap();
    // 5 us of work, and two messages.
    assert!((6_000..12_000).contains(&(end.0 / 1000)), "{end}");
    // Twice as much work, twice as long.
    let path = file("pair2.goal", &GOAL.replace("5000", "10000"));
    let text = format!("{HEAD}{}", job("pair", &trace(&path), "{ hosts = [0, 1] }"));
    let later = ran(&text).unwrap().variants[0].runs[0].completions[0].unwrap();
    assert_eq!(later.0 - end.0, 5_000_000);
}

#[test]
fn what_cannot_be_placed_is_refused_in_one_line() {
    let path = file("refused.goal", GOAL);
    let ring = "{ kind = \"ring-exchange\", size = \"1 KiB\" }";
    for (program, senders, said) in [
        (
            ring.to_owned(),
            "{ place = \"packed\" }",
            "does not say how many; write ranks in senders",
        ),
        (
            ring.to_owned(),
            "{ place = \"packed\", ranks = 17 }",
            "places 17 ranks, and 16 hosts are free; lower ranks",
        ),
        (
            ring.to_owned(),
            "{ place = \"round-robin\", ranks = 17 }",
            "places 17 ranks, and 16 hosts are free; lower ranks",
        ),
        (ring.to_owned(), "{ ranks = 4 }", "goes with place; write place = \"packed\" or drop it"),
        (
            ring.to_owned(),
            "{ place = \"packed\", every = 2 }",
            "does not go with place; drop one of them",
        ),
        (
            ring.to_owned(),
            "{ place = \"packed\", ranks = 2, seed = 3 }",
            "goes with place = \"random\"; drop it",
        ),
        (trace(&path), "{ hosts = [0, 1, 2] }", "takes the 2 ranks of"),
        (
            trace(Path::new("/nowhere/x.goal")),
            "{ place = \"packed\" }",
            "/nowhere/x.goal: no such file or folder",
        ),
        (trace(&file("bad.goal", "num_ranks two\n")), "{ place = \"packed\" }", "bad.goal:1"),
    ] {
        let error =
            ran(&format!("{HEAD}{}", job("job", &program, senders))).map(|_| ()).unwrap_err();
        assert!(error.contains(said), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
