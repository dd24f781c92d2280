//! Port lists of `ibnetdiscover -p`.
#![no_main]

use clearlane_fabric::formats::ports_report;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| clearlane_fuzz::fabric_file(data, ports_report::read));
