//! Everything that was found, as JSON.

use crate::names::Names;
use crate::verdict::{remarks, verdict};
use clearlane_capture::judge::Standing;
use clearlane_capture::{Analysed, Clock, ClockKnown, FoundFlow};
use serde_json::{Value, json};

/// The fields of the document `clearlane-capture/1`. Times are nanoseconds since the first packet
/// of all, rates bits a second; what is not known is null.
pub fn summary(analysed: &Analysed, names: &Names) -> Value {
    let found = &analysed.found;
    let bottlenecks: Vec<Value> = found
        .bottlenecks
        .iter()
        .map(|bottleneck| json!({ "flows": bottleneck.flows, "with": bottleneck.with }))
        .collect();
    json!({
        "verdict": verdict(analysed, names).lines,
        "remarks": remarks(analysed),
        "partial": analysed.partial,
        "start_ns": analysed.start_ns,
        "slice_ns": found.grid.length_ns,
        "captures": captures(analysed),
        "points": points(analysed),
        "flows": found.flows.iter().map(|f| flow(analysed, f, names)).collect::<Vec<_>>(),
        "bottlenecks": bottlenecks,
    })
}

fn captures(analysed: &Analysed) -> Vec<Value> {
    let one = |capture: &clearlane_capture::Capture| {
        json!({
            "name": capture.name,
            "format": capture.format,
            "records": capture.records,
            "corrected_times": capture.corrected,
            "bytes_left_over": capture.left_over,
            "damaged": capture.damaged,
            "clock": clock(&capture.clock),
        })
    };
    analysed.captures.iter().map(one).collect()
}

fn clock(clock: &Clock) -> Value {
    match clock.known {
        ClockKnown::Reference => json!("reference"),
        ClockKnown::Unknown => Value::Null,
        ClockKnown::Measured => json!({
            "ahead_ns": clock.ahead_ns,
            "within_ns": clock.within_ns,
            "drift_ns_per_s": clock.drift_ns,
            "common_packets": clock.common,
        }),
    }
}

fn points(analysed: &Analysed) -> Vec<Value> {
    let all = analysed.points.iter().zip(&analysed.found.points);
    let one = |(point, counts): (&clearlane_capture::Point, &clearlane_capture::PointCounts)| {
        let since = |time: u64| time.saturating_sub(analysed.start_ns);
        json!({
            "name": point.name,
            "capture": analysed.captures[point.capture].name,
            "packets": counts.packets,
            "checked_crcs": counts.checked_crcs,
            "wrong_crcs": counts.wrong_crcs,
            "not_rdma": counts.others.not_rdma,
            "raw": counts.others.raw,
            "cut": counts.others.cut,
            "malformed": counts.others.malformed,
            "beyond_flows": counts.beyond,
            "first_ns": counts.span_ns.map(|(first, _)| since(first)),
            "last_ns": counts.span_ns.map(|(_, last)| since(last)),
        })
    };
    all.map(one).collect()
}

fn flow(analysed: &Analysed, flow: &FoundFlow, names: &Names) -> Value {
    let since = |time: u64| time.saturating_sub(analysed.start_ns);
    let (counts, sequence) = (&flow.counts, &flow.sequence);
    let slowed = match flow.standing {
        Standing::Victim { share } => Some(share),
        _ => None,
    };
    let back = flow.feedback.as_ref().map(|back| {
        json!({
            "seen_at": analysed.points[back.point as usize].name,
            "cnp": back.counts.cnp,
            "becn": back.counts.becn,
            "acks": back.counts.acks,
            "rnr_naks": back.counts.rnr_naks,
            "sequence_naks": back.counts.sequence_naks,
            "other_naks": back.counts.other_naks,
            "first_cnp_ns": back.first_cnp_ns.map(since),
        })
    });
    json!({
        "carrier": flow.carrier.name(),
        "service": flow.service.name(),
        "source": flow.source.to_string(),
        "destination": flow.destination.to_string(),
        "source_name": names.of(flow.source),
        "destination_name": names.of(flow.destination),
        "source_queue_pair": flow.source_queue_pair,
        "queue_pair": flow.queue_pair,
        "vl": flow.lane.map(|(lane, _)| lane),
        "sl": flow.lane.map(|(_, level)| level),
        "seen_at": analysed.points[flow.point as usize].name,
        "first_ns": since(flow.span_ns.0),
        "last_ns": since(flow.span_ns.1),
        "rate_bps": flow.rate_bps(),
        "packets": counts.packets,
        "data_packets": counts.data_packets,
        "payload_bytes": counts.payload_bytes,
        "wire_bytes": counts.wire_bytes,
        "fecn": counts.fecn,
        "ce": counts.ce,
        "marked": counts.marked,
        "first_mark_ns": flow.first_mark_ns.map(since),
        "psn_gaps": sequence.gaps,
        "missing": sequence.missing,
        "reordered": sequence.reordered,
        "retransmitted": sequence.retransmitted,
        "gap_median_ns": flow.gaps.median_ns,
        "gap_p99_ns": flow.gaps.p99_ns,
        "gap_max_ns": flow.gaps.max_ns,
        "checked_crcs": counts.checked_crcs,
        "wrong_crcs": counts.wrong_crcs,
        "back": back,
        "standing": flow.standing.name(),
        "slowed_to": slowed,
    })
}
