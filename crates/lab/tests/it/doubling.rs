//! Twice the hosts, links and flows cost twice as much: to make ready, to gather what a run found,
//! and to make results, report and page of it. A product of two of them would cost four times as
//! much. Allocations are counted, on the thread that does it all. (What takes time and allocates
//! nothing is counted by tests/test_after.py.)

use allocation_counter::{AllocationInfo, measure};
use clearlane_lab::{Deadline, Experiment, Quiet, RunFolder, RunOptions, Unfinished, run};
use std::env::temp_dir;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Each has twice the hosts of the one before: 4K, 8K and 16K.
const TORI: [&str; 3] = ["16x16x16", "32x16x16", "32x32x16"];
/// The same: 8K, 16K and 32K.
const LARGE: [&str; 3] = ["32x16x16", "32x32x16", "32x32x32"];
/// Twice, and something for lists that are doubled when they are full.
const MOST: f64 = 2.4;

/// Allocations of the run, and of its results.
fn costs(name: &str, torus: &str) -> [AllocationInfo; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/doubling");
    let text = fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let grown = text.replace("\"torus:4x4x4\"", &format!("\"torus:{torus}\""));
    assert_ne!(grown, text, "{name}.toml has no \"torus:4x4x4\"");
    let experiment = Experiment::parse(&grown, Path::new("doubling.toml")).unwrap();
    let mut result = None;
    let running = measure(|| {
        let options = RunOptions::new(1, "");
        let ran = run(&experiment, &options, &Quiet, &AtomicBool::new(false));
        result = Some(ran.unwrap());
    });
    let result = result.unwrap();
    let out = temp_dir().join(format!("clearlane-doubling-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&out);
    let folder = RunFolder::claim(&out, false, &Unfinished::default()).unwrap();
    let filling = measure(|| {
        let filled = folder.fill(&result, &Deadline::default()).unwrap();
        assert!(filled.left_out.is_empty());
    });
    fs::remove_dir_all(out).unwrap();
    [running, filling]
}

fn grows_as_hosts_do(name: &str, tori: [&str; 3]) {
    let all = tori.map(|torus| costs(name, torus));
    for pair in all.windows(2) {
        for (what, (less, more)) in ["run", "results"].iter().zip(pair[0].iter().zip(&pair[1])) {
            let times = |less: u64, more: u64| more as f64 / less as f64;
            let allocations = times(less.count_total, more.count_total);
            let bytes = times(less.bytes_total, more.bytes_total);
            let said = format!("{name}, {what}: {allocations:.2} times as many, {bytes:.2} bytes");
            assert!(allocations <= MOST && bytes <= MOST, "{said}: {less:?}, {more:?}");
        }
    }
}

#[test]
fn programs_cost_what_hosts_and_flows_do() {
    grows_as_hosts_do("programs", TORI);
}

#[test]
fn mechanisms_and_victims_cost_what_hosts_and_flows_do() {
    grows_as_hosts_do("controlled", TORI);
}

#[test]
#[ignore = "make test-long: 20 s"]
fn large_programs_cost_what_hosts_and_flows_do() {
    grows_as_hosts_do("programs", LARGE);
}

#[test]
#[ignore = "make test-long: 40 s"]
fn mechanisms_and_victims_of_large_fabrics_cost_what_hosts_and_flows_do() {
    grows_as_hosts_do("controlled", LARGE);
}
