//! SLs of paths, lines `0x<node GUID> <DLID> <SL>`: put onto a fabric, written and read again.
#![no_main]

use clearlane_fabric::Fabric;
use clearlane_fuzz::{FILE, one_line, refused, text};
use clearlane_subnet::formats::{self, Content, path_sl};
use clearlane_subnet::{PathSl, Subnet};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;

thread_local! {
    static SUBNET: OnceCell<(Fabric, Subnet)> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    SUBNET.with(|cell| {
        let (fabric, subnet) = cell.get_or_init(clearlane_fuzz::subnet);
        let Some(path_sl) = levels(fabric, subnet, &text(data)) else { return };
        let subnet = Subnet { path_sl, ..subnet.clone() };
        let mut dump = Vec::new();
        path_sl::write(fabric, &subnet, &mut dump).expect("memory takes it");
        let again = levels(fabric, &subnet, &text(&dump)).expect("what is written is read");
        // The first two switches are the leaves.
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            assert_eq!(again.level(from, to), subnet.path_sl.level(from, to), "{from} to {to}");
        }
    });
});

fn levels(fabric: &Fabric, subnet: &Subnet, text: &str) -> Option<PathSl> {
    let dump = match formats::read(text, FILE) {
        Ok(Content::Levels(dump)) => dump,
        Ok(_) => return None,
        Err(error) => {
            refused(&error);
            return None;
        }
    };
    match dump.levels(fabric, &subnet.lids, FILE) {
        Ok((levels, oddities)) => {
            oddities.iter().for_each(|oddity| one_line(&oddity.to_string()));
            Some(levels)
        }
        Err(error) => {
            refused(&error);
            None
        }
    }
}
