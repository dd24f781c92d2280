//! What it is: InfiniBand congestion control. Switches mark packets with FECN where more waits for
//! an output than a threshold allows, destinations answer with BECN, and sources leave a gap after
//! each packet that is looked up in a table: the CCT index, CCTI, rises with every BECN and falls
//! with time.
//!
//! Source: InfiniBand Architecture Specification, vol. 1, annex A10. Names of parameters are its
//! own; their values in the presets are those of published experiments.
//! What we do differently: nothing knowingly; what the annex leaves to the vendor and was decided
//! here is in [`ENTRY`]'s notes. Not modelled: credit starvation, the congestion logs as attributes
//! (BECNs at or above Trigger_Threshold are counted), and Control_Map, so all service levels of a
//! run react.
//! Parameters: threshold, marking_rate, packet_size (each per port as well), victim_mask, becn,
//! cnp_interval, cnp_interval_of, port_control, cct, cct_entries, ccti_increase, ccti_limit,
//! ccti_min, ccti_timer, timer,
//! trigger_threshold.

mod attributes;
mod congestion_control_table;
mod fecn_marker;
mod fecn_notifier;
mod throttle;

pub use attributes::Attributes;
pub use fecn_marker::Victims;

pub(super) use fecn_marker::MarkerSettings;
pub(super) use fecn_notifier::FecnNotifier;

use crate::marker::Marker;
use crate::mechanism::{Decides, Entry, Mechanism, Notifies, Output, Preset, Scope, Source};
use crate::notifier::Notifier;
use crate::parameter::{Parameter, ParameterError, Range, Value, Values};
use crate::reactor::Reactor;
use clearlane_ib::Picoseconds;
use congestion_control_table::{CongestionControlTable, ENTRIES};
use std::collections::BTreeMap;
use std::sync::Arc;
use throttle::{Throttle, ThrottleSettings, Timer};

/// Threshold.
pub static THRESHOLD: Parameter = Parameter {
    name: "threshold",
    summary: "queue at an output and lane that counts as congestion: 0 never, else more than \
              (16 - threshold)/16 of a receive buffer, at least a packet",
    default: Value::Integer(15),
    range: Range::Integer(0, 15),
};

/// Marking_Rate.
pub static MARKING_RATE: Parameter = Parameter {
    name: "marking_rate",
    summary: "mean number of eligible packets between two that are marked; 0 marks all",
    default: Value::Integer(1),
    range: Range::Integer(0, 65_535),
};

/// Packet_Size.
pub static PACKET_SIZE: Parameter = Parameter {
    name: "packet_size",
    summary: "smaller packets are not marked, in units of 64 B with headers",
    default: Value::Integer(8),
    range: Range::Integer(0, 255),
};

/// Victim_Mask.
pub static VICTIM_MASK: Parameter = Parameter {
    name: "victim_mask",
    summary: "ports that mark even while they lack credits, as victims: none, those that face \
              channel adapters, or all",
    default: Value::Word("adapters"),
    range: Range::Word(&["none", "adapters", "all"]),
};

/// How BECN returns.
pub static BECN: Parameter = Parameter {
    name: "becn",
    summary: "how BECN returns: in a congestion notification packet of its own (cnp), or on the \
              next ACK where there is one (ack)",
    default: Value::Word("cnp"),
    range: Range::Word(&["cnp", "ack"]),
};

/// The least time between two CNPs.
pub static CNP_INTERVAL: Parameter = Parameter {
    name: "cnp_interval",
    summary: "least time between two CNPs that a destination sends: marks that arrive before it is \
              over are not answered; 0 answers all, as the annex has it",
    default: Value::Time(Picoseconds(0)),
    range: Range::Time(Picoseconds(0), Picoseconds(1_000_000_000_000)),
};

