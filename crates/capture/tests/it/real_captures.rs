//! Captures of real networks, where they are at hand: every packet is counted, every CRC is right.

use clearlane_capture::files::{Fault, Input, Reader};
use clearlane_capture::{Carrier, Crcs, Dissected, Other, Packet, Truth, dissect};
use std::path::Path;

/// A third party's capture; without the folder the test says so and ends.
#[allow(clippy::print_stdout)] // The person running the tests must see what was not tested.
fn shared(test: &str, file: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !folder.exists() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    let path = folder.join("data/captures").join(file);
    Some(std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// The packets of a capture, CRCs checked, and what else it holds.
fn packets(bytes: &[u8]) -> Result<(Vec<Packet>, Vec<Other>), Fault> {
    let mut reader = Reader::open(Input::new(bytes))?;
    let (mut packets, mut others) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next()? {
        match dissect(&record, true) {
            Dissected::Packet(packet) => packets.push(packet),
            Dissected::Other(other) => others.push(other),
        }
    }
    assert_eq!(reader.left_over()?, 0);
    Ok((packets, others))
}

#[test]
fn needs_shared_native_infiniband_has_its_packets_and_right_crcs() {
    let test = "needs_shared_native_infiniband_has_its_packets_and_right_crcs";
    let Some(bytes) = shared(test, "softroce-demo_infiniband.pcap") else { return };
    let (packets, others) = packets(&bytes).unwrap();
    assert_eq!((packets.len(), others.len()), (43, 0));
    let right = Crcs { invariant: Truth::Right, variant: Truth::Right };
    assert!(packets.iter().all(|packet| packet.crcs == right));
    assert!(packets.iter().all(|packet| packet.carrier == Carrier::Native));
    // Management on VL15, data on VL0; no congestion.
    let lanes = |vl| packets.iter().filter(|p| p.lane.is_some_and(|lane| lane.0 == vl)).count();
    assert!(lanes(15) > 0 && lanes(0) > 0 && lanes(15) + lanes(0) == 43);
    assert!(!packets.iter().any(|p| p.bth.fecn || p.bth.becn || p.bth.opcode.is_cnp()));
}

#[test]
fn needs_shared_a_source_port_of_another_protocol_hides_no_packet() {
    let test = "needs_shared_a_source_port_of_another_protocol_hides_no_packet";
    let Some(bytes) = shared(test, "oferby_roce.pcap") else { return };
    let (packets, others) = packets(&bytes).unwrap();
    assert_eq!((packets.len(), others.len()), (105, 18));
    let right = Crcs { invariant: Truth::Right, variant: Truth::Unknown };
    assert!(packets.iter().all(|packet| packet.crcs == right));
    assert!(others.iter().all(|other| *other == Other::NotRdma));
}

#[test]
fn needs_shared_a_capture_without_rdma_has_none() {
    let test = "needs_shared_a_capture_without_rdma_has_none";
    let Some(bytes) = shared(test, "softroce-demo_demo_capture.pcap") else { return };
    let (packets, others) = packets(&bytes).unwrap();
    assert_eq!((packets.len(), others.len()), (0, 20));
}
