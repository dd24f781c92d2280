//! `[[traffic]]`: flow groups as a file writes them, and as the simulator runs them.

use super::document::Value;
use super::job::{self, JobSpec, Place};
use super::keys::{Field, Keys, word};
use super::pattern;
use super::placement::{self, Placing};
use crate::LabError;
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds, ServiceLevel};
use clearlane_workload::patterns::{PatternSpec, TableFile};
use clearlane_workload::{Arrivals, Class, Demand, FlowGroup, HostRef, Offered, Rank, Ranks};
use clearlane_workload::{Routes, SizeDistribution, TraceFile, Transport};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Senders {
    /// Every host.
    All,
    /// These.
    Hosts(Vec<HostRef>),
    /// All but these.
    Except(Vec<HostRef>),
    /// Ranks `offset`, `offset + every`, …
    Every {
        /// Distance.
        every: u32,
        /// First rank.
        offset: u32,
    },
    /// A share of the hosts drawn once.
    Share {
        /// 0 < share ≤ 1.
        share: f64,
        /// Seed of the draw, apart from the run's.
        seed: u64,
    },
    /// Hosts that no other program has.
    Placed {
        /// Which of them.
        placing: Placing,
        /// How many; those of a trace if not given.
        ranks: Option<u32>,
    },
}

/// A flow group of an experiment.
#[derive(Clone, Debug)]
pub struct TrafficSpec {
    /// Name in tables.
    pub name: String,
    /// Hot, victim or background.
    pub class: Class,
    /// Who sends; of a program where its ranks are.
    pub senders: Senders,
    /// What they send.
    pub demand: DemandSpec,
    /// RC or UD.
    pub transport: Transport,
    /// Service level that overrides the subnet's.
    pub sl: Option<ServiceLevel>,
    /// File and line, for errors that need the fabric to be found.
    place: String,
    /// The senders as they stand in the file.
    written: toml::Value,
}

/// What the senders of a group send.
#[derive(Clone, Debug)]
pub enum DemandSpec {
    /// Open-loop traffic.
    OpenLoop(OfferedSpec),
    /// A program.
    Program(Box<JobSpec>),
}

/// Open-loop traffic as a file writes it.
#[derive(Clone, Debug)]
pub struct OfferedSpec {
    /// Who sends to whom.
    pub pattern: PatternSpec,
    /// Offered load as a share of a sender's link, headers included.
    pub load: f64,
    /// Message sizes.
    pub sizes: SizeDistribution,
    /// When messages are posted.
    pub arrivals: Arrivals,
    /// First instant a message may be posted.
    pub start: Picoseconds,
    /// No message is posted from here on; the end of the run if not given.
    pub stop: Option<Picoseconds>,
    /// Queue pairs from each sender to each destination, 1 to 64; each offers its part of the load.
    pub queue_pairs: u16,
    written: Written,
}

/// What goes into the resolved experiment as it stands in the file.
#[derive(Clone, Debug)]
struct Written {
    pattern: toml::Value,
    size: toml::Value,
}

pub(crate) const CLASSES: &[(&str, Class)] =
    &[("hot", Class::Hot), ("victim", Class::Victim), ("background", Class::Background)];
const TRANSPORTS: &[(&str, Transport)] = &[("rc", Transport::Rc), ("ud", Transport::Ud)];
/// How long a ramp is stands beside it.
const ARRIVALS: &[(&str, Arrivals)] = &[
    ("poisson", Arrivals::Poisson),
    ("periodic", Arrivals::Periodic),
    ("ramp", Arrivals::Ramp(Picoseconds(0))),
];

pub(crate) const KEYS: &[&str] = &[
    "name",
    "class",
    "program",
    "gap",
    "mapping",
    "pattern",
    "senders",
    "load",
    "size",
    "arrivals",
    "ramp",
    "start",
    "stop",
    "queue_pairs",
    "transport",
    "sl",
];
/// What only open-loop traffic has.
pub(super) const OF_OPEN_LOOP: &[&str] =
    &["pattern", "load", "size", "arrivals", "ramp", "start", "stop", "queue_pairs"];
/// Most queue pairs of a group between two hosts.
const QUEUE_PAIRS_MAX: u64 = 64;
/// Below, the gap between two messages may not fit any run.
const LOAD_MIN: f64 = 1e-6;

