//! What comes to agents and controllers of traffic over the network: control frames and messages,
//! requests of data connections, packets, and logs.
#![no_main]

use clearlane_fuzz::refused;
use clearlane_traffic::channel::read;
use clearlane_traffic::consent::{REQUEST_BYTES, Request as Shown};
use clearlane_traffic::frame::{Inbox, Kind};
use clearlane_traffic::log::Decoder;
use clearlane_traffic::mechanisms::Mechanisms;
use clearlane_traffic::message::{Answer, Request};
use clearlane_traffic::order::Order;
use clearlane_traffic::packet::Walker;
use clearlane_traffic::sender::{Next, Sender, picoseconds};
use libfuzzer_sys::fuzz_target;

/// Steps of a sender.
const STEPS: usize = 64;

fuzz_target!(|data: &[u8]| {
    message(data);
    let (first, second) = data.split_at(data.len() / 2);
    let mut inbox = Inbox::default();
    for part in [first, second] {
        inbox.push(part);
        loop {
            match inbox.take() {
                Ok(Some(frame)) if frame.kind == Kind::Message => message(&frame.content),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(fault) => {
                    refused(&fault);
                    break;
                }
            }
        }
    }
    let mut walker = Walker::new(0);
    if let Err(fault) = walker.walk(first, |_| {}).and_then(|()| walker.walk(second, |_| {})) {
        refused(&fault);
    }
    let mut decoder = Decoder::default();
    if let Err(fault) = decoder.read(first, |_| {}).and_then(|()| decoder.read(second, |_| {})) {
        refused(&fault);
    }
    if let Some(bytes) = data.first_chunk::<REQUEST_BYTES>() {
        let _ = Shown::of_bytes(bytes);
    }
});

fn message(content: &[u8]) {
    match read::<Request>(content) {
        Ok(Request::Receive { order, .. } | Request::Send { order, .. }) => perform(&order),
        Ok(_) => {}
        Err(fault) => refused(&fault),
    }
    if let Err(fault) = read::<Answer>(content) {
        refused(&fault);
    }
}

/// What an agent makes of an order.
fn perform(order: &Order) {
    if let Err(fault) = order.check() {
        return refused(&fault);
    }
    let link = order.link().expect("it was checked");
    let reactors = match Mechanisms::default().of(order, link) {
        Ok(reactors) => reactors,
        Err(fault) => return refused(&fault),
    };
    let mut sender = Sender::new(order, link, reactors);
    let hears = sender.has_reactors();
    let mut sent = vec![0; order.paths.into()];
    let mut now = picoseconds(order.start_ns);
    for _ in 0..STEPS {
        match sender.next(now, |_| true) {
            Next::Packet { connection, bytes } => {
                assert!((24..=order.packet_bytes).contains(&bytes));
                sender.sent(connection, bytes, now);
                sent[connection] += 1;
                if hears && sent[connection] % 3 == 0 {
                    let heard = sender.acknowledged(connection, sent[connection], now);
                    assert!(heard.is_ok(), "{heard:?}");
                }
            }
            Next::Wait(until) => {
                assert!(until >= now, "it waits for the past");
                now = until;
            }
            Next::Ended => break,
        }
    }
}
