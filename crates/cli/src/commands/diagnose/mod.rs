//! `clearlane diagnose`: from a site's files to a verdict.

mod anonymous;

use super::deploy;
use super::experiment::{self, quoted};
use super::narrow;
use crate::answer::{self, Answer, Verdict as Outcome};
use crate::arguments::between;
use crate::division::Asked;
use crate::failure::Failure;
use crate::files;
use crate::hot::HotCounted;
use crate::interrupt::Interrupts;
use crate::memory::{self, Guard};
use crate::progress::Progress;
use crate::routing::Routing;
use crate::site::{self, Names};
use crate::table::{Align, Table, count, wrap};
use crate::terminal;
use clap::{Args, ValueEnum};
use clearlane_diagnose::what_if::{self, FabricFile, Question, Traffic};
use clearlane_diagnose::{Finding, Site, facts, verdict};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::visible;
use clearlane_lab::{
    self as lab, Experiment, FABRIC_BYTES_MAX, Filled, Jobs, RunFolder, RunOptions, RunResult,
    Status, TABLE_BYTES_MAX, Unfinished, Verdict,
};
use clearlane_subnet::LidMap;
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use clearlane_subnet::lanes::{self as policies, LaneOptions};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What to diagnose.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit code 1 if cables or tables have a fault. What would happen under load is a\n\
    supposition, and decides nothing.\n\nExamples:\n  \
    clearlane diagnose site.topo --lft site.lft\n  \
    clearlane diagnose site.topo --lft site.lft --hot storage01 -o runs/monday\n  \
    clearlane diagnose site.topo --facts\n  \
    clearlane diagnose torus:6x6 --facts --json"
)]
pub struct Arguments {
    /// Fabric file, or a topology to build such as fat-tree:648
    #[arg(value_name = "FABRIC")]
    fabric: String,
    /// The site's own tables, and with further --lft its opensm-sl2vl.dump and the service levels
    /// of its paths
    #[arg(long, value_name = "FILE")]
    lft: Vec<PathBuf>,
    /// A host that many write to, by name, GUID or LID; again for more. Without it one is supposed
    #[arg(long, value_name = "HOST")]
    hot: Vec<String>,
    #[command(flatten)]
    counted: HotCounted,
    /// The `[[traffic]]` of this file instead of a hot host and its victims
    #[arg(long, value_name = "FILE")]
    traffic: Option<PathBuf>,
    /// Data virtual lanes every link has
    #[arg(long, value_name = "V", default_value_t = 1, value_parser = between(1u8, 15))]
    lanes: u8,
    /// Look at cables and tables alone; simulate nothing
    #[arg(long, conflicts_with_all =
        ["hot", "hot_counters", "hot_run", "traffic", "output", "control"])]
    facts: bool,
    /// Whether congestion control is simulated too, which takes 60 ms to be judged and not 2
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Control::Auto)]
    control: Control,
    #[command(flatten)]
    names: Names,
    /// Replace names and GUIDs by made-up ones, so that the report can be given away; the renamed
    /// files are written beside it
    #[arg(long, conflicts_with_all = ["traffic", "facts"])]
    anonymize: bool,
    /// Why the hot host is taken to be hot, where nobody has named it
    #[arg(skip)]
    supposed: Option<String>,
    /// How many seeds each variant is run with
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = between(1u32, 1000))]
    seeds: u32,
    /// Runs at a time; does not change results [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024), conflicts_with = "facts")]
    jobs: Option<u32>,
    /// Folder for the report and its tables
    #[arg(short, long, value_name = "DIR", default_value = "runs/diagnosis")]
    output: PathBuf,
    /// Replace the diagnosis that is in the folder
    #[arg(long)]
    force: bool,
}

/// When congestion control is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Control {
    /// On fabrics of up to 400 hosts
    Auto,
    /// On any fabric
    Yes,
    /// On none
    No,
}

impl Control {
    /// Hosts up to which it is a matter of seconds.
    const HOSTS_MAX: usize = 400;

    fn applies(self, hosts: usize) -> bool {
        match self {
            Control::Auto => hosts <= Control::HOSTS_MAX,
            Control::Yes => true,
            Control::No => false,
        }
    }
}