impl TrafficSpec {
    /// Reads one group; `end` is the end of the run.
    pub(crate) fn read(field: &Field<'_>, end: Picoseconds) -> Result<Self, LabError> {
        let keys = field.named_keys("traffic", KEYS)?;
        let name = keys.required("name", "\"hot\"")?.name()?;
        let class = keys.required("class", "\"hot\", \"victim\" or \"background\"")?;
        let demand = match keys.optional("program") {
            Some(field) => DemandSpec::Program(Box::new(JobSpec::read(&field, &keys)?)),
            None => DemandSpec::OpenLoop(OfferedSpec::read(&keys, end)?),
        };
        let (senders, written) = match keys.optional("senders") {
            None => (Senders::All, "all".into()),
            Some(field) => (senders(&field)?, field.node.plain()),
        };
        if let Some(field) = keys.optional("senders")
            && matches!(senders, Senders::Placed { .. })
            && !matches!(demand, DemandSpec::Program(_))
        {
            return Err(field.error("places ranks, which a program has; write hosts or all"));
        }
        let transport = keys.optional("transport").map(|f| f.choice(TRANSPORTS)).transpose()?;
        let sl = keys.optional("sl").map(|f| f.integer(0, 15)).transpose()?;
        Ok(TrafficSpec {
            class: class.choice(CLASSES)?,
            demand,
            senders,
            transport: transport.unwrap_or(Transport::Rc),
            sl: sl.and_then(|sl| ServiceLevel::new(sl as u8)),
            place: field.place(),
            written,
            name,
        })
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("name".into(), self.name.clone().into());
        table.insert("class".into(), self.class.name().into());
        table.insert("senders".into(), self.written.clone());
        match &self.demand {
            DemandSpec::OpenLoop(offered) => offered.resolve(&mut table),
            DemandSpec::Program(job) => job.resolve(&mut table),
        }
        table.insert("transport".into(), word(TRANSPORTS, &self.transport));
        if let Some(sl) = self.sl {
            table.insert("sl".into(), i64::from(sl.value()).into());
        }
        table
    }

    /// Queue pairs between two hosts.
    pub(crate) fn queue_pairs(&self) -> u16 {
        match &self.demand {
            DemandSpec::OpenLoop(offered) => offered.queue_pairs,
            DemandSpec::Program(..) => 1,
        }
    }

    /// Offered load of open-loop traffic.
    pub fn load(&self) -> Option<f64> {
        match &self.demand {
            DemandSpec::OpenLoop(offered) => Some(offered.load),
            DemandSpec::Program(..) => None,
        }
    }

    /// The files it reads, as far as they are there.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match &self.demand {
            DemandSpec::OpenLoop(offered) => {
                offered.pattern.file().map(PathBuf::from).into_iter().collect()
            }
            DemandSpec::Program(job) => job.files(),
        }
    }

    /// The file its pattern needs read before the group is made.
    pub(crate) fn table(&mut self) -> Option<&mut TableFile> {
        match &mut self.demand {
            DemandSpec::OpenLoop(offered) => offered.pattern.table(),
            DemandSpec::Program(..) => None,
        }
    }

    /// The hosts it names.
    pub(super) fn hosts(&mut self) -> Vec<&mut HostRef> {
        let of_pattern = match &mut self.demand {
            DemandSpec::OpenLoop(offered) => offered.pattern.hosts(),
            DemandSpec::Program(..) => Vec::new(),
        };
        let of_senders = match &mut self.senders {
            Senders::Hosts(hosts) | Senders::Except(hosts) => hosts.as_mut_slice(),
            _ => &mut [],
        };
        of_pattern.into_iter().chain(of_senders).collect()
    }

    /// How many ranks its program has, if it says so: a trace does.
    pub(super) fn ranks(&self) -> Option<u32> {
        self.job().and_then(|job| job.spec.ranks())
    }

    /// The trace its program needs read.
    pub(crate) fn trace(&mut self) -> Option<&mut TraceFile> {
        match &mut self.demand {
            DemandSpec::OpenLoop(_) => None,
            DemandSpec::Program(job) => job.spec.trace_file(),
        }
    }

    /// A fault of the group, with its place.
    pub(crate) fn fault(&self, problem: &str) -> String {
        format!("{}: traffic.{}: {problem}", self.place, self.name)
    }

    /// The program, if it is one.
    pub(crate) fn job(&self) -> Option<&JobSpec> {
        match &self.demand {
            DemandSpec::OpenLoop(_) => None,
            DemandSpec::Program(job) => Some(job),
        }
    }

    /// The group in a place, on the hosts that it was given if it takes free ones; `end` is when
    /// traffic without a stop stops.
    pub(crate) fn group(
        &self,
        at: &Place<'_>,
        given: Option<Vec<Rank>>,
        end: Picoseconds,
    ) -> Result<FlowGroup, String> {
        let place = |problem: String| self.fault(&problem);
        let mut senders = match given {
            Some(given) => given,
            None => self.senders.ranks(at.ranks).map_err(place)?,
        };
        let demand = match &self.demand {
            DemandSpec::OpenLoop(offered) => {
                let built = offered.build(at.ranks, at.routes, end, &self.senders);
                Demand::OpenLoop(Arc::new(built.map_err(place)?))
            }
            DemandSpec::Program(job) => {
                senders = job.hosts(at.ranks, senders).map_err(place)?;
                let pacing = job.pacing(at, &senders, self.transport).map_err(place)?;
                Demand::Program(job.spec.clone(), pacing)
            }
        };
        let (name, class) = (self.name.clone(), self.class);
        let (transport, sl) = (self.transport, self.sl);
        let group = FlowGroup { name, class, senders, demand, transport, sl };
        if !group.senders.iter().any(|rank| group.weight(*rank) > 0.0) {
            return Err(place("none of its senders has a destination; widen senders".into()));
        }
        Ok(group)
    }
}

