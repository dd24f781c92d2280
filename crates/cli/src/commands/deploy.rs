//! `clearlane deploy`: a folder for a stock OpenSM with what changes and nothing else.

use super::experiment::quoted;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::files::{self, Content};
use crate::progress::Progress;
use crate::routing::Routing;
use crate::site::{self, Names};
use crate::table::{Align, Table, count, wrap};
use crate::writing::Writing;
use clap::Args;
use clearlane_deploy::{Existing, Plan, Request, client};
use clearlane_fabric::Fabric;
use clearlane_lab::{FABRIC_BYTES_MAX, Unfinished};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::formats::{guid2lid, lfts, path_groups};
use clearlane_subnet::lanes;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to deploy, and where.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane deploy site.topo --lft site.lft --lane-policy by-class --hot storage01 -o deploy\n  \
    clearlane deploy site.topo --lft site.lft --lane-policy vftree --lanes 8 \\\n      \
    --opensm-conf opensm.conf --clients mvapich2,rdma-cm -o deploy\n  \
    clearlane deploy site.topo --engine fat-tree --lane-policy vftree -o deploy   # new tables\n\n\
    Lane policies: see `clearlane list lanes`")]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    #[command(flatten)]
    routing: Routing,
    /// The site's opensm.conf: it is written whole with the new values, and as a difference
    #[arg(long, value_name = "FILE")]
    opensm_conf: Option<PathBuf>,
    /// The site's QoS policy: rules are added after its own
    #[arg(long, value_name = "FILE")]
    qos_policy: Option<PathBuf>,
    /// The site's partitions.conf, whose service levels a policy wins over
    #[arg(long, value_name = "FILE")]
    partitions: Option<PathBuf>,
    /// Programs that run on the site: rdma-cm, ipoib, srp, mvapich2, openmpi-openib, ucx, nccl,
    /// nvshmem. Those that take one service level per process rule out most lane policies
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    clients: Vec<String>,
    /// OpenSM's folder of configuration on the site
    #[arg(long, value_name = "DIR", default_value = OPENSM_FOLDER, value_parser = folder)]
    opensm_folder: String,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    names: Names,
}

/// A folder that goes into commands for root as it is.
fn folder(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match text.starts_with('/') && text.len() > 1 && text.chars().all(plain) {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => {
            Err("is no folder to deploy into; give an absolute path of letters, digits and /._-"
                .into())
        }
    }
}

/// Columns of a remark.
const COLUMNS: usize = 88;
const OPENSM_FOLDER: &str = "/etc/opensm";

/// All that may be in the folder.
const NAMES: &[&str] = &[
    "README",
    "opensm.conf",
    "opensm.conf.diff",
    "opensm.conf.add",
    "qos-policy.conf",
    "qos-policy.conf.diff",
    "one-pair.conf",
    PATH_GROUPS.0,
    LFTS.0,
    GUID2LID.0,
];
const PATH_GROUPS: (&str, &str) =
    ("path-groups.txt", "the same service levels, for the routing engine `clearlane` of OpenSM");
const LFTS: (&str, &str) = ("lfts.txt", "forwarding tables");
const GUID2LID: (&str, &str) = ("guid2lid", "LIDs the tables are for");

/// Writes a folder to deploy: what gives a site's paths the lanes of a policy, its tables and
/// engine staying as they are, or without a policy new tables. Fails as `deploy` does.
pub(super) fn write(
    fabric: &Fabric,
    subnet: &Subnet,
    policy: Option<&lanes::Entry>,
    (output, force): (&Path, bool),
    unfinished: &Unfinished,
) -> Result<(), Failure> {
    Writing { force, dry_run: false }.folder(output, NAMES, &[])?;
    let tables = policy.is_none();
    let request = Request {
        title: title(policy.map(|policy| policy.name), fabric, subnet),
        command: command_line(),
        by_class: policy.is_some_and(|policy| policy.hot),
        tables,
        existing: Existing::default(),
        link_lanes: Vec::new(),
        clients: Vec::new(),
        folder: OPENSM_FOLDER,
        force: false,
    };
    let plan = Plan::of(fabric, subnet, &request).map_err(Failure::input)?;
    files::write_folder(output, &contents(fabric, subnet, tables, &plan), unfinished)
}

/// Plans and writes.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    may_write(arguments)?;
    let site = site::open_named(&arguments.fabric, &arguments.names)?;
    let fabric = &site.fabric;
    let progress = Progress::start("1 of 2: tables and lanes");
    let subnet = arguments.routing.subnet(fabric)?;
    progress.label("2 of 2: walking every path");
    check(fabric, &subnet, arguments.writing.force)?;
    let plan =
        Plan::of(fabric, &subnet, &request(arguments, fabric, &subnet)?).map_err(Failure::input)?;
    let contents = contents(fabric, &subnet, arguments.routing.fills(), &plan);
    if !arguments.writing.dry_run {
        // Somebody may have put a file there meanwhile.
        may_write(arguments)?;
        files::write_folder(&arguments.output, &contents, unfinished)?;
    }
    drop(progress);
    let names: Vec<&str> = contents.iter().map(|(name, _)| *name).collect();
    if json {
        let changes = plan.changes.iter().map(|(key, value)| json!({ "key": key, "value": value }));
        let fields = json!({
            "fabric": site.name,
            "engine": arguments.routing.fills().then_some(&subnet.engine),
            "lane_policy": arguments.routing.lane_policy(),
            "lanes": subnet.lanes_in_use(fabric),
            "notes": subnet.notes,
            "changes": changes.collect::<Vec<_>>(),
            "port_groups": plan.groups,
            "match_rules": plan.rules,
            "restart": plan.restart,
            "remarks": plan.remarks,
            "written": !arguments.writing.dry_run,
            "folder": arguments.output.display().to_string(),
            "files": names,
        });
        return Ok(Answer::json("clearlane-deploy/1", fields));
    }
    Ok(Answer::text(text(arguments, &subnet, &plan, &names)))
}

