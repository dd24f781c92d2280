//! Which tables are taken: those of the files while they are good for the fabric, else the last
//! good ones while these are, else those that a safe engine computes at once.

use crate::discovered::Discovered;
use crate::folder::{self, Files};
use crate::judged::{self, Served};
use crate::options::{LAST_RESORT, Mode, Options};
use clearlane_fabric::{Endpoint, NodeKind};
use clearlane_ib::{Guid, Lid, PortNumber, ServiceLevel};
use clearlane_subnet::engines::{self, RouteOptions, TableFile};
use clearlane_subnet::lanes::{self, LaneOptions};
use clearlane_subnet::{PathSl, Subnet};

/// A line for OpenSM's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// True if something is not as it should be, and people have to act.
    pub is_fault: bool,
    /// The line, without an end of line.
    pub text: String,
}

/// Who filled the tables that were taken last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The files as they are now.
    Files,
    /// Files as they were when they were last good.
    LastGood,
    /// Up*/down* with the lane policy vftree.
    VfTree,
    /// A safe engine, by its name.
    Safe(&'static str),
}

/// Nothing that could be programmed is good for the fabric.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no tables are good for this fabric: {0}; OpenSM keeps what the switches have")]
pub struct NothingGood(String);

/// The routing engine, with what it has routed last.
#[derive(Clone, Debug)]
pub struct Engine {
    options: Options,
    /// The last files that were good.
    good: Option<Files>,
    routed: Option<Routed>,
}

/// Tables as they are to be programmed.
#[derive(Clone, Debug)]
struct Routed {
    found: Discovered,
    subnet: Subnet,
    source: Source,
    served: Served,
    /// By LID: on what its SLs depend, and which of its port's LIDs it is.
    ends: Vec<Option<(usize, u16)>>,
}

/// Most remarks of a reader that are passed on to the log.
const REMARKS_MAX: usize = 8;

impl Engine {
    /// An engine that has routed nothing yet.
    pub fn new(options: Options) -> Self {
        Engine { options, good: None, routed: None }
    }

    /// What it is to do.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Chooses tables for a fabric, and says what it has chosen and why. `files` are those of the
    /// folder as they are now, or what is wrong with them; the mode vftree takes no notice.
    /// `has_lanes` is false where OpenSM programs no SL2VL, so that all paths have to do with one
    /// lane. Fails if nothing is good; what was routed before is then kept.
    pub fn route(
        &mut self,
        found: Discovered,
        has_lanes: bool,
        files: Result<Files, String>,
    ) -> Result<Vec<Told>, NothingGood> {
        let mut choice = Choice { found: &found, has_lanes, told: Vec::new(), refused: Vec::new() };
        if !has_lanes {
            choice.fault(
                "qos is FALSE, so OpenSM programs no SL2VL and all paths are taken on one \
                          lane; set qos TRUE in opensm.conf",
            );
        }
        let now = files.as_ref().ok().cloned();
        let taken = match self.options.mode {
            Mode::Files => choice.files(&self.options, files, &mut self.good),
            Mode::VfTree => choice.try_it(Source::VfTree, vftree(&found, &self.options)),
        };
        let taken = taken.or_else(|| {
            let files = self.good.as_ref().or(now.as_ref());
            choice.safe(&self.options, files.filter(|_| self.options.mode == Mode::Files))
        });
        let Choice { told, refused, .. } = choice;
        let Some((source, subnet, served)) = taken else {
            return Err(NothingGood(refused.join("; ")));
        };
        let ends = ends(&found, &subnet);
        self.routed = Some(Routed { found, subnet, source, served, ends });
        Ok(told)
    }

    /// Who filled the tables; nothing before the first fabric is routed.
    pub fn source(&self) -> Option<Source> {
        self.routed.as_ref().map(|routed| routed.source)
    }

    /// What is programmed, on the fabric it is for; lanes are bounded to what links have.
    pub fn routed(&self) -> Option<(&Discovered, &Subnet)> {
        self.routed.as_ref().map(|routed| (&routed.found, &routed.subnet))
    }

