//! What it is: DCQCN, the rate control of RDMA over Ethernet. Switches mark with a probability that
//! grows with the queue, destinations send at most one notification per interval, sources cut
//! their rate by an estimate of how congested the way is and raise it again by timer and bytes.
//!
//! Source: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015.
//! What we do differently: FECN and CNPs of InfiniBand in place of ECN and RoCEv2's; the rest is in
//! [`ENTRY`]'s notes.
//! Parameters: kmin, kmax, pmax, cnp_interval, cnp_interval_of, g, alpha_initial, cut, kept_min,
//! cut_interval, clamp_target, alpha_timer, increase_timer, byte_counter, fast_recovery, rate_ai,
//! rate_hai, rate_first, rate_min, rate_max. Those that the paper has not are of the firmware of
//! adapters;
//! [`crate::policy_file::keys`] has the source of each.

mod congestion_point;
mod notification_point;
mod reaction_point;
#[cfg(test)]
mod tests;

pub use super::injection_rate::RATE_MIN;

use super::fraction::Fraction;
use crate::marker::Marker;
use crate::mechanism::{Decides, Entry, Mechanism, Notifies, Output, Preset, Scope, Source};
use crate::notifier::Notifier;
use crate::parameter::{Parameter, ParameterError, Range, Value, Values};
use crate::reactor::Reactor;
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use congestion_point::Red;
use notification_point::NotificationPoint;
use reaction_point::{Clamp, Rates, ReactionPoint};

const US: u64 = 1_000_000;
const MBPS: u64 = 1_000_000;
/// Above every link.
pub(crate) const RATE_MOST: BitsPerSecond = BitsPerSecond(1_000_000 * MBPS);
const LONGEST: Picoseconds = Picoseconds(1_000_000 * US);

/// Kmin.
pub static KMIN: Parameter = Parameter {
    name: "kmin",
    summary: "queue at an output and lane up to which nothing is marked",
    default: Value::Size(Bytes(16 << 10)),
    range: Range::Size(Bytes(0), Bytes(1 << 30)),
};

/// Kmax.
pub static KMAX: Parameter = Parameter {
    name: "kmax",
    summary: "queue above which every packet is marked",
    default: Value::Size(Bytes(64 << 10)),
    range: Range::Size(Bytes(0), Bytes(1 << 30)),
};

/// Pmax.
pub static PMAX: Parameter = Parameter {
    name: "pmax",
    summary: "probability of a mark at kmax; it grows linearly from 0 at kmin",
    default: Value::Number(0.01),
    range: Range::Number(0.0, 1.0),
};

/// Interval between CNPs.
pub static CNP_INTERVAL: Parameter = Parameter {
    name: "cnp_interval",
    summary: "least time between two notifications of a destination",
    default: Value::Time(Picoseconds(50 * US)),
    range: Range::Time(Picoseconds(0), LONGEST),
};

/// What that interval is counted for.
pub static CNP_INTERVAL_OF: Parameter = Parameter {
    name: "cnp_interval_of",
    summary: "whether cnp_interval is that of each queue pair (qp), as in the paper, or of all of \
              a port together (port), as in firmware",
    default: Value::Word("qp"),
    range: Range::Word(&["qp", "port"]),
};

/// g.
pub static G: Parameter = Parameter {
    name: "g",
    summary: "gain of the congestion estimate alpha",
    default: Value::Number(1.0 / 256.0),
    range: Range::Number(0.0, 1.0),
};

/// Alpha at the first notification.
pub static ALPHA_INITIAL: Parameter = Parameter {
    name: "alpha_initial",
    summary: "alpha with which the first notification cuts",
    default: Value::Number(1.0),
    range: Range::Number(0.0, 1.0),
};

/// Size of a cut.
pub static CUT: Parameter = Parameter {
    name: "cut",
    summary: "part of the rate that a notification cuts away, times alpha",
    default: Value::Number(0.5),
    range: Range::Number(0.0, 1.0),
};

/// Least part that stays.
pub static KEPT_MIN: Parameter = Parameter {
    name: "kept_min",
    summary: "least part of the rate that one cut leaves",
    default: Value::Number(0.0),
    range: Range::Number(0.0, 1.0),
};

