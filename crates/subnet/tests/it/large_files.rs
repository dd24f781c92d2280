//! Dumps that would take hours if a reader went through the same part again and again.

use clearlane_fabric::topologies;
use clearlane_subnet::formats::{self, Content};
use std::fs;

/// CPU seconds of this thread, as Linux counts them: the clock of a busy machine says nothing.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
    nanoseconds * 1e-9
}

/// What the slowest case may take of a processor; each takes less than a second.
const CPU_SECONDS_MAX: f64 = 20.0;

#[test]
fn a_section_that_is_closed_a_million_times_is_counted_once() {
    let start = cpu_seconds();
    let heading = "Unicast lids [0-9] of switch Lid 1 guid 0x1 ('a'):\n";
    let text = heading.to_owned() + &"0x0001 001\n".repeat(500_000);
    let text = text + &"5 lids dumped\n".repeat(500_000);
    let Ok(Content::Tables(dump)) = formats::read(&text, "big") else { panic!("it reads") };
    assert_eq!((dump.sections[0].entries.len(), dump.oddities.len()), (500_000, 1));
    assert!(cpu_seconds() - start < CPU_SECONDS_MAX);
}

#[test]
fn a_switch_with_a_hundred_thousand_sections_has_one_table() {
    let start = cpu_seconds();
    let fabric = topologies::build("star:254").unwrap();
    let guid = fabric.nodes()[0].guid;
    let mut text = String::from("#in out : 0  1\n");
    for section in 0..100_000 {
        let lane = |sl: u32| ((section >> sl) & 1).to_string();
        let lanes: Vec<String> = (0..16).map(lane).collect();
        text.push_str(&format!("Switch {guid}\n1 2 : {}\n", lanes.join(" ")));
    }
    let Ok(Content::Lanes(dump)) = formats::read(&text, "big") else { panic!("it reads") };
    let (lanes, oddities) = dump.lanes(&fabric, 4, "big").unwrap();
    // The one that all have who are not in the file, and the switch's own.
    assert!(lanes.tables().len() <= 2, "{}", lanes.tables().len());
    let told = oddities.iter().any(|odd| odd.what.starts_with("99999 sections are followed by"));
    assert!(told, "{oddities:?}");
    assert!(cpu_seconds() - start < CPU_SECONDS_MAX);
}