/// What that time is counted for.
pub static CNP_INTERVAL_OF: Parameter = Parameter {
    name: "cnp_interval_of",
    summary: "whether cnp_interval is that of each queue pair (qp), or of all of a port together \
              (port)",
    default: Value::Word("qp"),
    range: Range::Word(&["qp", "port"]),
};

/// Port_Control.
pub static PORT_CONTROL: Parameter = Parameter {
    name: "port_control",
    summary: "what has a CCTI: each queue pair (qp), or all of a port and service level together \
              (sl)",
    default: Value::Word("qp"),
    range: Range::Word(&["qp", "sl"]),
};

/// Which congestion control table.
pub static CCT: Parameter = Parameter {
    name: "cct",
    summary: "the congestion control table: linear waits CCTI packet times, quadratic about \
              CCTI^2/1069 of them, given is that of cct_entries",
    default: Value::Word("linear"),
    range: Range::Word(&["linear", "quadratic", "given"]),
};

/// Entries of the table.
pub static CCT_ENTRIES: Parameter = Parameter {
    name: "cct_entries",
    summary: "shift:multiplier for CCTI 0, 1, 2 and so on: the wait after a packet is its time on \
              the link, halved shift times, times multiplier",
    default: Value::Table(Vec::new()),
    range: Range::Table(ENTRIES),
};

/// CCTI_Increase.
pub static CCTI_INCREASE: Parameter = Parameter {
    name: "ccti_increase",
    summary: "by how much a BECN raises CCTI",
    default: Value::Integer(1),
    range: Range::Integer(0, 255),
};

/// CCTI_Limit.
pub static CCTI_LIMIT: Parameter = Parameter {
    name: "ccti_limit",
    summary: "the largest CCTI",
    default: Value::Integer(ENTRIES as u64 - 1),
    range: Range::Integer(0, ENTRIES as u64 - 1),
};

/// CCTI_Min.
pub static CCTI_MIN: Parameter = Parameter {
    name: "ccti_min",
    summary: "the least CCTI, with which queue pairs begin",
    default: Value::Integer(0),
    range: Range::Integer(0, ENTRIES as u64 - 1),
};

/// CCTI_Timer.
pub static CCTI_TIMER: Parameter = Parameter {
    name: "ccti_timer",
    summary: "period of the timer, in units of 1.024 us",
    default: Value::Integer(150),
    range: Range::Integer(1, 65_535),
};

/// What starts the timer.
pub static TIMER: Parameter = Parameter {
    name: "timer",
    summary: "the timer lowers every CCTI of the service level at multiples of its period \
              (cyclic), or each CCTI by itself since its last BECN (restart)",
    default: Value::Word("cyclic"),
    range: Range::Word(&["cyclic", "restart"]),
};

/// Trigger_Threshold.
pub static TRIGGER_THRESHOLD: Parameter = Parameter {
    name: "trigger_threshold",
    summary: "BECNs that find or bring CCTI to this are counted; 0 counts none",
    default: Value::Integer(0),
    range: Range::Integer(0, 255),
};

/// The period of a CCTI_Timer, the parameter of a mechanism.
pub(super) fn timer_period(values: &Values, timer: &Parameter) -> Picoseconds {
    // IBA vol. 1, A10.4.3.8: in units of 1.024 us.
    Picoseconds(values.integer(timer) * 1_024_000)
}

