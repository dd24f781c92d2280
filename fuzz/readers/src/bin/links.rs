//! Output of `iblinkinfo` and `ibqueryerrors --counters`, and node name maps.
#![no_main]

use clearlane_fabric::NodeNameMap;
use clearlane_fabric::counters::Counters;
use clearlane_fabric::formats::iblinkinfo;
use clearlane_fuzz::{FILE, fabric_file, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    fabric_file(data, iblinkinfo::read);
    let text = text(data);
    if let Ok(map) = NodeNameMap::read(&text, FILE) {
        assert!(map.count() <= text.lines().count());
    }
    if let Ok(counters) = Counters::read(&text, FILE) {
        assert!(counters.since(&counters).is_ok());
    }
});
