//! `opensm-subnet.lst`, read by `fabric` and written by `subnet`.
#![no_main]

use clearlane_fabric::formats::subnet_lst;
use clearlane_fuzz::{FILE, fabric_file, refused, text};
use clearlane_subnet::LidMap;
use clearlane_subnet::formats::subnet_lst::write;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fabric_file(data, subnet_lst::read);
    let Ok(reading) = subnet_lst::read(&text(data), FILE) else { return };
    let fabric = reading.fabric;
    let lids = match LidMap::from_fabric(&fabric) {
        Ok(Some(lids)) => lids,
        Ok(None) => return,
        Err(error) => return refused(&error),
    };
    let mut list = Vec::new();
    write(&fabric, &lids, &mut list).expect("memory takes it");
    if fabric.links().is_empty() {
        return;
    }
    // Nodes come in the order of their cables and those without any are not listed.
    let again = subnet_lst::read(&text(&list), FILE).expect("what is written is read").fabric;
    assert_eq!(again.links().len(), fabric.links().len());
    for link in again.links() {
        let end = |end: clearlane_fabric::Endpoint| {
            let node = fabric.by_guid(again.node(end.node).guid).expect("the same nodes");
            clearlane_fabric::Endpoint { node, port: end.port }
        };
        assert_eq!(fabric.peer(end(link.a)), Some(end(link.b)));
        let before = fabric.link(fabric.link_at(end(link.a)).expect("it has a peer"));
        assert_eq!((before.width, before.speed), (link.width, link.speed));
    }
});