    /// The forwarding table of a switch by its node GUID: output port by LID, 255 where there is
    /// none.
    pub fn table(&self, switch: Guid) -> Option<&[u8]> {
        let Routed { found, subnet, .. } = self.routed.as_ref()?;
        let row = subnet.tables.row_of(found.fabric.by_guid(switch)?)?;
        Some(subnet.tables.row(row))
    }

    /// The SL of a path. `hint` is what OpenSM would take: it stays where any SL is safe and the
    /// tables ask for none, and for LIDs that nobody has. Paths to and from a switch have the SL of
    /// those of a host at it.
    pub fn path_sl(&self, hint: u8, slid: u16, dlid: u16) -> u8 {
        let hint = ServiceLevel::new(hint).unwrap_or_default();
        self.level(hint, slid, dlid).unwrap_or(hint).value()
    }

    fn level(&self, hint: ServiceLevel, slid: u16, dlid: u16) -> Option<ServiceLevel> {
        let routed = self.routed.as_ref()?;
        if let PathSl::Uniform(level) = routed.subnet.path_sl {
            return Some(if routed.served.any_level { hint } else { level });
        }
        let end = |lid: u16| routed.ends.get(usize::from(lid)).copied().flatten();
        let ((source, _), (destination, offset)) = (end(slid)?, end(dlid)?);
        Some(routed.subnet.path_sl.level_at(source, destination, offset))
    }

    /// VL by SL at a port. Of a switch, from input to output, 0 being its own port; of an adapter
    /// what it sends on, whatever the ports. Nothing for a node or port that is not there.
    pub fn lanes(&self, node: Guid, input: u8, output: u8) -> Option<[u8; 16]> {
        let Routed { found, subnet, .. } = self.routed.as_ref()?;
        let id = found.fabric.by_guid(node)?;
        let node = found.fabric.node(id);
        if !node.is_switch() {
            return Some(subnet.sl_to_vl.adapter.map(|lane| lane.value()));
        }
        let known = |port: u8| PortNumber::new(port).filter(|_| port <= node.port_count());
        let (input, output) = (known(input)?, known(output)?);
        let table = subnet.sl_to_vl.table(id);
        Some(std::array::from_fn(|sl| {
            let level = ServiceLevel::new(sl as u8).unwrap_or_default();
            table.lane(input, output, level).value()
        }))
    }
}

type Taken = (Source, Subnet, Served);

/// A choice being made.
struct Choice<'a> {
    found: &'a Discovered,
    has_lanes: bool,
    told: Vec<Told>,
    /// What was not good, and why.
    refused: Vec<String>,
}

