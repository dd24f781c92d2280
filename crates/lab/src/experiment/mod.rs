//! The experiment file: read, checked, laid over by variants, and written down resolved.

mod axis;
mod control;
mod devices;
mod document;
mod each;
mod fabric;
mod include;
mod job;
mod keys;
mod lanes;
mod measure;
mod merge;
mod overlay;
mod pattern;
mod placement;
mod plan;
mod policy;
mod published;
pub mod reference;
mod site;
mod stand_ins;
mod subnet;
mod traces;
mod traffic;
mod variants;

pub use axis::Axis;
pub use control::{ControlSpec, MechanismSpec, PortSpec};
pub use devices::DevicesSpec;
pub use fabric::{FabricSource, FabricSpec, RandomCut};

pub use lanes::LanePolicySpec;
pub use plan::{Ends, Mode, Plan, WarmUp};
pub use policy::PolicyFile;
pub use published::Published;
pub use site::SiteFiles;
pub use subnet::{Routing, SubnetSpec};
pub use traffic::{DemandSpec, OfferedSpec, Senders, TrafficSpec};

pub(crate) use job::{Place, in_words as gaps_in_words};
pub(crate) use keys::nearest;
pub(crate) use placement::placed;
pub(crate) use traces::read as read_trace;
pub(crate) use traffic::in_words;

use crate::LabError;
use crate::measure::{Answer, Asked, Entry};
use crate::text;
use clearlane_ib::ticked;
use document::{Document, Node, Value};
use keys::{Field, Keys};
use overlay::Overlay;
use std::path::{Path, PathBuf};

/// One alternative of an experiment, complete.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name in tables.
    pub name: String,
    /// One line on it; may be empty.
    pub summary: String,
    /// The cables.
    pub fabric: FabricSpec,
    /// What a subnet manager does.
    pub subnet: SubnetSpec,
    /// Switches and adapters.
    pub devices: DevicesSpec,
    /// Congestion mechanisms.
    pub control: ControlSpec,
    /// The flow groups, at least one; the position is the group's index.
    pub traffic: Vec<TrafficSpec>,
    /// Whether the fabric was replaced: hosts the file names may not be there.
    pub foreign_site: bool,
    /// Whether the first ranks stand in for hosts that are not there.
    pub stand_in: bool,
    /// The keys it sets itself, to the last word.
    pub(crate) own: Vec<Vec<String>>,
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The file as it was named.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// What it asks, in one line.
    pub summary: String,
    /// Length, warm-up, seeds.
    pub plan: Plan,
    /// The alternatives in the order of the file, at least one.
    pub variants: Vec<Variant>,
    /// Published numbers to compare with.
    pub published: Vec<Published>,
    /// What `clearlane sweep` varies, if the file says so.
    pub sweep: Vec<Axis>,
}

/// The keys of a file.
pub(crate) const KEYS: &[&str] = &[
    "schema",
    "name",
    "summary",
    "include",
    "run",
    "fabric",
    "subnet",
    "sim",
    "control",
    "traffic",
    "axis",
    "variant",
    "published",
    "sweep",
];
/// The name of the only variant of an experiment without `[[variant]]`.
const AS_IS: &str = "as-is";
/// Most bytes of an experiment file: it is written by hand.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most slices of all flow groups of a run: each keeps a histogram of latencies.
const SLICES_MAX: usize = 20_000;
/// Most variants and most flow groups; group indices are 16 bits wide.
const VARIANTS_MAX: usize = 1000;