/// Least time between two cuts.
pub static CUT_INTERVAL: Parameter = Parameter {
    name: "cut_interval",
    summary: "least time between two cuts of a queue pair; a notification before cuts at its end",
    default: Value::Time(Picoseconds(0)),
    range: Range::Time(Picoseconds(0), LONGEST),
};

/// The word for a target that every cut sets.
pub const ALWAYS: &str = "always";
/// The word for a target that a cut after a rise sets.
pub const AFTER_RISE: &str = "after-rise";
/// The word for a target that a cut after a rise by bytes sets.
pub const AFTER_BYTES: &str = "after-bytes";

/// Whether the target is clamped.
pub static CLAMP_TARGET: Parameter = Parameter {
    name: "clamp_target",
    summary: "which cuts make the rate before them the one to recover: all; those after a rise by \
              timer or bytes; those after a rise by bytes",
    default: Value::Word(ALWAYS),
    range: Range::Word(&[ALWAYS, AFTER_RISE, AFTER_BYTES]),
};

/// Alpha timer.
pub static ALPHA_TIMER: Parameter = Parameter {
    name: "alpha_timer",
    summary: "time without a notification after which alpha falls, and again",
    default: Value::Time(Picoseconds(55 * US)),
    range: Range::Time(Picoseconds(US), LONGEST),
};

/// Rate increase timer.
pub static INCREASE_TIMER: Parameter = Parameter {
    name: "increase_timer",
    summary: "time without a notification after which the rate rises, and again",
    default: Value::Time(Picoseconds(55 * US)),
    range: Range::Time(Picoseconds(US), LONGEST),
};

/// Byte counter.
pub static BYTE_COUNTER: Parameter = Parameter {
    name: "byte_counter",
    summary: "bytes sent after which the rate rises as well",
    default: Value::Size(Bytes(10_000_000)),
    range: Range::Size(Bytes(1), Bytes(1 << 40)),
};

/// F.
pub static FAST_RECOVERY: Parameter = Parameter {
    name: "fast_recovery",
    summary: "rises halfway to the rate before the cut, counted for timer and bytes apart, before \
              that rate itself rises",
    default: Value::Integer(5),
    range: Range::Integer(0, 1_000),
};

/// R_AI.
pub static RATE_AI: Parameter = Parameter {
    name: "rate_ai",
    summary: "step of additive increase",
    default: Value::Rate(BitsPerSecond(40 * MBPS)),
    range: Range::Rate(BitsPerSecond(0), RATE_MOST),
};

/// R_HAI.
pub static RATE_HAI: Parameter = Parameter {
    name: "rate_hai",
    summary: "step of hyper increase, once timer and bytes both are past fast recovery",
    default: Value::Rate(BitsPerSecond(400 * MBPS)),
    range: Range::Rate(BitsPerSecond(0), RATE_MOST),
};

/// Rate at the first notification.
pub static RATE_FIRST: Parameter = Parameter {
    name: "rate_first",
    summary: "rate that the first notification sets instead of a cut, at most the link's; 0: it \
              cuts like any other",
    default: Value::Rate(BitsPerSecond(0)),
    range: Range::Rate(BitsPerSecond(0), RATE_MOST),
};

/// Greatest rate of a limit.
pub static RATE_MAX: Parameter = Parameter {
    name: "rate_max",
    summary: "rate at which the limit on a queue pair is lifted, at most the link's; 0: the link's",
    default: Value::Rate(BitsPerSecond(0)),
    range: Range::Rate(BitsPerSecond(0), RATE_MOST),
};

/// The preset of what the firmware of adapters has by default.
pub const FIRMWARE: &str = "connectx-firmware";

