//! Whole runs over loopback: what is sent is received and logged, at the rates that were asked for.
//!
//! When something was sent is judged by the sender's own log: its clock is what it paces by. When
//! it was received also tells how busy the machine is.

use crate::plans::{incast, plan};
use crate::site::{Quiet, Site, policy};
use clearlane_lab::{HostPlan, PacketLog};
use clearlane_traffic::controller::Record;
use clearlane_traffic::log::Decoder;
use clearlane_traffic::results::{Measured, measure, series};
use std::fs::{self, File};
use std::ops::Range;

pub fn measured(site: &Site, plan: &HostPlan, record: &Record) -> Measured {
    let file = File::create(site.folder.join("packets.parquet")).unwrap();
    let mut packets = PacketLog::new(file).unwrap();
    let measured = measure(plan, record, None, &mut packets, &|_| {}).unwrap();
    packets.end().unwrap();
    measured
}

/// What a run measured, and what its senders noted.
struct Ran {
    measured: Measured,
    /// When each packet was sent, ns since the start, in order, and its bytes; all flows together.
    sent: Vec<(i64, u32)>,
}

fn run(hosts: u32, plan: &HostPlan) -> Ran {
    let names: Vec<String> = (0..hosts).map(|number| format!("host{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new(&names);
    let record = site.run(plan, &Quiet::default()).unwrap();
    Ran { measured: measured(&site, plan, &record), sent: sent(&record) }
}

/// What the senders of a run noted: when each packet was sent, ns since the start, and its bytes.
pub fn sent(record: &Record) -> Vec<(i64, u32)> {
    let mut sent = Vec::new();
    for connection in &record.connections {
        let log = fs::read(&connection.logs[0].as_ref().unwrap().path).unwrap();
        let since = |ns: u64| ns as i64 - record.start_ns as i64;
        let noted = |packet: clearlane_traffic::log::Logged| {
            sent.push((since(packet.ns), packet.bytes));
        };
        Decoder::default().read(&log, noted).unwrap();
    }
    sent.sort_unstable();
    sent
}

/// Fails unless everything was sent in these milliseconds, as far as clocks are known.
fn is_sent_within(ran: &Ran, milliseconds: Range<i64>) {
    let bound = ran.measured.bound_ns() as i64;
    let (first, last) = (ran.sent[0].0, ran.sent[ran.sent.len() - 1].0);
    assert!(first + bound >= milliseconds.start * 1_000_000, "the first at {first}");
    assert!(last - bound < milliseconds.end * 1_000_000, "the last at {last}");
}

/// Fails unless messages of four packets are posted every `period` ns, to one in a hundred. A busy
/// sender is late now and then and makes up for it, so the least lateness of the first half is that
/// of the second: it would grow or shrink if the pace were another.
fn keeps_pace(sent: &[(i64, u32)], period: f64) {
    let messages: Vec<i64> = sent.iter().step_by(4).map(|(at, _)| *at).collect();
    let half = messages.len() / 2;
    assert!(half > 100, "{half}");
    let late = |part: Range<usize>| {
        part.map(|number| messages[number] as f64 - number as f64 * period).reduce(f64::min)
    };
    let off = late(half..messages.len()).unwrap() - late(0..half).unwrap();
    assert!(off.abs() < half as f64 * period / 100.0, "{off} ns in {half} messages");
}

#[test]
fn everything_that_is_sent_is_received_and_logged() {
    let plan = plan(4, 500, &incast(1.0, ""), "");
    let ran = run(4, &plan);
    is_sent_within(&ran, 0..500);
    let measured = ran.measured;
    assert!(!measured.partial);
    assert_eq!((measured.flows.len(), measured.lost(), measured.unkept), (3, 0, 0));
    for flow in &measured.flows {
        assert!(flow.sent > 100 && flow.sent == flow.received, "{flow:?}");
        assert_eq!(flow.slices.iter().sum::<u64>(), flow.bytes);
    }
    let rows = series(&plan, &measured);
    assert!(rows.iter().all(|row| row.record == "hosts" && row.destination == "host0000"));
}

#[test]
fn paced_flows_offer_what_they_are_to() {
    // A tenth of 2 Gb/s, in messages of 8 KiB: loopback carries it with ease.
    let ran = run(2, &plan(2, 800, &incast(0.1, ""), ""));
    keeps_pace(&ran.sent, 8.0 * 8192.0 / 0.2);
    assert_eq!((ran.measured.lost(), ran.measured.partial), (0, false));
}

#[test]
fn flows_start_when_they_are_to() {
    let traffic = incast(1.0, "start = \"300 ms\"\nstop = \"400 ms\"");
    is_sent_within(&run(2, &plan(2, 500, &traffic, "")), 300..400);
}

#[test]
fn queue_pairs_are_connections_of_their_own() {
    let plan = plan(2, 300, &incast(1.0, "queue_pairs = 3"), "");
    let measured = run(2, &plan).measured;
    assert_eq!((measured.flows.len(), measured.flows[0].connections), (1, 3));
    assert_eq!(measured.lost(), 0);
}

/// The reactor of the simulator holds a real flow: TIMELY sends at the link's rate at most, 2 Gb/s,
/// of which loopback carries several times as much.
#[test]
fn mechanisms_of_the_simulator_pace_real_flows() {
    let control = "[control]\nwhen = \"timely\"\n";
    let plan = plan(2, 500, &incast(1.0, ""), control);
    assert!(plan.control.contains("timely"), "{plan:?}");
    let Ran { measured, sent } = run(2, &plan);
    let flow = &measured.flows[0];
    assert!(flow.received > 10 && measured.lost() == 0 && !measured.partial, "{flow:?}");
    // Two bits a nanosecond, and what a sender that sleeps too long may make up for.
    let (first, last) = (sent[0].0, sent[sent.len() - 1].0);
    let bits: u64 = sent[1..].iter().map(|(_, bytes)| 8 * u64::from(*bytes)).sum();
    assert!(bits as f64 <= 2.0 * (last - first + 2_000_000) as f64, "{bits} in {first}..{last}");
}

/// Messages of many packets.
fn large(load: f64) -> String {
    incast(load, "").replace("8 KiB", "64 KiB")
}

/// A receiver still acknowledges when its senders have ended: that ends nothing before its time.
#[test]
fn acknowledgements_after_the_end_are_no_fault() {
    for mechanism in ["iba-cc", "dcqcn"] {
        let control = format!("[control]\nwhen = \"{mechanism}\"\n");
        for load in [0.5, 1.0, 1.0] {
            let measured = run(4, &plan(4, 600, &large(load), &control)).measured;
            let stopped: Vec<&str> =
                measured.hosts.iter().map(|host| host.stopped.as_str()).collect();
            assert!(!measured.partial, "{mechanism} at {load}: {stopped:?}");
            assert_eq!(measured.lost(), 0, "{mechanism} at {load}");
            assert!(measured.flows.iter().all(|flow| flow.received > 10), "{measured:?}");
        }
    }
}

#[test]
fn clocks_of_one_machine_are_one_clock() {
    let site = Site::new(&["host0000"]);
    let offset = site.link("host0000").clock().unwrap();
    assert!(offset.ns.unsigned_abs() <= offset.bound_ns, "{offset:?}");
}

#[test]
fn a_plan_whose_host_has_no_agent_is_told() {
    let plan = plan(2, 100, &incast(1.0, ""), "");
    let site = Site::new(&["host0000"]);
    let error = site.run(&plan, &Quiet::default()).unwrap_err().to_string();
    assert!(error.starts_with("host host0001 has no agent; there are host0000"), "{error}");
}

const WITH_UDP: &str = "[limits]\nconnections = 8\nduration = \"9 s\"\nsent = \"1 GiB\"\n\
    logs = \"64 MiB\"\n[[network]]\nnetwork = \"127.0.0.0/8\"\nsend = true\nreceive = true\n\
    udp = true\n";

#[test]
fn datagrams_go_where_both_policies_allow_them() {
    let plan = plan(2, 400, &incast(0.2, "transport = \"ud\""), "");
    let mut site = Site::new(&["host0000"]);
    site.add("host0001", |folder| policy(folder, WITH_UDP));
    let error = site.run(&plan, &Quiet::default()).unwrap_err().to_string();
    assert!(error.contains("does not allow UDP there (udp = true)"), "{error}");
    policy(&site.of_agent("host0000"), WITH_UDP);
    let record = site.run(&plan, &Quiet::default()).unwrap();
    let measured = measured(&site, &plan, &record);
    let flow = &measured.flows[0];
    // A fifth of 2 Gb/s. UDP may lose some of it, and its loss is told.
    keeps_pace(&sent(&record), 8.0 * 8192.0 / 0.4);
    assert!(
        flow.received > 100 && flow.received <= flow.sent,
        "{} of {}",
        flow.received,
        flow.sent
    );
    assert_eq!(measured.lost(), flow.sent - flow.received);
}

/// Distributed routing balancing chooses among the connections of a flow as among LIDs.
#[test]
fn a_mechanism_that_chooses_paths_has_a_connection_for_each() {
    let control = "[control]\nwhich = \"drb\"\n";
    let plan = plan(2, 400, &incast(0.1, ""), control);
    // One path there, as in any subnet without LMC.
    assert_eq!(plan.flows[0].paths, 1);
    let text = plan.resolved.replace("lmc = 0", "lmc = 2");
    assert!(text != plan.resolved, "{}", plan.resolved);
    let experiment = clearlane_lab::Experiment::parse(&text, "test.toml".as_ref()).unwrap();
    let plan = HostPlan::of(&experiment, None).unwrap();
    assert_eq!(plan.flows[0].paths, 4);
    let Ran { measured, sent } = run(2, &plan);
    assert_eq!((measured.flows[0].connections, measured.lost()), (4, 0));
    // A tenth of 2 Gb/s.
    keeps_pace(&sent, 8.0 * 8192.0 / 0.2);
}