fn request<'a>(
    arguments: &'a Arguments,
    fabric: &Fabric,
    subnet: &Subnet,
) -> Result<Request<'a>, Failure> {
    let read = |path: &Option<PathBuf>| -> Result<Option<(String, String)>, Failure> {
        let Some(path) = path else { return Ok(None) };
        Ok(Some((path.display().to_string(), files::read(path, FABRIC_BYTES_MAX)?)))
    };
    let clients = arguments.clients.iter().map(|name| client(name).map_err(Failure::Input));
    let policy = arguments.routing.lane_policy();
    let entry = policy.and_then(|name| lanes::policy(name).ok());
    Ok(Request {
        title: title(policy, fabric, subnet),
        command: command_line(),
        by_class: entry.is_some_and(|entry| entry.hot),
        tables: arguments.routing.fills(),
        existing: Existing {
            conf: read(&arguments.opensm_conf)?,
            policy: read(&arguments.qos_policy)?,
            partitions: read(&arguments.partitions)?,
        },
        link_lanes: arguments.routing.link_lanes(fabric)?,
        clients: clients.collect::<Result<_, _>>()?,
        folder: &arguments.opensm_folder,
        force: arguments.writing.force,
    })
}

/// What was typed, so that a folder says how it came about.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    ["clearlane".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// What is deployed, as a heading.
fn title(policy: Option<&str>, fabric: &Fabric, subnet: &Subnet) -> String {
    let lanes = count(subnet.lanes_in_use(fabric).into(), "lane", "lanes");
    match policy {
        Some(policy) => format!("Lane policy {policy} on {lanes} for OpenSM"),
        None => format!("Tables of engine {} on {lanes} for OpenSM", subnet.engine),
    }
}

/// Fails where what is deployed would lose packets or could deadlock.
fn check(fabric: &Fabric, subnet: &Subnet, force: bool) -> Result<(), Failure> {
    let found = reachability(fabric, subnet);
    if found.reached < found.pairs && !force {
        let lost = found.pairs - found.reached;
        return Err(Failure::Input(format!(
            "nothing written: {lost} of {} paths do not arrive by these tables; `clearlane check` \
             lists them, an --engine mends it, or add --force",
            found.pairs
        )));
    }
    if !credit_loop(fabric, subnet).is_sane() && !force {
        return Err(Failure::Input(
            "nothing written: a credit loop is possible by these tables; route with up-down, or \
             add --force"
                .into(),
        ));
    }
    Ok(())
}

fn may_write(arguments: &Arguments) -> Result<(), Failure> {
    let given = [&arguments.opensm_conf, &arguments.qos_policy, &arguments.partitions];
    let given = given.into_iter().flatten().map(PathBuf::as_path);
    let tables = arguments.routing.files_read();
    let inputs: Vec<&Path> = tables.chain([Path::new(&arguments.fabric)]).chain(given).collect();
    arguments.writing.folder(&arguments.output, NAMES, &inputs)
}

fn contents<'a>(
    fabric: &'a Fabric,
    subnet: &'a Subnet,
    tables: bool,
    plan: &'a Plan,
) -> Vec<(&'static str, Content<'a>)> {
    let mut contents: Vec<(&str, Content<'_>)> = Vec::new();
    for file in &plan.files {
        contents.push((file.name, Box::new(|out| out.write_all(file.text.as_bytes()))));
    }
    if plan.rules > 0 {
        contents.push((PATH_GROUPS.0, Box::new(|out| path_groups::write(fabric, subnet, out))));
    }
    if tables {
        contents.push((LFTS.0, Box::new(|out| lfts::write(fabric, subnet, out))));
        let lids = &subnet.lids;
        contents.push((
            GUID2LID.0,
            Box::new(|out| out.write_all(guid2lid::write(fabric, lids).as_bytes())),
        ));
    }
    contents
}

fn text(arguments: &Arguments, subnet: &Subnet, plan: &Plan, names: &[&str]) -> String {
    let mut text = String::new();
    for note in &subnet.notes {
        text.push_str(&format!("{note}\n"));
    }
    let tables = match arguments.routing.fills() {
        true => "new tables are loaded",
        false => "tables and routing engine stay as they are",
    };
    let how = match plan.restart {
        true => "OpenSM is started again",
        false => "OpenSM is told by SIGHUP",
    };
    let keys = count(plan.changes.len(), "key", "keys");
    text.push_str(&format!("{tables}; {keys} of opensm.conf change; {how}\n"));
    if plan.rules > 0 {
        let groups = count(plan.groups, "port group", "port groups");
        let rules = count(plan.rules, "match rule", "match rules");
        text.push_str(&format!("the QoS policy has {groups} and {rules}\n"));
    }
    for remark in &plan.remarks {
        for (index, line) in wrap(remark, COLUMNS).iter().enumerate() {
            text.push_str(&format!("{}{line}\n", if index == 0 { "* " } else { "  " }));
        }
    }
    let would = if arguments.writing.dry_run { "would write " } else { "" };
    let mut table = Table::plain(&[Align::Left, Align::Left]);
    let extra = [PATH_GROUPS, LFTS, GUID2LID];
    for name in names {
        let of_plan = plan.files.iter().find(|file| file.name == *name).map(|file| file.what);
        let what = of_plan.or_else(|| extra.iter().find(|(of, _)| of == name).map(|(_, w)| *w));
        let place = arguments.output.join(name).display().to_string();
        table.row([format!("{would}{place}"), what.unwrap_or_default().to_owned()]);
    }
    format!("{text}{table}")
}
