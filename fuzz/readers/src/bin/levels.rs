//! SLs of paths, lines `0x<node GUID> <DLID> <SL>` or groups of hosts: put onto a fabric, written
//! in both forms and read again.
#![no_main]

use clearlane_fabric::Fabric;
use clearlane_fuzz::{FILE, one_line, refused, text};
use clearlane_ib::Lid;
use clearlane_subnet::formats::{self, Content, path_groups, path_sl};
use clearlane_subnet::{PathSl, Subnet};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;

thread_local! {
    static SUBNET: OnceCell<(Fabric, Subnet)> = const { OnceCell::new() };
}

/// The hosts by LID, with the rows of their leaves.
const HOSTS: [(u16, usize); 4] = [(1, 0), (2, 0), (3, 1), (4, 1)];

fuzz_target!(|data: &[u8]| {
    SUBNET.with(|cell| {
        let (fabric, subnet) = cell.get_or_init(clearlane_fuzz::subnet);
        let Some(path_sl) = levels(fabric, subnet, &text(data)) else { return };
        let subnet = Subnet { path_sl, ..subnet.clone() };
        for write in [path_sl::write, path_groups::write] {
            let mut dump = Vec::new();
            write(fabric, &subnet, &mut dump).expect("memory takes it");
            let again = levels(fabric, &subnet, &text(&dump)).expect("what is written is read");
            let pairs = HOSTS.iter().flat_map(|from| HOSTS.iter().map(move |to| (from, to)));
            for (from, to) in pairs.filter(|(from, to)| from != to) {
                let level = |of: &PathSl| {
                    let end =
                        |(lid, row): &(u16, usize)| of.end(*row, Lid::new(*lid).expect("a LID"));
                    of.level(end(from), end(to))
                };
                assert_eq!(level(&again), level(&subnet.path_sl), "{from:?} to {to:?}");
            }
        }
    });
});

fn levels(fabric: &Fabric, subnet: &Subnet, text: &str) -> Option<PathSl> {
    let read = match formats::read(text, FILE) {
        Ok(Content::Levels(dump)) => dump.levels(fabric, &subnet.lids, FILE),
        Ok(Content::Groups(dump)) => Ok(dump.levels(fabric, &subnet.lids)),
        Ok(_) => return None,
        Err(error) => {
            refused(&error);
            return None;
        }
    };
    match read {
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
