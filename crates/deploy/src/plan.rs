//! What is to change on a site, decided once for all files.

use crate::conf::{OVERRULE, instead};
use crate::policy::{Policy, PolicyError};
use crate::{Client, Conf, readme, remarks};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Guid, ServiceLevel, VirtualLane};
use clearlane_subnet::formats::path_groups;
use clearlane_subnet::{SlToVlTable, Subnet};
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

/// Why there is nothing to deploy by files.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeployError {
    /// The SLs need more than a policy can say.
    #[error(
        "{what}: a QoS policy of OpenSM cannot say so; deploy it with the routing engine \
         `clearlane` (docs/opensm-plugin.md)"
    )]
    BeyondPolicy {
        /// What does.
        what: &'static str,
    },
    /// All paths are on SL 0.
    #[error("every path is on service level 0 and the tables stay, so nothing changes; {remedy}")]
    Nothing {
        /// What to ask for.
        remedy: &'static str,
    },
    /// A running engine gives SLs itself.
    #[error(
        "{file}:{line}: routing_engine {engine} gives the SL of a path itself and overrules a QoS \
         policy; {}, or add --force",
        instead(engine)
    )]
    Overruled {
        /// opensm.conf.
        file: String,
        /// Its line.
        line: usize,
        /// The engine.
        engine: String,
    },
    /// Programs that cannot have an SL by destination.
    #[error(
        "{clients} give a process one SL for all it sends, and these SLs differ by pair of hosts; \
         take --lane-policy by-class with --lanes 2 and --hot, or add --force"
    )]
    OnePerProcess {
        /// The programs.
        clients: String,
    },
    /// The site has a policy that would be replaced.
    #[error(
        "{file}:{line}: the site uses QoS and may have a policy of its own; give it with \
         --qos-policy, so that its rules stay, an empty file if it has none"
    )]
    Replaces {
        /// opensm.conf.
        file: String,
        /// The line that says so.
        line: usize,
    },
    /// The site has partitions, which may have SLs.
    #[error(
        "{file}:{line}: the site may have partitions, whose service levels would be 0; give the \
         file with --partitions, so that these are named, an empty file if it has none"
    )]
    Partitions {
        /// opensm.conf.
        file: String,
        /// Its line.
        line: usize,
    },
    /// A file is something else.
    #[error("{file}: is no {what}; give the site's own")]
    Other {
        /// The file.
        file: String,
        /// What it should be.
        what: &'static str,
    },
    /// The site's policy is broken.
    #[error(transparent)]
    Policy(#[from] PolicyError),
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
        let lanes = by_policy(fabric, subnet, &request.link_lanes)?;
        let conf = request.existing.conf.as_ref();
        let conf = conf.map_or_else(Conf::default, |(_, text)| Conf::read(text));
        let policy = Policy::of(&path_groups::of(fabric, subnet));
        let has_levels = policy.levels() != [0];
        if !has_levels && !request.tables {
            let remedy = "name a --lane-policy that tells these hosts apart, or new tables with \
                          --engine";
            return Err(DeployError::Nothing { remedy });
        }
        kinds(request, &conf)?;
        check(request, &conf, &policy.levels())?;
        let place = conf
            .get("qos_policy_file")
            .map_or_else(|| format!("{}/{POLICY}", request.folder), |(_, place)| place.to_owned());
        let changes = changes(request, &conf, subnet, has_levels.then_some((lanes, &place)));
        let restarts = ["routing_engine", "lfts_file", "qos_policy_file", "lmc"];
        // An OpenSM that was started without a file reads none when it is told to.
        let restart = request.existing.conf.is_none()
            || changes.iter().any(|(key, _)| restarts.contains(&key.as_str()));
        // Keys that the old file does not name keep what they have until a start.
        let restart_back = restart || changes.iter().any(|(key, _)| conf.get(key).is_none());
        let mut plan = Plan {
            files: Vec::new(),
            remarks: remarks::of(request, &conf, &changes, subnet),
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
        let log = conf.get("log_file").map_or("/var/log/opensm*.log", |(_, log)| log);
        let site = readme::Place { policy: place, log: log.to_owned() };
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

/// The lane of each SL, where a policy and one SL2VL say it all. On a link with fewer VLs OpenSM
/// keeps the low bits of the lane that its OperationalVLs leave (osm_qos.c, sl2vl_update_table).
fn by_policy(
    fabric: &Fabric,
    subnet: &Subnet,
    link_lanes: &[(Endpoint, u8)],
) -> Result<[u8; 16], DeployError> {
    if subnet.path_sl.offsets() > 1 {
        let what = "the SL depends on the LID offset";
        return Err(DeployError::BeyondPolicy { what });
    }
    let of_row = |row: &[VirtualLane; 16]| row.map(VirtualLane::value);
    let mut whole = of_row(&subnet.sl_to_vl.adapter);
    for table in subnet.sl_to_vl.tables() {
        let rows = match table {
            SlToVlTable::Uniform(row) => std::slice::from_ref(row),
            SlToVlTable::PerPorts { rows, .. } => rows,
        };
        for row in rows {
            let lanes = of_row(row);
            whole = std::array::from_fn(|sl| whole[sl].max(lanes[sl]));
        }
    }
    let levels = subnet.path_sl.levels();
    let is_kept = |lane: &dyn Fn(ServiceLevel) -> VirtualLane, lanes: u8| {
        let kept = |sl: &ServiceLevel| {
            // VL 0-14 are no power of two: nothing is cut off.
            let mask = if lanes == 15 { u8::MAX } else { lanes.wrapping_sub(1) };
            lane(*sl).value() == whole[usize::from(sl.value())] & mask
        };
        levels.iter().all(kept)
    };
    let fewer = |end: Endpoint| {
        let of = |(link, lanes): &(Endpoint, u8)| {
            (*link == end || fabric.peer(*link) == Some(end)).then_some(*lanes)
        };
        link_lanes.iter().filter_map(of).min()
    };
    let of_switch = |switch: NodeId| {
        let table = subnet.sl_to_vl.table(switch);
        let ports = || fabric.neighbours(switch).map(|(port, ..)| port);
        let mut pairs = ports().flat_map(|input| ports().map(move |output| (input, output)));
        pairs.all(|(input, output)| {
            let lanes = fewer(Endpoint { node: switch, port: output }).unwrap_or(0);
            is_kept(&|sl| table.lane(input, output, sl), lanes)
        })
    };
    let adapter = |sl: ServiceLevel| subnet.sl_to_vl.adapter[usize::from(sl.value())];
    let of_adapters = link_lanes.iter().map(|(_, lanes)| *lanes).chain([0]);
    let is_one = subnet.tables.switches().iter().all(|switch| of_switch(*switch))
        && of_adapters.into_iter().any(|lanes| is_kept(&adapter, lanes));
    match is_one {
        true => Ok(whole),
        false => Err(DeployError::BeyondPolicy {
            what: "the lane of an SL depends on the ports of a switch",
        }),
    }
}

/// Fails where a file is of another kind.
fn kinds(request: &Request<'_>, conf: &Conf) -> Result<(), DeployError> {
    let other =
        |name: &str, what| DeployError::Other { file: name.escape_debug().to_string(), what };
    match &request.existing.conf {
        Some((name, _)) if !conf.is_one() => return Err(other(name, "opensm.conf")),
        _ => {}
    }
    match &request.existing.partitions {
        Some((name, text)) if !remarks::are_partitions(text) => Err(other(name, "partitions.conf")),
        _ => Ok(()),
    }
}

/// Fails where the SLs would not take effect.
fn check(request: &Request<'_>, conf: &Conf, levels: &[u8]) -> Result<(), DeployError> {
    let has_levels = levels != [0];
    if request.force {
        return Ok(());
    }
    let (line, engines) = conf.engines();
    let overrules = engines.first().filter(|engine| OVERRULE.contains(engine));
    if let (false, Some(engine)) = (request.tables, overrules) {
        let file = request.existing.conf.as_ref().map_or("", |(name, _)| name);
        let (file, engine) = (file.escape_debug().to_string(), (*engine).to_owned());
        return Err(DeployError::Overruled { file, line, engine });
    }
    let is_true = |(_, value): &(usize, &str)| *value == "TRUE";
    // Without a key for it the policy is where OpenSM looks anyway.
    let qos = conf.get("qos").filter(is_true);
    let in_use = qos.and(conf.get("qos_policy_file")).or(qos);
    if let (Some((line, _)), None, true) = (in_use, &request.existing.policy, has_levels) {
        let file = request.existing.conf.as_ref().map_or("", |(name, _)| name);
        return Err(DeployError::Replaces { file: file.escape_debug().to_string(), line });
    }
    let one: Vec<&str> =
        request.clients.iter().filter(|client| !client.asks).map(|client| client.name).collect();
    // One class of hot hosts is two SLs: one for programs that talk to these alone, one for others.
    let partitions = conf.get("partition_config_file");
    if let (Some((line, _)), None, true) = (partitions, &request.existing.partitions, has_levels) {
        let file = request.existing.conf.as_ref().map_or("", |(name, _)| name);
        return Err(DeployError::Partitions { file: file.escape_debug().to_string(), line });
    }
    let is_one_class = request.by_class && levels.len() <= 2;
    if !one.is_empty() && !is_one_class {
        return Err(DeployError::OnePerProcess { clients: one.join(", ") });
    }
    Ok(())
}

/// One more than the highest lane that a path is on: a policy may use fewer than there are.
pub fn lanes_in_use(subnet: &Subnet) -> u8 {
    let levels = subnet.path_sl.levels();
    let rows = subnet.sl_to_vl.tables().iter().flat_map(|table| match table {
        SlToVlTable::Uniform(row) => std::slice::from_ref(row),
        SlToVlTable::PerPorts { rows, .. } => rows,
    });
    let lane = |row: &[VirtualLane; 16]| {
        levels.iter().map(|sl| row[usize::from(sl.value())].value()).max().unwrap_or(0)
    };
    rows.chain([&subnet.sl_to_vl.adapter]).map(lane).max().unwrap_or(0) + 1
}

/// Keys of opensm.conf with values that differ from what is there.
fn changes(
    request: &Request<'_>,
    conf: &Conf,
    subnet: &Subnet,
    levels: Option<([u8; 16], &String)>,
) -> Vec<(String, String)> {
    let mut wanted: Vec<(String, String)> = Vec::new();
    let mut want = |key: &str, value: String| wanted.push((key.to_owned(), value));
    if request.tables {
        want("routing_engine", "file".into());
        want("lfts_file", format!("{}/lfts.txt", request.folder));
        want("lmc", subnet.lids.lmc_max().value().to_string());
    }
    if let Some((lanes, place)) = levels {
        let used = lanes_in_use(subnet);
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