/// What traffic has that has neither.
const PATTERN_OR_PROGRAM: &str =
    "{ kind = \"uniform\" }, or program = { kind = \"ring-allreduce\", size = \"1 MiB\" }";

impl OfferedSpec {
    fn read(keys: &Keys<'_>, end: Picoseconds) -> Result<Self, LabError> {
        for key in job::KEYS {
            if let Some(field) = keys.optional(key) {
                return Err(
                    field.error("belongs to a program, and this group has a pattern; drop it")
                );
            }
        }
        let written = keys.required("pattern", PATTERN_OR_PROGRAM)?;
        let pattern = pattern::read(&written)?;
        let load = keys.required("load", "0.5")?.number(LOAD_MIN, 4.0)?;
        let size = keys.required("size", "\"2 KiB\"")?;
        let arrivals = arrivals(keys)?;
        let queue_pairs = keys.optional("queue_pairs").map(|f| f.integer(1, QUEUE_PAIRS_MAX));
        let (start, stop) = span(keys, end)?;
        Ok(OfferedSpec {
            pattern,
            load,
            sizes: sizes(&size)?,
            arrivals,
            start,
            stop,
            queue_pairs: queue_pairs.transpose()?.unwrap_or(1) as u16,
            written: Written { pattern: written.node.plain(), size: size.node.plain() },
        })
    }

    /// Its part of the table that reads back as the group.
    fn resolve(&self, table: &mut toml::Table) {
        let mut put = |key: &str, value: toml::Value| {
            table.insert(key.to_owned(), value);
        };
        let mut pattern = self.written.pattern.clone();
        if let (Some(file), Some(table)) = (self.pattern.file(), pattern.as_table_mut()) {
            table.insert("file".into(), super::fabric::text_of(Path::new(file)));
        }
        put("pattern", pattern);
        put("load", self.load.into());
        put("size", self.written.size.clone());
        match self.arrivals {
            Arrivals::Ramp(ramp) => {
                put("arrivals", word(ARRIVALS, &Arrivals::Ramp(Picoseconds(0))));
                put("ramp", ramp.exact().into());
            }
            arrivals => put("arrivals", word(ARRIVALS, &arrivals)),
        }
        put("queue_pairs", i64::from(self.queue_pairs).into());
        put("start", self.start.exact().into());
        if let Some(stop) = self.stop {
            put("stop", stop.exact().into());
        }
    }

    fn build(
        &self,
        ranks: &Ranks,
        routes: &dyn Routes,
        end: Picoseconds,
        senders: &Senders,
    ) -> Result<Offered, String> {
        let pattern = &self.pattern;
        if pattern.chooses_senders() && *senders != Senders::All {
            let name = pattern.name();
            return Err(format!("pattern `{name}` chooses its senders; drop senders"));
        }
        Ok(Offered {
            destinations: pattern.build(ranks, Some(routes)).map_err(|error| error.to_string())?,
            sizes: self.sizes.clone(),
            load: self.load,
            arrivals: self.arrivals,
            start: self.start,
            stop: self.stop.unwrap_or(end),
        })
    }
}

