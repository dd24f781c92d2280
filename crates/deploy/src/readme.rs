//! The README of a folder to deploy: steps in their order, for whoever has to do them at night.

use crate::plan::{POLICY, STAGE};
use crate::{CLIENTS, Plan, Request};
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Guid, Lid};
use clearlane_subnet::Subnet;
use clearlane_subnet::formats::path_groups::port_guid;
use std::path::Path;

/// Pairs of hosts whose SL is shown, to be asked for.
const PAIRS_SHOWN: usize = 4;
const BACKUP: &str = "before-clearlane";

/// The text; `place` is where the QoS policy goes.
pub(crate) fn text(
    fabric: &Fabric,
    subnet: &Subnet,
    request: &Request<'_>,
    plan: &Plan,
    place: &str,
) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("{}\nWritten by clearlane {version}.\n", request.title);
    let mut say = |heading: &str, body: String| {
        text += &format!("\n{heading}\n{}\n{body}", "-".repeat(heading.chars().count()));
    };
    say("What changes", what(request, plan, place));
    if !plan.remarks.is_empty() {
        say("Read this first", plan.remarks.iter().map(|remark| listed(remark)).collect());
    }
    let hosts = hosts(fabric, subnet);
    // Where a site has its policy elsewhere, the copy of the folder is without it.
    let apart = (plan.rules > 0 && !Path::new(place).starts_with(request.folder)).then_some(place);
    say("1. Keep what is there (disturbs nothing)", backup(request.folder, apart));
    let (first, second) = match plan.pair {
        Some(_) => ("Load it for one pair of hosts", "Load it for all"),
        None => ("Try it in ibsim", "Load it"),
    };
    match plan.pair.and_then(|pair| Some((hosts.of(pair[0])?, hosts.of(pair[1])?))) {
        Some(pair) => {
            let body = load(request, plan, place, STAGE) + &try_pair(subnet, pair);
            say(&format!("2. {first} ({})", disturbance(plan.restart)), body);
            let body = format!("  cp {POLICY} {place}\n  {HUP}\n{}", words());
            say(&format!("3. {second} ({})", disturbance(false)), body);
        }
        None => {
            say(&format!("2. {first} (disturbs nothing)"), IN_IBSIM.into());
            let body = load(request, plan, place, POLICY) + &words();
            say(&format!("3. {second} ({})", disturbance(plan.restart)), body);
        }
    }
    say("4. Look (disturbs nothing)", look(subnet, request, &hosts.0));
    say("5. Programs", programs(request, subnet));
    say("6. Go back", back(request.folder, plan, place, apart));
    text
}

const IN_IBSIM: &str = "  There is no way to load tables for one pair alone. On a copy of the \
    fabric in ibsim,\n  `opensm -o -R file -U lfts.txt` shows them as they will be.\n";
const HUP: &str = "pkill -HUP -x opensm";
const RESTART: &str = "systemctl restart opensm";
const COLUMNS: usize = 90;

fn listed(remark: &str) -> String {
    let options = textwrap::Options::new(COLUMNS).initial_indent("* ").subsequent_indent("  ");
    textwrap::fill(remark, options.break_words(false)) + "\n"
}

/// A host port, and the row of its switch.
#[derive(Clone, Copy)]
struct Host<'a> {
    guid: Guid,
    name: &'a str,
    lid: Lid,
    row: usize,
}

/// Every cabled host port with a LID.
struct Hosts<'a>(Vec<Host<'a>>);

impl Hosts<'_> {
    fn of(&self, guid: Guid) -> Option<Host<'_>> {
        self.0.iter().find(|host| host.guid == guid).copied()
    }
}

fn hosts<'a>(fabric: &'a Fabric, subnet: &'a Subnet) -> Hosts<'a> {
    let ports = |node| {
        let name = &fabric.node(node).name;
        fabric.neighbours(node).filter_map(move |(port, _, peer)| {
            let end = Endpoint { node, port };
            let (lid, _) = subnet.lids.base(end)?;
            let row = subnet.tables.row_of(peer.node)?;
            Some(Host { guid: port_guid(fabric, end), name, lid, row })
        })
    };
    Hosts(fabric.ids(NodeKind::ChannelAdapter).flat_map(ports).collect())
}

fn what(request: &Request<'_>, plan: &Plan, place: &str) -> String {
    let mut text = String::new();
    for (key, value) in &plan.changes {
        text += &format!("opensm.conf  {key} {value}\n");
    }
    if plan.rules > 0 {
        text += &format!("{place}  {} port groups and {} match rules\n", plan.groups, plan.rules);
    }
    match request.tables {
        true => text += &format!("{}/lfts.txt  new forwarding tables\n", request.folder),
        false => text += "Forwarding tables and routing engine stay as they are.\n",
    }
    text
}

fn backup(folder: &str, policy: Option<&str>) -> String {
    let policy = policy.map_or(String::new(), |policy| {
        format!("  cp -a {policy} {policy}.{BACKUP}   # if there is one\n")
    });
    format!(
        "  cp -a {folder} {folder}.{BACKUP}\n{policy}  cp -a /var/cache/opensm \
         /var/cache/opensm.{BACKUP}\n  dump_fts > /root/tables.{BACKUP}\n"
    )
}

fn disturbance(restart: bool) -> &'static str {
    match restart {
        true => "OpenSM is started again: queries wait some seconds, traffic goes on",
        false => "a heavy sweep: traffic goes on, queries may wait a second",
    }
}

