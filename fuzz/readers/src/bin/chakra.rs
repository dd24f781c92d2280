//! Chakra traces of two ranks. The first byte says how long the first rank's file is.
#![no_main]

use clearlane_fuzz::{one_line, refused};
use clearlane_workload::traces::{Trace, chakra, goal_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (length, files) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let (first, second) = files.split_at(usize::from(length).min(files.len()));
    match chakra::read(&[("file.0.et", first), ("file.1.et", second)]) {
        Ok(chakra::Converted { trace, lost }) => {
            lost.iter().for_each(|line| one_line(line));
            let text = goal_text::write(&trace);
            let again = Trace::read(text.as_bytes(), "file").expect("what is written is read");
            assert!(again == trace, "{text}");
        }
        Err(error) => refused(&error),
    }
});
