//! Whole runs over loopback: what is sent is received and logged, at the rates that were asked for.

use crate::plans::{incast, plan};
use crate::site::{Quiet, Site, policy};
use clearlane_lab::{HostPlan, PacketLog};
use clearlane_traffic::controller::Record;
use clearlane_traffic::results::{Measured, measure, series};
use std::fs::File;

pub fn measured(site: &Site, plan: &HostPlan, record: &Record) -> Measured {
    let file = File::create(site.folder.join("packets.parquet")).unwrap();
    let mut packets = PacketLog::new(file).unwrap();
    let measured = measure(plan, record, None, &mut packets, &|_| {}).unwrap();
    packets.end().unwrap();
    measured
}

fn run(hosts: u32, plan: &HostPlan) -> Measured {
    let names: Vec<String> = (0..hosts).map(|number| format!("host{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = Site::new(&names);
    let record = site.run(plan, &Quiet::default()).unwrap();
    measured(&site, plan, &record)
}

#[test]
fn everything_that_is_sent_is_received_and_logged() {
    let plan = plan(4, 500, &incast(1.0, ""), "");
    let measured = run(4, &plan);
    assert!(!measured.partial);
    assert_eq!((measured.flows.len(), measured.lost(), measured.unkept), (3, 0, 0));
    for flow in &measured.flows {
        assert!(flow.sent > 100 && flow.sent == flow.received, "{flow:?}");
        let (from, to) = flow.span_ns.unwrap();
        // What is sent at the end is received a moment later.
        assert!(from < 400_000_000 && to < 1_500_000_000, "{from} to {to}");
        assert_eq!(flow.slices.iter().sum::<u64>(), flow.bytes);
    }
    let rows = series(&plan, &measured);
    assert!(rows.iter().all(|row| row.record == "hosts" && row.destination == "host0000"));
}

#[test]
fn paced_flows_offer_what_they_are_to() {
    // Half of 2 Gb/s, in messages of 8 KiB: loopback carries it with ease.
    let plan = plan(2, 800, &incast(0.5, ""), "");
    let measured = run(2, &plan);
    // Half of 2 Gb/s; when the cores are busy, the end may be cut off.
    let rate = measured.flows[0].rate_bps().unwrap();
    assert!((rate / 1e9 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn flows_start_when_they_are_to() {
    let traffic = incast(1.0, "start = \"300 ms\"\nstop = \"400 ms\"");
    let plan = plan(2, 500, &traffic, "");
    let measured = run(2, &plan);
    let (from, to) = measured.flows[0].span_ns.unwrap();
    let clocks = measured.bound_ns();
    assert!(from + clocks >= 300_000_000 && to < 1_400_000_000, "{from} to {to}");
}

#[test]
fn queue_pairs_are_connections_of_their_own() {
    let plan = plan(2, 300, &incast(1.0, "queue_pairs = 3"), "");
    let measured = run(2, &plan);
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
    let measured = run(2, &plan);
    let flow = &measured.flows[0];
    assert!(flow.received > 10 && measured.lost() == 0 && !measured.partial, "{flow:?}");
    let rate = flow.rate_bps().unwrap();
    assert!(rate < 2.1e9, "{rate}");
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
            let measured = run(4, &plan(4, 600, &large(load), &control));
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
    // 0.4 s of 0.4 Gb/s are 20 MB; UDP may lose some, and its loss is told.
    assert!((flow.sent as f64 * 2048.0 / 20e6 - 1.0).abs() < 0.05, "{}", flow.sent);
    assert!(flow.received > flow.sent / 2 && flow.received <= flow.sent, "{}", flow.received);
}

/// Distributed routing balancing chooses among the connections of a flow as among LIDs.
#[test]
fn a_mechanism_that_chooses_paths_has_a_connection_for_each() {
    let control = "[control]\nwhich = \"drb\"\n";
    let plan = plan(2, 400, &incast(0.6, ""), control);
    // One path there, as in any subnet without LMC.
    assert_eq!(plan.flows[0].paths, 1);
    let text = plan.resolved.replace("lmc = 0", "lmc = 2");
    assert!(text != plan.resolved, "{}", plan.resolved);
    let experiment = clearlane_lab::Experiment::parse(&text, "test.toml".as_ref()).unwrap();
    let plan = HostPlan::of(&experiment, None).unwrap();
    assert_eq!(plan.flows[0].paths, 4);
    let measured = run(2, &plan);
    assert_eq!((measured.flows[0].connections, measured.lost()), (4, 0));
    // 0.6 of 2 Gb/s.
    let rate = measured.flows[0].rate_bps().unwrap();
    assert!((rate / 1.2e9 - 1.0).abs() < 0.05, "{rate}");
}
