//! The checkers find what was put there by hand, and say exactly where.

use clearlane_fabric::{Endpoint, Fabric, NodeId, topologies};
use clearlane_ib::{Lid, PortNumber, ServiceLevel, VirtualLane};
use clearlane_subnet::check::{
    BalanceOptions, FaultKind, balance, bisection, credit_loop, credit_loop_on, reachability,
    shifts,
};
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::{PathSl, SlToVl, Subnet};

fn routed(spec: &str, engine: &str, lanes: u8) -> (Fabric, Subnet) {
    let fabric = topologies::build(spec).unwrap();
    let options = RouteOptions { lanes, ..RouteOptions::default() };
    let subnet = route(engine, &fabric, &options).unwrap();
    (fabric, subnet)
}

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

#[test]
fn a_forwarding_loop_is_found_with_its_path() {
    let (fabric, mut subnet) = routed("chain:4x2", "min-hop", 1);
    // LID 7 is the first host of the last switch; the third sends it back.
    let lid = Lid::new(7).unwrap();
    subnet.tables.set(NodeId(2), lid, Some(port(2)));
    let report = reachability(&fabric, &subnet);
    assert_eq!((report.pairs, report.reached), (56, 50));
    assert_eq!(report.faults, [0, 0, 0, 6]);
    let fault = &report.examples[0];
    assert_eq!(fault.kind, FaultKind::Loop);
    assert_eq!(
        fault.text,
        "loop: host0000 to host0006 (LID 7): sw-0[1] → sw-1[1] → sw-2[2] → sw-1[1]"
    );
    let passed: Vec<u32> = fault.path.iter().map(|hop| hop.switch.0).collect();
    assert_eq!(passed, [0, 1, 2, 1]);
    assert!(report.to_string().contains("50 of 56 paths arrive (8 hosts, 8 LIDs)"), "{report}");
}

#[test]
fn each_kind_of_dead_end_is_told_apart() {
    let (fabric, sane) = routed("chain:3x1", "min-hop", 1);
    let lid = Lid::new(3).unwrap();
    for (entry, kind, count) in [
        (None, FaultKind::NoEntry, 2),
        (Some(2), FaultKind::Loop, 2),
        (Some(3), FaultKind::WrongEnd, 2),
        (Some(0), FaultKind::WrongEnd, 2),
        (Some(9), FaultKind::NoCable, 2),
    ] {
        let mut subnet = sane.clone();
        subnet.tables.set(NodeId(1), lid, entry.map(port));
        let report = reachability(&fabric, &subnet);
        assert_eq!((report.examples[0].kind, report.faults[kind as usize]), (kind, count));
        assert_eq!(report.pairs - report.reached, count);
    }
    // Only management is lost if a switch's own LID is.
    let mut subnet = sane.clone();
    subnet.tables.set(NodeId(0), Lid::new(6).unwrap(), None);
    let report = reachability(&fabric, &subnet);
    assert!(report.is_sane() && report.switches_unreached == 1, "{report}");
}

#[test]
fn a_host_without_a_lid_is_a_fault_and_so_is_nobody_to_reach() {
    let (fabric, sane) = routed("chain:3x2", "min-hop", 1);
    let with = |keep: &dyn Fn(u16) -> bool| {
        let kept = sane.lids.iter().filter(|(lid, _)| keep(lid.value()));
        let lids = kept.map(|(lid, owner)| (owner.end, lid, clearlane_ib::Lmc::default()));
        let lids = clearlane_subnet::LidMap::from_list(&fabric, lids).unwrap();
        reachability(&fabric, &Subnet { lids, ..sane.clone() })
    };
    assert!(with(&|_| true).is_sane());
    // LID 4 was host0003's: 5 paths to it and 5 from it are lost.
    let report = with(&|lid| lid != 4);
    assert!(!report.is_sane());
    assert_eq!((report.pairs, report.reached, report.faults), (30, 20, [10, 0, 0, 0]));
    assert_eq!((report.hosts, report.without_lid, report.lids), (6, 1, 5));
    let fault = &report.examples[0];
    let end = Endpoint { node: NodeId(6), port: port(1) };
    assert_eq!((fault.destination, fault.lid), (end, None));
    assert!(fault.text.contains("host0003[1] has none"), "{}", fault.text);
    // Nobody has a LID but the switches; then one host alone, in a fabric that has no other.
    let report = with(&|lid| lid > 6);
    assert!(!report.is_sane());
    assert_eq!((report.pairs, report.reached, report.examples.len()), (30, 0, 6));
    let (fabric, subnet) = routed("star:1", "min-hop", 1);
    assert!(!reachability(&fabric, &subnet).is_sane());
}

#[test]
fn hops_count_the_switches_passed() {
    let (fabric, subnet) = routed("chain:4x2", "min-hop", 1);
    assert_eq!(reachability(&fabric, &subnet).hops, [0, 8, 24, 16, 8]);
}

