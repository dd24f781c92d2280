//! Traffic matrices: a text is a matrix whose draws are hosts, or is refused.
#![no_main]

use clearlane_fuzz::{FILE, refused, text};
use clearlane_ib::random::Stream;
use clearlane_workload::patterns::PatternSpec;
use clearlane_workload::{Rank, Ranks};
use libfuzzer_sys::fuzz_target;

const HOSTS: u32 = 6;

fuzz_target!(|data: &[u8]| {
    let ranks = Ranks::named((0..HOSTS).map(|rank| format!("host{rank:04} HCA-1")));
    let spec = format!("kind = \"matrix\"\nfile = \"{FILE}\"");
    let mut spec: PatternSpec = toml::from_str(&spec).expect("a pattern");
    let Some(table) = spec.table() else { unreachable!("a matrix has a file") };
    table.text = Some(text(data).into_owned());
    match spec.build(&ranks, None) {
        Err(error) => refused(&error),
        Ok(destinations) => {
            let mut stream = Stream::new(1, "fuzz", 0);
            for source in (0..HOSTS).map(Rank) {
                let weight = destinations.weight(source);
                assert!(weight.is_finite() && weight >= 0.0, "{weight}");
                // Who offers nothing draws nobody, and nobody draws itself.
                let drawn = destinations.draw(source, &mut stream);
                assert_eq!(drawn.is_some(), weight > 0.0);
                assert!(drawn.is_none_or(|to| to != source && to.0 < HOSTS));
            }
        }
    }
});