impl Experiment {
    /// Reads and checks a file. Files it names are not opened yet.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        Self::parse(&Self::text(path)?, path)
    }

    /// Reads the text of a file of at most 4 MiB.
    pub(crate) fn text(path: &Path) -> Result<String, LabError> {
        text::read(path, FILE_BYTES_MAX)
    }

    /// Reads and checks the text of a file called `path`; paths in it are relative to its folder.
    pub fn parse(text: &str, path: &Path) -> Result<Self, LabError> {
        Self::parse_with(text, path, &[])
    }

    /// The same with values in place of the file's, in every variant.
    pub(crate) fn parse_with(
        text: &str,
        path: &Path,
        overlays: &[Overlay],
    ) -> Result<Self, LabError> {
        let (mut document, root) = Document::parse(text, path)?;
        let mut root = include::included(&mut document, root)?;
        for overlay in overlays.iter().filter(|overlay| overlay.is_of_plan()) {
            root = overlay.laid_over(&document, &root)?;
        }
        let mut keys = Keys::of(&document, "", &root)?;
        keys.only(KEYS)?;
        keys.required("schema", "1")?.integer(1, 1)?;
        let field = keys.required("name", "\"my-experiment\"")?;
        let name = field.name()?;
        if name.contains('/') || name.starts_with('.') {
            return Err(field.error("also names a folder; remove every / and a . at the front"));
        }
        let summary = keys.optional("summary").map(|field| field.text()).transpose()?;
        let plan = keys.required("run", "{ duration = \"2 ms\" }")?;
        let plan = Plan::read(&plan)?;
        let sweep = keys.optional("sweep").map(|field| axis::of_file(&field)).transpose()?;
        let reading = Reading { document: &document, plan: &plan, overlays };
        reading.count_groups(&root)?;
        let variants = variants::read(&reading, &root, &keys)?;
        let published = match keys.optional("published") {
            None => Vec::new(),
            Some(field) => {
                let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
                let rows = each::rows(&document, &field, &names)?;
                let row = |(index, node)| {
                    Published::read(&Field::new(&document, format!("published[{index}]"), node))
                };
                rows.iter().enumerate().map(row).collect::<Result<Vec<_>, _>>()?
            }
        };
        let groups = variants.iter().map(|variant| variant.traffic.len()).max().unwrap_or(0);
        if groups.saturating_mul(plan.slices as usize) > SLICES_MAX {
            let problem = format!("{groups} flow groups in {} slices", plan.slices);
            let remedy = format!("are more than {SLICES_MAX} in all; lower run.slices");
            return Err(document.error(root.at, &format!("{problem} {remedy}")));
        }
        let summary = LabError::one_line(summary.unwrap_or_default());
        let path = path.to_owned();
        let sweep = sweep.unwrap_or_default();
        let experiment = Experiment { path, name, summary, plan, variants, published, sweep };
        experiment.check_published().map_err(LabError::Request)?;
        Ok(experiment)
    }

    fn check_published(&self) -> Result<(), String> {
        let names: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
        let traffic = self.variants.iter().flat_map(|variant| &variant.traffic);
        let groups: Vec<&str> = traffic.map(|group| group.name.as_str()).collect();
        let rows: Vec<&str> = self.published.iter().map(|row| row.name.as_str()).collect();
        let twice = |(at, row): (usize, &Published)| rows[..at].contains(&row.name.as_str());
        if let Some((_, row)) =
            self.published.iter().enumerate().find(|(at, row)| twice((*at, row)))
        {
            return Err(format!(
                "{}: another row has this name; with `each`, write {{variant}} or another word in \
                 it",
                row.called()
            ));
        }
        let names = [names.as_slice(), groups.as_slice(), rows.as_slice()];
        self.published.iter().try_for_each(|row| row.check(names, &self.plan))
    }

    /// What published rows ask of single runs, each once.
    pub(crate) fn asked(&self) -> Vec<&Asked> {
        let mut all: Vec<&Asked> = Vec::new();
        for asked in self.published.iter().flat_map(|row| row.measure.leaves()) {
            if !all.contains(&asked) {
                all.push(asked);
            }
        }
        all
    }

    /// Whether a published row asks for a measure.
    pub(crate) fn asks(&self, entry: &Entry) -> bool {
        self.asked().iter().any(|asked| asked.entry.name == entry.name)
    }

    /// Those of them that are measured before a record is put away.
    pub(crate) fn recorded(&self) -> Vec<Asked> {
        let of_record = |asked: &&Asked| matches!(asked.entry.answer, Answer::Record(_));
        self.asked().into_iter().filter(of_record).cloned().collect()
    }

    /// Replaces the fabric of every variant by a file, and the table files of those that read any.
    /// Fails if a variant reads tables and only the fabric was given, or none reads the tables.
    pub fn override_site(&mut self, site: &SiteFiles) -> Result<(), LabError> {
        let reads = self.set_site(site)?;
        site.check(reads)
    }

    /// The same; whether any variant reads the tables.
    pub(crate) fn set_site(&mut self, site: &SiteFiles) -> Result<bool, LabError> {
        let mut reads = false;
        for variant in &mut self.variants {
            if let Some(fabric) = &site.fabric {
                variant.fabric.source = FabricSource::File(fabric.clone());
                (variant.foreign_site, variant.stand_in) = (true, site.stand_in);
            }
            if let Some(map) = &site.node_name_map {
                variant.fabric.node_name_map = Some(map.clone());
            }
            if let Routing::Files(tables) = &mut variant.subnet.routing {
                reads = true;
                match (site.lft.as_slice(), &site.fabric) {
                    ([_, ..], _) => tables.clone_from(&site.lft),
                    ([], None) => {}
                    ([], Some(_)) => {
                        let problem = "needs the tables of this fabric: add --lft FILE, or leave \
                            it out (compare --variants)";
                        return Err(LabError::variant(&variant.name, problem));
                    }
                }
            }
        }
        Ok(reads)
    }

    /// Replaces the first seed and the number of seeds. Fails outside 0 to 2^63 − 1001 and 1 to
    /// 1000.
    pub fn override_seeds(
        &mut self,
        seed: Option<u64>,
        seeds: Option<u32>,
    ) -> Result<(), LabError> {
        let seed = seed.unwrap_or(self.plan.seed);
        let seeds = seeds.unwrap_or(self.plan.seeds);
        if seed > plan::SEED_MAX {
            return Err(LabError::Request(format!("seed {seed} is above {}", plan::SEED_MAX)));
        }
        if !(1..=plan::SEEDS_MAX).contains(&seeds) {
            let most = plan::SEEDS_MAX;
            return Err(LabError::Request(format!("seeds = {seeds} is outside 1 to {most}")));
        }
        (self.plan.seed, self.plan.seeds) = (seed, seeds);
        Ok(())
    }

    /// Keeps the named variants, in the order of the names; a text may have several, with commas
    /// between them, whether or not names have commas themselves. Published rows of the others go.
    pub fn keep_variants<S: AsRef<str>>(&mut self, names: &[S]) -> Result<(), LabError> {
        let mut kept: Vec<Variant> = Vec::new();
        for text in names {
            for variant in self.variants_in(text.as_ref())? {
                if !kept.iter().any(|known| known.name == variant.name) {
                    kept.push(variant);
                }
            }
        }
        if kept.is_empty() {
            return Err(LabError::Request("no variant is named; name one or more".into()));
        }
        // A row without a variant means the first of the file, which may be gone.
        let first = self.variants.first().map(|variant| variant.name.clone());
        self.published.retain_mut(|row| {
            row.variant = row.variant.take().or(first.clone());
            row.named().all(|name| kept.iter().any(|variant| variant.name == name))
        });
        let rows: Vec<String> = self.published.iter().map(|row| row.name.clone()).collect();
        for row in &mut self.published {
            row.moved_by = row.moved_by.take().filter(|other| rows.contains(other));
        }
        self.variants = kept;
        Ok(())
    }

    /// The variants of a list with commas: of several readings the one with the longest names.
    fn variants_in(&self, text: &str) -> Result<Vec<Variant>, LabError> {
        let parts: Vec<&str> = text.split(',').collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at < parts.len() {
            let named = |end: &usize| {
                let name = parts[at..*end].join(",");
                self.variants.iter().find(|variant| variant.name == name.trim())
            };
            let longest = (at + 1..=parts.len()).rev().find_map(|end| Some((end, named(&end)?)));
            let Some((end, variant)) = longest else {
                // Where names have commas, what follows may belong to it.
                let name = parts[at..].join(",");
                let name = name.trim();
                let near = nearest(name, self.variants.iter().map(|v| v.name.as_str()));
                let problem = format!("the experiment has no variant {}{near}", ticked(name));
                return Err(LabError::Request(problem));
            };
            found.push(variant.clone());
            at = end;
        }
        Ok(found)
    }

    /// A TOML text that means the same, every default and every parameter spelt out. Paths are
    /// relative to where the program was called.
    pub fn resolved(&self) -> String {
        let body = toml::to_string(&self.resolved_table()).unwrap_or_default();
        format!("# `{}`, resolved: every default spelt out\n{body}", self.name)
    }

    /// The same as a tree.
    pub(crate) fn resolved_table(&self) -> toml::Table {
        let variant = |variant: &Variant| {
            let mut table = toml::Table::new();
            table.insert("name".into(), variant.name.clone().into());
            table.insert("summary".into(), variant.summary.clone().into());
            table.insert("fabric".into(), variant.fabric.resolved().into());
            table.insert("subnet".into(), variant.subnet.resolved().into());
            table.insert("sim".into(), variant.devices.resolved().into());
            table.insert(control::TABLE.into(), variant.control.resolved().into());
            let groups: Vec<_> = variant.traffic.iter().map(TrafficSpec::resolved).collect();
            table.insert("traffic".into(), groups.into());
            table
        };
        let mut table = toml::Table::new();
        table.insert("schema".into(), 1.into());
        table.insert("name".into(), self.name.clone().into());
        table.insert("summary".into(), self.summary.clone().into());
        table.insert("run".into(), self.plan.resolved().into());
        let variants: Vec<_> = self.variants.iter().map(variant).collect();
        table.insert("variant".into(), variants.into());
        let rows: Vec<_> = self.published.iter().map(Published::resolved).collect();
        if !rows.is_empty() {
            table.insert("published".into(), rows.into());
        }
        if !self.sweep.is_empty() {
            table.insert("sweep".into(), axis::resolved(&self.sweep).into());
        }
        table
    }
}