impl Senders {
    /// The ranks meant, ascending; none of those that are placed beside others.
    pub(super) fn ranks(&self, ranks: &Ranks) -> Result<Vec<Rank>, String> {
        let all = 0..ranks.count();
        let resolve = |hosts: &[HostRef]| {
            let mut named =
                hosts.iter().map(|host| ranks.resolve(host)).collect::<Result<Vec<_>, _>>()?;
            named.sort_unstable();
            named.dedup();
            Ok::<_, String>(named)
        };
        Ok(match self {
            Senders::All => all.map(Rank).collect(),
            Senders::Placed { .. } => Vec::new(),
            Senders::Hosts(hosts) => resolve(hosts)?,
            Senders::Except(hosts) => {
                let out = resolve(hosts)?;
                all.map(Rank).filter(|rank| out.binary_search(rank).is_err()).collect()
            }
            Senders::Every { every, offset } => {
                all.skip(*offset as usize).step_by((*every).max(1) as usize).map(Rank).collect()
            }
            Senders::Share { share, seed } => {
                let mut shuffled: Vec<u32> = all.collect();
                let mut stream = Stream::new(*seed, "senders", 0);
                for last in (1..shuffled.len()).rev() {
                    shuffled.swap(last, stream.below(last as u64 + 1) as usize);
                }
                let count = (share * f64::from(ranks.count())).round().max(1.0) as usize;
                let mut drawn: Vec<Rank> = shuffled.into_iter().take(count).map(Rank).collect();
                drawn.sort_unstable();
                drawn
            }
        })
    }
}

/// When messages are posted; a ramp has a length.
fn arrivals(keys: &Keys<'_>) -> Result<Arrivals, LabError> {
    let read = keys.optional("arrivals").map(|field| field.choice(ARRIVALS)).transpose()?;
    let arrivals = read.unwrap_or(Arrivals::Poisson);
    if let (Arrivals::Ramp(_), None) = (arrivals, keys.optional("ramp")) {
        keys.required("ramp", "\"200 us\"")?;
    }
    let Some(field) = keys.optional("ramp") else { return Ok(arrivals) };
    let ramp = field.quantity(Picoseconds(1_000), Picoseconds::MAX_RUN)?;
    match arrivals {
        Arrivals::Ramp(_) => Ok(Arrivals::Ramp(ramp)),
        _ => Err(field.error("goes with arrivals = \"ramp\"; write that or drop it")),
    }
}

/// First and last instant of a group: it starts within the run and stops after that.
fn span(keys: &Keys<'_>, end: Picoseconds) -> Result<(Picoseconds, Option<Picoseconds>), LabError> {
    let time = |field: &Field<'_>| field.quantity(Picoseconds(0), Picoseconds::MAX_RUN);
    let start = match keys.optional("start") {
        None => Picoseconds(0),
        Some(field) => {
            let start = time(&field)?;
            if start >= end {
                let end = end.exact();
                let problem = format!("is not before the run's end at {end}; lower it");
                return Err(field.error(&problem));
            }
            start
        }
    };
    let Some(field) = keys.optional("stop") else { return Ok((start, None)) };
    let stop = time(&field)?;
    if stop <= start {
        let problem = format!("is not after its start at {}; raise it", start.exact());
        return Err(field.error(&problem));
    }
    Ok((start, Some(stop)))
}

