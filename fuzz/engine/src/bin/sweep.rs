//! What `--over` takes: a key and its values, and the points of an experiment they make.
#![no_main]

use clearlane_fuzz::{one_line, refused, text};
use clearlane_lab::{Axis, Experiment, Sweep};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

const EXPERIMENT: &str = "schema = 1\nname = \"small\"\nrun = { duration = \"100 us\" }\n\
    fabric = { build = \"star:4\" }\nsubnet = { engine = \"min-hop\" }\n\
    sim = { preset = \"qdr\" }\n[[traffic]]\nname = \"all\"\nclass = \"background\"\n\
    pattern = { kind = \"uniform\" }\nload = 0.5\nsize = \"2 KiB\"\n[[variant]]\n\
    name = \"one\"\n[[variant]]\nname = \"other\"\nsim = { buffer = \"4 KiB\" }\n";
/// More points take longer and show nothing new.
const POINTS_MAX: usize = 20;

fuzz_target!(|data: &[u8]| {
    let over = text(data);
    let axis = match Axis::parse(&over) {
        Err(error) => return refused(&error),
        Ok(axis) => axis,
    };
    one_line(&axis.key());
    let texts = axis.texts();
    assert!(!texts.is_empty() && texts.len() == axis.count());
    if let Some((numbers, _)) = axis.numbers() {
        assert_eq!(numbers.len(), texts.len());
    }
    if axis.count() > POINTS_MAX {
        return;
    }
    let path = Path::new("file.toml");
    match Sweep::parse(EXPERIMENT, path, &[over.into_owned()], &[]) {
        Err(error) => refused(&error),
        Ok(sweep) => {
            assert_eq!(sweep.points.len(), axis.count());
            for point in &sweep.points {
                let resolved = point.experiment.resolved();
                let again = Experiment::parse(&resolved, path);
                let again = again.unwrap_or_else(|error| panic!("{error}\n{resolved}"));
                assert_eq!(again.resolved(), resolved);
            }
        }
    }
});
