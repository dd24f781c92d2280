//! From what hosts are to send, as an experiment says it, to orders of agents.

use crate::order::{Carrier, Order, Pace, Sizes};
use clearlane_lab::{HostFlow, HostPlan};
use clearlane_workload::{Arrivals, Transport};

/// An order, and the flow of the plan that it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Ordered {
    /// Its place in the plan.
    pub flow: usize,
    /// The order.
    pub order: Order,
}

impl Ordered {
    /// The numbers of its connections.
    pub fn connections(&self) -> std::ops::Range<u32> {
        self.order.connections()
    }
}

/// The orders of a plan, a packet being of `packet_bytes` instead of the MTU if that is given.
/// Fails if a flow cannot be sent by hosts.
pub fn orders(plan: &HostPlan, packet_bytes: Option<u32>) -> Result<Vec<Ordered>, String> {
    let mut connection = 0;
    let mut all = Vec::with_capacity(plan.flows.len());
    for (number, flow) in plan.flows.iter().enumerate() {
        let order = order(plan, flow, connection, packet_bytes);
        let name = |why: &dyn std::fmt::Display| {
            format!("traffic {}, {} to {}: {why}", flow.group, flow.source, flow.destination)
        };
        order.check().map_err(|error| name(&error))?;
        connection = order.connections().end;
        all.push(Ordered { flow: number, order });
    }
    Ok(all)
}

fn order(plan: &HostPlan, flow: &HostFlow, connection: u32, packet_bytes: Option<u32>) -> Order {
    let ns = |time: clearlane_ib::Picoseconds| time.0 / 1000;
    let pace = match flow.arrivals {
        _ if flow.at_full_speed => Pace::FullSpeed,
        Arrivals::Periodic => Pace::Periodic,
        Arrivals::Poisson => Pace::Poisson,
        Arrivals::Ramp(ramp) => Pace::Ramp(ns(ramp)),
    };
    Order {
        connection,
        paths: flow.paths,
        source: flow.source.clone(),
        destination: flow.destination.clone(),
        group: flow.group.clone(),
        carrier: match flow.transport {
            Transport::Rc => Carrier::Tcp,
            Transport::Ud => Carrier::Udp,
        },
        packet_bytes: packet_bytes.unwrap_or(flow.payload_max),
        sizes: Sizes::from(&flow.sizes),
        pace,
        load: flow.load,
        link_bps: flow.link.bits_per_second().0,
        start_ns: ns(flow.start),
        stop_ns: ns(flow.stop.min(plan.duration)),
        seed: plan.seed,
        control: plan.control.clone(),
        acks: !plan.control.is_empty(),
    }
}
