//! The routing engine of OpenSM: options, a damaged fabric as OpenSM would list it, and a folder of
//! which one file is the input. Whatever that is, what is programmed joins all hosts that cables
//! join and can neither circle nor deadlock.
//!
//! The first line says which fabric, what is cut and which file is meant; the rest is that file.
#![no_main]

use clearlane_fabric::{Fabric, topologies};
use clearlane_fuzz::{one_line, refused, text};
use clearlane_ib::Guid;
use clearlane_opensm::discovered::{Discovered, Lists};
use clearlane_opensm::engine::Engine;
use clearlane_opensm::folder::Files;
use clearlane_opensm::options::Options;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{Arrivals, credit_loop};
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::formats::{lfts, path_groups, sl2vl};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::io::{self, Write};

/// Those of the seeds, in their order.
const FABRICS: [(&str, &str, u8); 3] = [
    ("leaf-spine:leaves=2,hosts=2,spines=2", "min-hop", 1),
    ("star:2", "min-hop", 1),
    ("torus:3", "dor", 2),
];

thread_local! {
    static WHOLE: OnceCell<Vec<(Lists, Files)>> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    match Options::parse(&text(data)) {
        Ok(options) => assert!((1..=15).contains(&options.lanes)),
        Err(error) => refused(&error),
    }
    let (head, rest) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) if end <= 4 => (&data[..end], &data[end + 1..]),
        _ => (&data[..0], data),
    };
    let said =
        |at: usize| usize::from(head.get(at).copied().unwrap_or_default().wrapping_sub(b'0'));
    WHOLE.with(|cell| {
        let all = cell.get_or_init(|| FABRICS.iter().map(|of| whole(*of)).collect());
        let (lists, good) = &all[said(0) % all.len()];
        let mut lists = lists.clone();
        // Bit n: cable n is cut.
        let mut number = 0;
        lists.cables.retain(|_| {
            number += 1;
            said(1) >> (number - 1).min(31) & 1 == 0
        });
        let mut files = good.clone();
        let bad = text(rest).into_owned();
        match said(2) % 3 {
            0 => files.tables = bad,
            1 => files.lanes = Some(bad),
            _ => files.groups = Some(bad),
        }
        let lanes = [8, 1, 2, 15][said(3) % 4];
        lists.cables.iter_mut().for_each(|cable| cable.lanes = lanes);
        decide(&lists, good, files);
    });
});

fn whole((spec, engine, lanes): (&str, &str, u8)) -> (Lists, Files) {
    type Writer = fn(&Fabric, &Subnet, &mut dyn Write) -> io::Result<()>;
    let fabric = topologies::build(spec).expect("it builds");
    let options = RouteOptions { lanes, ..RouteOptions::default() };
    let subnet = route(engine, &fabric, &options).expect("it routes");
    let written = |write: Writer| {
        let mut bytes = Vec::new();
        write(&fabric, &subnet, &mut bytes).expect("memory takes it");
        String::from_utf8(bytes).expect("we write text")
    };
    let files = Files {
        tables: written(lfts::write),
        lanes: Some(written(sl2vl::write)),
        groups: Some(written(path_groups::write)),
    };
    (Lists::of(&fabric, &subnet.lids, 8), files)
}

/// The same folder for an engine that has good tables and for one that begins.
fn decide(lists: &Lists, good: &Files, files: Files) {
    let found = lists.discovered().expect("lists of a fabric");
    for known in [false, true] {
        let mut engine = Engine::new(Options::default());
        if known {
            engine.route(found.clone(), true, Ok(good.clone())).expect("a safe engine at least");
        }
        let told = engine.route(found.clone(), true, Ok(files.clone())).expect("a safe engine");
        told.iter().for_each(|told| one_line(&told.text));
        answered(&engine, &found);
    }
}

fn answered(engine: &Engine, found: &Discovered) {
    let (on, subnet) = engine.routed().expect("routed");
    assert!(on == found && credit_loop(&found.fabric, subnet).is_sane());
    let arrivals = Arrivals::of(&found.fabric, subnet);
    let fallback = route(
        "up-down",
        &found.fabric,
        &RouteOptions { lids: Some(found.lids.clone()), ..RouteOptions::default() },
    );
    let all = Arrivals::of(&found.fabric, &fallback.expect("it takes every fabric"));
    for (a, from) in subnet.lids.iter() {
        for (b, to) in subnet.lids.iter() {
            let (arrives, can) =
                (arrivals.arrives(from.end, to.end), all.arrives(from.end, to.end));
            // To itself a host sends by no table.
            let same = from.end == to.end;
            assert!(arrives == can || same, "{a} to {b} by {:?}: {arrives}", engine.source());
            assert!(engine.path_sl(0, a.value(), b.value()) < 16);
        }
    }
    for node in found.fabric.nodes() {
        assert_eq!(engine.table(Guid(node.guid.0)).is_some(), node.is_switch());
        let lanes = engine.lanes(node.guid, 1, 1).expect("ports that are there");
        assert!(lanes.iter().all(|lane| *lane < 15));
    }
}