/// `iba-cc`.
pub static ENTRY: Entry = Entry {
    name: "iba-cc",
    summary: "InfiniBand congestion control: switches mark, destinations notify, sources wait \
              between packets",
    reference: "InfiniBand Architecture Specification, vol. 1, annex A10",
    notes: "\
The annex leaves open what the steps of Threshold mean, and when congestion ends: here the queue \
over all inputs, without the packet in service, has to exceed (16 - threshold)/16 of a receive \
buffer, at least one packet, and to fall one packet below that. A port over its threshold is a \
victim if the lane lacked credits at any time since the last departure, else a root. \
Marking_Rate is a chance of 1 in marking_rate + 1 for every eligible packet: counting would lock \
onto periodic arrivals. The delay is that of the CCTI as a packet begins to leave, follows the \
packet's own time on the link, and no later BECN or timer changes it. The cyclic timer expires at \
multiples of its period since the start of the run, for all queue pairs of a service level and \
port; the Linux hfi1 driver starts it with the first BECN, and delays all service levels of a \
port by the largest of their CCTIs. With port_control sl one packet of the service level waits \
for the delay of the last, whichever queue pairs they belong to. BECN returns in packets of its \
own by default, as the experiments that count such packets have it. The annex limits CNPs by \
nothing; adapters do, by times that are not published: cnp_interval is there to be varied. \
Packets smaller than \
packet_size are those with fewer bytes on the wire. The quadratic table is rounded to eighths of \
a packet time. Not modelled: credit starvation, Control_Map.",
    decides: Decides::When,
    parameters: &[
        &THRESHOLD,
        &MARKING_RATE,
        &PACKET_SIZE,
        &VICTIM_MASK,
        &BECN,
        &CNP_INTERVAL,
        &CNP_INTERVAL_OF,
        &PORT_CONTROL,
        &CCT,
        &CCT_ENTRIES,
        &CCTI_INCREASE,
        &CCTI_LIMIT,
        &CCTI_MIN,
        &CCTI_TIMER,
        &TIMER,
        &TRIGGER_THRESHOLD,
    ],
    port_parameters: &[&THRESHOLD, &MARKING_RATE, &PACKET_SIZE],
    presets: &[
        Preset {
            name: "gran-2010",
            reference: "Gran et al., First experiences with congestion control in InfiniBand \
                        hardware, IPDPS 2010, as in table 2 of Cao et al., 2013; the table of \
                        ibccconfig(8), victims at adapters: assumed",
            values: &[
                (&THRESHOLD, Value::Integer(15)),
                (&MARKING_RATE, Value::Integer(1)),
                (&PACKET_SIZE, Value::Integer(8)),
                (&VICTIM_MASK, Value::Word("adapters")),
                (&CCT, Value::Word("linear")),
                (&CCTI_INCREASE, Value::Integer(1)),
                (&CCTI_LIMIT, Value::Integer(127)),
                (&CCTI_MIN, Value::Integer(0)),
                (&CCTI_TIMER, Value::Integer(150)),
            ],
        },
        Preset {
            name: "ibccconfig",
            reference: "the example in ibccconfig(8), infiniband-diags: all ports in the mask; \
                        timer of service levels 0 and 1 (200 on 2)",
            values: &[
                (&THRESHOLD, Value::Integer(15)),
                (&MARKING_RATE, Value::Integer(1)),
                (&PACKET_SIZE, Value::Integer(8)),
                (&VICTIM_MASK, Value::Word("all")),
                (&CCT, Value::Word("linear")),
                (&CCTI_INCREASE, Value::Integer(1)),
                (&CCTI_LIMIT, Value::Integer(127)),
                (&CCTI_MIN, Value::Integer(0)),
                (&CCTI_TIMER, Value::Integer(150)),
            ],
        },
        Preset {
            name: "gran-scope",
            reference: "Gran et al., Exploring the scope of the InfiniBand congestion control \
                        mechanism, IPDPS 2012, 648 ports; not checked against the paper, and \
                        the table is assumed",
            values: &[
                (&THRESHOLD, Value::Integer(15)),
                (&MARKING_RATE, Value::Integer(0)),
                (&PACKET_SIZE, Value::Integer(0)),
                (&CCT, Value::Word("linear")),
                (&CCTI_INCREASE, Value::Integer(1)),
                (&CCTI_LIMIT, Value::Integer(127)),
                (&CCTI_MIN, Value::Integer(0)),
                (&CCTI_TIMER, Value::Integer(150)),
            ],
        },
        Preset {
            name: "ib-model",
            reference: "Mellanox' InfiniBand model for OMNeT++ with congestion control, 128-node \
                        fat tree; it marks at any queue, here more than 1/16 of a buffer, and \
                        its timer of 10 us is 10 units",
            values: &[
                (&THRESHOLD, Value::Integer(15)),
                (&MARKING_RATE, Value::Integer(3)),
                (&PACKET_SIZE, Value::Integer(0)),
                (&VICTIM_MASK, Value::Word("none")),
                (&CCT, Value::Word("quadratic")),
                (&CCTI_INCREASE, Value::Integer(1)),
                (&CCTI_LIMIT, Value::Integer(127)),
                (&CCTI_MIN, Value::Integer(0)),
                (&CCTI_TIMER, Value::Integer(10)),
            ],
        },
    ],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    let limit = values.integer(&CCTI_LIMIT) as u8;
    let min = values.integer(&CCTI_MIN) as u8;
    if min > limit {
        let problem = format!("{min} is above ccti_limit, {limit}; lower it or raise the limit");
        return Err(CCTI_MIN.error(problem));
    }
    let throttle = ThrottleSettings {
        table: table(values, limit)?,
        ccti_increase: values.integer(&CCTI_INCREASE) as u8,
        ccti_limit: limit,
        ccti_min: min,
        period: timer_period(values, &CCTI_TIMER),
        timer: if values.word(&TIMER) == "restart" { Timer::Restart } else { Timer::Cyclic },
        trigger_threshold: values.integer(&TRIGGER_THRESHOLD) as u8,
        shared: values.word(&PORT_CONTROL) == "sl",
    };
    Ok(Box::new(IbaCc {
        marker: MarkerSettings::new(values, &THRESHOLD, &MARKING_RATE),
        of_ports: BTreeMap::new(),
        notifier: FecnNotifier::new("iba-cc notifier", values),
        limited: match values.word(&CNP_INTERVAL_OF) {
            "port" => Notifies::Port,
            _ => Notifies::QueuePair,
        },
        throttle: Arc::new(throttle),
    }))
}