/// Diagnoses.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let counted = with_counted(arguments)?;
    let arguments = counted.as_ref().unwrap_or(arguments);
    if arguments.anonymize {
        let anonymous = anonymous::arguments(arguments, interrupts.unfinished())?;
        return diagnose(&anonymous, json, interrupts);
    }
    diagnose(arguments, json, interrupts)
}

/// The same with hosts that counters or a run show to be hot, if any are asked for.
fn with_counted(arguments: &Arguments) -> Result<Option<Arguments>, Failure> {
    if arguments.counted.is_empty() {
        return Ok(None);
    }
    let site = site::open_named(&arguments.fabric, &arguments.names)?;
    let Some((hosts, note)) = arguments.counted.hosts(&site.fabric)? else { return Ok(None) };
    terminal::remark(&note);
    let hot = arguments.hot.iter().cloned().chain(hosts).collect();
    Ok(Some(Arguments { hot, counted: HotCounted::default(), ..arguments.clone() }))
}

fn diagnose(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let opened = site::open_named(&arguments.fabric, &arguments.names)?;
    let progress = Progress::start("1 of 2: cables and tables");
    let fabric_file = match Path::new(&arguments.fabric).exists() {
        true => FabricFile::File(seen(arguments, Path::new(&arguments.fabric))?),
        false => FabricFile::Build(arguments.fabric.clone()),
    };
    let subnet = match arguments.lft.as_slice() {
        [] => None,
        files => Some(tables(&opened.fabric, files, arguments.lanes)?),
    };
    let site = Site::new(opened.name, opened.fabric, opened.oddities, subnet);
    let findings = facts::all(&site);
    drop(progress);
    let simulated = match arguments.facts {
        true => None,
        false => Some(simulated(arguments, &site, &findings, fabric_file, interrupts)?),
    };
    let (simulated, verdict) = match simulated {
        Some(Outlook::Simulated(simulated)) => {
            let verdict = simulated.verdict.clone();
            (Some(simulated), verdict)
        }
        Some(Outlook::None(why)) => {
            (None, verdict(&site, &findings, Some(&what_if::Answer::none(&why)), ""))
        }
        None => (None, verdict(&site, &findings, None, "")),
    };
    let outcome = match simulated.as_ref().is_some_and(|simulated| simulated.is_partial) {
        true => Outcome::Interrupted,
        false if verdict.healthy => Outcome::Done,
        false => Outcome::BadNews,
    };
    let answer = match json {
        true => as_json(&site, &findings, &verdict, simulated.as_deref())?,
        false => Answer::text(as_text(&findings, &verdict, simulated.as_deref())),
    };
    Ok(answer.with(outcome))
}

/// What a simulation has added, or why there is none.
enum Outlook {
    Simulated(Box<Simulated>),
    None(String),
}

/// What a simulation has added.
struct Simulated {
    result: RunResult,
    filled: Filled,
    /// Line that names the report, or the files that were left out.
    told: String,
    /// Of the runs with congestion control, if there were any.
    control_report: Option<PathBuf>,
    verdict: Verdict,
    /// Whether any of the runs was interrupted.
    is_partial: bool,
}

fn tables(
    fabric: &clearlane_fabric::Fabric,
    paths: &[PathBuf],
    lanes: u8,
) -> Result<clearlane_subnet::Subnet, Failure> {
    let read = |path: &PathBuf| -> Result<TableFile, Failure> {
        let text = files::read(path, TABLE_BYTES_MAX)?;
        Ok(TableFile { name: path.display().to_string(), text })
    };
    let files = paths.iter().map(read).collect::<Result<_, _>>()?;
    let lids = LidMap::from_fabric(fabric).map_err(Failure::input)?;
    let options = RouteOptions { files, lids, lanes, ..RouteOptions::default() };
    route("file", fabric, &options).map_err(Failure::input)
}

