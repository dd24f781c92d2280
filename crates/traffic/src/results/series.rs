//! Flows slice by slice, in the format that simulations and captures have too.

use super::measured::Measured;
use clearlane_lab::{FlowSlice, HostPlan};

/// The rows of all flows.
pub fn series(plan: &HostPlan, measured: &Measured) -> Vec<FlowSlice> {
    let length_us = measured.slice_ns as f64 * 1e-3;
    let mut rows = Vec::new();
    for flow in &measured.flows {
        for (number, bytes) in flow.slices.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            rows.push(FlowSlice {
                record: "hosts".into(),
                variant: plan.variant.clone(),
                source: flow.source.clone(),
                destination: flow.destination.clone(),
                detail: flow.group.clone(),
                class: flow.class.name().into(),
                start_us: number as f64 * length_us,
                length_us,
                payload_bytes: *bytes,
                ..FlowSlice::default()
            });
        }
    }
    rows
}