/// Puts the files in place, the QoS policy being `policy`, and tells OpenSM.
fn load(request: &Request<'_>, plan: &Plan, place: &str, policy: &str) -> String {
    let folder = request.folder;
    let conf = match request.existing.conf {
        Some(_) => format!("  cp opensm.conf {folder}/opensm.conf\n"),
        None => format!("  cat opensm.conf.add >> {folder}/opensm.conf\n"),
    };
    let policy = if plan.rules > 0 { format!("  cp {policy} {place}\n") } else { String::new() };
    let tables = match request.tables {
        true => {
            format!("  cp lfts.txt {folder}/lfts.txt\n  cp guid2lid /var/cache/opensm/guid2lid\n")
        }
        false => String::new(),
    };
    let start = if plan.restart { RESTART } else { HUP };
    format!("{conf}{policy}{tables}  {start}\n")
}

fn words() -> String {
    "In opensm.log there has to be a new SUBNET UP and none of these:\n  \
     ERR AC01 to AC06   the policy cannot be read: OpenSM drops it and says SUBNET UP\n  \
     ERR AC10 to AC14   a level, group or partition of the policy is missing: the same\n  \
     On OpenSM's standard output or in syslog there must not be:\n  \
     Unrecognized token, Parsing error in field   a line of opensm.conf is not heeded\n"
        .into()
}

/// What to do with the pair that has its SL before all others.
fn try_pair(subnet: &Subnet, (from, to): (Host<'_>, Host<'_>)) -> String {
    format!(
        "{}These have to answer with the SL beside them; every other pair is as before:\n{}{}\
         Run a program that asks for it, such as `ib_write_bw -R`, between {} and {}.\n",
        words(),
        query(subnet, from, to),
        query(subnet, to, from),
        from.name.escape_debug(),
        to.name.escape_debug()
    )
}

/// The command that asks for the SL of a path, and what it has to answer.
fn query(subnet: &Subnet, from: Host<'_>, to: Host<'_>) -> String {
    let end = |host: Host<'_>| subnet.path_sl.end(host.row, host.lid);
    let sl = subnet.path_sl.level(end(from), end(to));
    let names = format!("{} to {}", from.name.escape_debug(), to.name.escape_debug());
    format!("  saquery PR --src-to-dst {}:{}   sl {sl}   # {names}\n", from.lid, to.lid)
}

/// Pairs of hosts far apart, with their LIDs and SL.
fn look(subnet: &Subnet, request: &Request<'_>, hosts: &[Host<'_>]) -> String {
    let mut text = String::from("  saquery PR --src-to-dst <LID>:<LID> shows the SL of a path:\n");
    let step = (hosts.len() / (2 * PAIRS_SHOWN)).max(1);
    for pair in 0..PAIRS_SHOWN.min(hosts.len() / 2) {
        text += &query(subnet, hosts[pair * step], hosts[hosts.len() - 1 - pair * step]);
    }
    let lanes = subnet.sl_to_vl.lanes();
    text += &format!(
        "  smpquery sl2vl <LID of a switch> <port>; smpquery vlarb <LID> <port>: {lanes} lanes \
         with equal weights\n"
    );
    if request.tables {
        text += "  dump_fts > new.lft; clearlane check <fabric> --lft new.lft\n";
    }
    text + "  perfquery -x on the host's switch port: PortXmitWait should stop growing\n"
}

fn programs(request: &Request<'_>, subnet: &Subnet) -> String {
    let levels: Vec<String> =
        subnet.path_sl.levels().iter().map(|level| level.to_string()).collect();
    let mut text = format!(
        "Connections keep the SL they were made with: programs have to connect again. SLs in use: \
         {}.\n",
        levels.join(", ")
    );
    let shown = CLIENTS.iter().filter(|client| {
        request.clients.is_empty() || request.clients.iter().any(|one| one.name == client.name)
    });
    let is_one_class = request.by_class && levels.len() <= 2;
    let own = levels.last().filter(|_| is_one_class);
    for client in shown {
        let how = if client.asks { "asks" } else { "does not ask" };
        let setting = match own {
            Some(level) if !client.asks => client.setting.replace("<SL>", level),
            _ => client.setting.to_owned(),
        };
        text += &format!("  {:<14} {how:<13} {setting}\n", client.name);
    }
    if let Some(level) = own {
        text += &format!(
            "A process of a program that does not ask is given SL {level} if it talks to hot hosts \
             alone, else SL 0.\n"
        );
    }
    text
}

fn back(folder: &str, plan: &Plan, place: &str, apart: Option<&str>) -> String {
    let start = if plan.restart_back { RESTART } else { HUP };
    let cache = match plan.restart {
        true => format!("  cp -a /var/cache/opensm.{BACKUP}/. /var/cache/opensm/\n"),
        false => String::new(),
    };
    // A policy that was not there before is in no copy.
    let policy = if plan.rules > 0 { format!("  rm -f {place}\n") } else { String::new() };
    let kept = apart.map_or(String::new(), |place| {
        format!("  cp -a {place}.{BACKUP} {place}   # if there was one\n")
    });
    format!(
        "{policy}  cp -a {folder}.{BACKUP}/. {folder}/\n{kept}{cache}  {start}\n\
         Programs have to connect again. SL2VL and VL arbitration of ports keep their last values \
         while\nqos is FALSE; they do no harm on SL 0.\n"
    )
}
