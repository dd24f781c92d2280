//! All instances of the simulator, in one list.
//!
//! Each instance is the engine compiled once more for settings that are worth it. Compiling it
//! takes time, so each names the row of `make bench` that it is fast for. A set-up runs on the
//! first instance of the list that [suits](Instance::suits) it. The last two suit every set-up.

use crate::builder::Builder;
use crate::control::{AdapterReactors, OutputMarkers, Record, SharedMechanisms};
use crate::error::SetupError;
use crate::forward::{AdaptiveForwarder, AnyForwarder, GridForwarder, TableForwarder};
use crate::forwarding::Forwarding;
use crate::model::{Forwarder, Markers, Model, Queues, Reactors, Uncontrolled};
use crate::port_set::PortSet;
use crate::recorder::Slices;
use crate::setup::{Setup, radix};
use crate::switch::{CrossbarSettings, Voq};
use crate::windows::Windows;
use crate::{Hosts, InputQueueing, Parameters};
use clearlane_congestion::Source;
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_workload::Rank;
use std::marker::PhantomData;

/// An instance of the simulator.
pub struct Instance {
    /// Its name.
    pub name: &'static str,
    /// The row of `make bench` that it is fast for.
    pub row: &'static str,
    suits: fn(&Wanted<'_>) -> bool,
    pub(crate) build: fn(Setup<'_>, Hosts) -> Result<Windows, SetupError>,
}

/// The demands of a set-up on an instance.
struct Wanted<'a> {
    forwarding: Forwarding<'a>,
    lanes: usize,
    radix: u32,
    voq: bool,
    limited: bool,
    controlled: bool,
}

impl Wanted<'_> {
    /// The demands of a run without mechanisms.
    fn of<'a>(
        fabric: &Fabric,
        forwarding: Forwarding<'a>,
        parameters: &Parameters,
        hosts: &Hosts,
    ) -> Wanted<'a> {
        Wanted {
            forwarding,
            lanes: forwarding.lanes().into(),
            radix: radix(fabric).into(),
            voq: parameters.input_queueing == InputQueueing::Voq,
            limited: CrossbarSettings::of(parameters).limits() || hosts.share_memory(parameters),
            controlled: false,
        }
    }

    /// The first instance that suits.
    fn suited(&self) -> &'static Instance {
        let last = if self.controlled { &ALL[ALL.len() - 1] } else { &ALL[ALL.len() - 2] };
        ALL.iter().find(|instance| (instance.suits)(self)).unwrap_or(last)
    }
}