impl Choice<'_> {
    fn say(&mut self, text: String) {
        self.told.push(Told { is_fault: false, text });
    }

    fn fault(&mut self, text: &str) {
        self.told.push(Told { is_fault: true, text: text.into() });
    }

    fn refuse(&mut self, source: Source, why: &str) {
        let text = format!("{} not taken: {why}", name(source));
        self.fault(&text);
        self.refused.push(text);
    }

    /// The files if they are good, else the last good ones if they still are.
    fn files(
        &mut self,
        options: &Options,
        files: Result<Files, String>,
        good: &mut Option<Files>,
    ) -> Option<Taken> {
        match files {
            Err(why) => self.refuse(Source::Files, &why),
            Ok(files) => {
                let subnet = of_files(self.found, options, &files);
                if let Some(taken) = self.try_it(Source::Files, subnet) {
                    *good = Some(files);
                    return Some(taken);
                }
                // The last good ones are these: they have just been refused.
                if good.as_ref() == Some(&files) {
                    return None;
                }
            }
        }
        let subnet = of_files(self.found, options, good.as_ref()?);
        self.try_it(Source::LastGood, subnet)
    }

    /// What the safe engine makes of it, else the last resort. Where its tables ask for no SL,
    /// paths keep those of the files: a connection keeps the SL that it began with, and would have
    /// a wrong one when the files are good again.
    fn safe(&mut self, options: &Options, files: Option<&Files>) -> Option<Taken> {
        let kept = files.and_then(|files| of_files(self.found, options, files).ok());
        let kept = kept.map(|subnet| subnet.path_sl).filter(|_| self.has_lanes);
        let mut names = vec![options.safe, LAST_RESORT];
        names.dedup();
        names.into_iter().find_map(|name| {
            let routing = RouteOptions {
                lids: Some(self.found.lids.clone()),
                lanes: options.lanes,
                ..RouteOptions::default()
            };
            let subnet = engines::route(name, &self.found.fabric, &routing);
            let subnet = subnet.map_err(|error| error.to_string());
            let free = subnet.as_ref().ok().filter(|of| matches!(of.path_sl, PathSl::Uniform(_)));
            if let (Some(free), Some(kept @ PathSl::ByGroup(_))) = (free, &kept) {
                let mut with = Subnet { path_sl: kept.clone(), ..free.clone() };
                with.notes.push(
                    "any SL is safe with these tables; paths keep those of the files, \
                                 so that connections outlast the return to them"
                        .into(),
                );
                if let Some(taken) = self.try_it(Source::Safe(name), Ok(with)) {
                    return Some(taken);
                }
            }
            self.try_it(Source::Safe(name), subnet)
        })
    }

    /// Takes tables if they are good.
    fn try_it(&mut self, source: Source, subnet: Result<Subnet, String>) -> Option<Taken> {
        let judged = subnet.and_then(|mut subnet| {
            if !self.has_lanes {
                subnet = subnet.on_one_lane(&self.found.fabric);
            }
            judged::bound(self.found, &mut subnet);
            let served = judged::judge(self.found, &subnet)?;
            Ok((subnet, served))
        });
        match judged {
            Err(why) => {
                self.refuse(source, &why);
                None
            }
            Ok((mut subnet, served)) => {
                self.say(headline(self.found, &subnet, source, served));
                let remarks = subnet.notes.iter().chain(&subnet.remarks).take(REMARKS_MAX);
                let remarks: Vec<String> = remarks.cloned().collect();
                remarks.into_iter().for_each(|remark| self.say(remark));
                let circled = judged::prune(self.found, &mut subnet);
                if circled > 0 {
                    self.say(format!(
                        "{circled} entries are left out that no host uses and that would lead \
                         packets in circles"
                    ));
                }
                Some((source, subnet, served))
            }
        }
    }
}

/// What is said of tables that are taken.
fn headline(found: &Discovered, subnet: &Subnet, source: Source, served: Served) -> String {
    let fabric = &found.fabric;
    let hosts = fabric.ids(NodeKind::ChannelAdapter).count();
    let switches = fabric.ids(NodeKind::Switch).count();
    let (paths, lanes) = (served.paths, subnet.lanes_in_use(&found.fabric));
    let lanes = if lanes == 1 { "1 lane".into() } else { format!("{lanes} lanes") };
    format!(
        "{} taken: {hosts} hosts, {switches} switches, all {paths} paths arrive, {lanes}, no \
         credit loop",
        name(source)
    )
}

fn name(source: Source) -> String {
    match source {
        Source::Files => "tables of the files".into(),
        Source::LastGood => "last good tables".into(),
        Source::VfTree => "vftree over up-down".into(),
        Source::Safe(engine) => format!("safe engine {engine}"),
    }
}

fn of_files(found: &Discovered, options: &Options, files: &Files) -> Result<Subnet, String> {
    let file = |name: &str, text: &String| TableFile { name: name.into(), text: text.clone() };
    let optional = [(folder::LANES, &files.lanes), (folder::GROUPS, &files.groups)];
    let optional = optional.iter().filter_map(|(name, text)| Some(file(name, text.as_ref()?)));
    let routing = RouteOptions {
        lids: Some(found.lids.clone()),
        lanes: options.lanes,
        files: [file(folder::TABLES, &files.tables)].into_iter().chain(optional).collect(),
        ..RouteOptions::default()
    };
    engines::route("file", &found.fabric, &routing).map_err(|error| error.to_string())
}