fn table(values: &Values, limit: u8) -> Result<CongestionControlTable, ParameterError> {
    let entries = values.table(&CCT_ENTRIES);
    let word = values.word(&CCT);
    if word != "given" && !entries.is_empty() {
        let problem = format!("are not used with cct = {word}; set cct to given or drop them");
        return Err(CCT_ENTRIES.error(problem));
    }
    let table = match word {
        "quadratic" => CongestionControlTable::quadratic(),
        "given" => CongestionControlTable::given(entries),
        _ => CongestionControlTable::linear(),
    };
    if table.len() <= usize::from(limit) {
        let problem = format!(
            "end before ccti_limit: {} entries, {} needed; add some or lower ccti_limit",
            table.len(),
            u32::from(limit) + 1
        );
        return Err(CCT_ENTRIES.error(problem));
    }
    Ok(table)
}

#[derive(Debug)]
struct IbaCc {
    marker: MarkerSettings,
    /// By (node, port): those with settings of their own.
    of_ports: BTreeMap<(u32, u8), MarkerSettings>,
    notifier: FecnNotifier,
    /// What a notifier answers for if CNPs have a least distance.
    limited: Notifies,
    throttle: Arc<ThrottleSettings>,
}

impl Mechanism for IbaCc {
    fn marker(&self, output: &Output) -> Option<Box<dyn Marker>> {
        let own = self.of_ports.get(&(output.node, output.port));
        own.copied().unwrap_or(self.marker).marker("iba-cc marker", output)
    }

    fn notifier(&self) -> Option<Box<dyn Notifier>> {
        Some(Box::new(self.notifier))
    }

    fn notifies(&self) -> Notifies {
        if self.notifier.is_limited() { self.limited } else { Notifies::Everything }
    }

    fn hears_acks(&self) -> bool {
        false
    }

