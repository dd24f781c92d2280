//! The answer to who is congested, in a few lines, and what a reader should know besides.

use crate::names::Names;
use crate::words::{count, ends, percent, queue_pairs, time};
use clearlane_capture::judge::{Bottleneck, Standing};
use clearlane_capture::{
    Analysed, CANDIDATES_MAX, Capture, ClockKnown, FLOWS_MAX, FoundFlow, PointCounts,
};
use clearlane_lab::{Line, Verdict, grouped};

/// Bottlenecks and victims that are named one by one.
const NAMED: usize = 3;

/// The verdict on captures.
pub fn verdict(analysed: &Analysed, names: &Names) -> Verdict {
    let found = &analysed.found;
    let packets: u64 = found.points.iter().map(|point| point.packets).sum();
    let mut lines = Vec::new();
    if packets == 0 {
        lines.push(none(analysed));
        return Verdict { healthy: true, lines, facts: Vec::new() };
    }
    let mut healthy = true;
    match found.bottlenecks.is_empty() {
        true => lines.push(Line { label: "congestion", text: unmarked(packets) }),
        false => {
            healthy = false;
            let text = bottlenecks(&found.bottlenecks, &found.flows, names);
            lines.push(Line { label: "congestion", text });
            lines.push(Line { label: "victims", text: victims(&found.flows, names) });
        }
    }
    if let Some(text) = losses(&found.flows, names) {
        healthy = false;
        lines.push(Line { label: "losses", text });
    }
    if let Some((is_right, text)) = crcs(analysed) {
        healthy &= is_right;
        lines.push(Line { label: if is_right { "CRCs" } else { "fault" }, text });
    }
    if let Some(text) = next(&found.bottlenecks, &found.flows) {
        lines.push(Line { label: "next", text: text.into() });
    }
    Verdict { healthy, lines, facts: Vec::new() }
}

fn none(analysed: &Analysed) -> Line {
    let records: u64 = analysed.captures.iter().map(|capture| capture.records).sum();
    let many = count(records, "record", "records");
    let text = match analysed.outside {
        outside if outside > 0 && outside == records => format!(
            "none of {many} lies in the span asked for; the first and the last are {} apart",
            time(analysed.end_ns - analysed.start_ns)
        ),
        _ => format!(
            "no packet of InfiniBand or RoCE in {many}; RoCE v2 is UDP to port 4791, RoCE v1 \
             ethertype 0x8915"
        ),
    };
    Line { label: "capture", text }
}

fn unmarked(packets: u64) -> String {
    format!(
        "no mark and no notification in {}: no port was congested, or congestion control (of RoCE \
         ECN) is off",
        count(packets, "packet", "packets")
    )
}

/// Who contends for which port, and which ports may share a link.
fn bottlenecks(all: &[Bottleneck], flows: &[FoundFlow], names: &Names) -> String {
    // Most flows come first; ports that only one flow goes to are named if there is no other.
    let shared = all.iter().filter(|bottleneck| bottleneck.flows.len() > 1).count();
    let named = if shared > 0 { shared.min(NAMED) } else { all.len().min(NAMED) };
    let mut texts: Vec<String> =
        all[..named].iter().map(|bottleneck| contend(bottleneck, flows, names)).collect();
    if all.len() > named {
        let ports = count((all.len() - named) as u64, "further port", "further ports");
        let left: usize = all[named..].iter().map(|bottleneck| bottleneck.flows.len()).sum();
        texts.push(match left {
            1 => "a flow to another port passes a congested one".into(),
            _ => format!("{} to {ports} pass congested ones", count(left as u64, "flow", "flows")),
        });
    }
    for (lead, bottleneck) in all.iter().enumerate().take(NAMED) {
        let with: Vec<&Bottleneck> = all.iter().filter(|one| one.with == Some(lead)).collect();
        let others = match with.as_slice() {
            [] => continue,
            [one] => port(one, flows, names),
            many => count(many.len() as u64, "other port", "other ports"),
        };
        texts.push(format!(
            "marks of flows to {} and to {others} come and go together: they may share a link",
            port(bottleneck, flows, names)
        ));
    }
    texts.join("; ")
}

fn port(bottleneck: &Bottleneck, flows: &[FoundFlow], names: &Names) -> String {
    names.of(flows[bottleneck.flows[0]].destination)
}

