//! Experiment files: what is read is written down resolved and then reads as the same.
#![no_main]

use clearlane_fuzz::{refused, text};
use clearlane_lab::Experiment;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let read = |text: &str| Experiment::parse(text, Path::new("file.toml"));
    match read(&text(data)) {
        Err(error) => refused(&error),
        Ok(experiment) => {
            let resolved = experiment.resolved();
            let again = read(&resolved).unwrap_or_else(|error| panic!("{error}\n{resolved}"));
            assert_eq!(again.resolved(), resolved);
        }
    }
});