#[test]
fn a_ring_of_four_on_one_lane_can_deadlock_and_the_cycle_is_named() {
    // Every tie goes upwards by hand: four channels wait for one another.
    let (fabric, mut subnet) = routed("ring:4x1", "min-hop", 1);
    for at in 0..4u32 {
        let lid = Lid::new(((at + 2) % 4 + 1) as u16).unwrap();
        subnet.tables.set(NodeId(at), lid, Some(port(1)));
    }
    let report = credit_loop(&fabric, &subnet);
    let cycle = report.cycle.as_ref().unwrap();
    let found: Vec<(u32, u8)> =
        cycle.channels.iter().map(|waits| (waits.switch.0, waits.port.value())).collect();
    assert_eq!(report.entangled, 4, "{report}");
    let start = found.iter().position(|at| *at == (0, 1)).unwrap();
    let turned: Vec<_> = found[start..].iter().chain(&found[..start]).copied().collect();
    assert_eq!(turned, [(0, 1), (1, 1), (2, 1), (3, 1)]);
    for waits in &cycle.channels {
        // The pair named goes two switches on and so holds this channel and asks for the next.
        let destination = Lid::new(((waits.switch.0 + 2) % 4 + 1) as u16).unwrap();
        assert_eq!(waits.destination, destination);
        assert_eq!(waits.source, Endpoint { node: NodeId(4 + waits.switch.0), port: port(1) });
    }
    assert!(cycle.lines[0].contains("VL 0 waits for the next: host"), "{report}");
}

#[test]
fn one_way_of_ties_that_cannot_close_is_sane() {
    // Three switches: no path has two cables, so nothing waits for a second one.
    let (fabric, subnet) = routed("ring:3x2", "min-hop", 1);
    let report = credit_loop(&fabric, &subnet);
    assert!(report.is_sane() && report.dependencies == 0, "{report}");
}

#[test]
fn dimension_order_needs_its_lanes() {
    for spec in
        ["torus:4x4x4", "torus:8x8", "torus:5x3,hosts=2", "torus:2x2", "torus:7", "ring:6x3"]
    {
        let (fabric, subnet) = routed(spec, "dor", 2);
        assert!(reachability(&fabric, &subnet).is_sane(), "{spec}");
        let report = credit_loop(&fabric, &subnet);
        assert!(report.is_sane() && report.lanes == 2, "{spec}: {report}");
    }
    // The same tables with all SLs on one lane are not.
    let (fabric, mut subnet) = routed("torus:4x4", "dor", 2);
    subnet.sl_to_vl = SlToVl::modulo(&fabric, 1);
    assert!(!credit_loop(&fabric, &subnet).is_sane());
    for spec in ["mesh:4x4", "mesh:3x4x2", "chain:9x1"] {
        let (fabric, subnet) = routed(spec, "dor", 1);
        assert!(credit_loop(&fabric, &subnet).is_sane(), "{spec}");
    }
}

#[test]
fn traffic_whose_sl_is_set_by_hand_closes_the_ring() {
    let (fabric, subnet) = routed("ring:6x1", "dor", 2);
    let own = credit_loop(&fabric, &subnet);
    assert!(own.is_sane() && own == credit_loop_on(&fabric, &subnet, &[]), "{own}");
    // SL 0 says "crosses no wrap link"; put there, paths across it meet those that do not.
    let sl = ServiceLevel::default();
    let report = credit_loop_on(&fabric, &subnet, &[sl]);
    let cycle = report.cycle.as_ref().unwrap();
    assert!(cycle.channels.iter().all(|waits| waits.sl == sl && waits.vl.value() == 0), "{report}");
    assert_eq!((report.levels, cycle.lines.len()), (2, cycle.channels.len()));
    // An SL that no path has by itself is looked at too: SL 2 goes on VL 0 here, as SL 0 does.
    let unused = ServiceLevel::new(2).unwrap();
    let report = credit_loop_on(&fabric, &subnet, &[unused]);
    assert!(!report.is_sane() && report.levels == 3, "{report}");
}

/// SLs on a ring of five, one host a switch, shortest paths: SL 1 for the pairs whose path crosses
/// the dateline of its direction, the cable from switch `d` to d + 1; `up` holds for those that go
/// upwards, `down` for those that go downwards.
fn datelines(up: usize, down: usize) -> PathSl {
    let level = |at: usize| {
        let (from, to) = (at / 5, at % 5);
        let ahead = (to + 5 - from) % 5;
        // The switch at the lower end of the path, how many cables it has, and its dateline.
        let (first, cables, dateline) =
            if ahead <= 2 { (from, ahead, up) } else { (to, 5 - ahead, down) };
        u8::from((0..cables).any(|cable| (first + cable) % 5 == dateline))
    };
    PathSl::BySwitch { stride: 5, levels: (0..25).map(level).collect() }
}

