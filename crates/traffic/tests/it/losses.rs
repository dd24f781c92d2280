//! What is lost midway is told, and takes nothing else with it.

use crate::plans::{incast, plan};
use crate::runs::measured;
use crate::site::{Quiet, Site};
use clearlane_traffic::agent::Agent;
use clearlane_traffic::results::{finding, remarks};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn an_agent_that_is_lost_leaves_what_the_others_noted() {
    let site = Site::new(&["host0000", "host0001", "host0002"]);
    let plan = plan(3, 20_000, &incast(1.0, ""), "");
    let record = std::thread::scope(|scope| {
        let run = scope.spawn(|| site.run(&plan, &Quiet::default()));
        std::thread::sleep(Duration::from_millis(2000));
        site.end("host0002");
        run.join().unwrap().unwrap()
    });
    assert!(record.partial);
    let missing: Vec<bool> = record.hosts.iter().map(|host| !host.missing.is_empty()).collect();
    let names: Vec<&str> = record.hosts.iter().map(|host| host.known.name.as_str()).collect();
    let lost = names.iter().position(|name| *name == "host0002").unwrap();
    assert!((0..3).all(|place| missing[place] == (place == lost)), "{missing:?}");
    let measured = measured(&site, &plan, &record);
    // What host0002 sent was received; what it noted is gone with it.
    let [first, second] = &measured.flows[..] else { panic!("{measured:?}") };
    assert!(first.sent > 100 && first.received > 100, "{first:?}");
    assert!(second.sent == 0 && second.unlogged > 100, "{second:?}");
    let words = remarks(&plan, &measured).join("\n");
    assert!(words.contains("logs of agent host0002 are missing: "), "{words}");
    assert!(finding(&measured).starts_with("incomplete: 2 flows"), "{}", finding(&measured));
}

#[test]
fn of_a_receiver_that_is_lost_nothing_is_claimed() {
    let site = Site::new(&["host0000", "host0001"]);
    let plan = plan(2, 20_000, &incast(1.0, ""), "");
    let record = std::thread::scope(|scope| {
        let run = scope.spawn(|| site.run(&plan, &Quiet::default()));
        std::thread::sleep(Duration::from_millis(2000));
        site.end("host0000");
        run.join().unwrap().unwrap()
    });
    let measured = measured(&site, &plan, &record);
    let flow = &measured.flows[0];
    assert!(flow.sent > 100 && flow.unknown == flow.sent, "{flow:?}");
    assert_eq!((measured.lost(), flow.rate_bps(), measured.measured_bps(flow)), (0, None, None));
    assert!(finding(&measured).contains("what was received is not known"), "{measured:?}");
}

#[test]
fn a_folder_has_one_agent() {
    let site = Site::new(&["host0000"]);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let second = Agent::new(&site.of_agent("host0000"), any, any, Arc::default());
    let error = second.err().unwrap().to_string();
    assert!(error.contains("an agent with these keys is running"), "{error}");
}
