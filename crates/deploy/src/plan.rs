//! What is to change on a site, decided once for all files.

use crate::policy::Policy;
use crate::refusal::{self, DeployError};
use crate::{Client, Conf, lanes, readme, remarks};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{Guid, ServiceLevel};
use clearlane_subnet::Subnet;
use clearlane_subnet::formats::path_groups;
use similar::TextDiff;

/// A site's files of today, with their names. What is not given is taken to be OpenSM's default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Existing {
    /// opensm.conf.
    pub conf: Option<(String, String)>,
    /// The QoS policy.
    pub policy: Option<(String, String)>,
    /// partitions.conf.
    pub partitions: Option<(String, String)>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// What gave the paths their SLs, in words for a heading: `lane policy vftree on 8 lanes`.
    pub title: String,
    /// The command line that makes the folder again.
    pub command: String,
    /// Whether the tables are new, so that OpenSM has to load them.
    pub tables: bool,
    /// What the site has.
    pub existing: Existing,
    /// Whether SLs tell hot hosts from others, and nothing else: a program that talks to hot hosts
    /// alone can then have one SL for all it sends.
    pub by_class: bool,
    /// Links with fewer data VLs than the others, named by either end: 1, 2, 4, 8 or 15.
    pub link_lanes: Vec<(Endpoint, u8)>,
    /// Programs that run there; empty if nobody said.
    pub clients: Vec<&'static Client>,
    /// OpenSM's folder of configuration.
    pub folder: &'a str,
    /// Write in spite of what would not take effect.
    pub force: bool,
}

/// A file to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its name in the folder.
    pub name: &'static str,
    /// What it is for.
    pub what: &'static str,
    /// Its text.
    pub text: String,
}

/// Everything that is to change, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The files, README first. Tables are not among them.
    pub files: Vec<File>,
    /// What somebody has to know before, a line each.
    pub remarks: Vec<String>,
    /// Keys of opensm.conf and their new values, in the order of the file.
    pub changes: Vec<(String, String)>,
    /// Port groups and match rules of the policy.
    pub groups: usize,
    /// The same.
    pub rules: usize,
    /// Whether OpenSM has to be started again, rather than told by SIGHUP.
    pub restart: bool,
    /// The same for the way back.
    pub restart_back: bool,
    /// Port GUIDs of the pair that [`STAGE`] is for, if there is one.
    pub pair: Option<[Guid; 2]>,
}

/// Where OpenSM of Debian looks for a policy unless told otherwise.
pub(crate) const POLICY: &str = "qos-policy.conf";
/// The policy of one pair of hosts, to try it on.
pub(crate) const STAGE: &str = "one-pair.conf";
/// By device kind, keys that win over the general ones.
const KINDS: [&str; 4] = ["qos_ca", "qos_sw0", "qos_swe", "qos_rtr"];

impl Plan {
    /// The plan for a subnet whose paths have their SLs. Fails where files cannot do it.
    pub fn of(
        fabric: &Fabric,
        subnet: &Subnet,
        request: &Request<'_>,
    ) -> Result<Self, DeployError> {
        let row = lanes::of_levels(fabric, subnet, &request.link_lanes)?;
        let used = subnet.lanes_in_use(fabric);
        let conf = request.existing.conf.as_ref();
        let conf = conf.map_or_else(Conf::default, |(_, text)| Conf::read(text));
        let policy = Policy::of(&path_groups::of(fabric, subnet));
        let has_levels = policy.levels() != [0];
        if !has_levels && !request.tables {
            let remedy = "name a --lane-policy that tells these hosts apart, or new tables with \
                          --engine";
            return Err(DeployError::Nothing { remedy });
        }
        refusal::check(request, &conf, &policy.levels())?;
        let place = conf
            .get("qos_policy_file")
            .map_or_else(|| format!("{}/{POLICY}", request.folder), |(_, place)| place.to_owned());
        let changes = changes(request, &conf, subnet, has_levels.then_some((row, used, &place)));
        let restarts = ["routing_engine", "lfts_file", "qos_policy_file", "lmc"];
        // An OpenSM that was started without a file reads none when it is told to.
        let restart = request.existing.conf.is_none()
            || changes.iter().any(|(key, _)| restarts.contains(&key.as_str()));
        // Keys that the old file does not name keep what they have until a start.
        let restart_back = restart || changes.iter().any(|(key, _)| conf.get(key).is_none());
        let mut plan = Plan {
            files: Vec::new(),
            remarks: remarks::of(request, &conf, &changes, (has_levels, used)),
            changes,
            groups: policy.groups(),
            rules: policy.rule_count(),
            restart,
            restart_back,
            pair: None,
        };
        plan.add_conf(request, &conf);
        if has_levels {
            plan.add_policy(request, &policy)?;
        }
        let log = conf.get("log_file").map(|(_, log)| log.to_owned());
        let site = readme::Place { policy: place, log, lanes: used };
        let text = readme::text(fabric, subnet, request, &plan, &site);
        let what = "steps, what each disturbs, and the way back";
        plan.files.insert(0, File { name: "README", what, text });
        Ok(plan)
    }

