//! Topologies by their specification, `torus:4x4,hosts=2`: what is built comes back from a netlist.
#![no_main]

use clearlane_fabric::topologies;
use clearlane_fuzz::{comes_back, refused, text};
use libfuzzer_sys::fuzz_target;

/// Specifications whose numbers multiply to more are left out: they build what takes a second.
const PRODUCT_MAX: u64 = 1_000;
/// The largest fabric that is written and read.
const CABLES_MAX: usize = 2_000;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
    // What a number stands for, where it is not a count: 2^n switches, a^2 h of them.
    let name = text.split(':').next().unwrap_or_default().trim();
    let size = |n: u64| match name {
        "hypercube" => 1 << n.min(32),
        "dragonfly" => n.saturating_mul(n).max(1),
        _ => n.max(1),
    };
    let product = numbers.fold(1u64, |product, n| product.saturating_mul(size(n)));
    if product > PRODUCT_MAX {
        return;
    }
    match topologies::build(&text) {
        Ok(fabric) if fabric.links().len() <= CABLES_MAX => comes_back(&fabric),
        Ok(_) => {}
        Err(error) => refused(&error),
    }
});