/// `dcqcn`.
pub static ENTRY: Entry = Entry {
    name: "dcqcn",
    summary: "DCQCN: marks by queue length, one notification per interval, rates cut by an \
              estimate of congestion",
    reference: "Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015",
    notes: "\
The queue is that of the output and lane over all inputs, without the packet in service. By \
default marking ends at a queue of one 64 KiB receive buffer, with a first mark at a quarter of \
it: thresholds made for the shared buffers of Ethernet switches, the presets, lie beyond what \
such a fabric can queue before credits run out. pmax is the 1 % of the paper; with 20 %, as in \
HPCC's simulator, two flows through such a queue settle at unequal shares. Marks do not tell \
roots from victims. A notification follows the first mark after cnp_interval, no timer runs at \
the destination. The limit on a queue pair begins with its first notification, with \
alpha_initial, and is lifted when its rate is back at the link's or at rate_max: alpha is \
forgotten then. The gap follows the rate as a packet leaves; later changes do not touch it. Hyper \
increase adds rate_hai at each step, as the simulator published with HPCC does, not a multiple of \
it; rate_hai (10 times rate_ai, as in QCN) and rate_min are not in the paper. Rates are whole \
bits per second, alpha has 32 fractional bits. alpha_initial, cut, kept_min, cut_interval, \
clamp_target, rate_first and rate_max are those of the firmware of adapters, as its tools \
describe them; their defaults are the paper; a policy file of NVIDIA's OpenSM (policy) sets them \
and all others. Alpha rises at each notification and falls when alpha_timer passes without one; \
firmware looks once per timer whether there was any. A cut that waits for cut_interval comes at \
its end; firmware looks at the ends of intervals that run on.",
    decides: Decides::When,
    parameters: &[
        &KMIN,
        &KMAX,
        &PMAX,
        &CNP_INTERVAL,
        &CNP_INTERVAL_OF,
        &G,
        &ALPHA_INITIAL,
        &CUT,
        &KEPT_MIN,
        &CUT_INTERVAL,
        &CLAMP_TARGET,
        &ALPHA_TIMER,
        &INCREASE_TIMER,
        &BYTE_COUNTER,
        &FAST_RECOVERY,
        &RATE_AI,
        &RATE_HAI,
        &RATE_FIRST,
        &RATE_MIN,
        &RATE_MAX,
    ],
    port_parameters: &[],
    presets: &[
        Preset {
            name: "zhu-2015",
            reference: "Zhu et al., SIGCOMM 2015, values deployed at 40 Gb/s; not checked against \
                        the paper",
            values: &[
                (&KMIN, Value::Size(Bytes(5_000))),
                (&KMAX, Value::Size(Bytes(200_000))),
                (&PMAX, Value::Number(0.01)),
                (&CNP_INTERVAL, Value::Time(Picoseconds(50 * US))),
                (&G, Value::Number(1.0 / 256.0)),
                (&ALPHA_TIMER, Value::Time(Picoseconds(55 * US))),
                (&INCREASE_TIMER, Value::Time(Picoseconds(55 * US))),
                (&BYTE_COUNTER, Value::Size(Bytes(10_000_000))),
                (&FAST_RECOVERY, Value::Integer(5)),
                (&RATE_AI, Value::Rate(BitsPerSecond(40 * MBPS))),
            ],
        },
        Preset {
            name: "hpcc-25g",
            reference: "Li et al., HPCC, SIGCOMM 2019: settings for 25 Gb/s of the simulator \
                        published with it; its decrease interval of 4 us as cnp_interval",
            values: &[
                (&KMIN, Value::Size(Bytes(100_000))),
                (&KMAX, Value::Size(Bytes(400_000))),
                (&PMAX, Value::Number(0.2)),
                (&CNP_INTERVAL, Value::Time(Picoseconds(4 * US))),
                (&G, Value::Number(1.0 / 256.0)),
                (&ALPHA_TIMER, Value::Time(Picoseconds(US))),
                (&INCREASE_TIMER, Value::Time(Picoseconds(900 * US))),
                (&RATE_AI, Value::Rate(BitsPerSecond(50 * MBPS))),
                (&RATE_HAI, Value::Rate(BitsPerSecond(100 * MBPS))),
                (&RATE_MIN, Value::Rate(BitsPerSecond(100 * MBPS))),
            ],
        },
        Preset {
            name: FIRMWARE,
            reference: "defaults of ConnectX firmware as mlxconfig lists them (NVIDIA DOCA, DCQCN \
                        CC Parameters; Mellanox DOC-2790), by the table of policy files; switches \
                        are not of it: kmin, kmax and pmax stay ours",
            values: &[
                (&CNP_INTERVAL, Value::Time(Picoseconds(4 * US))),
                (&CNP_INTERVAL_OF, Value::Word("port")),
                (&G, Value::Number(5.0 / 1024.0)),
                (&ALPHA_INITIAL, Value::Number(1023.0 / 1024.0)),
                (&CUT, Value::Number(0.5)),
                (&KEPT_MIN, Value::Number(0.5)),
                (&CUT_INTERVAL, Value::Time(Picoseconds(4 * US))),
                (&CLAMP_TARGET, Value::Word(AFTER_RISE)),
                (&ALPHA_TIMER, Value::Time(Picoseconds(US))),
                (&INCREASE_TIMER, Value::Time(Picoseconds(300 * US))),
                (&BYTE_COUNTER, Value::Size(Bytes(32_767 * 64))),
                (&FAST_RECOVERY, Value::Integer(1)),
                (&RATE_AI, Value::Rate(BitsPerSecond(5 * MBPS))),
                (&RATE_HAI, Value::Rate(BitsPerSecond(50 * MBPS))),
                // 0 in the firmware: the rate of the port.
                (&RATE_FIRST, Value::Rate(RATE_MOST)),
                (&RATE_MIN, Value::Rate(BitsPerSecond(MBPS))),
                (&RATE_MAX, Value::Rate(BitsPerSecond(0))),
            ],
        },
    ],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    let red = Red {
        kmin: values.size(&KMIN),
        kmax: values.size(&KMAX),
        pmax: Fraction::of(values.number(&PMAX)),
    };
    if red.kmin > red.kmax {
        let problem = format!("{} is above kmax, {}; lower it or raise kmax", red.kmin, red.kmax);
        return Err(KMIN.error(problem));
    }
    Ok(Box::new(Dcqcn {
        red,
        cnp_interval: values.time(&CNP_INTERVAL),
        notifies: match values.word(&CNP_INTERVAL_OF) {
            "port" => Notifies::Port,
            _ => Notifies::QueuePair,
        },
        rates: Rates {
            g: Fraction::of(values.number(&G)),
            alpha_initial: Fraction::of(values.number(&ALPHA_INITIAL)),
            cut: Fraction::of(values.number(&CUT)),
            kept_min: Fraction::of(values.number(&KEPT_MIN)),
            cut_interval: values.time(&CUT_INTERVAL).0,
            clamp: match values.word(&CLAMP_TARGET) {
                AFTER_RISE => Clamp::AfterRise,
                AFTER_BYTES => Clamp::AfterBytes,
                _ => Clamp::Always,
            },
            alpha_timer: values.time(&ALPHA_TIMER).0,
            increase_timer: values.time(&INCREASE_TIMER).0,
            byte_counter: values.size(&BYTE_COUNTER).0,
            fast_recovery: values.integer(&FAST_RECOVERY),
            ai: values.rate(&RATE_AI).0,
            hai: values.rate(&RATE_HAI).0,
            first: values.rate(&RATE_FIRST).0,
            min: values.rate(&RATE_MIN).0,
            max: values.rate(&RATE_MAX).0,
        },
    }))
}

#[derive(Debug)]
struct Dcqcn {
    red: Red,
    cnp_interval: Picoseconds,
    notifies: Notifies,
    rates: Rates,
}

impl Mechanism for Dcqcn {
    fn marker(&self, _output: &Output) -> Option<Box<dyn Marker>> {
        Some(Box::new(self.red))
    }

    fn notifier(&self) -> Option<Box<dyn Notifier>> {
        Some(Box::new(NotificationPoint { interval: self.cnp_interval, last: None }))
    }

    fn notifies(&self) -> Notifies {
        self.notifies
    }

    fn hears_acks(&self) -> bool {
        false
    }

    fn scope(&self) -> Scope {
        Scope::QueuePair
    }

    fn reactor(&self, source: &Source) -> Option<Box<dyn Reactor>> {
        let link = source.link.bits_per_second().0;
        Some(Box::new(ReactionPoint::new(self.rates, link)))
    }
}
