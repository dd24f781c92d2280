//! Hot hosts, with packets: whether the verdict names who is hot, where victims wait, and what
//! helps, on fabrics where nothing else is wrong, and where the hot host's own cable is slow.

use clearlane_diagnose::what_if::{self, Answer, FabricFile, Question, Traffic};
use clearlane_diagnose::{Site, facts, verdict};
use clearlane_fabric::{LinkId, damage, formats, topologies};
use clearlane_ib::random::Stream;
use clearlane_ib::{LinkSpeed, LinkWidth};
use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, Verdict, run};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const FABRICS: [&str; 4] = [
    "leaf-spine:leaves=6,hosts=6,spines=3",
    "xgft:3,3,3;1,3,3",
    "torus:4x4,hosts=2",
    "leaf-spine:leaves=4,hosts=8,spines=2,parallel=2",
];

/// A file of this draw's own that is gone afterwards.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The verdict where a host drawn by number is hot, with its name and that of its switch; its cable
/// at SDR if it is to be slow.
fn draw(number: u64, slow: bool) -> (String, String, Verdict) {
    let (name, leaf, verdict, _) = draw_changed(number, slow, |_| ());
    (name, leaf, verdict)
}

/// The verdict of `draw` and its answer, after `change` has altered the result.
fn draw_changed(
    number: u64,
    slow: bool,
    change: fn(&mut RunResult),
) -> (String, String, Verdict, Answer) {
    let mut random = Stream::new(number, "hot host", 0);
    let spec = FABRICS[(number % FABRICS.len() as u64) as usize];
    let mut fabric = topologies::build(spec).unwrap();
    let hosts: Vec<_> = fabric.ids(clearlane_fabric::NodeKind::ChannelAdapter).collect();
    let hot = hosts[random.below(hosts.len() as u64) as usize];
    let name = fabric.node(hot).name.clone();
    let leaf = fabric.neighbours(hot).next().map(|(.., peer)| fabric.node(peer.node).name.clone());
    if slow {
        let own = |link: &clearlane_fabric::Link| [link.a.node, link.b.node].contains(&hot);
        let link = fabric.links().iter().position(own).unwrap();
        let link = LinkId(link as u32);
        damage::degrade(&mut fabric, &[link], LinkWidth::X4, LinkSpeed::Sdr);
    }
    let path = std::env::temp_dir().join(format!("clearlane-hot-{number}-{}", std::process::id()));
    std::fs::write(&path, formats::write(&fabric)).unwrap();
    let file = Scratch(path);
    let site = Site::new("drawn", fabric, Vec::new(), None);
    let findings = facts::all(&site);
    let hot = what_if::hot(&site, std::slice::from_ref(&name)).unwrap();
    let ends = hot.nodes.iter().flat_map(|node| {
        let node = *node;
        let ports = site.fabric.neighbours(node);
        ports.map(move |(port, ..)| clearlane_fabric::Endpoint { node, port })
    });
    let engines = what_if::screen(&site, 2, &ends.collect::<Vec<_>>());
    let question = Question {
        site: &site,
        fabric: FabricFile::File(file.0.clone()),
        node_name_map: None,
        tables: Vec::new(),
        lanes: 2,
        hot: &hot,
        engines: &engines,
        traffic: Traffic::Supposed,
        seeds: 1,
    };
    let experiment = Experiment::parse(&question.experiment(), &file.0).unwrap();
    let options = RunOptions::new(1, "test");
    let mut result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
    change(&mut result);
    let answer = what_if::answer(&question, &result, None);
    (name, leaf.unwrap(), verdict(&site, &findings, Some(&answer), ""), answer)
}

fn line<'a>(verdict: &'a Verdict, label: &str) -> &'a str {
    verdict.lines.iter().find(|line| line.label == label).map_or("", |line| line.text.as_str())
}

#[test]
fn who_is_hot_and_where_victims_wait_is_named() {
    let mut suffered = 0;
    for number in 0..12 {
        let (name, leaf, verdict) = draw(number, false);
        assert!(verdict.healthy, "draw {number}: {:#?}", verdict.lines);
        let bottleneck = line(&verdict, "bottleneck");
        assert!(bottleneck.starts_with(&format!("{name} is hot")), "draw {number}: {bottleneck}");
        let victims = line(&verdict, "victims");
        if victims.contains("wait for") {
            suffered += 1;
            // Where all hot traffic comes by one cable, that is as full as the host's.
            let at_host = victims.contains(&format!("→ {name}[1]"));
            let at_leaf = victims.contains(&format!("→ {leaf}["));
            assert!(at_host || at_leaf, "draw {number}: {victims}");
            // Service levels keep dimension order free of credit loops: no lane can be taken.
            let helps = line(&verdict, "helps").contains("on a lane of its own");
            let is_coded = bottleneck.ends_with("tables of engine dor");
            assert!(helps != is_coded, "draw {number}: {:#?}", verdict.lines);
        }
    }
    assert!(suffered >= 6, "{suffered} of 12");
}

#[test]
fn a_hot_host_on_a_slow_cable_is_both() {
    for number in 100..108 {
        let (name, _, verdict) = draw(number, true);
        let fault = line(&verdict, "fault");
        assert!(fault.starts_with(&format!("{name} is on a slow link")), "draw {number}: {fault}");
        let bottleneck = line(&verdict, "bottleneck");
        assert!(bottleneck.starts_with(&format!("{name} is hot")), "draw {number}: {bottleneck}");
    }
}

/// Half a run of one variant beside whole ones of others would make the best of them look worst.
#[test]
fn nothing_is_said_of_variants_that_were_cut_short() {
    let (.., whole, answer) = draw_changed(0, false, |_| ());
    assert!(line(&whole, "helps").contains("on a lane of its own"), "{:#?}", whole.lines);
    assert!(answer.best.is_some() && answer.cut_short.is_empty());

    let lane = |result: &mut RunResult| {
        let lane = result.variants.iter_mut().find(|variant| variant.name == what_if::LANE);
        lane.unwrap().runs[0].interrupted = true;
    };
    let (.., verdict, answer) = draw_changed(0, false, lane);
    let said = format!("{:#?}", verdict.lines);
    assert!(line(&verdict, "victims").contains("lose") && !said.contains("of its own"), "{said}");
    assert_eq!((answer.best, answer.cut_short), (None, vec![what_if::LANE.to_owned()]));

    let (.., verdict, answer) = draw_changed(0, false, |result| result.variants[0].runs.clear());
    let labels: Vec<_> = verdict.lines.iter().map(|line| line.label).collect();
    assert!(labels.iter().all(|label| ["healthy", "note"].contains(label)), "{labels:?}");
    assert_eq!((answer.best, answer.cut_short.len()), (None, 1));
}
