//! The congestion control options of OpenSM's opensm.conf, from what a variant sets.
//!
//! Names, formats and what becomes of the values are those of OpenSM 3.3.23: its osm_subnet.c reads
//! the file, its osm_congestion_control.c makes attributes of it. OpenSM skips a line it does not
//! understand with a word on stdout and comes up all the same, so what it would skip is an error
//! here.

use crate::LabError;
use crate::control::Control;
use crate::experiment::{Experiment, MechanismSpec, Variant};
use crate::prepare;
use clearlane_congestion::mechanisms::iba_cc::{self, Attributes, Victims};
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{PortNumber, ServiceLevel, short, ticked, wrap};

/// The congestion control of a variant as a part of an opensm.conf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpensmConf {
    /// Name of the variant.
    pub variant: String,
    /// What the variant has and the options cannot say, in a sentence each.
    pub unsaid: Vec<String>,
    /// Keys and values in the order of the file.
    options: Vec<(&'static str, String)>,
    /// What it is, in one line.
    title: String,
}

/// What holds whatever is written.
const ALWAYS: &[&str] = &[
    "Append these lines to opensm.conf, or name this file with `opensm -F`; if a key occurs \
     twice, the last one counts. cc_key and cc_max_outstanding_mads are left as they are.",
    "All switches, ports and service levels get the same settings. Packet_Size is in units of 64 \
     bytes, the timer in units of 1.024 us. CCTI_Limit has no key: it is the number of entries of \
     cc_cct less one. Credit starvation is not simulated, and switched off here.",
    "Switches and adapters decide these, not the experiment: what the steps of Threshold mean, \
     how BECN returns (becn), how far CNPs are apart (cnp_interval), what starts the timer \
     (timer).",
    "OpenSM 3.3.23 has been seen to load such lines over ibsim, which knows no congestion control: \
     that proves that they are read, not that a switch or an adapter obeys.",
];

/// Characters of a line that OpenSM reads: `fgets(line, 1023, …)` in osm_subnet.c. The rest would
/// be a line of its own, and an unknown key.
const LINE_MAX: usize = 1022;
/// Columns of comments.
const COLUMNS: usize = 88;

const CCT: &str = "cc_cct";

impl OpensmConf {
    /// That of the only variant with a mechanism in `control.when`. Reads the fabric, whose ports
    /// the masks are for. Fails if there is no such variant or there are several, if the mechanism
    /// is another than iba-cc, the fabric wrong, or a value more than the options hold.
    pub fn of(experiment: &Experiment) -> Result<Self, LabError> {
        let (variant, spec) = controlled(experiment)?;
        let fault = |problem: String| LabError::variant(&variant.name, problem);
        let ours = iba_cc::ENTRY.name;
        if spec.entry.name != ours {
            let name = spec.entry.name;
            return Err(fault(format!(
                "control.when = \"{name}\" cannot be written as options of opensm.conf: they set \
                 {ours} and no other mechanism; write when = \"{ours}\""
            )));
        }
        let attributes = Attributes::of(&spec.values).map_err(|e| fault(e.to_string()))?;
        let fabric = prepare::fabric(variant, &mut Vec::new())?;
        Control::of(&variant.control, &fabric).map_err(fault)?;
        let (mask, wider) = victim_mask(attributes.victims, &fabric);
        let options = options(&attributes, &mask);
        check(&attributes, &options).map_err(fault)?;
        let of_ports: Vec<String> = spec.of_ports().collect();
        let mut unsaid = Vec::new();
        if !of_ports.is_empty() {
            let ports = of_ports.join("; ");
            unsaid.push(format!("no port can have settings of its own, left out are {ports}"));
        }
        unsaid.extend(wider);
        if let Some(which) = &variant.control.which {
            let name = which.entry.name;
            unsaid.push(format!("{name} chooses paths, and OpenSM cannot set it"));
        }
        let preset = spec.preset.map_or(String::new(), |of| format!(", preset {}", of.name));
        let title = format!(
            "Congestion control ({ours}{preset}) of variant \"{}\" of experiment \"{}\"",
            variant.name, experiment.name
        );
        Ok(OpensmConf { variant: variant.name.clone(), unsaid, options, title })
    }

    /// The lines of the file: comments first, then keys and values.
    pub fn text(&self) -> String {
        let mut text = preamble(&self.title, ALWAYS, &self.unsaid);
        for (key, value) in &self.options {
            text.push_str(&format!("{key} {value}\n"));
        }
        text
    }
}