/// A file as the experiment in the folder of the results names it. What is to be given away has no
/// path of its author's machine.
fn seen(arguments: &Arguments, path: &Path) -> Result<PathBuf, Failure> {
    match (arguments.anonymize, path.file_name(), path.parent().and_then(Path::file_name)) {
        (true, Some(name), Some(folder)) => Ok(Path::new("..").join(folder).join(name)),
        _ => absolute(path),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// The ports of the hot hosts.
fn ports(site: &Site, hot: &what_if::Hot) -> Vec<Endpoint> {
    let of = |node: &NodeId| {
        let node = *node;
        site.fabric.neighbours(node).map(move |(port, ..)| Endpoint { node, port })
    };
    hot.nodes.iter().flat_map(of).collect()
}

/// What is wrong with a file, in one line.
fn one_line(path: &Path, error: &toml::de::Error) -> String {
    let message = visible(error.message()).into_owned();
    format!("{}: {message}; correct the file", path.display())
}

/// What runs: the flow groups of a file, or what is supposed.
fn traffic(arguments: &Arguments) -> Result<Traffic, Failure> {
    let Some(path) = &arguments.traffic else { return Ok(Traffic::Supposed) };
    let text = files::read(path, FABRIC_BYTES_MAX)?;
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| Failure::Input(one_line(path, &error)))?;
    let other = table.keys().find(|key| !["schema", "traffic"].contains(&key.as_str()));
    match other {
        None if table.contains_key("traffic") => Ok(Traffic::File(absolute(path)?)),
        None => Err(Failure::Input(format!("{}: has no [[traffic]]; add one", path.display()))),
        Some(key) => {
            let (path, key) = (path.display(), visible(key));
            let line = format!("{path}: has `{key}`; give a file that has [[traffic]] alone");
            Err(Failure::Input(line))
        }
    }
}

/// Asks what happens under load.
fn simulated(
    arguments: &Arguments,
    site: &Site,
    findings: &[Finding],
    fabric: FabricFile,
    interrupts: &Interrupts,
) -> Result<Outlook, Failure> {
    let mut hot = match what_if::hot(site, &arguments.hot) {
        Ok(hot) => hot,
        Err(error @ what_if::HotError::TooFew(_)) if arguments.hot.is_empty() => {
            return Ok(Outlook::None(error.to_string()));
        }
        Err(error) => return Err(Failure::input(error)),
    };
    hot.supposed = hot.supposed.or_else(|| arguments.supposed.clone());
    let progress = Progress::start("1 of 2: which engines are safe here");
    let engines = what_if::screen(site, arguments.lanes, &ports(site, &hot));
    drop(progress);
    let tables =
        arguments.lft.iter().map(|path| seen(arguments, path)).collect::<Result<_, _>>()?;
    let map = arguments.names.node_name_map.as_deref();
    let question = Question {
        site,
        fabric,
        node_name_map: map.map(absolute).transpose()?,
        tables,
        lanes: arguments.lanes,
        hot: &hot,
        engines: &engines,
        traffic: traffic(arguments)?,
        seeds: arguments.seeds,
    };
    if !question.has_own() && engines.is_empty() {
        let why = format!(
            "no engine joins all hosts without a credit loop in {}; see the facts",
            count(arguments.lanes.into(), "lane", "lanes")
        );
        return Ok(Outlook::None(why));
    }
    ran(arguments, &question, findings, interrupts)
}

/// Runs the question, and that about congestion control, and writes both folders.
fn ran(
    arguments: &Arguments,
    question: &Question<'_>,
    findings: &[Finding],
    interrupts: &Interrupts,
) -> Result<Outlook, Failure> {
    let (site, unfinished) = (question.site, interrupts.unfinished());
    let with_control = arguments.control.applies(site.hosts().len());
    let stages = if with_control { 3 } else { 2 };
    let folder = anonymous::beside(&arguments.output, CONTROL);
    let control =
        with_control.then(|| Stage::claim(&folder, arguments.force, unfinished)).transpose()?;
    let stage = Stage::claim(&arguments.output, arguments.force, unfinished)?;
    let asked = question.experiment();
    let label = format!("2 of {stages}: what if");
    let mut result = match stage.run(arguments, &asked, &label, interrupts) {
        // Of tables that lose most paths nothing may be left to simulate.
        Err(error @ Failure::Input(_)) if question.lost() > 0 && arguments.traffic.is_none() => {
            return Ok(Outlook::None(error.to_string()));
        }
        other => other?,
    };
    // What is done is not lost to what comes after it.
    let is_whole = result.status() != Status::Partial;
    let (controlled, is_control_cut) = match &control {
        Some(stage) if is_whole => controlled(stage, arguments, question, interrupts),
        _ => (None, control.is_some()),
    };
    let mut said = what_if::answer(question, &result, controlled.as_ref());
    if is_control_cut {
        said.control_is_cut_short();
    }
    let is_partial = !said.cut_short.is_empty();
    let next = next_step(arguments, question, findings, &said, unfinished);
    let verdict = verdict(site, findings, Some(&said), &next);
    result.verdict = Some(verdict.clone());
    let filled = stage.fill(&result, interrupts)?;
    let control = match (control, &controlled) {
        (Some(stage), Some(result)) => Some(stage.fill(result, interrupts)?),
        _ => None,
    };
    let is_partial = is_partial
        || [Some(&filled), control.as_ref()]
            .into_iter()
            .flatten()
            .any(|filled| !filled.left_out.is_empty());
    let told = experiment::told(&filled, &arguments.output);
    let control_report = control.and_then(|filled| filled.report);
    let simulated = Simulated { result, filled, told, control_report, verdict, is_partial };
    Ok(Outlook::Simulated(Box::new(simulated)))
}

/// Runs the question about congestion control. Returns nothing where that failed, and whether it
/// was interrupted before anything of it had ended.
fn controlled(
    stage: &Stage,
    arguments: &Arguments,
    question: &Question<'_>,
    interrupts: &Interrupts,
) -> (Option<RunResult>, bool) {
    let asked = question.control_experiment();
    match stage.run(arguments, &asked, "3 of 3: congestion control", interrupts) {
        Ok(result) => (Some(result), false),
        Err(Failure::Interrupted(_)) => (None, true),
        Err(error) => {
            terminal::remark(&format!("congestion control: {}", error.line()));
            (None, false)
        }
    }
}

/// The next step for the reader of the diagnosis; empty if there is none.
fn next_step(
    arguments: &Arguments,
    question: &Question<'_>,
    findings: &[Finding],
    said: &what_if::Answer,
    unfinished: &Unfinished,
) -> String {
    if !said.cut_short.is_empty() {
        let names = said.cut_short.join(", ");
        return format!("run it again with --force: it was interrupted before {names} had ended");
    }
    // A host that is only supposed to be hot needs no remedy. A fault is mended first.
    let is_faulty = findings.iter().any(Finding::is_fault);
    match question.hot.supposed {
        Some(_) if is_faulty || arguments.traffic.is_some() => String::new(),
        Some(_) => "name the host that is hot with --hot".into(),
        None => {
            let best = said.best.as_deref();
            let folder =
                best.and_then(|best| files_for_opensm(arguments, question, best, unfinished));
            next(arguments, question, best, folder.as_deref())
        }
    }
}

/// How the folder of runs with congestion control ends, which lies beside the others'.
const CONTROL: &str = "-control";

/// Runs of one experiment, and where their results lie.
struct Stage {
    path: PathBuf,
    folder: RunFolder,
}

impl Stage {
    fn claim(path: &Path, force: bool, unfinished: &Unfinished) -> Result<Self, Failure> {
        let folder = RunFolder::claim(path, force, unfinished).map_err(Failure::lab)?;
        Ok(Stage { path: path.to_owned(), folder })
    }

    fn fill(self, result: &RunResult, interrupts: &Interrupts) -> Result<Filled, Failure> {
        self.folder.fill(result, interrupts.deadline()).map_err(Failure::lab)
    }

    fn run(
        &self,
        arguments: &Arguments,
        experiment: &str,
        label: &str,
        interrupts: &Interrupts,
    ) -> Result<RunResult, Failure> {
        let path = self.path.join("diagnosis.toml");
        let experiment = Experiment::parse(experiment, &path).map_err(Failure::lab)?;
        let halt = interrupts.stop_in_good_order(&self.path);
        let guard = Guard::start(&halt)?;
        let options = RunOptions {
            jobs: match arguments.jobs {
                None => Jobs::Filling(terminal::cores()),
                Some(jobs) => Jobs::Exactly(jobs as usize),
            },
            memory_bytes: memory::free_bytes(),
            memory_short: guard.short(),
            deadline: interrupts.deadline().clone(),
            ..RunOptions::new(1, again(arguments))
        };
        let progress = Progress::of_runs(label, Asked { threads: 1, partitions: None });
        lab::run(&experiment, &options, &progress, &halt).map_err(Failure::lab)
    }
}

/// Writes what helped for OpenSM, beside the results: lanes, or the tables of an engine. Nothing if
/// it is something else, the site's own tables are not what it is for, or files cannot say it; a
/// word if writing fails, because the verdict stands without it.
fn files_for_opensm(
    arguments: &Arguments,
    question: &Question<'_>,
    best: &str,
    unfinished: &Unfinished,
) -> Option<PathBuf> {
    let name = match best {
        what_if::LANE => Some(("by-class", question.lanes_by_class())),
        what_if::VFTREE => Some(("vftree", question.lanes_vftree())),
        what_if::IBA_CC | what_if::FIRMWARE => return None,
        _ => None,
    };
    // Made-up GUIDs are of no use to an OpenSM.
    let of_site = question.has_own() && !arguments.anonymize;
    let tables = question.site.tables.as_ref().filter(|_| of_site)?;
    let fabric = &question.site.fabric;
    let folder = anonymous::beside(&arguments.output, DEPLOY);
    let lanes = |name: &str, count: u8| -> Result<(), Failure> {
        let policy = policies::policy(name).map_err(Failure::input)?;
        let mut options = LaneOptions::new(count);
        options.hot = ports(question.site, question.hot);
        let mut subnet = tables.subnet.clone();
        policy.assign(fabric, &mut subnet, &options).map_err(Failure::input)?;
        deploy::write(fabric, &subnet, Some(policy), (&folder, arguments.force), unfinished)
    };
    let written = match name {
        Some(_) if question.lost() > 0 => return None,
        Some((name, count)) => lanes(name, count),
        None => {
            let subnet = Routing::by_engine(best, arguments.lanes).subnet(fabric).ok()?;
            deploy::write(fabric, &subnet, None, (&folder, arguments.force), unfinished)
        }
    };
    match written {
        Ok(()) => Some(folder),
        Err(error) => {
            terminal::remark(&format!("files for OpenSM: {}", error.line()));
            None
        }
    }
}

/// How the folder with files for OpenSM ends, which lies beside the results.
const DEPLOY: &str = "-deploy";

/// What comes next against hot traffic, where a variant helps; `folder` has files for OpenSM.
fn next(
    arguments: &Arguments,
    question: &Question<'_>,
    best: Option<&str>,
    folder: Option<&Path>,
) -> String {
    if let Some(folder) = folder {
        let readme = folder.join("README");
        return format!("load the files for OpenSM: {}", quoted(&readme.to_string_lossy()));
    }
    let map = arguments.names.node_name_map.as_ref();
    let map = map.map(|map| format!(" --node-name-map {}", quoted(&map.to_string_lossy())));
    let fabric = quoted(&arguments.fabric) + &map.unwrap_or_default();
    let tables: String = match (question.has_own(), question.engines.first()) {
        (false, Some(first)) => format!(" --engine {}", first.engine),
        _ => {
            let file = |path: &PathBuf| format!(" --lft {}", quoted(&path.to_string_lossy()));
            arguments.lft.iter().map(file).collect()
        }
    };
    match best {
        None => String::new(),
        // New tables would be frozen, and lanes need none.
        Some(what_if::LANE | what_if::VFTREE) if !question.has_own() => {
            "write the site's tables by dump_fts and say this again with --lft: the lanes go with \
             the tables there are"
                .into()
        }
        Some(what_if::LANE) => {
            let hot = arguments.hot.iter().map(|host| format!(" --hot {}", quoted(host)));
            let (hot, lanes): (String, u8) = (hot.collect(), question.lanes_by_class());
            format!(
                "clearlane deploy {fabric}{tables} --lane-policy by-class --lanes {lanes}{hot} \
                 -o deploy"
            )
        }
        Some(what_if::VFTREE) => {
            let lanes = question.lanes_vftree();
            format!(
                "clearlane deploy {fabric}{tables} --lane-policy vftree --lanes {lanes} -o deploy"
            )
        }
        Some(what_if::IBA_CC) => {
            let folder = anonymous::beside(&arguments.output, CONTROL);
            let file = folder.join("experiment.toml");
            let (file, name) = (quoted(&file.to_string_lossy()), quoted(what_if::IBA_CC));
            format!("clearlane control {file} --variant {name} -o opensm.conf")
        }
        Some(what_if::FIRMWARE) => "turn on the congestion control of the adapters".into(),
        Some(engine) => format!("clearlane route {fabric} --engine {engine} -o tables"),
    }
}

/// The command line that makes the same again.
fn again(arguments: &Arguments) -> String {
    let mut line = format!("clearlane diagnose {}", quoted(&arguments.fabric));
    let path = |path: &PathBuf| quoted(&path.to_string_lossy());
    let lfts = arguments.lft.iter().map(|file| format!(" --lft {}", path(file)));
    let hot = arguments.hot.iter().map(|host| format!(" --hot {}", quoted(host)));
    let traffic = arguments.traffic.iter().map(|file| format!(" --traffic {}", path(file)));
    line.extend(lfts.chain(hot).chain(traffic));
    if let Some(map) = &arguments.names.node_name_map {
        line.push_str(&format!(" --node-name-map {}", path(map)));
    }
    match arguments.control {
        Control::Auto => {}
        Control::Yes => line.push_str(" --control yes"),
        Control::No => line.push_str(" --control no"),
    }
    if arguments.lanes > 1 {
        line.push_str(&format!(" --lanes {}", arguments.lanes));
    }
    line + &format!(" --seeds {}", arguments.seeds)
}

const COLUMNS: usize = 88;

fn as_text(findings: &[Finding], verdict: &Verdict, simulated: Option<&Simulated>) -> String {
    let mut table = Table::plain(&[Align::Left, Align::Left]);
    for line in &verdict.lines {
        for (index, part) in wrap(&line.text, COLUMNS).into_iter().enumerate() {
            let label = if index == 0 { line.label } else { "" };
            table.row([label.to_owned(), part]);
        }
    }
    let mut text = table.to_string();
    if let Some(Simulated { result, told, control_report, .. }) = simulated {
        let table = narrow::headline(&result.headline_table(), 1);
        let marks = experiment::marks(&table, &experiment::ended(result));
        text.push_str(&format!("\n{table}{}{marks}", experiment::worst_links(result)));
        if simulated.is_some_and(|simulated| simulated.is_partial) {
            text.push_str("interrupted: results are partial; run it again with --force\n");
        }
        text.push_str(&format!("\n{told}\n"));
        if let Some(report) = control_report {
            text.push_str(&format!("with congestion control: {}\n", report.display()));
        }
    }
    text + &listed(findings)
}

/// Places of a fact that are listed.
const PLACES: usize = 4;

/// Every fact in the order of its effect, with some of the places where it is.
fn listed(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = format!("\nfacts  {}\n", findings.len());
    let mut say = |indent: &str, line: &str| {
        for (index, part) in wrap(line, COLUMNS).into_iter().enumerate() {
            let deeper = if index == 0 { "" } else { "  " };
            text.push_str(&format!("{indent}{deeper}{part}\n"));
        }
    };
    for finding in findings {
        say("  ", &format!("{}: {}", finding.fact, finding.text));
        for more in finding.more.iter().take(PLACES) {
            say("    ", more);
        }
        if finding.more.len() > PLACES {
            let rest = finding.more.len() - PLACES;
            say("    ", &format!("and {rest} more; --json has them"));
        }
    }
    text
}

fn as_json(
    site: &Site,
    findings: &[Finding],
    verdict: &Verdict,
    simulated: Option<&Simulated>,
) -> Result<Answer, Failure> {
    let summary = |simulated: &Simulated| -> Result<Value, Failure> {
        serde_json::from_str(&simulated.filled.summary)
            .map_err(|error| Failure::Internal(error.to_string()))
    };
    let fields = json!({
        "fabric": site.name,
        "healthy": verdict.healthy,
        "verdict": answer::value(verdict)?,
        "facts": answer::value(&findings)?,
        "what_if": simulated.map(summary).transpose()?,
        "partial": simulated.is_some_and(|simulated| simulated.is_partial),
        "report": simulated
            .and_then(|simulated| simulated.filled.report.as_ref())
            .map(|report| report.display().to_string()),
        "control_report": simulated
            .and_then(|simulated| simulated.control_report.as_ref())
            .map(|report| report.display().to_string()),
    });
    Ok(Answer::json("clearlane-diagnosis/1", fields))
}