fn contend(bottleneck: &Bottleneck, flows: &[FoundFlow], names: &Names) -> String {
    let of = || bottleneck.flows.iter().map(|flow| &flows[*flow]);
    let (marked, data): (u64, u64) =
        (of().map(|f| f.counts.marked).sum(), of().map(|f| f.counts.data_packets).sum());
    let port = port(bottleneck, flows, names);
    let contend = match bottleneck.flows.len() {
        1 => format!("a flow to {port} passes a congested port"),
        many => format!("{} contend on the way to {port}", count(many as u64, "flow", "flows")),
    };
    let notified: u64 = of().map(|f| f.cnps() + f.becns()).sum();
    let whose = if bottleneck.flows.len() == 1 { "its" } else { "their" };
    let share = percent(marked as f64 / data.max(1) as f64);
    let notifications = count(notified, "notification", "notifications");
    match (marked, notified) {
        // Who is notified was marked, behind the place of the capture.
        (0, _) => format!("{contend} ({notifications})"),
        (_, 0) => format!("{contend} ({share} of {whose} packets are marked)"),
        _ => format!("{contend} ({share} of {whose} packets are marked, {notifications})"),
    }
}

/// Who is slowed without contributing.
fn victims(flows: &[FoundFlow], names: &Names) -> String {
    let mut slowed: Vec<(f64, &FoundFlow)> = flows
        .iter()
        .filter_map(|flow| match flow.standing {
            Standing::Victim { share } => Some((share, flow)),
            _ => None,
        })
        .collect();
    slowed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let of = |standing| flows.iter().filter(|flow| flow.standing == standing).count() as u64;
    let unknown = of(Standing::Unknown);
    if slowed.is_empty() {
        return match (of(Standing::Unhurt), unknown) {
            (0, 0) => "not told: every flow is marked or notified".into(),
            (0, many) => format!(
                "not told: {} without marks, none seen long enough both with and without \
                 congestion, or slower by more than chance",
                count(many, "flow", "flows")
            ),
            (unhurt, _) => format!(
                "none: {} not marked and as fast during congestion as without",
                count(unhurt, "flow is", "flows are")
            ),
        };
    }
    let named: Vec<String> = slowed
        .iter()
        .take(NAMED)
        .map(|(share, flow)| format!("{} to {}", ends(flow, names), percent(*share)))
        .collect();
    let many = count(slowed.len() as u64, "flow is", "flows are");
    format!("{many} slowed while others are marked: {}", named.join(", "))
}

/// What was lost or sent again.
fn losses(flows: &[FoundFlow], names: &Names) -> Option<String> {
    let again = |flow: &FoundFlow| flow.sequence.retransmitted;
    let naks = |flow: &FoundFlow| flow.feedback.as_ref().map_or(0, |back| back.counts.naks());
    let worst = flows.iter().max_by_key(|flow| again(flow) + naks(flow))?;
    if again(worst) + naks(worst) == 0 {
        return None;
    }
    let (again, naks): (u64, u64) = (flows.iter().map(again).sum(), flows.iter().map(naks).sum());
    Some(format!(
        "{} sent again, {}; most in {} (QP {})",
        count(again, "packet", "packets"),
        count(naks, "NAK", "NAKs"),
        ends(worst, names),
        queue_pairs(worst)
    ))
}

/// Whether all CRCs that were checked are right, and how many are, of all packets that were
/// captured, acknowledgements and CNPs as well. Nothing if nobody asked.
fn crcs(analysed: &Analysed) -> Option<(bool, String)> {
    if !analysed.crcs {
        return None;
    }
    let all = analysed.points.iter().zip(&analysed.found.points);
    let (point, worst) = all.max_by_key(|(_, counts)| counts.wrong_crcs)?;
    let sum = |of: fn(&PointCounts) -> u64| -> u64 { analysed.found.points.iter().map(of).sum() };
    let (wrong, checked) = (sum(|point| point.wrong_crcs), sum(|point| point.checked_crcs));
    let unchecked = match sum(|point| point.packets) - checked {
        0 => String::new(),
        many => format!("; {} captured whole", count(many, "packet is not", "packets are not")),
    };
    let text = match (checked, wrong) {
        (0, _) => "none is checked: no packet is captured whole".into(),
        (_, 0) => {
            let right = if checked == 1 { "is right" } else { "are right" };
            format!("those of {} {right}{unchecked}", count(checked, "packet", "packets"))
        }
        _ => {
            let many = count(wrong, "packet", "packets");
            let has = if wrong == 1 { "has" } else { "have" };
            let at = format!("most at {} ({})", point.name, grouped(worst.wrong_crcs));
            format!("{many} of {} {has} a wrong CRC; {at}{unchecked}", grouped(checked))
        }
    };
    Some((wrong == 0, text))
}

