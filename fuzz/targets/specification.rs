//! Topologies by their specification, `torus:4x4,hosts=2`: what is built comes back from a netlist.
#![no_main]

use clearlane_fabric::topologies;
use clearlane_fuzz::{comes_back, refused, text};
use libfuzzer_sys::fuzz_target;

/// Specifications whose numbers multiply to more are left out: they build what takes a second.
const PRODUCT_MAX: u64 = 5_000;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
    let doublings = text.trim_start().starts_with("hypercube");
    let size = |n: u64| if doublings { 1 << n.min(32) } else { n.max(1) };
    let product = numbers.fold(1u64, |product, n| product.saturating_mul(size(n)));
    if product > PRODUCT_MAX {
        return;
    }
    match topologies::build(&text) {
        Ok(fabric) => comes_back(&fabric),
        Err(error) => refused(&error),
    }
});
