//! `ibnetdiscover` topology files and `ibsim` netlists.
#![no_main]

use clearlane_fabric::formats::ibnetdiscover;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| clearlane_fuzz::fabric_file(data, ibnetdiscover::read));
