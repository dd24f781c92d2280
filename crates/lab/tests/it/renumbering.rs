//! Figures are those of the network, not of the order its nodes are listed and numbered in; and
//! what is absolute in them follows the rate of the links.

use clearlane_fabric::{Endpoint, Fabric, NodeId, formats, topologies};
use clearlane_ib::random::Stream;
use clearlane_lab::measure::Estimate;
use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Four senders, one receiver, two switches.
const LOT: &str = r#"schema = 1
name = "lot"
subnet = { engine = "min-hop" }
sim = { preset = "sdr-2011", buffer = "256 KiB" }
run = { duration = "100 ms", warm_up = "40 ms", seeds = 6 }
[[traffic]]
name = "all to H4"
class = "hot"
pattern = { kind = "incast", to = "H4" }
senders = { except = ["H4"] }
load = 1.0
size = "32 KiB"
[[variant]]
name = "plain"
[[variant]]
name = "iba-cc"
control.when = "iba-cc"
"#;

const TORUS: &str = r#"schema = 1
name = "torus"
subnet = { engine = "dor", lanes = 2 }
sim = { preset = "qdr" }
run = { duration = "1 ms", seeds = 6 }
[[traffic]]
name = "uniform"
class = "background"
pattern = { kind = "uniform" }
load = 0.4
size = "2 KiB"
[[variant]]
name = "plain"
[[variant]]
name = "drb"
subnet = { engine = "multipath", lmc = 2, lanes = 8 }
control.which = "drb"
"#;

/// `text` with a row for each measure and variant.
fn with_rows(text: &str, measures: &[&str]) -> String {
    let mut text = text.to_owned();
    let variants: Vec<String> = Experiment::parse(&of_fabric(&text, &lot()), Path::new("x.toml"))
        .unwrap()
        .variants
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    for (variant, measure) in variants.iter().flat_map(|v| measures.iter().map(move |m| (v, m))) {
        let name = format!("{variant}: {}", measure.replace('"', ""));
        text += &format!(
            "[[published]]\nname = \"{name}\"\nvariant = \"{variant}\"\nmeasure = {{ {measure} }}\n"
        );
    }
    text
}

fn lot() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/parking-lot.topo")
}

fn of_fabric(text: &str, fabric: &Path) -> String {
    let head = format!("fabric = {{ file = '{}' }}\nsubnet = ", fabric.display());
    text.replacen("subnet = ", &head, 1)
}

/// The rows of an experiment on the fabric in a file.
fn rows(text: &str, fabric: &Path) -> Vec<(String, Estimate)> {
    let experiment = Experiment::parse(&of_fabric(text, fabric), Path::new("x.toml"));
    let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions::new(2, "");
    let result: RunResult = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
    result.published().into_iter().map(|row| (row.name, row.obtained.unwrap())).collect()
}

/// The numbers from 0 in another order.
fn shuffled(count: usize, seed: u64, noun: &'static str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut stream = Stream::new(seed, noun, 0);
    for last in (1..count).rev() {
        order.swap(last, stream.below(last as u64 + 1) as usize);
    }
    order
}

/// The same cables between the same names, everything else in another order: nodes, GUIDs, LIDs,
/// cables and which of their ends is listed first.
fn renumbered(fabric: &Fabric, seed: u64) -> Fabric {
    let count = fabric.nodes().len();
    let (order, guids) = (shuffled(count, seed, "nodes"), shuffled(count, seed, "GUIDs"));
    let mut other = Fabric::new();
    let mut place = vec![NodeId(0); count];
    for index in order {
        let mut node = fabric.nodes()[index].clone();
        node.guid = fabric.nodes()[guids[index]].guid;
        for port in &mut node.ports {
            (port.link, port.lid) = (None, None);
        }
        place[index] = other.add_node(node).unwrap();
    }
    for index in shuffled(fabric.links().len(), seed, "cables") {
        let link = &fabric.links()[index];
        let moved = |end: Endpoint| Endpoint { node: place[end.node.index()], ..end };
        other.join(moved(link.b), moved(link.a), link.width, link.speed).unwrap();
    }
    other
}

