//! The experiment that asks what happens if some hosts are hot.

use super::screen::on_level_0;
use super::{Hot, Screened};
use crate::{Site, Tables};
use clearlane_fabric::NodeKind;
use clearlane_ib::LinkSpeed;
use clearlane_subnet::SlToVl;
use clearlane_subnet::check::credit_loop;
use clearlane_subnet::lanes::LANES;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Table, Value};

/// The variant with the site's own tables.
pub const AS_IS: &str = "as-is";
/// The variant in which the hot traffic has a lane of its own.
pub const LANE: &str = "lane of its own";
/// The variant in which pairs of leaf switches are spread over lanes.
pub const VFTREE: &str = "lanes by leaf pairs";
/// The variant with InfiniBand congestion control.
pub const IBA_CC: &str = "InfiniBand congestion control";
/// The variant with the congestion control of ConnectX firmware.
pub const FIRMWARE: &str = "congestion control of ConnectX firmware";
/// How many engines are simulated beside the site's tables.
const ENGINES_MAX: usize = 2;
/// Data VLs a link can have.
const LANES_MAX: u8 = 15;

/// What runs besides: the built-in supposition or somebody's flow groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A third of the hosts to the hot ones, a third among all.
    Supposed,
    /// The `[[traffic]]` of a file.
    File(PathBuf),
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The site.
    pub site: &'a Site,
    /// File or specification of the fabric, seen from where the experiment lies.
    pub fabric: FabricFile,
    /// Names of nodes by GUID.
    pub node_name_map: Option<PathBuf>,
    /// The files of the site's tables; none where engines fill them.
    pub tables: Vec<PathBuf>,
    /// Data lanes there are.
    pub lanes: u8,
    /// Who is hot.
    pub hot: &'a Hot,
    /// Engines to try, the most promising first.
    pub engines: &'a [Screened],
    /// What runs.
    pub traffic: Traffic,
    /// How many seeds.
    pub seeds: u32,
}

/// Where the fabric is from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricFile {
    /// A file.
    File(PathBuf),
    /// A topology to build.
    Build(String),
}

