//! Mechanisms of a run at an agent: the reactors of the simulator, one for each queue pair, flow,
//! or for all of a host, as the mechanism says.

use crate::order::Order;
use crate::sender::{Governor, Governors};
use clearlane_congestion::{Decides, Mechanism, Pair, Scope, Source};
use clearlane_ib::LinkRate;
use clearlane_lab::ControlSpec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the flows of a run share.
#[derive(Default)]
pub struct Mechanisms {
    /// By the text of their parameters: a reactor for all queue pairs of the host, and how many it
    /// has.
    shared: BTreeMap<String, (Governor, u32)>,
}

impl Mechanisms {
    /// Fails if the mechanisms of an order cannot be; keeps nothing.
    pub fn check(order: &Order) -> Result<(), String> {
        let link = order.link().ok_or("its link is none")?;
        Mechanisms::default().of(order, link).map(|_| ())
    }

    /// The reactors of an order. Fails if its mechanisms cannot be.
    pub fn of(&mut self, order: &Order, link: LinkRate) -> Result<Governors, String> {
        if order.control.is_empty() {
            return Ok(Governors::default());
        }
        let spec = ControlSpec::of_spelt_out(&order.control).map_err(|error| error.to_string())?;
        let source = Source { link, packet_max: order.packet_bytes, paths: order.paths };
        let mut governors = Governors::default();
        for mechanism in spec.all() {
            let built = (mechanism.entry.build)(&mechanism.values).map_err(|e| e.to_string())?;
            match mechanism.entry.decides {
                Decides::When => governors.when = self.when(built.as_ref(), &source, order),
                Decides::Which => governors.which = built.reactor(&source).map(governor),
            }
        }
        Ok(governors)
    }

    fn when(
        &mut self,
        mechanism: &dyn Mechanism,
        source: &Source,
        order: &Order,
    ) -> Vec<(Governor, Pair)> {
        let paths = 0..u32::from(order.paths);
        let made = || mechanism.reactor(source).map(governor);
        match mechanism.scope() {
            Scope::QueuePair => paths.filter_map(|_| Some((made()?, Pair(0)))).collect(),
            Scope::Flow => match made() {
                Some(own) => paths.map(|path| (Arc::clone(&own), Pair(path))).collect(),
                None => Vec::new(),
            },
            Scope::ServiceLevel => {
                if !self.shared.contains_key(&order.control)
                    && let Some(own) = made()
                {
                    self.shared.insert(order.control.clone(), (own, 0));
                }
                let Some((shared, count)) = self.shared.get_mut(&order.control) else {
                    return Vec::new();
                };
                let first = *count;
                *count += u32::from(order.paths);
                paths.map(|path| (Arc::clone(shared), Pair(first + path))).collect()
            }
        }
    }
}

fn governor(reactor: Box<dyn clearlane_congestion::Reactor>) -> Governor {
    Arc::new(Mutex::new(reactor))
}