/// A folder of this test's own that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("clearlane-renumbering-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn write(&self, name: &str, fabric: &Fabric) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, formats::ibnetdiscover::write(fabric)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs on the fabric and on two others that are the same but for the numbers; fails where the
/// interval of a figure has nothing in common with that of the first, beyond `rounding` of it.
fn the_same(
    text: &str,
    fabric: &Fabric,
    name: &str,
    rounding: f64,
) -> Vec<Vec<(String, Estimate)>> {
    let scratch = Scratch::new(name);
    let first = scratch.write("0.topo", fabric);
    let mut all = vec![rows(text, &first)];
    for seed in 1..=2 {
        let other = scratch.write(&format!("{seed}.topo"), &renumbered(fabric, seed));
        assert_ne!(fs::read(&first).unwrap(), fs::read(&other).unwrap());
        all.push(rows(text, &other));
        for ((row, a), (_, b)) in all[0].iter().zip(&all[seed as usize]) {
            let reach = a.half_width.unwrap() + b.half_width.unwrap() + rounding * a.mean;
            assert!((a.mean - b.mean).abs() <= reach, "{row}: {a:?} and {b:?}");
        }
    }
    all
}

#[test]
fn a_parking_lot_has_the_same_shares_however_it_is_numbered() {
    let share = |host: &str| format!("kind = \"flow-share\", from = \"{host}\", to = \"H4\"");
    let shares = ["H1", "H2", "H3", "H5"].map(share);
    let mut measures: Vec<&str> = shares.iter().map(String::as_str).collect();
    measures.extend(["kind = \"jain\"", "kind = \"worst-load\"", "kind = \"accepted-gbps\""]);
    let text = with_rows(LOT, &measures);
    let fabric = formats::read(&fs::read_to_string(lot()).unwrap(), "lot").unwrap().fabric;
    let all = the_same(&text, &fabric, "lot", 0.0);
    let closed_form = [1.0 / 6.0, 1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0];
    for rows in &all {
        assert_eq!(rows.len(), 14);
        for ((row, share), expected) in rows.iter().zip(closed_form) {
            assert!((share.mean / expected - 1.0).abs() < 0.02, "{row}: {share:?}");
        }
        // Congestion control gives everybody nearly the same, of nearly the whole link.
        assert!(rows[11].1.mean > 0.98, "{rows:?}");
    }
}

#[test]
fn a_torus_has_the_same_figures_however_it_is_numbered() {
    let measures = ["accepted-load", "accepted-gbps", "latency-mean", "latency-p50", "latency-p99"];
    let measures = measures.map(|kind| format!("kind = \"{kind}\""));
    let text = with_rows(TORUS, &measures.each_ref().map(String::as_str));
    let fabric = topologies::build("torus:4x4").unwrap();
    let all = the_same(&text, &fabric, "torus", 0.0);
    // What is compared is not nothing: intervals are narrow.
    for (row, estimate) in &all[0] {
        assert!(estimate.half_width.unwrap() < 0.1 * estimate.mean, "{row}: {estimate:?}");
    }
}

#[test]
fn absolute_figures_follow_the_rate_of_the_links_and_shares_do_not() {
    let kinds = ["accepted-gbps", "accepted-load", "latency-mean"];
    let measures = kinds.map(|kind| format!("kind = \"{kind}\""));
    let measures = measures.each_ref().map(String::as_str);
    let scratch = Scratch::new("rates");
    let torus = scratch.write("torus.topo", &topologies::build("torus:4x4").unwrap());
    for (text, fabric) in [(TORUS, &torus), (LOT, &lot())] {
        let text = with_rows(text, &measures);
        let at = |rate: &str| {
            let rate = format!("sim = {{ link_rate = \"{rate}\", preset");
            rows(&text.replacen("sim = { preset", &rate, 1), fabric)
        };
        let (slow, fast) = (at("4 Gb/s"), at("8 Gb/s"));
        for (slow, fast) in slow.chunks(3).zip(fast.chunks(3)) {
            // Congestion control counts in µs: it does not scale with the links.
            let exact = if slow[0].0.starts_with("iba-cc") { 0.1 } else { 0.01 };
            let scales = |index: usize, by: f64| {
                let (slow, fast) = (&slow[index].1, &fast[index].1);
                let reach = fast.half_width.unwrap() + by * slow.half_width.unwrap();
                let off = (fast.mean - by * slow.mean).abs();
                assert!(off <= reach + exact * fast.mean, "{by}: {slow:?} {fast:?}");
            };
            scales(0, 2.0);
            scales(1, 1.0);
            // Serialisation takes half as long, cables and software as long as before. Where more
            // is offered than taken, queues grow alike.
            let latency = fast[2].1.mean / slow[2].1.mean;
            assert!(text.contains("H4") || (0.5..0.9).contains(&latency), "{latency}");
        }
    }
}
