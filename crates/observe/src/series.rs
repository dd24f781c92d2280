//! Flows slice by slice, in the format that simulations have too.

use crate::names::Names;
use crate::words::queue_pairs;
use clearlane_capture::Analysed;
use clearlane_lab::FlowSlice;

/// The rows of all flows.
pub fn series(analysed: &Analysed, names: &Names) -> Vec<FlowSlice> {
    let grid = &analysed.found.grid;
    let length_us = grid.length_ns as f64 * 1e-3;
    let mut rows = Vec::new();
    for flow in &analysed.found.flows {
        let back = flow.feedback.as_ref().map_or(&[][..], |feedback| &feedback.slices);
        for number in 0..flow.slices.len().max(back.len()).max(flow.marks.len()) {
            let sent = flow.slices.get(number).copied().unwrap_or_default();
            let heard = back.get(number).copied().unwrap_or_default();
            let marked = flow.marks.get(number).map_or(0, |slice| slice.marked);
            let notified = u64::from(heard.cnp) + u64::from(heard.becn);
            if u64::from(sent.data_packets) + u64::from(marked) + notified == 0 {
                continue;
            }
            rows.push(FlowSlice {
                record: "capture".into(),
                variant: String::new(),
                source: names.of(flow.source),
                destination: names.of(flow.destination),
                detail: format!("QP {}", queue_pairs(flow)),
                class: flow.standing.name().into(),
                start_us: number as f64 * length_us,
                length_us,
                payload_bytes: sent.payload_bytes,
                packets: Some(sent.data_packets.into()),
                marked: Some(marked.into()),
                notified: flow.feedback.is_some().then_some(notified),
                retransmitted: Some(sent.retransmitted.into()),
            });
        }
    }
    rows
}