fn table(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

impl Question<'_> {
    /// The experiment, as the file that asks it.
    pub fn experiment(&self) -> String {
        self.file("diagnosis", &self.summary(), "2 ms", self.seeds, self.variants())
    }

    /// The experiment that asks whether congestion control helps, which takes 40 ms to settle. It
    /// is of one seed: it takes thirty times as long as the other.
    pub fn control_experiment(&self) -> String {
        let summary = format!("{} With congestion control?", self.summary());
        let mechanism =
            |name: &str, control: Value| table([("name", text(name)), ("control", control)]);
        let iba = [("when", text("iba-cc")), ("iba-cc", table([("preset", text("gran-2010"))]))];
        let firmware =
            [("when", text("dcqcn")), ("dcqcn", table([("preset", text("connectx-firmware"))]))];
        let variants = vec![
            table([("name", text(self.own_name()))]),
            mechanism(IBA_CC, table(iba)),
            mechanism(FIRMWARE, table(firmware)),
        ];
        self.file("diagnosis-control", &summary, "60 ms", 1, variants)
    }

    fn file(
        &self,
        name: &str,
        summary: &str,
        duration: &str,
        seeds: u32,
        variants: Vec<Value>,
    ) -> String {
        let mut root = Table::new();
        let mut put = |key: &str, value: Value| root.insert(key.to_owned(), value);
        put("schema", Value::Integer(1));
        put("name", text(name));
        put("summary", text(summary));
        let source = match &self.fabric {
            FabricFile::File(path) => ("file", text(path.to_string_lossy())),
            FabricFile::Build(spec) => ("build", text(spec.as_str())),
        };
        let map = self.node_name_map.iter();
        let map = map.map(|path| ("node_name_map", text(path.to_string_lossy())));
        put("fabric", table([source].into_iter().chain(map)));
        put("subnet", self.own_subnet());
        put("sim", table([("preset", text(self.preset()))]));
        match &self.traffic {
            Traffic::File(path) => put("include", text(path.to_string_lossy())),
            Traffic::Supposed => put("traffic", Value::Array(self.traffic())),
        };
        let seeds = Value::Integer(seeds.into());
        put("run", table([("duration", text(duration)), ("seeds", seeds)]));
        put("variant", Value::Array(variants));
        toml::to_string(&root).unwrap_or_default()
    }

    /// The name of the variant there is, or that stands for it.
    fn own_name(&self) -> &str {
        match self.has_own() {
            true => AS_IS,
            false => self.engines.first().map_or(AS_IS, |first| first.engine),
        }
    }

    fn summary(&self) -> String {
        let names: Vec<String> =
            self.hot.nodes.iter().take(3).map(|node| self.site.node(*node)).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let names = names.join(", ");
        match self.hot.supposed {
            None => format!("{names} {verb} hot; who suffers, and what helps?"),
            Some(_) => format!("if {names} {verb} hot, who suffers, and what helps?"),
        }
    }

    /// The site's tables, or those of the best engine where there are none that arrive everywhere.
    fn own_subnet(&self) -> Value {
        let lanes = ("lanes", Value::Integer(self.lanes.into()));
        if self.has_own() {
            let files = self.tables.iter().map(|path| text(path.to_string_lossy())).collect();
            return table([("engine", text("file")), ("lft", Value::Array(files)), lanes]);
        }
        let engine = self.engines.first().map_or("min-hop", |first| first.engine);
        table([("engine", text(engine)), lanes])
    }

    /// Whether the site's own tables can be simulated: some path arrives. Pairs of hosts without
    /// one are left out.
    pub fn has_own(&self) -> bool {
        let usage = self.site.tables.as_ref().map(|tables| &tables.usage);
        !self.tables.is_empty() && usage.is_some_and(|usage| usage.lost < usage.paths)
    }

    /// Paths by the site's tables that do not arrive.
    pub fn lost(&self) -> u64 {
        self.site.tables.as_ref().map_or(0, |tables| tables.usage.lost)
    }

    /// Parameters of devices of the generation that most links of hosts are.
    fn preset(&self) -> &'static str {
        let fabric = &self.site.fabric;
        let mut speeds: BTreeMap<LinkSpeed, usize> = BTreeMap::new();
        for host in fabric.ids(NodeKind::ChannelAdapter) {
            for (_, link, _) in fabric.neighbours(host) {
                *speeds.entry(fabric.link(link).speed).or_default() += 1;
            }
        }
        match speeds.into_iter().max_by_key(|(_, count)| *count).map(|(speed, _)| speed) {
            Some(LinkSpeed::Sdr) => "sdr-2011",
            Some(LinkSpeed::Fdr | LinkSpeed::Edr) => "edr",
            Some(LinkSpeed::Hdr) => "hdr",
            Some(LinkSpeed::Ndr | LinkSpeed::Xdr) => "ndr",
            _ => "qdr",
        }
    }

    fn traffic(&self) -> Vec<Value> {
        let third =
            |offset: i64| table([("every", Value::Integer(3)), ("offset", Value::Integer(offset))]);
        let hot = self.hot.ranks.iter().map(|rank| {
            table([
                ("name", text(format!("to {}", self.name(*rank)))),
                ("class", text("hot")),
                ("pattern", table([("kind", text("incast")), ("to", text(self.guid(*rank)))])),
                ("senders", third(1)),
                ("load", Value::Float(1.0 / self.hot.ranks.len() as f64)),
                ("size", text("64 KiB")),
            ])
        });
        let mix = [("512 B", 0.5), ("4 KiB", 0.4), ("64 KiB", 0.1)]
            .map(|(size, share)| Value::Array(vec![text(size), Value::Float(share)]));
        let others = table([
            ("name", text("everybody else")),
            ("class", text("victim")),
            ("pattern", table([("kind", text("random-permutation")), ("seed", Value::Integer(1))])),
            ("senders", third(2)),
            ("load", Value::Float(0.3)),
            ("size", table([("mix", Value::Array(mix.into()))])),
        ]);
        hot.chain([others]).collect()
    }

    /// The GUID of a hot host: names may repeat, and numbers be taken for LIDs.
    fn guid(&self, rank: u32) -> String {
        let at = self.hot.ranks.iter().position(|hot| *hot == rank).unwrap_or(0);
        let node = self.hot.nodes.get(at);
        node.map_or(String::new(), |node| self.site.fabric.node(*node).guid.to_string())
    }

    /// What a hot host is called, with its rank where names repeat.
    fn name(&self, rank: u32) -> String {
        let at = self.hot.ranks.iter().position(|hot| *hot == rank).unwrap_or(0);
        let name = self.hot.nodes.get(at).map_or(String::new(), |node| self.site.node(*node));
        let same = |other: &&clearlane_fabric::NodeId| self.site.node(**other) == name;
        match self.hot.nodes.iter().filter(same).count() {
            0 | 1 => name,
            _ => format!("{name} ({rank})"),
        }
    }

    /// Whether paths can be given other lanes: nothing else is or comes on them, and tables need
    /// none. Of a site whose own SL2VL is given nobody can say so.
    fn has_lanes(&self) -> bool {
        let leaves_lanes = match (self.has_own(), &self.site.tables) {
            (true, Some(Tables { subnet, .. })) => {
                on_level_0(subnet)
                    && subnet.sl_to_vl == SlToVl::modulo(&self.site.fabric, self.lanes)
                    && credit_loop(&self.site.fabric, subnet).is_sane()
            }
            _ => self.engines.first().is_some_and(|first| first.leaves_lanes),
        };
        let is_named = self.traffic == Traffic::Supposed || self.hot.supposed.is_none();
        is_named && self.lanes_by_class() <= LANES_MAX && leaves_lanes
    }

    /// The lanes of [`LANE`]: those there are, of which traffic uses the first alone unless it is
    /// from a file, which may use all.
    pub fn lanes_by_class(&self) -> u8 {
        match self.traffic {
            Traffic::Supposed => self.lanes.max(2),
            Traffic::File(_) => self.lanes + 1,
        }
    }

    /// The lanes of [`VFTREE`].
    pub fn lanes_vftree(&self) -> u8 {
        self.lanes.max(LANES)
    }

    /// The variants of lane policies.
    fn lane_variants(&self) -> Vec<(&'static str, Value)> {
        let policy = |kind: &str, lanes: u8, hot: Vec<Value>| {
            let hot = (!hot.is_empty()).then_some(("hot", Value::Array(hot)));
            let policy = table([("kind", text(kind))].into_iter().chain(hot));
            table([("lanes", Value::Integer(lanes.into())), ("lane_policy", policy)])
        };
        let hot = self.hot.ranks.iter().map(|rank| text(self.guid(*rank))).collect();
        vec![
            (LANE, policy("by-class", self.lanes_by_class(), hot)),
            (VFTREE, policy("vftree", self.lanes_vftree(), Vec::new())),
        ]
    }

    fn variants(&self) -> Vec<Value> {
        let variant = |name: String, more: Vec<(&'static str, Value)>| {
            table([("name", text(name))].into_iter().chain(more))
        };
        let mut all = Vec::new();
        let own = self.own_name().to_owned();
        all.push(variant(own.clone(), Vec::new()));
        if self.has_lanes() {
            let of_lanes = self.lane_variants().into_iter();
            all.extend(
                of_lanes.map(|(name, subnet)| variant(name.into(), vec![("subnet", subnet)])),
            );
        }
        let others = self.engines.iter().filter(|screened| screened.engine != own);
        all.extend(others.take(ENGINES_MAX).map(|screened| {
            let subnet = table([
                ("engine", text(screened.engine)),
                ("lanes", Value::Integer(self.lanes.into())),
            ]);
            variant(screened.engine.to_owned(), vec![("subnet", subnet)])
        }));
        all
    }
}