/// The only variant with a mechanism that decides when, and the mechanism.
pub(crate) fn controlled(experiment: &Experiment) -> Result<(&Variant, &MechanismSpec), LabError> {
    let on = experiment.variants.iter();
    let on: Vec<_> = on.filter_map(|v| v.control.when.as_ref().map(|spec| (v, spec))).collect();
    match on.as_slice() {
        [only] => Ok(*only),
        [] => {
            let who = match experiment.variants.as_slice() {
                [only] => format!("variant {} has no", ticked(&only.name)),
                _ => "no variant has".to_owned(),
            };
            Err(LabError::Request(format!(
                "{who} congestion control; write when = \"{}\" in [control], or name another \
                 variant",
                iba_cc::ENTRY.name
            )))
        }
        several => {
            const SHOWN: usize = 8;
            let names = several.iter().take(SHOWN).map(|(v, _)| ticked(&v.name));
            let more = if several.len() > SHOWN { ", …" } else { "" };
            Err(LabError::Request(format!(
                "{} variants have congestion control, and a file is for one: name it with \
                 --variant ({}{more})",
                several.len(),
                names.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

/// Keys and values as OpenSM itself writes them.
fn options(of: &Attributes, victims: &PortMask) -> Vec<(&'static str, String)> {
    let mut options = vec![
        ("congestion_control", "TRUE".to_owned()),
        // All five bits: nothing that a switch was told before stays. Victim_Mask, Credit_Mask,
        // Threshold and Packet_Size, CS_Threshold and CS_ReturnDelay, Marking_Rate.
        ("cc_sw_cong_setting_control_map", "0x1F".to_owned()),
        ("cc_sw_cong_setting_victim_mask", victims.text()),
        ("cc_sw_cong_setting_credit_mask", PortMask::default().text()),
        ("cc_sw_cong_setting_threshold", format!("0x{:02X}", of.threshold)),
        ("cc_sw_cong_setting_packet_size", of.packet_size.to_string()),
        ("cc_sw_cong_setting_credit_starvation_threshold", "0x00".to_owned()),
        ("cc_sw_cong_setting_credit_starvation_return_delay", "0:0".to_owned()),
        ("cc_sw_cong_setting_marking_rate", of.marking_rate.to_string()),
        ("cc_ca_cong_setting_port_control", format!("0x{:04X}", u8::from(of.per_service_level))),
        ("cc_ca_cong_setting_control_map", "0xFFFF".to_owned()),
    ];
    for level in 0..ServiceLevel::COUNT {
        options.extend([
            ("cc_ca_cong_setting_ccti_timer", format!("{level} {}", of.ccti_timer)),
            ("cc_ca_cong_setting_ccti_increase", format!("{level} {}", of.ccti_increase)),
            ("cc_ca_cong_setting_trigger_threshold", format!("{level} {}", of.trigger_threshold)),
            ("cc_ca_cong_setting_ccti_min", format!("{level} {}", of.ccti_min)),
        ]);
    }
    let entry = |(shift, multiplier): &(u8, u16)| format!("{shift}:{multiplier}");
    options.push((CCT, of.table.iter().map(entry).collect::<Vec<_>>().join(",")));
    options
}

/// Fails if OpenSM would not make of the options what is meant.
fn check(of: &Attributes, options: &[(&'static str, String)]) -> Result<(), String> {
    // osm_congestion_control.c, cc_setup_mad_data: with a CCTI_Limit of 0 no entry is copied.
    if let [(_, multiplier @ 1..)] = of.table.as_slice() {
        return Err(format!(
            "control.{}: OpenSM sends no entry of a table of one, here one with multiplier \
             {multiplier}; raise ccti_limit or let CCTI 0 not wait",
            iba_cc::ENTRY.name
        ));
    }
    match options.iter().find(|(key, value)| key.len() + 1 + value.len() > LINE_MAX) {
        None => Ok(()),
        Some((key, value)) => Err(format!(
            "control.{}: the line of {key} has {} characters, and OpenSM reads {LINE_MAX} of it; \
             lower ccti_limit or write smaller multipliers",
            iba_cc::ENTRY.name,
            key.len() + 1 + value.len(),
        )),
    }
}

/// The one mask for all switches, and what it has beyond what is asked for.
fn victim_mask(victims: Victims, fabric: &Fabric) -> (PortMask, Option<String>) {
    let cabled = || {
        fabric.ids(NodeKind::Switch).flat_map(|node| {
            let ends = fabric.neighbours(node);
            ends.map(move |(port, _, peer)| {
                (Endpoint { node, port }, fabric.node(peer.node).is_switch())
            })
        })
    };
    let mut mask = PortMask::default();
    match victims {
        Victims::None => {}
        Victims::All => cabled().for_each(|(end, _)| mask.set(end.port)),
        Victims::FacingAdapters => {
            cabled().filter(|(_, to_switch)| !to_switch).for_each(|(end, _)| mask.set(end.port));
            let mut wider = cabled().filter(|(end, switch)| *switch && mask.has(end.port));
            if let Some((first, _)) = wider.next() {
                let more = match wider.count() {
                    0 => String::new(),
                    others => format!(" and {others} more"),
                };
                let port = short(&fabric.describe(first));
                let sentence = format!(
                    "all switches have one victim mask, so it also covers ports that face \
                     switches: {port}{more}; simulate victim_mask \"none\" and \"all\" to see how \
                     much that matters"
                );
                return (mask, Some(sentence));
            }
        }
    }
    (mask, None)
}

/// A set of port numbers.
#[derive(Default)]
struct PortMask {
    /// Bit 0 of the first is port 0.
    words: [u64; 4],
}

impl PortMask {
    fn set(&mut self, port: PortNumber) {
        let number = usize::from(port.value());
        self.words[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, port: PortNumber) -> bool {
        let number = usize::from(port.value());
        self.words[number / 64] >> (number % 64) & 1 == 1
    }

    /// 256 bits in hexadecimal digits, port 0 last.
    fn text(&self) -> String {
        let digits = self.words.iter().rev().map(|word| format!("{word:016X}"));
        format!("0x{}", digits.collect::<String>())
    }
}

/// The comments a file for a subnet manager begins with, and an empty line: what it is, what always
/// holds, and what it does not say.
pub(crate) fn preamble(title: &str, always: &[&str], unsaid: &[String]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = comment(&format!("{title}. Written by clearlane {version}."));
    let unsaid = unsaid.iter().map(|sentence| format!("Not said here: {sentence}."));
    for paragraph in always.iter().map(|paragraph| (*paragraph).to_owned()).chain(unsaid) {
        text.push_str("#\n");
        text.push_str(&comment(&paragraph));
    }
    text.push('\n');
    text
}

/// A sentence as lines of comments.
fn comment(sentence: &str) -> String {
    wrap(sentence, COLUMNS).iter().map(|line| format!("# {line}\n")).collect()
}
