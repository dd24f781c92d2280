//! Headers of packets: LRH, BTH, CNP.
#![no_main]

use clearlane_fuzz::refused;
use clearlane_ib::{Bth, Cnp, Lrh};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Bth::read(data) {
        Ok(bth) => {
            bth.opcode.to_string();
            assert_eq!(Bth::read(&bth.bytes()), Ok(bth));
        }
        Err(error) => refused(&error),
    }
    match Lrh::read(data) {
        Ok(lrh) => assert_eq!(Lrh::read(&lrh.bytes()), Ok(lrh)),
        Err(error) => refused(&error),
    }
    match Cnp::read(data) {
        Ok((route, cnp)) => assert_eq!(Cnp::read(&cnp.bytes(&route)), Ok((route, cnp))),
        Err(error) => refused(&error),
    }
    match Cnp::read_roce(data) {
        Ok(cnp) => assert_eq!(Cnp::read_roce(&cnp.roce_bytes()), Ok(cnp)),
        Err(error) => refused(&error),
    }
});