/// What the parts of a file are read with.
struct Reading<'a> {
    document: &'a Document,
    plan: &'a Plan,
    /// What a point of a sweep has in place of the file's values.
    overlays: &'a [Overlay],
}

impl Reading<'_> {
    /// What a variant sees at a point of a sweep.
    fn overlaid(&self, root: &Node) -> Result<Node, LabError> {
        let overlays = self.overlays.iter().filter(|overlay| !overlay.is_of_plan());
        overlays.into_iter().try_fold(root.clone(), |root, o| o.laid_over(self.document, &root))
    }

    /// Fails if a table lists too many flow groups, before anything is done with each of them.
    fn count_groups(&self, table: &Node) -> Result<(), LabError> {
        match table.get("traffic").map(|groups| &groups.value) {
            Some(Value::Array(groups)) if groups.len() > VARIANTS_MAX => {
                let count = groups.len();
                let problem = format!(
                    "{count} tables [[traffic]] are more than {VARIANTS_MAX}; let a group have \
                     more senders"
                );
                Err(self.document.error(table.at, &problem))
            }
            _ => Ok(()),
        }
    }
}

fn variant(
    reading: &Reading<'_>,
    root: &Node,
    name: String,
    summary: String,
) -> Result<Variant, LabError> {
    let Reading { document, plan, .. } = *reading;
    let section = |name| fabric::section(document, root, name);
    let fabric = FabricSpec::read(section("fabric")?)?;
    let subnet = SubnetSpec::read(section("subnet")?)?;
    let devices = DevicesSpec::read(section("sim")?)?;
    let control = match root.get(control::TABLE) {
        Some(node) => ControlSpec::read(Keys::of(document, control::TABLE, node)?)?,
        None => ControlSpec::default(),
    };
    let empty = Node { at: root.at, value: Value::Array(Vec::new()) };
    let groups = Field::new(document, "traffic".into(), root.get("traffic").unwrap_or(&empty));
    let mut traffic: Vec<TrafficSpec> = Vec::new();
    for group in groups.items()? {
        let spec = TrafficSpec::read(&group, plan.duration)?;
        if traffic.iter().any(|known| known.name == spec.name) {
            let problem = format!("traffic {} is there twice; rename one", ticked(&spec.name));
            return Err(group.error_at(group.node.at, &problem));
        }
        traffic.push(spec);
    }
    if traffic.is_empty() {
        let problem = "the experiment has no [[traffic]]; add one table or more";
        return Err(document.error(root.at, problem));
    }
    Ok(Variant {
        name,
        summary,
        fabric,
        subnet,
        devices,
        control,
        traffic,
        foreign_site: false,
        stand_in: false,
        own: Vec::new(),
    })
}
