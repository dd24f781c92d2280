//! What somebody has to know before he deploys.

use crate::Conf;
use crate::plan::Request;
use clearlane_ib::visible;
use std::collections::BTreeSet;

/// All of them, a line each, the most important first; whether paths have SLs, and on how many
/// lanes they are.
pub(crate) fn of(
    request: &Request<'_>,
    conf: &Conf,
    changes: &[(String, String)],
    (has_levels, lanes): (bool, u8),
) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(shared_lanes(request, lanes).filter(|_| has_levels));
    remarks.extend(of_conf(request, conf));
    if changes.iter().any(|(key, _)| key == "max_op_vls") {
        remarks.push(format!(
            "max_op_vls leaves {} data lanes today and is raised: OpenSM sets OperationalVLs of \
             every port anew, which may disturb links; do it in a maintenance window",
            conf.lanes_max()
        ));
    }
    if !request.link_lanes.is_empty() {
        remarks.push(
            "on links with fewer VLs OpenSM keeps the low bits of the lane, by the OperationalVLs \
             of the port: look at these with smpquery portinfo"
                .into(),
        );
    }
    if request.tables {
        remarks.push(
            "engine file freezes the routes: after a cable fails they are not computed again, \
             hosts behind it are cut off until new tables are loaded"
                .into(),
        );
    }
    remarks.extend(replaced(request, conf, changes));
    if lanes > 1 {
        remarks.push(format!(
            "every link needs OperVLs of {lanes} lanes at least: a port with fewer puts several of \
             these SLs on one lane; look at some with smpquery portinfo, and name such a link with \
             --link-lanes"
        ));
    }
    if request.existing.conf.is_none() && has_levels {
        remarks.push(
            "nobody gave the site's files (--opensm-conf, --qos-policy, --partitions): a QoS \
             policy it has would be replaced, and SLs of its partitions would be 0"
                .into(),
        );
    }
    if let Some((name, text)) = &request.existing.policy
        && text.lines().any(|line| line.trim_start().starts_with("qos-ulps"))
    {
        remarks.push(format!(
            "{}: OpenSM looks at qos-ulps after all match rules, so ours win over these between \
             hosts; write what they mean as qos-match-rules, which stay before ours",
            name.escape_debug()
        ));
    }
    if let Some((name, text)) = &request.existing.partitions {
        remarks.extend(partition_levels(name, text));
    }
    if request.clients.is_empty() && has_levels {
        remarks.push(
            "nobody said which programs run here (--clients): UCX, NCCL and NVSHMEM do not ask for \
             the SL of a path, so for them nothing changes until an SL is set"
                .into(),
        );
    }
    remarks
}

/// What is odd in the site's opensm.conf.
fn of_conf(request: &Request<'_>, conf: &Conf) -> Vec<String> {
    let Some((name, _)) = &request.existing.conf else { return Vec::new() };
    let name = name.escape_debug();
    let said = conf.remarks().into_iter();
    said.map(|remark| format!("{name}:{}: {}", remark.line, remark.what)).collect()
}

/// Values of the site for SLs and lanes that give way.
fn replaced(request: &Request<'_>, conf: &Conf, changes: &[(String, String)]) -> Vec<String> {
    let name = request.existing.conf.as_ref().map_or("", |(name, _)| name.as_str());
    let tables = changes.iter().filter(|(key, _)| key.contains("sl2vl") || key.contains("vlarb"));
    let own = tables.filter_map(|(key, value)| {
        let (line, own) = conf.get(key)?;
        let name = name.escape_debug();
        let own = visible(own);
        Some(format!("{name}:{line}: {key} is {own} today and becomes {value}"))
    });
    own.collect()
}

/// SLs of the site's policy and partitions that are on lanes of these paths.
fn shared_lanes(request: &Request<'_>, lanes: u8) -> Option<String> {
    let own = [&request.existing.policy, &request.existing.partitions].into_iter().flatten();
    let levels = own.flat_map(|(_, text)| text.lines().flat_map(levels_in));
    let levels: BTreeSet<u8> = levels.filter(|level| *level > 0).collect();
    let all: Vec<String> = levels
        .iter()
        .map(|level| format!("SL {level} shares lane {}", level % lanes.max(1)))
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "traffic on SLs of the site's own policy and partitions shares lanes with these paths: \
             {}; where that is the lane of hot traffic, give it another SL",
            all.join(", ")
        )
    })
}

/// `sl: 3` of a policy's level, `ipoib : 3` of its simple rules, `sl=3` of a partition.
fn levels_in(line: &str) -> Vec<u8> {
    let line = line.split('#').next().unwrap_or_default();
    let partition = line.split("sl=").skip(1).filter_map(number);
    let words = line.split_once(':').filter(|(key, _)| {
        let key = key.trim().to_ascii_lowercase();
        key == "sl" || SIMPLE.iter().any(|simple| key.starts_with(simple))
    });
    let policy = words.and_then(|(_, value)| number(value.trim()));
    partition.chain(policy).filter(|level| *level < 16).collect()
}

fn number(text: &str) -> Option<u8> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What rules of `qos-ulps` begin with; the SL is behind the colon.
const SIMPLE: [&str; 8] = ["default", "ipoib", "sdp", "rds", "iser", "srp", "any", "pkey"];

/// Whether a text is a partitions.conf: statements `name=0x…, flags : members;`, or nothing at all.
pub(crate) fn are_partitions(text: &str) -> bool {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    statements.all(|statement| {
        let head = statement.split([':', ',']).next().unwrap_or_default().trim();
        !head.is_empty() && !head.contains(|c: char| c.is_whitespace() || "\"'[]()".contains(c))
    })
}

/// Partitions with an SL of their own, which a policy wins over.
fn partition_levels(name: &str, text: &str) -> Vec<String> {
    let level = |(index, line): (usize, &str)| {
        let line = line.split('#').next()?;
        let (_, level) = line.split(':').next()?.split_once("sl=")?;
        let level: u8 = level.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        (level > 0).then(|| {
            format!(
                "{}:{}: the partition has SL {level}; from step 2 on every pair that no rule \
                 names is on SL 0, in this partition too",
                name.escape_debug(),
                index + 1
            )
        })
    };
    text.lines().enumerate().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_site_are_found_wherever_it_names_them() {
        assert_eq!(levels_in("        sl: 7 # bulk"), [7]);
        assert_eq!(levels_in("    any, service-id 0x1:6"), [6]);
        assert_eq!(levels_in("Default=0x7fff, ipoib, sl=3, defmember=full : ALL=full;"), [3]);
        assert_eq!(levels_in("    use: sl 4"), [0u8; 0]);
        assert_eq!(levels_in("    sl: 99"), [0u8; 0]);
    }

    #[test]
    fn partitions_are_told_from_other_texts() {
        let text =
            "# ours\nDefault=0x7fff, ipoib, defmember=full :\n  ALL, SELF=full ;\nmgmt=0x1:A;";
        assert!(are_partitions(text) && are_partitions("") && are_partitions("# none\n"));
        assert!(!are_partitions("vendid=0x119f\ndevid=0xbc64\n"));
        assert!(!are_partitions("Switch 36 \"S-1\" # \"x;y\"\n"));
    }
}