    fn add(&mut self, name: &'static str, what: &'static str, text: String) {
        self.files.push(File { name, what, text });
    }

    /// The site's opensm.conf with new values and the difference, or the new values alone.
    fn add_conf(&mut self, request: &Request<'_>, conf: &Conf) {
        let Some((name, _)) = &request.existing.conf else {
            let lines: String =
                self.changes.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
            // The file it is added to may end without a line feed.
            let text = format!("\n{lines}");
            return self.add("opensm.conf.add", "keys to set in opensm.conf", text);
        };
        let text = conf.with(&self.changes);
        let difference = diff(&conf.text(), &text, name, "opensm.conf");
        self.add("opensm.conf", "your opensm.conf with the new values", text);
        self.add("opensm.conf.diff", "what changes in it", difference);
    }

    fn add_policy(&mut self, request: &Request<'_>, policy: &Policy) -> Result<(), DeployError> {
        let stage = policy.of_one_pair();
        let what = "service levels by source and destination";
        let of_pair = "the same for one pair of hosts, to try it";
        self.pair = stage.as_ref().map(|(_, pair)| *pair);
        let Some((name, before)) = &request.existing.policy else {
            self.add(POLICY, what, policy.text());
            if let Some((stage, _)) = stage {
                self.add(STAGE, of_pair, stage.text());
            }
            return Ok(());
        };
        if let Some((stage, _)) = stage {
            self.add(STAGE, "your policy with one pair of hosts", stage.added_to(before, name)?);
        }
        let text = policy.added_to(before, name)?;
        let difference = diff(before, &text, name, POLICY);
        self.add(POLICY, "your policy with service levels by source and destination", text);
        self.add("qos-policy.conf.diff", "what changes in it", difference);
        Ok(())
    }
}

fn diff(before: &str, after: &str, from: &str, to: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().header(from, to).to_string()
}

/// Keys of opensm.conf with values that differ from what is there.
fn changes(
    request: &Request<'_>,
    conf: &Conf,
    subnet: &Subnet,
    levels: Option<([u8; 16], u8, &String)>,
) -> Vec<(String, String)> {
    let mut wanted: Vec<(String, String)> = Vec::new();
    let mut want = |key: &str, value: String| wanted.push((key.to_owned(), value));
    if request.tables {
        want("routing_engine", "file".into());
        want("lfts_file", format!("{}/lfts.txt", request.folder));
        want("lmc", subnet.lids.lmc_max().value().to_string());
    }
    if let Some((lanes, used, place)) = levels {
        if conf.lanes_max() < used {
            // 3 is VL 0-3, 4 VL 0-7, 5 VL 0-14.
            let code = [(1, 1), (2, 2), (4, 3), (8, 4), (15, 5)];
            let code = code.iter().find(|(lanes, _)| *lanes >= used).map_or(5, |(_, code)| *code);
            want("max_op_vls", code.to_string());
        }
        let weights = &subnet.vl_arbitration.low;
        let entries = |weight: &dyn Fn(u8) -> u8| {
            let entry = |lane| format!("{lane}:{}", weight(lane));
            (0..used).map(entry).collect::<Vec<_>>().join(",")
        };
        let low = |lane: u8| {
            let known = weights.iter().find(|entry| entry.vl.value() == lane);
            known.map_or(64, |entry| entry.weight)
        };
        let row: Vec<String> =
            (0..ServiceLevel::COUNT).map(|sl| (lanes[sl] % used).to_string()).collect();
        let of_ports = [
            ("max_vls", used.to_string()),
            ("high_limit", subnet.vl_arbitration.high_limit.to_string()),
            ("vlarb_high", entries(&|_| 0)),
            ("vlarb_low", entries(&low)),
            ("sl2vl", row.join(",")),
        ];
        want("qos", "TRUE".into());
        want("qos_policy_file", place.clone());
        for (key, value) in &of_ports {
            want(&format!("qos_{key}"), value.clone());
            for kind in KINDS {
                // Only where the site has set it: it would win.
                let key = format!("{kind}_{key}");
                let is_set = conf.get(&key).is_some_and(|(_, own)| !matches!(own, "0" | "-1"));
                if is_set {
                    want(&key, value.clone());
                }
            }
        }
    }
    // The place where OpenSM looks for a policy anyway.
    let usual = format!("/etc/opensm/{POLICY}");
    let is_new = |(key, value): &(String, String)| match (conf.get(key), key.as_str()) {
        // OpenSM compares with TRUE as it is written.
        (Some((_, own)), _) => own != value,
        (None, "lmc") => value != "0",
        (None, "qos_policy_file") => *value != usual,
        (None, _) => true,
    };
    wanted.into_iter().filter(is_new).collect()
}
