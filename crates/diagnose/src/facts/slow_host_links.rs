//! What it is: hosts whose own cable is slower than those of other hosts at the switch.

use super::Entry;
use crate::words::count;
use crate::{Cable, Finding, Severity, Site};

/// `slow-host-links`.
pub(super) const ENTRY: Entry = Entry {
    name: "slow-host-links",
    summary: "hosts whose cable runs slower than those of other hosts at the switch",
    find,
};

/// Above this share of the hosts, slower cables are another generation of adapters and no fault.
const FAULTS_MAX: f64 = 0.1;

fn find(site: &Site) -> Vec<Finding> {
    let slow: Vec<&Cable> = site.cables.slow.iter().filter(|cable| !cable.is_trunk).collect();
    let hosts = site.hosts().len().max(1);
    let is_narrow = |cable: &&Cable| site.fabric.link(cable.link).width < cable.expected.0;
    let (narrow, old): (Vec<&Cable>, Vec<&Cable>) = slow.into_iter().partition(is_narrow);
    let are_faults = old.len() as f64 <= (FAULTS_MAX * hosts as f64).max(1.0);
    let faults = narrow.iter().chain(old.iter().filter(|_| are_faults));
    let faults = faults.map(|cable| host(site, cable, hosts)).collect();
    let more = ["more host is on a slow link", "more hosts are on slow links"];
    let mut findings: Vec<Finding> = Finding::together(faults, more).into_iter().collect();
    if !are_faults {
        let number = count(old.len() as u64, "host is", "hosts are");
        findings.push(Finding {
            fact: ENTRY.name,
            severity: Severity::Note,
            share: 0.0,
            text: format!("{number} slower than most at the switch: adapters of an older kind"),
            more: Vec::new(),
            remedy: String::new(),
        });
    }
    findings
}

fn host(site: &Site, cable: &Cable, hosts: usize) -> Finding {
    let link = site.fabric.link(cable.link);
    let is_switch = |node| site.fabric.node(node).is_switch();
    let host = if is_switch(link.a.node) { link.b } else { link.a };
    let (width, speed) = cable.expected;
    Finding {
        fact: ENTRY.name,
        severity: Severity::Own,
        share: cable.missing(&site.fabric) * 2.0 / hosts as f64,
        text: format!(
            "{} is on a slow link: {} runs at {} {}, hosts beside it at {width} {speed}",
            site.node(host.node),
            site.cable(link),
            link.width,
            link.speed
        ),
        more: Vec::new(),
        remedy: "reseat or replace the cable; look at the adapter's slot and firmware".into(),
    }
}