/// Requests alone close no circle, neither those that go up nor those that go down: each direction
/// has a dateline, and no path turns round. But an acknowledgement runs down on the SL of a request
/// that went up, and if the datelines lie apart, downwards VL 0 holds a path over every two cables.
#[test]
fn acknowledgements_on_the_wrong_sl_are_seen() {
    let (fabric, mut subnet) = routed("ring:5x1", "dor", 2);
    for dateline in 0..5 {
        subnet.path_sl = datelines(dateline, dateline);
        let report = credit_loop(&fabric, &subnet);
        assert!(report.is_sane() && report.levels == 2, "{dateline}: {report}");
    }
    for (up, down) in [(4, 1), (4, 2), (0, 3)] {
        subnet.path_sl = datelines(up, down);
        let report = credit_loop(&fabric, &subnet);
        let cycle = report.cycle.as_ref().unwrap_or_else(|| panic!("{up}, {down}: {report}"));
        assert_eq!(cycle.channels.len(), 5, "{report}");
        // Somebody in the circle sends on another SL than his own request would have.
        let row = |end: Endpoint| {
            let switch = fabric.peer(end).unwrap().node;
            subnet.tables.row_of(switch).unwrap()
        };
        let answers = cycle.channels.iter().filter(|waits| {
            let to = subnet.lids.owner(waits.destination).unwrap().end;
            waits.sl != subnet.path_sl.level(row(waits.source), row(to))
        });
        assert!(answers.count() > 0, "{report}");
    }
}

#[test]
fn lanes_by_input_port_are_told_apart() {
    // A host of each switch on a lane of its own by its input port: SL2VL of (in, out, SL).
    let (fabric, mut subnet) = routed("ring:4x2", "min-hop", 1);
    let mut table = clearlane_subnet::SlToVlTable::PerPorts {
        stride: 5,
        rows: vec![[VirtualLane::default(); 16]; 25],
    };
    if let clearlane_subnet::SlToVlTable::PerPorts { rows, .. } = &mut table {
        // Packets that come in by port 4 (the second host) leave on VL 1.
        rows[4 * 5..5 * 5].fill([VirtualLane::new(1).unwrap(); 16]);
    }
    let one_lane = credit_loop(&fabric, &subnet);
    for switch in 0..4 {
        subnet.sl_to_vl.set(NodeId(switch), table.clone());
    }
    let report = credit_loop(&fabric, &subnet);
    assert_eq!((one_lane.lanes, report.lanes), (1, 2));
    assert_eq!(report.channels, 2 * one_lane.channels);
    assert_eq!(subnet.path_sl.level(0, 1), ServiceLevel::default());
}

#[test]
fn balance_of_a_tapered_tree_by_hand() {
    // Two leaves of four hosts and one spine: shift 4 sends everything over one uplink.
    let (fabric, subnet) = routed("leaf-spine:leaves=2,hosts=4,spines=1", "fat-tree", 1);
    let found = shifts(&fabric, &subnet);
    let worst = found.worst.unwrap();
    assert_eq!((worst.flows, worst.permutation, worst.name.as_str()), (4, 4, "leaf00[5]"));
    // Worst links of shifts 1 to 7: 1 2 3 4 3 2 1.
    assert!((found.mean - 16.0 / 7.0).abs() < 1e-12);
    assert_eq!((found.contention_free, found.measured, found.of), (2, 7, 7));
    let all = balance(&fabric, &subnet, &BalanceOptions::default());
    assert_eq!(all.shifts, shifts(&fabric, &subnet));
    assert_eq!(all.random.measured, 50);
    assert!(all.bisection.least > 0.24 && all.bisection.mean_share < 1.0, "{all}");
    let again = balance(&fabric, &subnet, &BalanceOptions::default());
    assert_eq!(all, again);
}

#[test]
fn a_permutation_that_lost_flows_is_not_without_contention() {
    let (fabric, mut subnet) = routed("star:4", "min-hop", 1);
    assert_eq!(shifts(&fabric, &subnet).contention_free, 3);
    // Host 1 is out of reach: every shift loses the flow to it, and the others still fit.
    subnet.tables.set(NodeId(0), Lid::new(2).unwrap(), None);
    let found = shifts(&fabric, &subnet);
    assert_eq!((found.contention_free, found.lost, found.measured), (0, 3, 3));
    assert!(found.to_string().contains("0.0 % without contention, 3 of 3, 3 flows lost"));
}

#[test]
fn full_bandwidth_and_samples_are_what_they_say() {
    let (fabric, subnet) = routed("star:16", "min-hop", 1);
    let options = BalanceOptions { shifts: Some(5), ..BalanceOptions::default() };
    let found = bisection(&fabric, &subnet, &options);
    assert_eq!((found.mean_share, found.least, found.most), (1.0, 1.0, 1.0));
    let all = balance(&fabric, &subnet, &options);
    assert_eq!((all.shifts.measured, all.shifts.of, all.shifts.contention_free), (5, 15, 5));
    assert_eq!((all.shifts.mean, all.random.mean), (1.0, 1.0));
}