fn senders(field: &Field<'_>) -> Result<Senders, LabError> {
    if matches!(field.node.value, Value::Text(_)) {
        return field.choice(&[("all", Senders::All)]);
    }
    let keys = field.keys(SENDERS)?;
    if let Some(place) = keys.optional("place") {
        return placed(&keys, &place);
    }
    if let Some(ranks) = keys.optional("ranks") {
        return Err(ranks.error("goes with place; write place = \"packed\" or drop it"));
    }
    let (hosts, except) = (keys.optional("hosts"), keys.optional("except"));
    let (every, share) = (keys.optional("every"), keys.optional("share"));
    let (offset, seed) = (keys.optional("offset"), keys.optional("seed"));
    let read = match (hosts, except, every, share) {
        (Some(hosts), None, None, None) => Senders::Hosts(host_refs(&hosts)?),
        (None, Some(hosts), None, None) => Senders::Except(host_refs(&hosts)?),
        (None, None, Some(every), None) => {
            let every = every.integer(1, 1 << 20)? as u32;
            let offset = offset.as_ref().map(|f| f.integer(0, 1 << 20)).transpose()?;
            Senders::Every { every, offset: offset.unwrap_or(0) as u32 }
        }
        (None, None, None, Some(share)) => {
            let share = share.number(1e-6, 1.0)?;
            let seed = seed.as_ref().map(|f| f.integer(0, i64::MAX as u64)).transpose()?;
            Senders::Share { share, seed: seed.unwrap_or(1) }
        }
        _ => return Err(field.error("is not exactly one of hosts, except, every, share, place")),
    };
    let (with_offset, with_seed) =
        (matches!(read, Senders::Every { .. }), matches!(read, Senders::Share { .. }));
    if let Some(field) = offset.filter(|_| !with_offset).or(seed.filter(|_| !with_seed)) {
        return Err(field.error("does not belong to this kind of senders; drop it"));
    }
    Ok(read)
}

/// Keys of senders.
const SENDERS: &[&str] = &["hosts", "except", "every", "offset", "share", "seed", "place", "ranks"];

/// `{ place = "packed", ranks = 64 }`.
fn placed(keys: &Keys<'_>, place: &Field<'_>) -> Result<Senders, LabError> {
    for key in ["hosts", "except", "every", "offset", "share"] {
        if let Some(field) = keys.optional(key) {
            return Err(field.error("does not go with place; drop one of them"));
        }
    }
    let seed = keys.optional("seed");
    let read = seed.as_ref().map(|field| field.integer(0, i64::MAX as u64)).transpose()?;
    let senders = placement::read(place, keys.optional("ranks"), read)?;
    let random = matches!(senders, Senders::Placed { placing: Placing::Random(_), .. });
    match seed.filter(|_| !random) {
        Some(field) => Err(field.error("goes with place = \"random\"; drop it")),
        None => Ok(senders),
    }
}

pub(super) fn host_refs(field: &Field<'_>) -> Result<Vec<HostRef>, LabError> {
    let items = field.items()?;
    if items.is_empty() {
        return Err(field.error("names no host"));
    }
    let host = |item: &Field<'_>| match item.node.value {
        Value::Integer(_) => Ok(HostRef::Number(item.integer(0, u64::from(u32::MAX))? as u32)),
        _ => Ok(HostRef::Name(item.text()?.to_owned())),
    };
    items.iter().map(host).collect()
}

/// A size, `{ min, max }` or `{ mix = [["64 B", 0.5], …] }`.
fn sizes(field: &Field<'_>) -> Result<SizeDistribution, LabError> {
    let (least, most) = (Bytes(1), Bytes(1 << 30));
    if matches!(field.node.value, Value::Text(_)) {
        return Ok(SizeDistribution::Fixed(field.quantity(least, most)?));
    }
    if field.node.entries().is_none() {
        return Err(field.error("is neither a size such as \"2 KiB\", { min, max } nor { mix }"));
    }
    let keys = field.keys(&["mix", "min", "max"])?;
    let sizes = match keys.optional("mix") {
        Some(mix) => {
            let pair = |item: &Field<'_>| match item.items()?.as_slice() {
                [size, weight] => Ok((size.quantity(least, most)?, weight.number(1e-9, 1e9)?)),
                _ => Err(item.error("is not a pair [size, weight]")),
            };
            SizeDistribution::Mix(mix.items()?.iter().map(pair).collect::<Result<_, _>>()?)
        }
        None => SizeDistribution::Uniform {
            min: keys.required("min", "\"64 B\"")?.quantity(least, most)?,
            max: keys.required("max", "\"4 KiB\"")?.quantity(least, most)?,
        },
    };
    sizes.check().map_err(|error| field.error(&format!("cannot be: {error}")))?;
    Ok(sizes)
}

/// A size distribution in words, for the facts of a report.
pub(crate) fn in_words(sizes: &SizeDistribution) -> String {
    match sizes {
        SizeDistribution::Fixed(size) => size.exact(),
        SizeDistribution::Uniform { min, max } => {
            format!("{} to {}", min.exact(), max.exact())
        }
        SizeDistribution::Mix(mix) => format!("a mix of {} sizes", mix.len()),
    }
}
