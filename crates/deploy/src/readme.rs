//! The README of a folder to deploy: steps in their order, for whoever has to do them at night.

use crate::plan::{POLICY, STAGE};
use crate::{CLIENTS, Plan, Request};
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Guid, Lid, wrap};
use clearlane_subnet::Subnet;
use clearlane_subnet::formats::path_groups::port_guid;

/// Pairs of hosts whose SL is shown, to be asked for.
const PAIRS_SHOWN: usize = 4;
/// Where what was there is kept. An archive of files alone touches no folder when it is unpacked.
const KEPT: &str = "/root/before-clearlane";
const GUID2LID: &str = "/var/cache/opensm/guid2lid";
const HUP: &str = "pkill -HUP -x opensm";
const RESTART: &str = "systemctl restart opensm";
const STOP: &str = "systemctl stop opensm";
const START: &str = "systemctl start opensm";
const COLUMNS: usize = 90;
const WHERE: &str = "Do this as root, in this folder, on the host of the master subnet manager; \
    `sminfo` says which that is. Put the same files on every standby: one that takes over with its \
    old files takes all this back.";
const IN_IBSIM: &str = "  There is no way to load tables for one pair alone. On a copy of the \
    fabric in ibsim,\n  `opensm -o -R file -U lfts.txt` shows them as they will be.\n";

/// Where things are on the site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The QoS policy.
    pub(crate) policy: String,
    /// OpenSM's log, if the site says where.
    pub(crate) log: Option<String>,
    /// How many lanes paths are on.
    pub(crate) lanes: u8,
}

struct Readme<'a> {
    subnet: &'a Subnet,
    request: &'a Request<'a>,
    plan: &'a Plan,
    place: &'a Place,
    hosts: Vec<Host<'a>>,
}

