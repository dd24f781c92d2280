//! Mechanisms of a run at an agent: the reactors of the simulator, one for each queue pair, flow,
//! or for all of a host, as the mechanism says.

use crate::order::Order;
use crate::sender::{Reactors, SharedReactor};
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
    shared: BTreeMap<String, (SharedReactor, u32)>,
}

impl Mechanisms {
    /// Fails if the mechanisms of an order cannot be; keeps nothing.
    pub fn check(order: &Order) -> Result<(), String> {
        let link = order.link().ok_or("its link is none")?;
        Mechanisms::default().of(order, link).map(|_| ())
    }

    /// The reactors of an order. Fails if its mechanisms cannot be.
    pub fn of(&mut self, order: &Order, link: LinkRate) -> Result<Reactors, String> {
        if order.control.is_empty() {
            return Ok(Reactors::default());
        }
        let spec = ControlSpec::of_spelt_out(&order.control).map_err(|error| error.to_string())?;
        let source = Source { link, packet_max: order.packet_bytes, paths: order.paths };
        let mut reactors = Reactors::default();
        for mechanism in spec.all() {
            let built = (mechanism.entry.build)(&mechanism.values).map_err(|e| e.to_string())?;
            match mechanism.entry.decides {
                Decides::When => reactors.when = self.when(built.as_ref(), &source, order),
                Decides::Which => reactors.which = built.reactor(&source).map(reactor),
            }
        }
        Ok(reactors)
    }

    fn when(
        &mut self,
        mechanism: &dyn Mechanism,
        source: &Source,
        order: &Order,
    ) -> Vec<(SharedReactor, Pair)> {
        let paths = 0..u32::from(order.paths);
        let made = || mechanism.reactor(source).map(reactor);
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

fn reactor(reactor: Box<dyn clearlane_congestion::Reactor>) -> SharedReactor {
    Arc::new(Mutex::new(reactor))
}