    fn scope(&self) -> Scope {
        // The CCTI_Timer belongs to the service level, whatever has a CCTI.
        Scope::ServiceLevel
    }

    fn reactor(&self, _source: &Source) -> Option<Box<dyn Reactor>> {
        Some(Box::new(Throttle::new(Arc::clone(&self.throttle))))
    }

    fn override_port(
        &mut self,
        node: u32,
        port: u8,
        values: &Values,
    ) -> Result<(), ParameterError> {
        self.of_ports.insert((node, port), self.marker.with(values));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::{Departing, OutputQueue};
    use crate::reactor::{Feedback, Pair};
    use clearlane_ib::{Bytes, LinkRate, LinkSpeed, LinkWidth, VirtualLane};

    fn built(set: &[(&Parameter, Value)]) -> Result<Box<dyn Mechanism>, ParameterError> {
        let mut values = Values::default();
        for (parameter, value) in set {
            values.set(parameter, value.clone()).unwrap();
        }
        build(&values)
    }

    fn refusal(set: &[(&Parameter, Value)]) -> String {
        built(set).expect_err("contradictory").to_string()
    }

    #[test]
    fn values_that_contradict_each_other_are_refused_with_the_remedy() {
        let set = [(&CCTI_MIN, Value::Integer(9)), (&CCTI_LIMIT, Value::Integer(8))];
        assert_eq!(refusal(&set), "ccti_min 9 is above ccti_limit, 8; lower it or raise the limit");
        let entries = || Value::Table(vec![(0, 0), (0, 1)]);
        let set = [(&CCT_ENTRIES, entries())];
        assert_eq!(
            refusal(&set),
            "cct_entries are not used with cct = linear; set cct to given or drop them"
        );
        let given = || (&CCT, Value::Word("given"));
        let set = [given(), (&CCT_ENTRIES, entries())];
        assert_eq!(
            refusal(&set),
            "cct_entries end before ccti_limit: 2 entries, 128 needed; add some or lower ccti_limit"
        );
        assert!(
            built(&[given(), (&CCT_ENTRIES, entries()), (&CCTI_LIMIT, Value::Integer(1))]).is_ok()
        );
    }

    #[test]
    fn a_port_with_settings_of_its_own_keeps_the_others_of_the_fabric() {
        let mut it = built(&[(&PACKET_SIZE, Value::Integer(2))]).unwrap();
        let mut own = Values::default();
        own.set(&MARKING_RATE, Value::Integer(0)).unwrap();
        it.override_port(7, 2, &own).unwrap();
        let marks = |port: u8, bytes: u32, draw: u64| {
            let output = Output {
                node: 7,
                port,
                lane: VirtualLane::new(0).unwrap(),
                faces_adapter: true,
                buffer: Bytes(65_536),
                packet_max: 2074,
            };
            let queue = OutputQueue { queued: Bytes(9_000), starved: false };
            let mut marker = it.marker(&output).unwrap();
            marker.mark(Picoseconds(0), &queue, &Departing { bytes }, draw)
        };
        assert!(marks(2, 128, u64::MAX) && !marks(2, 127, 0));
        assert!(!marks(1, 128, u64::MAX) && marks(1, 128, 0) && !marks(1, 127, 0));
    }

    #[test]
    fn the_timer_is_of_the_kind_and_length_that_is_set() {
        let link = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        for (word, due) in [("cyclic", 2 * 1_024_000), ("restart", 2 * 1_024_000 + 10)] {
            let set = [(&TIMER, Value::Word(word)), (&CCTI_TIMER, Value::Integer(2))];
            let source = Source { link, packet_max: 2074, paths: 1 };
            let mut it = built(&set).unwrap().reactor(&source).unwrap();
            it.on_feedback(Picoseconds(10), Pair(0), Feedback::Becn);
            assert_eq!(it.next_timer(), Some(Picoseconds(due)), "{word}");
        }
    }
}
