//! SL2VL, `opensm-sl2vl.dump`: put onto a fabric, written and read again.
#![no_main]

use clearlane_fabric::Fabric;
use clearlane_fuzz::{FILE, one_line, ports, refused, text};
use clearlane_ib::ServiceLevel;
use clearlane_subnet::formats::{self, Content, sl2vl};
use clearlane_subnet::{SlToVl, Subnet};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;

/// Lanes that SLs go on of which a file says nothing.
const COUNT: u8 = 4;

thread_local! {
    static SUBNET: OnceCell<(Fabric, Subnet)> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    SUBNET.with(|cell| {
        let (fabric, subnet) = cell.get_or_init(clearlane_fuzz::subnet);
        if let Some(sl_to_vl) = lanes(fabric, &text(data)) {
            written(fabric, Subnet { sl_to_vl, ..subnet.clone() });
        }
    });
});

fn lanes(fabric: &Fabric, text: &str) -> Option<SlToVl> {
    let dump = match formats::read(text, FILE) {
        Ok(Content::Lanes(dump)) => dump,
        Ok(_) => return None,
        Err(error) => {
            refused(&error);
            return None;
        }
    };
    match dump.lanes(fabric, COUNT, FILE) {
        Ok((lanes, oddities)) => {
            oddities.iter().for_each(|oddity| one_line(&oddity.to_string()));
            Some(lanes)
        }
        Err(error) => {
            refused(&error);
            None
        }
    }
}

/// Every lane between two ports comes back.
fn written(fabric: &Fabric, subnet: Subnet) {
    let mut dump = Vec::new();
    sl2vl::write(fabric, &subnet, &mut dump).expect("memory takes it");
    let again = lanes(fabric, &text(&dump)).expect("what is written is read");
    for switch in subnet.tables.switches() {
        let all = ports(fabric.node(*switch).port_count());
        let pairs = all.clone().flat_map(|input| all.clone().skip(1).map(move |out| (input, out)));
        for (input, output) in pairs {
            for sl in (0..16).filter_map(ServiceLevel::new) {
                let lane = |of: &SlToVl| of.table(*switch).lane(input, output, sl);
                assert_eq!(lane(&again), lane(&subnet.sl_to_vl), "{input} to {output}, SL {sl}");
            }
        }
    }
}