fn vftree(found: &Discovered, options: &Options) -> Result<Subnet, String> {
    let routing = RouteOptions { lids: Some(found.lids.clone()), ..RouteOptions::default() };
    let subnet = engines::route("up-down", &found.fabric, &routing);
    let mut subnet = subnet.map_err(|error| error.to_string())?;
    let of_links = found.lanes.iter().filter(|(_, lanes)| *lanes < options.lanes).copied();
    let lanes = LaneOptions { of_links: of_links.collect(), ..LaneOptions::new(options.lanes) };
    let policy = lanes::policy("vftree").map_err(|error| error.to_string())?;
    let assigned = policy.assign(&found.fabric, &mut subnet, &lanes);
    assigned.map_err(|error| error.to_string())?;
    Ok(subnet)
}

/// By LID, what its SLs depend on. A switch is as the first host at it; one without hosts is
/// nothing that SLs of groups know.
fn ends(found: &Discovered, subnet: &Subnet) -> Vec<Option<(usize, u16)>> {
    let mut ends = vec![None; subnet.lids.table_len()];
    for (lid, owner) in subnet.lids.iter() {
        let end = match owner.end.port.value() {
            0 => of_switch(found, subnet, owner.end),
            _ => of_host(found, subnet, owner.end, lid),
        };
        if let Some(entry) = ends.get_mut(usize::from(lid.value())) {
            *entry = end.map(|end| (end, owner.offset));
        }
    }
    ends
}

fn of_host(found: &Discovered, subnet: &Subnet, end: Endpoint, lid: Lid) -> Option<usize> {
    let row = subnet.tables.row_of(found.fabric.peer(end)?.node)?;
    Some(subnet.path_sl.end(row, lid))
}

