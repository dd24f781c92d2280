//! Every topology that is built is routed whole, and free of credit loops where its engine says so.

use clearlane_fabric::topologies;
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::engines::{RouteOptions, route};

#[test]
fn min_hop_reaches_every_host_of_every_topology() {
    let more = ["dragonfly:a=4,p=2,h=2,g=4", "dragonfly:a=3,p=1,h=3,g=2", "tofu:1x2x4,mesh=z"];
    for spec in topologies::ALL.iter().map(|entry| entry.example).chain(more) {
        let fabric = topologies::build(spec).unwrap();
        let subnet = route("min-hop", &fabric, &RouteOptions::default())
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
        let report = reachability(&fabric, &subnet);
        let hosts = fabric.summary().adapters as u64;
        assert_eq!((report.pairs, report.reached), (hosts * (hosts - 1), report.pairs), "{spec}");
        assert!(report.is_sane(), "{spec}: {report}");
    }
}

#[test]
fn what_is_a_grid_or_a_tree_is_routed_as_one() {
    for (spec, engine, lanes) in [
        ("hypercube:5,hosts=2", "dor", 1),
        ("tofu:3x4x3", "dor", 2),
        ("tofu:3x2x4,mesh=xz", "dor", 2),
        ("rail-optimised:units=2,hosts=4,rails=4,spines=2", "fat-tree", 1),
    ] {
        let fabric = topologies::build(spec).unwrap();
        let options = RouteOptions { lanes, ..RouteOptions::default() };
        let subnet =
            route(engine, &fabric, &options).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert!(reachability(&fabric, &subnet).is_sane(), "{spec}");
        assert!(credit_loop(&fabric, &subnet).is_sane(), "{spec}");
    }
}