/// The instance on which a checked set-up runs. Fails if switches would keep more queues than there
/// are numbers.
pub(crate) fn suited(setup: &Setup<'_>, hosts: &Hosts) -> Result<&'static Instance, SetupError> {
    check_queues(setup)?;
    let plain = Wanted::of(setup.fabric, setup.forwarding, &setup.parameters, hosts);
    Ok(Wanted { controlled: setup.control.is_some(), ..plain }.suited())
}

/// Bytes that the virtual output queues of a run take; 0 if switches have none. Each port has one
/// for each lane that packets may be on and each output, from the start of the run.
pub fn voq_bytes(fabric: &Fabric, forwarding: Forwarding<'_>, parameters: &Parameters) -> u64 {
    if parameters.input_queueing == InputQueueing::Fifo {
        return 0;
    }
    let ports = |id| u64::from(fabric.node(id).port_count());
    let ports = fabric.ids(NodeKind::Switch).map(ports).sum::<u64>();
    let hosts = Hosts::with_ports(fabric, parameters.adapter_ports);
    let ports = ports + hosts.all_ports().len() as u64;
    ports * u64::from(forwarding.lanes()) * u64::from(radix(fabric)) * size_of::<Voq>() as u64
}

/// Fails if switches would keep more queues than there are numbers.
fn check_queues(setup: &Setup<'_>) -> Result<(), SetupError> {
    let bytes = voq_bytes(setup.fabric, setup.forwarding, &setup.parameters);
    let queues = bytes / size_of::<Voq>() as u64;
    match u32::try_from(queues) {
        Ok(_) => Ok(()),
        Err(_) => Err(SetupError::Queues { queues }),
    }
}

/// The parts of an instance: how switches forward (`F`) and queue (`Q`, a number of [`QUEUES`]),
/// whether devices have limits of their own (`LIMITED`), markers and reactors (`K`, `R`), the width
/// of port sets (`B`).
struct Engine<F, K, R, B, const Q: usize, const LIMITED: bool>(PhantomData<(F, K, R, B)>);

impl<F, K, R, B, const Q: usize, const LIMITED: bool> Model for Engine<F, K, R, B, Q, LIMITED>
where
    F: Forwarder,
    K: Markers + 'static,
    R: Reactors + 'static,
    B: PortSet,
{
    type Ports = B;
    type Forwarder = F;
    type Markers = K;
    type Reactors = R;
    const QUEUES: Queues = QUEUES[Q];
    const LIMITED: bool = LIMITED;
}

/// The ways in which inputs may queue. [`Engine`] takes the number of one, because a type may have
/// numbers as parameters but no enums.
const QUEUES: [Queues; 3] = [Queues::Fifo, Queues::Voq, Queues::AsSet];
const FIFO: usize = 0;
const VOQ: usize = 1;
const EITHER: usize = 2;

/// An instance without mechanisms.
type Plain<F, B, const Q: usize, const LIMITED: bool> =
    Engine<F, Uncontrolled, Uncontrolled, B, Q, LIMITED>;
/// An instance with mechanisms.
type Controlled<F, B, const Q: usize, const LIMITED: bool> =
    Engine<F, OutputMarkers, AdapterReactors, B, Q, LIMITED>;

type Narrow = u16;
type Wide = u64;
type Widest = [u64; 4];

/// A line of the list: `plain` or `controlled`, then the forwarder, the width of port sets, lanes,
/// how inputs queue, and whether devices have limits.
macro_rules! instance {
    (
        $name:literal, $row:literal,
        plain $f:ty, $b:ty, $lanes:literal, $q:ident, $limited:literal
    ) => {
        Instance {
            name: $name,
            row: $row,
            suits: suits::<Plain<$f, $b, $q, $limited>, $lanes>,
            build: plain::<$f, $b, $lanes, $q, $limited>,
        }
    };
    (
        $name:literal, $row:literal,
        controlled $f:ty, $b:ty, $lanes:literal, $q:ident, $limited:literal
    ) => {
        Instance {
            name: $name,
            row: $row,
            suits: suits::<Controlled<$f, $b, $q, $limited>, $lanes>,
            build: controlled::<$f, $b, $lanes, $q, $limited>,
        }
    };
}

/// All instances. Those for fewer settings come first.
///
/// Code that names the list compiles all instances. So this function is not inlined into other
/// crates, and no unit test calls it.
#[inline(never)]
pub fn all() -> &'static [Instance] {
    ALL
}

