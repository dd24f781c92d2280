//! Captures: files of every format, packets of every carrier, with their CRCs, and what is found.
#![no_main]

use clearlane_capture::files::{Input, Reader};
use clearlane_capture::{Options, Source, analyse, dissect};
use clearlane_fuzz::refused;
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read};

fuzz_target!(|data: &[u8]| {
    match Reader::open(Input::new(data)) {
        Ok(mut reader) => loop {
            match reader.next() {
                Ok(Some(record)) => {
                    dissect(&record, true);
                }
                Ok(None) => break,
                Err(fault) => {
                    refused(&fault);
                    break;
                }
            }
        },
        Err(fault) => refused(&fault),
    }
    // Alone, and with itself: every packet in common.
    for many in [1, 2] {
        let source = |number: usize| Source {
            name: format!("file {number}"),
            open: Box::new(|| Ok(Box::new(Cursor::new(data.to_vec())) as Box<dyn Read>)),
            bytes: Some(data.len() as u64),
        };
        let sources: Vec<Source<'_>> = (0..many).map(source).collect();
        match analyse(&sources, &Options::default(), &mut |_, _| true) {
            Ok(analysed) => {
                let found = analysed.expect("nobody stops it").found;
                for flow in &found.flows {
                    assert!(flow.counts.marked <= flow.counts.data_packets);
                    assert!(flow.counts.data_packets <= flow.counts.packets);
                }
            }
            Err(error) => refused(&error),
        }
    }
});
