//! The mechanisms of a variant: the ports they name found in its fabric, built anew for every run.

use crate::LabError;
use crate::error::named;
use crate::experiment::{ControlSpec, MechanismSpec, PortSpec};
use crate::fact::Fact;
use crate::port;
use crate::routes::Routed;
use crate::table::significant;
use clearlane_congestion::{Decides, Mechanism, ParameterError};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_sim::{Hosts, Mechanisms};
use clearlane_subnet::check;

/// The mechanisms of a variant and, by mechanism, the ports with settings of their own.
#[derive(Debug)]
pub(crate) struct Control {
    spec: ControlSpec,
    when: Vec<Endpoint>,
    which: Vec<Endpoint>,
}

impl Control {
    /// Finds the ports. Fails if one is not there, no switch's or without a cable.
    pub(crate) fn of(spec: &ControlSpec, fabric: &Fabric) -> Result<Self, String> {
        let ports = |spec: &Option<MechanismSpec>| -> Result<Vec<Endpoint>, String> {
            let ports = spec.iter().flat_map(|spec| spec.ports.iter().map(move |p| (spec, p)));
            ports.map(|(spec, port)| found(spec, port, fabric)).collect()
        };
        let (when, which) = (ports(&spec.when)?, ports(&spec.which)?);
        once(&spec.when, &when)?;
        once(&spec.which, &which)?;
        let control = Control { spec: spec.clone(), when, which };
        // What is built for every run can be built.
        control.mechanisms(0).map_err(|error| format!("control: {error}"))?;
        Ok(control)
    }

    /// The mechanisms of a run; nothing if there are none. Fails if values contradict each other.
    pub(crate) fn mechanisms(&self, seed: u64) -> Result<Option<Mechanisms>, ParameterError> {
        if !self.is_on() {
            return Ok(None);
        }
        let build = |spec: &Option<MechanismSpec>, ports: &[Endpoint]| {
            let built = |spec: &MechanismSpec| -> Result<Box<dyn Mechanism>, ParameterError> {
                let mut mechanism = (spec.entry.build)(&spec.values)?;
                for (end, own) in ports.iter().zip(&spec.ports) {
                    mechanism.override_port(end.node.0, end.port.value(), &own.values)?;
                }
                Ok(mechanism)
            };
            spec.as_ref().map(built).transpose()
        };
        let when = build(&self.spec.when, &self.when)?;
        let which = build(&self.spec.which, &self.which)?;
        Ok(Some(Mechanisms { when, which, seed }))
    }

    /// Whether there are any.
    pub(crate) fn is_on(&self) -> bool {
        self.spec.all().next().is_some()
    }

    /// Whether one of them chooses paths.
    pub(crate) fn chooses_paths(&self) -> bool {
        self.spec.which.is_some()
    }

    /// Their names, that of the one which decides when first.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.spec.all().map(|spec| spec.entry.name).collect()
    }

    /// What a reader should know of them.
    pub(crate) fn facts(&self) -> impl Iterator<Item = Fact> + '_ {
        self.spec.all().map(|spec| {
            let entry = spec.entry;
            let mut value = format!("{}: {}", entry.name, entry.summary);
            if let Some(preset) = spec.preset {
                value.push_str(&format!("; preset {}: {}", preset.name, preset.reference));
            }
            if let Some(policy) = &spec.policy {
                let path = LabError::one_line(&named(&policy.path));
                value.push_str(&format!("; policy file {path}"));
            }
            let differences = spec.differences();
            if !differences.is_empty() {
                value.push_str(&format!("; {}", differences.join(", ")));
            }
            let label = match entry.decides {
                Decides::When => "congestion control",
                Decides::Which => "multipath",
            };
            Fact { label: label.into(), value }
        })
    }

    /// Oddities of their files, settings that are not simulated, and what this subnet prevents.
    pub(crate) fn remarks(&self, fabric: &Fabric, routed: &Routed, hosts: &Hosts) -> Vec<String> {
        let policies = self.spec.all().filter_map(|spec| spec.policy.as_ref());
        let mut all: Vec<String> = policies.flat_map(|policy| policy.remarks()).collect();
        all.extend(self.of_paths(fabric, routed, hosts));
        all
    }

    fn of_paths(&self, fabric: &Fabric, routed: &Routed, hosts: &Hosts) -> Vec<String> {
        let Some(spec) = &self.spec.which else { return Vec::new() };
        let name = spec.entry.name;
        let subnet = match routed {
            Routed::Tables(subnet) if hosts.paths(subnet) > 1 => subnet,
            _ => {
                return vec![format!(
                    "{name} cannot choose: there is only one path between two hosts; raise \
                     subnet.lmc"
                )];
            }
        };
        let found = check::disjointness(fabric, subnet);
        // Hosts of one switch have no two paths anywhere.
        let far = found.classes.iter().filter(|class| class.shortest > 0.0);
        let (pairs, paths) = far.fold((0.0, 0.0), |(pairs, paths), class| {
            (pairs + class.pairs as f64, paths + class.pairs as f64 * class.distinct)
        });
        if pairs == 0.0 || paths / pairs >= DIFFERENT_MIN {
            return Vec::new();
        }
        vec![format!(
            "{name} chooses among LIDs that mostly take the same links: on average {} different \
             paths to the {} LIDs of a host; engine multipath makes different ones",
            significant(paths / pairs),
            found.offsets
        )]
    }
}

/// Fewer different paths than this, in the mean over pairs, are hardly a choice.
const DIFFERENT_MIN: f64 = 1.5;

/// Fails if a port has settings under two names.
fn once(spec: &Option<MechanismSpec>, found: &[Endpoint]) -> Result<(), String> {
    let Some(spec) = spec else { return Ok(()) };
    for (index, (end, port)) in found.iter().zip(&spec.ports).enumerate() {
        if let Some(first) = found[..index].iter().position(|known| known == end) {
            return Err(format!(
                "{}: control.{}.port = {}: has a table as {} too; write its settings in one",
                port.place, spec.entry.name, port.port, spec.ports[first].port
            ));
        }
    }
    Ok(())
}

/// The port of this name in the fabric.
fn found(spec: &MechanismSpec, named: &PortSpec, fabric: &Fabric) -> Result<Endpoint, String> {
    let fault = |problem: String| {
        format!("{}: control.{}.port = {}: {problem}", named.place, spec.entry.name, named.port)
    };
    let end = port::named(fabric, &named.port).map_err(fault)?;
    if !fabric.node(end.node).is_switch() {
        return Err(fault("is a port of a channel adapter; only switches have settings".into()));
    }
    Ok(end)
}