#[rustfmt::skip]
const ALL: &[Instance] = &[
    instance!("tables, 1 lane", "tree-648-1-lane", plain TableForwarder, Wide, 1, FIFO, false),
    instance!("tables, 2 lanes", "torus-8x8", plain TableForwarder, Narrow, 2, FIFO, false),
    instance!("tables, 8 lanes", "tree-648-8-lanes", plain TableForwarder, Wide, 8, FIFO, false),
    instance!("tables, VOQ", "leaf-spine-voq", plain TableForwarder, Wide, 8, VOQ, false),
    instance!("rule", "torus-16x16x16", plain GridForwarder, Narrow, 2, FIFO, false),
    instance!("rule, limits", "nsim-8x8x8", plain GridForwarder, Narrow, 2, FIFO, true),
    instance!("any", "tree-648-adaptive", plain AnyForwarder, Wide, 8, FIFO, false),
    instance!("any, limits", "tree-648-adaptive-limited", plain AnyForwarder, Wide, 8, FIFO, true),
    instance!("widest", "tree-648-15-lanes", plain AnyForwarder, Widest, 16, EITHER, false),
    instance!("tables, 1 lane, mechanisms", "tree-648-rc-iba-cc",
        controlled TableForwarder, Wide, 1, FIFO, false),
    instance!("tables, 2 lanes, mechanisms", "torus-8x8-rc-iba-cc",
        controlled TableForwarder, Narrow, 2, FIFO, false),
    instance!("tables, 8 lanes, mechanisms", "torus-8x8-drb",
        controlled TableForwarder, Wide, 8, FIFO, false),
    instance!("tables, VOQ, mechanisms", "leaf-spine-voq-iba-cc",
        controlled TableForwarder, Wide, 8, VOQ, false),
    instance!("adaptive, mechanisms", "tree-648-adaptive-iba-cc",
        controlled AdaptiveForwarder, Wide, 8, FIFO, false),
    instance!("rule, mechanisms", "torus-16x16x16-rc-dcqcn",
        controlled GridForwarder, Narrow, 2, FIFO, false),
    instance!("any, limits, mechanisms", "torus-16x16x16-limited-rc-dcqcn",
        controlled AnyForwarder, Wide, 8, FIFO, true),
    instance!("widest, mechanisms", "tree-648-15-lanes-iba-cc",
        controlled AnyForwarder, Widest, 16, EITHER, false),
    instance!("widest, limits", "tree-648-15-lanes-limited",
        plain AnyForwarder, Widest, 16, EITHER, true),
    instance!("widest, limits, mechanisms", "tree-648-15-lanes-limited-iba-cc",
        controlled AnyForwarder, Widest, 16, EITHER, true),
];

/// Whether an instance simulates what is wanted.
fn suits<M: Model, const V: usize>(wanted: &Wanted<'_>) -> bool {
    let queues = match M::QUEUES {
        Queues::Fifo => !wanted.voq,
        Queues::Voq => wanted.voq,
        Queues::AsSet => true,
    };
    queues
        && M::Forwarder::suits(&wanted.forwarding)
        && wanted.lanes <= V
        && wanted.radix <= M::Ports::PORTS
        && wanted.limited <= M::LIMITED
        && wanted.controlled == M::Reactors::ON
}

/// Builds an instance without mechanisms.
fn plain<F: Forwarder, B: PortSet, const V: usize, const Q: usize, const LIMITED: bool>(
    setup: Setup<'_>,
    hosts: Hosts,
) -> Result<Windows, SetupError> {
    let builder = Builder::new(setup, hosts)?;
    Ok(builder.build::<Plain<F, B, Q, LIMITED>, V>(|_, _| (Uncontrolled, Uncontrolled)))
}

/// Builds an instance with mechanisms, whose decisions are always recorded.
fn controlled<F: Forwarder, B: PortSet, const V: usize, const Q: usize, const LIMITED: bool>(
    mut setup: Setup<'_>,
    hosts: Hosts,
) -> Result<Windows, SetupError> {
    let mechanisms = SharedMechanisms::from(setup.control.take().unwrap_or_default());
    let paths = match setup.forwarding {
        Forwarding::Tables(subnet) => hosts.paths(subnet),
        Forwarding::DimensionOrder(..) => 1,
    };
    let (parameters, recording) = (setup.parameters.clone(), setup.recording);
    let rates = hosts.clone();
    let builder = Builder::new(setup, hosts)?;
    Ok(builder.build::<Controlled<F, B, Q, LIMITED>, V>(|ports, slots| {
        let markers = OutputMarkers::new(&mechanisms, ports, V as u8, &parameters);
        let source = |(rank, number): &(u32, u8)| Source {
            link: rates.rate_at(Rank(*rank), *number, &parameters),
            packet_max: parameters.packet_bytes_max(),
            paths,
        };
        let sources = slots.iter().map(source).collect();
        let record = Record::new(Slices::of(&recording), recording.flow_bytes_max);
        let order = parameters.message_order;
        (markers, AdapterReactors::new(mechanisms.clone(), sources, record, order))
    }))
}