fn of_switch(found: &Discovered, subnet: &Subnet, end: Endpoint) -> Option<usize> {
    if !matches!(subnet.path_sl, PathSl::ByGroup(_)) {
        return subnet.tables.row_of(end.node);
    }
    found.fabric.neighbours(end.node).find_map(|(_, _, peer)| {
        let adapter = !found.fabric.node(peer.node).is_switch();
        let (lid, _) = found.lids.base(peer).filter(|_| adapter)?;
        of_host(found, subnet, peer, lid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovered::Lists;
    use clearlane_fabric::topologies;
    use clearlane_subnet::formats::{lfts, path_groups, sl2vl};

    /// A ring of five by dimension order: its files, and what OpenSM would list of it.
    fn ring() -> (Files, Lists) {
        let fabric = topologies::build("torus:5").unwrap();
        let options = RouteOptions { lanes: 2, ..RouteOptions::default() };
        let subnet = engines::route("dor", &fabric, &options).unwrap();
        type Writer = fn(&clearlane_fabric::Fabric, &Subnet, &mut dyn std::io::Write) -> Written;
        type Written = std::io::Result<()>;
        let text = |write: Writer| {
            let mut bytes = Vec::new();
            write(&fabric, &subnet, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let files = Files {
            tables: text(lfts::write),
            lanes: Some(text(sl2vl::write)),
            groups: Some(text(path_groups::write)),
        };
        (files, Lists::of(&fabric, &subnet.lids, 8))
    }

    /// A cable that packets go round by.
    fn between_switches(lists: &Lists) -> usize {
        let is_switch =
            |guid| lists.nodes.iter().any(|node| node.guid == guid && node.is_switch == 1);
        lists.cables.iter().position(|cable| is_switch(cable.a) && is_switch(cable.b)).unwrap()
    }

    fn told(told: &[Told], part: &str) -> bool {
        told.iter().any(|told| told.text.contains(part))
    }

    #[test]
    fn files_then_the_last_good_ones_then_a_safe_engine_then_files_again() {
        let (files, lists) = ring();
        let mut engine = Engine::new(Options::default());
        assert_eq!((engine.source(), engine.path_sl(3, 1, 2)), (None, 3));
        let mut route = |lists: &Lists, files: Result<Files, String>| {
            let said = engine.route(lists.discovered().unwrap(), true, files).unwrap();
            (engine.source().unwrap(), said)
        };
        let (source, said) = route(&lists, Ok(files.clone()));
        assert!(source == Source::Files && told(&said, "all 20 paths arrive"), "{said:?}");
        let cut = Files { tables: files.tables[..900].into(), ..files.clone() };
        let (source, said) = route(&lists, Ok(cut.clone()));
        assert!(source == Source::LastGood && said[0].is_fault, "{said:?}");
        assert!(told(&said, "tables of the files not taken: "), "{said:?}");
        let (source, said) = route(&lists, Err("no folder".into()));
        assert!(source == Source::LastGood && told(&said, "not taken: no folder"), "{said:?}");
        let mut damaged = lists.clone();
        damaged.cables.remove(between_switches(&lists));
        for files in [&files, &cut] {
            let (source, said) = route(&damaged, Ok(files.clone()));
            assert_eq!(source, Source::Safe("up-down"), "{said:?}");
            assert!(told(&said, "safe engine up-down taken"), "{said:?}");
            assert!(told(&said, "paths keep those of the files"), "{said:?}");
        }
        let (source, _) = route(&lists, Ok(cut));
        assert_eq!(source, Source::LastGood);
        assert_eq!(route(&lists, Ok(files)).0, Source::Files);
    }

    #[test]
    fn tables_that_need_lanes_are_not_taken_where_there_are_none() {
        let (files, mut lists) = ring();
        let mut engine = Engine::new(Options::default());
        let said = engine.route(lists.discovered().unwrap(), false, Ok(files.clone())).unwrap();
        assert_eq!(engine.source(), Some(Source::Safe("up-down")));
        assert!(told(&said, "set qos TRUE") && told(&said, "a credit loop of"), "{said:?}");
        // Any SL is safe with them, so OpenSM's own stays.
        assert_eq!(engine.path_sl(5, 1, 2), 5);
        lists.cables.iter_mut().for_each(|cable| cable.lanes = 1);
        engine.route(lists.discovered().unwrap(), true, Ok(files)).unwrap();
        assert_eq!(engine.source(), Some(Source::Safe("up-down")));
    }

    #[test]
    fn switches_have_the_sl_of_their_hosts_and_strangers_that_of_opensm() {
        let (files, lists) = ring();
        let mut engine = Engine::new(Options::default());
        engine.route(lists.discovered().unwrap(), true, Ok(files)).unwrap();
        let lid = |node: &crate::discovered::DiscoveredNode| {
            lists.ports.iter().find(|port| port.node == node.guid).unwrap().lid
        };
        let (switches, hosts): (Vec<_>, Vec<_>) =
            lists.nodes.iter().partition(|node| node.is_switch == 1);
        let mut different = 0;
        for (a, host_a) in switches.iter().zip(&hosts) {
            for (b, host_b) in switches.iter().zip(&hosts) {
                let level = engine.path_sl(9, lid(host_a), lid(host_b));
                assert_eq!(engine.path_sl(9, lid(a), lid(b)), level);
                assert_eq!(engine.path_sl(9, lid(host_a), lid(b)), level);
                different += usize::from(level != 0);
            }
        }
        assert!(different > 0);
        for (slid, dlid) in [(0, 1), (1, 0), (1, 4000), (0xffff, 1)] {
            assert_eq!(engine.path_sl(9, slid, dlid), 9);
        }
        assert_eq!(engine.path_sl(77, 0, 0), 0);
        let at = Guid(switches[0].guid);
        assert!(engine.lanes(at, 0, 1).is_some() && engine.table(at).is_some());
        assert_eq!((engine.lanes(at, 0, 200), engine.table(Guid(5))), (None, None));
    }

    #[test]
    fn tables_of_another_fabric_are_said_to_be() {
        let (files, _) = ring();
        let fabric = topologies::build("star:3").unwrap();
        let lids = clearlane_subnet::LidMap::assign(&fabric, Default::default()).unwrap();
        let mut lists = Lists::of(&fabric, &lids, 8);
        for node in &mut lists.nodes {
            node.guid ^= 1 << 40;
        }
        for port in &mut lists.ports {
            port.node ^= 1 << 40;
        }
        for cable in &mut lists.cables {
            (cable.a, cable.b) = (cable.a ^ 1 << 40, cable.b ^ 1 << 40);
        }
        let mut engine = Engine::new(Options::default());
        let said = engine.route(lists.discovered().unwrap(), true, Ok(files)).unwrap();
        assert_eq!(engine.source(), Some(Source::Safe("up-down")));
        assert!(told(&said, "of another fabric"), "{said:?}");
    }
}
