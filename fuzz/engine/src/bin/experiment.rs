//! Experiment files: what is read is written down resolved and then reads as the same. Programs in
//! them are made for some numbers of ranks, or refused.
#![no_main]

use clearlane_fuzz::{refused, text};
use clearlane_lab::{DemandSpec, Experiment, TrafficSpec};
use clearlane_workload::programs::Group;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

/// Makes the ranks of a program, if the traffic has one.
fn programs(traffic: &TrafficSpec) {
    let DemandSpec::Program(job) = &traffic.demand else { return };
    for ranks in [0, 1, 2, 3, 16] {
        match job.spec.build(&Group { ranks, ..Group::default() }) {
            Err(error) => refused(&error),
            Ok(programs) => assert_eq!(programs.len(), ranks as usize),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let read = |text: &str| Experiment::parse(text, Path::new("file.toml"));
    match read(&text(data)) {
        Err(error) => refused(&error),
        Ok(experiment) => {
            let resolved = experiment.resolved();
            let again = read(&resolved).unwrap_or_else(|error| panic!("{error}\n{resolved}"));
            assert_eq!(again.resolved(), resolved);
            experiment.variants.iter().flat_map(|variant| &variant.traffic).for_each(programs);
        }
    }
});
