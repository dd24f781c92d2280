//! `traffic.json`, schema `clearlane-traffic/1`.

use super::measured::Measured;
use super::page::remarks;
use clearlane_lab::HostPlan;
use serde_json::{Value, json};

/// The fields of the document.
pub fn summary(plan: &HostPlan, measured: &Measured, command: &str) -> Value {
    let flows: Vec<Value> = measured
        .flows
        .iter()
        .map(|flow| {
            let us = |quantile: f64| match flow.latency.is_empty() {
                true => None,
                false => Some(flow.latency.value_at_quantile(quantile) as f64 * 1e-3),
            };
            json!({
                "source": flow.source,
                "destination": flow.destination,
                "group": flow.group,
                "class": flow.class.name(),
                "connections": flow.connections,
                "packets_sent": flow.sent,
                "packets_received": flow.received,
                "packets_unlogged": flow.unlogged,
                "packets_unknown": flow.unknown,
                "bytes_received": flow.bytes,
                "rate_gbps": flow.rate_bps().map(|bps| bps * 1e-9),
                "measured_gbps": measured.measured_bps(flow).map(|bps| bps * 1e-9),
                "measured_share": measured.share(flow),
                "latency_p50_us": us(0.5),
                "latency_p99_us": us(0.99),
                "held_to_gbps": flow.held_to_bps.map(|bps| bps as f64 * 1e-9),
            })
        })
        .collect();
    let hosts: Vec<Value> = measured
        .hosts
        .iter()
        .map(|host| {
            json!({
                "name": host.name,
                "clock_bound_us": host.bound_ns as f64 * 1e-3,
                "stopped": host.stopped,
                "logs_missing": host.missing,
            })
        })
        .collect();
    let us = |ns: u64| ns as f64 * 1e-3;
    json!({
        "name": plan.name,
        "variant": plan.variant,
        "command": command,
        "partial": measured.partial,
        "packet_bytes": measured.packet_bytes,
        "measured_from_us": measured.window_ns.map(|(from, _)| us(from)),
        "measured_to_us": measured.window_ns.map(|(_, to)| us(to)),
        "total_gbps": measured.total_bps().map(|bps| bps * 1e-9),
        "jain": measured.jain(),
        "packets_lost": measured.lost(),
        "records_unkept": measured.unkept,
        "clock_bound_us": us(measured.bound_ns()),
        "flows": flows,
        "hosts": hosts,
        "remarks": remarks(plan, measured),
    })
}
