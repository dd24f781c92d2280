//! The README of a folder to deploy: steps in their order, for whoever has to do them at night.

use crate::{CLIENTS, Plan, Request};
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_subnet::Subnet;

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
        let lines = plan.remarks.iter().map(|remark| format!("* {remark}\n"));
        say("Read this first", lines.collect());
    }
    say("1. Keep what is there (disturbs nothing)", backup(request.folder));
    say("2. Try it on one pair (disturbs nothing but new connections of that pair)", stage(plan));
    say(&format!("3. Load it ({})", disturbance(plan)), load(request, plan, place));
    say("4. Look (disturbs nothing)", look(fabric, subnet, request));
    say("5. Programs", programs(request, subnet));
    say("6. Go back", back(request.folder, plan));
    text
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

fn backup(folder: &str) -> String {
    format!(
        "  cp -a {folder} {folder}.{BACKUP}\n  cp -a /var/cache/opensm \
         /var/cache/opensm.{BACKUP}\n  dump_fts > /root/tables.{BACKUP}\n"
    )
}

fn stage(plan: &Plan) -> String {
    if plan.rules == 0 {
        return "  opensm -o -R file -U lfts.txt on a copy of the fabric in ibsim shows the tables \
                as they\n  will be; there is no way to load them for one pair alone.\n"
            .into();
    }
    "  Shorten qos-policy.conf: leave two port groups, one port GUID in each, and the rules\n  \
     between these two groups. Load it as in step 3. Ask for the SL of that pair as in step 4.\n  \
     Run a program between the two hosts that asks for it, such as `ib_write_bw -R`. Then load\n  \
     the whole file.\n"
        .into()
}

fn disturbance(plan: &Plan) -> &'static str {
    match (plan.restart, plan.rules > 0) {
        (true, _) => "OpenSM is started again: queries wait some seconds, traffic goes on",
        (false, _) => "a heavy sweep: traffic goes on, queries may wait a second",
    }
}

fn load(request: &Request<'_>, plan: &Plan, place: &str) -> String {
    let folder = request.folder;
    let conf = match request.existing.conf {
        Some(_) => format!("  cp opensm.conf {folder}/opensm.conf\n"),
        None => format!("  cat opensm.conf.add >> {folder}/opensm.conf\n"),
    };
    let policy = if plan.rules > 0 { format!("  cp qos-policy.conf {place}\n") } else { "".into() };
    let tables = match request.tables {
        true => {
            format!("  cp lfts.txt {folder}/lfts.txt\n  cp guid2lid /var/cache/opensm/guid2lid\n")
        }
        false => String::new(),
    };
    let start = match plan.restart {
        true => "  systemctl restart opensm\n",
        false => "  pkill -HUP -x opensm\n",
    };
    format!(
        "{conf}{policy}{tables}{start}\
         In opensm.log there has to be a new SUBNET UP and none of these:\n  \
         ERR AC01 to AC06   the policy cannot be read: OpenSM drops it and says SUBNET UP\n  \
         ERR AC10 to AC14   a level, group or partition of the policy is missing: the same\n  \
         cannot parse / unrecognized option   a line of opensm.conf is not heeded\n"
    )
}

/// Pairs of hosts far apart, with their LIDs and SL.
fn look(fabric: &Fabric, subnet: &Subnet, request: &Request<'_>) -> String {
    let mut hosts = Vec::new();
    for node in fabric.ids(NodeKind::ChannelAdapter) {
        let first = fabric.neighbours(node).next();
        let found = first.and_then(|(port, _, peer)| {
            let (lid, _) = subnet.lids.base(Endpoint { node, port })?;
            Some((node, lid, subnet.tables.row_of(peer.node)?))
        });
        hosts.extend(found);
    }
    let mut text = String::from("  saquery PR --src-to-dst <LID>:<LID> shows the SL of a path:\n");
    let step = (hosts.len() / (2 * PAIRS_SHOWN)).max(1);
    for pair in 0..PAIRS_SHOWN.min(hosts.len() / 2) {
        let (from, to) = (hosts[pair * step], hosts[hosts.len() - 1 - pair * step]);
        let end = |(_, lid, row)| subnet.path_sl.end(row, lid);
        let sl = subnet.path_sl.level(end(from), end(to));
        let name = |node| fabric.node(node).name.escape_debug().to_string();
        text += &format!(
            "  saquery PR --src-to-dst {}:{}   sl {sl}   # {} to {}\n",
            from.1,
            to.1,
            name(from.0),
            name(to.0)
        );
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
    for client in shown {
        let how = if client.asks { "asks" } else { "does not ask" };
        text += &format!("  {:<14} {how:<13} {}\n", client.name, client.setting);
    }
    text
}

fn back(folder: &str, plan: &Plan) -> String {
    let start = if plan.restart { "systemctl restart opensm" } else { "pkill -HUP -x opensm" };
    let cache = match plan.restart {
        true => format!("  cp -a /var/cache/opensm.{BACKUP}/. /var/cache/opensm/\n"),
        false => String::new(),
    };
    format!(
        "  cp -a {folder}.{BACKUP}/. {folder}/\n{cache}  {start}\n\
         Programs have to connect again. SL2VL and VL arbitration of ports keep their last values \
         while\nqos is FALSE; they do no harm on SL 0.\n"
    )
}