/// The text.
pub(crate) fn text(
    fabric: &Fabric,
    subnet: &Subnet,
    request: &Request<'_>,
    plan: &Plan,
    place: &Place,
) -> String {
    let readme = Readme { subnet, request, plan, place, hosts: hosts(fabric, subnet) };
    let version = env!("CARGO_PKG_VERSION");
    let (title, command) = (&request.title, &request.command);
    let mut text = format!("{title}\nWritten by clearlane {version}: {command}\n\n");
    text += &format!("{}\n", wrap(WHERE, COLUMNS).join("\n"));
    for (heading, body) in readme.sections() {
        text += &format!("\n{heading}\n{}\n{body}", "-".repeat(heading.chars().count()));
    }
    text
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
fn hosts<'a>(fabric: &'a Fabric, subnet: &'a Subnet) -> Vec<Host<'a>> {
    let ports = |node| {
        let name = &fabric.node(node).name;
        fabric.neighbours(node).filter_map(move |(port, _, peer)| {
            let end = Endpoint { node, port };
            let (lid, _) = subnet.lids.base(end)?;
            let row = subnet.tables.row_of(peer.node)?;
            Some(Host { guid: port_guid(fabric, end), name, lid, row })
        })
    };
    fabric.ids(NodeKind::ChannelAdapter).flat_map(ports).collect()
}

fn listed(remark: &str) -> String {
    format!("* {}\n", wrap(remark, COLUMNS - 2).join("\n  "))
}

/// A path of the site as a word of a shell.
fn shell(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match path.chars().all(plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

fn disturbance(restart: bool) -> &'static str {
    match restart {
        true => "OpenSM is started again: queries wait some seconds, traffic goes on",
        false => "a heavy sweep: traffic goes on, queries may wait a second",
    }
}

impl Readme<'_> {
    fn sections(&self) -> Vec<(String, String)> {
        let (plan, restart) = (self.plan, disturbance(self.plan.restart));
        let mut all = vec![("What changes".into(), self.changes())];
        if !plan.remarks.is_empty() {
            let remarks = plan.remarks.iter().map(|remark| listed(remark)).collect();
            all.push(("Read this first".into(), remarks));
        }
        all.push(("1. Keep what is there (disturbs nothing)".into(), self.keep()));
        let host = |guid| self.hosts.iter().find(|host| host.guid == guid).copied();
        match plan.pair.and_then(|pair| Some((host(pair[0])?, host(pair[1])?))) {
            Some(pair) => {
                let first = format!("2. Load it for one pair of hosts ({restart})");
                all.push((first, self.load(STAGE) + &self.log() + &self.try_pair(pair)));
                let then = format!("3. Load it for all ({})", disturbance(false));
                let copy = format!("  cp {POLICY} {}\n  {HUP}\n", shell(&self.place.policy));
                all.push((then, copy + &self.log()));
            }
            None => {
                all.push(("2. Try it in ibsim (disturbs nothing)".into(), IN_IBSIM.into()));
                all.push((format!("3. Load it ({restart})"), self.load(POLICY) + &self.log()));
            }
        }
        all.push(("4. Look (disturbs nothing)".into(), self.look()));
        if self.has_levels() {
            all.push(("5. Programs".into(), self.programs()));
        }
        let heading = format!("6. Go back ({})", disturbance(plan.restart_back));
        all.push((heading, self.back()));
        all
    }

    fn has_levels(&self) -> bool {
        self.plan.rules > 0
    }

    /// The site's files that are replaced or made.
    fn files(&self) -> Vec<String> {
        let folder = self.request.folder;
        let mut files = vec![format!("{folder}/opensm.conf")];
        if self.has_levels() {
            files.push(self.place.policy.clone());
        }
        if self.request.tables {
            files.extend([format!("{folder}/lfts.txt"), GUID2LID.to_owned()]);
        }
        files
    }

    fn changes(&self) -> String {
        let (plan, folder) = (self.plan, self.request.folder);
        let mut text: String = self.subnet.notes.iter().map(|note| listed(note)).collect();
        for (key, value) in &plan.changes {
            text += &format!("opensm.conf  {key} {value}\n");
        }
        if self.has_levels() {
            let (place, groups, rules) = (&self.place.policy, plan.groups, plan.rules);
            text += &format!("{place}  {groups} port groups and {rules} match rules\n");
        }
        match self.request.tables {
            true => text += &format!("{folder}/lfts.txt  new forwarding tables\n"),
            false => text += "Forwarding tables and routing engine stay as they are.\n",
        }
        if self.has_levels() {
            text += "path-groups.txt has the same service levels for clearlane's own routing \
                     engine; OpenSM does\nnot read it.\n";
        }
        text
    }

    fn keep(&self) -> String {
        let files = self.files();
        let files: Vec<String> =
            files.iter().map(|file| shell(file.trim_start_matches('/'))).collect();
        let files = files.join(" \\\n    ");
        let warning = "STOP: an earlier deployment has its way back there";
        format!(
            "  test ! -e {KEPT}.tar || echo '{warning}'\n  tar -C / --ignore-failed-read -cf \
             {KEPT}.tar \\\n    {files}\n  dump_fts > {KEPT}.lft\ntar warns of a file that the \
             site does not have; that is no fault.\n",
        )
    }

    /// Puts the files in place, the QoS policy being `policy`, and tells OpenSM.
    fn load(&self, policy: &str) -> String {
        let folder = self.request.folder;
        let mut text = String::new();
        // OpenSM writes its LIDs itself while it runs.
        if self.request.tables {
            text += &format!("  {STOP}\n");
        }
        text += &match self.request.existing.conf {
            Some(_) => format!("  cp opensm.conf {folder}/opensm.conf\n"),
            None => format!("  cat opensm.conf.add >> {folder}/opensm.conf\n"),
        };
        if self.has_levels() {
            text += &format!("  cp {policy} {}\n", shell(&self.place.policy));
        }
        if self.request.tables {
            text += &format!("  cp lfts.txt {folder}/lfts.txt\n  cp guid2lid {GUID2LID}\n");
        }
        text + &format!("  {}\n", self.start(self.plan.restart))
    }

    fn start(&self, restart: bool) -> &'static str {
        match (self.request.tables, restart) {
            (true, _) => START,
            (false, true) => RESTART,
            (false, false) => HUP,
        }
    }

    /// What to look for in OpenSM's log, which it keeps to itself until it is told.
    fn log(&self) -> String {
        let log = self.place.log.as_deref().map_or("/var/log/opensm*.log".into(), shell);
        let words = "SUBNET UP|tables configured|ERR (AC|6302)";
        let mut text = format!(
            "  sleep 10; pkill -USR1 -x opensm; sleep 1\n  grep -hE '{words}' {log} | tail\n\
             The last lines have to say SUBNET UP, after this change"
        );
        match self.request.tables {
            true => text += ", and `file tables configured on all switches`. None says:\n",
            false => text += ". None says:\n",
        }
        if self.request.tables {
            text += "  ERR 6302           lfts.txt cannot be read: OpenSM takes minhop tables\n";
        }
        if self.has_levels() {
            text += "  ERR AC01 to AC06   the policy cannot be read: OpenSM drops it and says \
                     SUBNET UP\n  ERR AC10 to AC14   a level, group or partition of the policy is \
                     missing: the same\n";
        }
        text + "In syslog or on OpenSM's standard output there is neither `Unrecognized token` nor \
                `Parsing error\nin field`: a line of opensm.conf is not heeded then.\n"
    }

    /// What to do with the pair that has its SL before all others.
    fn try_pair(&self, (from, to): (Host<'_>, Host<'_>)) -> String {
        format!(
            "These have to answer with the SL beside them. Pairs that no rule names are on \
             SL 0:\n{}{}Run a program that asks for it, such as `ib_write_bw -R`, between {} and \
             {}.\n",
            self.query(from, to),
            self.query(to, from),
            from.name.escape_debug(),
            to.name.escape_debug()
        )
    }

    /// The command that asks for the SL of a path, and what it has to answer.
    fn query(&self, from: Host<'_>, to: Host<'_>) -> String {
        let end = |host: Host<'_>| self.subnet.path_sl.end(host.row, host.lid);
        let sl = self.subnet.path_sl.level(end(from), end(to));
        let names = format!("{} to {}", from.name.escape_debug(), to.name.escape_debug());
        format!("  saquery PR --src-to-dst {}:{}   sl {sl}   # {names}\n", from.lid, to.lid)
    }

    /// Pairs of hosts far apart, with their LIDs and SL.
    fn look(&self) -> String {
        let (hosts, lanes) = (&self.hosts, self.place.lanes);
        let mut text =
            String::from("  saquery PR --src-to-dst <LID>:<LID> shows the SL of a path:\n");
        let step = (hosts.len() / (2 * PAIRS_SHOWN)).max(1);
        for pair in 0..PAIRS_SHOWN.min(hosts.len() / 2) {
            text += &self.query(hosts[pair * step], hosts[hosts.len() - 1 - pair * step]);
        }
        if lanes > 1 {
            text += &format!(
                "  smpquery sl2vl <LID of a switch> <port>; smpquery vlarb <LID> <port>: {lanes} \
                 lanes with equal weights\n"
            );
        }
        if self.request.tables {
            text += "  dump_fts > new.lft; clearlane check <fabric> --lft new.lft\n";
        }
        text + "  perfquery -x on the host's switch port: PortXmitWait should stop growing\n"
    }

    fn programs(&self) -> String {
        let levels = self.subnet.path_sl.levels();
        let names: Vec<String> = levels.iter().map(|level| level.to_string()).collect();
        let mut text = format!(
            "Connections keep the SL they were made with: programs have to connect again. SLs in \
             use: {}.\n",
            names.join(", ")
        );
        let clients = &self.request.clients;
        let shown = CLIENTS.iter().filter(|client| {
            clients.is_empty() || clients.iter().any(|one| one.name == client.name)
        });
        let is_one_class = self.request.by_class && levels.len() <= 2;
        let own = names.last().filter(|_| is_one_class);
        for client in shown {
            let how = if client.asks { "asks" } else { "does not ask" };
            let setting = match own {
                Some(level) if !client.asks => client.setting.replace(
                    "<SL>, one for all that a process sends",
                    &format!("0, but {level} on hot hosts and for what talks to hot hosts alone"),
                ),
                _ => client.setting.to_owned(),
            };
            text += &format!("  {:<14} {how:<13} {setting}\n", client.name);
        }
        text
    }

    fn back(&self) -> String {
        let stop = if self.request.tables { format!("  {STOP}\n") } else { String::new() };
        let again = match self.has_levels() {
            true => {
                "Programs have to connect again. SL2VL and VL arbitration of ports keep their last \
                 values while\nqos is FALSE; they do no harm on SL 0.\n"
            }
            false => "",
        };
        let (files, start) = (self.files(), self.start(self.plan.restart_back));
        let files = files.iter().map(|file| shell(file)).collect::<Vec<_>>().join(" ");
        format!(
            "{stop}  test -s {KEPT}.tar && rm -f {files} && tar -C / -xpf {KEPT}.tar\n  {start}\n  \
             sleep 10; dump_fts | diff {KEPT}.lft -\n  mv {KEPT}.tar {KEPT}.$(date \
             +%F-%H%M).tar\ndiff prints what is not as before: of tables by the same engine \
             nothing.\n{again}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(shell("/etc/opensm/qos-policy.conf"), "/etc/opensm/qos-policy.conf");
        assert_eq!(shell("/etc/my opensm; rm"), "'/etc/my opensm; rm'");
        assert_eq!(shell("it's"), "'it'\\''s'");
    }
}