/// What to capture next.
fn next(bottlenecks: &[Bottleneck], flows: &[FoundFlow]) -> Option<&'static str> {
    let contributors = || bottlenecks.iter().flat_map(|bottleneck| &bottleneck.flows);
    if contributors().any(|flow| flows[*flow].counts.data_packets == 0) {
        return Some("capture at the receivers too: only there packets with FECN or CE are seen");
    }
    if contributors().next().is_some() && contributors().all(|flow| flows[*flow].cnps() == 0) {
        return Some("capture at the senders too: only there is it seen whether they are notified");
    }
    None
}

/// What a reader should know about the captures, one sentence each.
pub fn remarks(analysed: &Analysed) -> Vec<String> {
    let mut all = Vec::new();
    if analysed.partial {
        all.push("interrupted: what was read so far is analysed".into());
    }
    for capture in &analysed.captures {
        of_capture(capture, &mut all);
    }
    if analysed.outside > 0 && !analysed.found.points.is_empty() {
        let many = count(analysed.outside, "record is", "records are");
        all.push(format!("{many} outside the span looked at and not counted"));
    }
    if analysed.early > 0 {
        let many = count(analysed.early, "record is", "records are");
        all.push(format!(
            "{many} earlier than the first of the file: series begin with that; sort the file by \
             `reordercap`"
        ));
    }
    let sum = |of: fn(&clearlane_capture::PointCounts) -> u64| -> u64 {
        analysed.found.points.iter().map(of).sum()
    };
    let cut = sum(|point| point.others.cut);
    if cut > 0 {
        let many = count(cut, "packet is", "packets are");
        all.push(format!("{many} cut within the headers; capture at least 128 bytes of each"));
    }
    let malformed = sum(|point| point.others.malformed);
    if malformed > 0 {
        let many = count(malformed, "packet has", "packets have");
        all.push(format!("{many} lengths that contradict each other"));
    }
    let raw = sum(|point| point.others.raw);
    if raw > 0 {
        let many = count(raw, "packet", "packets");
        all.push(format!("{many} of InfiniBand without a BTH (raw or link packets)"));
    }
    let unpaired = sum(|point| point.unpaired);
    if unpaired > 0 {
        let many = count(unpaired, "flow", "flows");
        all.push(format!(
            "{many} may lack notifications and acknowledgements: between two hosts they are \
             looked for among the first {CANDIDATES_MAX} flows"
        ));
    }
    let beyond = sum(|point| point.beyond);
    if beyond > 0 {
        let many = count(beyond, "packet", "packets");
        all.push(format!("{many} of more than {FLOWS_MAX} flows are counted in none of them"));
    }
    all
}

fn of_capture(capture: &Capture, all: &mut Vec<String>) {
    let name = &capture.name;
    if capture.corrected > 0 {
        let many = count(capture.corrected, "time", "times");
        all.push(format!(
            "{name}: {many} of ibdump corrected: its ERF clock runs up to 7.6 µs ahead in each \
             second"
        ));
    }
    if let Some(damaged) = &capture.damaged {
        let many = count(capture.records, "record", "records");
        all.push(format!("{name} {damaged}; {many} before that are analysed"));
    }
    if capture.left_over > 0 {
        let many = count(capture.left_over as u64, "byte", "bytes");
        all.push(format!("{name} ends within a packet: {many} behind the last whole one"));
    }
    match capture.clock.known {
        ClockKnown::Reference => {}
        ClockKnown::Unknown => all.push(format!(
            "{name}: no packet in common with other captures, so that its times are taken as they \
             are"
        )),
        ClockKnown::Measured => {
            let clock = &capture.clock;
            let side = if clock.ahead_ns < 0 { "behind" } else { "ahead" };
            let how = match clock.within_ns {
                Some(within) => format!("to within {}", time(within)),
                None => "plus the least delay of a packet: only packets of one direction are in \
                         both captures"
                    .into(),
            };
            let many = count(clock.common, "packet", "packets");
            all.push(format!(
                "{name}: its clock is {} {side}, {how}, by {many} in common; corrected",
                time(clock.ahead_ns.unsigned_abs())
            ));
        }
    }
}
