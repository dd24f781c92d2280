//! `clearlane diagnose`: from a site's files to a verdict.

use super::experiment::quoted;
use super::narrow;
use crate::answer::{self, Answer, Verdict as Outcome};
use crate::arguments::between;
use crate::division::Asked;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupts;
use crate::memory::{self, Guard};
use crate::progress::Progress;
use crate::site;
use crate::table::{Align, Table, wrap};
use crate::terminal;
use clap::Args;
use clearlane_diagnose::what_if::{self, FabricFile, Question, Traffic};
use clearlane_diagnose::{Finding, Site, facts, verdict};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_lab::{
    self as lab, Experiment, FABRIC_BYTES_MAX, Jobs, RunFolder, RunOptions, RunResult, Status,
    TABLE_BYTES_MAX, Verdict,
};
use clearlane_subnet::LidMap;
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What to diagnose.
#[derive(Args, Debug)]
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
    /// The `[[traffic]]` of this file instead of a hot host and its victims
    #[arg(long, value_name = "FILE")]
    traffic: Option<PathBuf>,
    /// Data virtual lanes every link has
    #[arg(long, value_name = "V", default_value_t = 1, value_parser = between(1u8, 15))]
    lanes: u8,
    /// Look at cables and tables alone; simulate nothing
    #[arg(long, conflicts_with_all = ["hot", "traffic", "output"])]
    facts: bool,
    /// How many seeds each variant is run with
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = between(1u32, 1000))]
    seeds: u32,
    /// Folder for the report and its tables
    #[arg(short, long, value_name = "DIR", default_value = "runs/diagnosis")]
    output: PathBuf,
    /// Replace the diagnosis that is in the folder
    #[arg(long)]
    force: bool,
}

/// Diagnoses.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let opened = site::open(&arguments.fabric)?;
    let progress = Progress::start("1 of 2: cables and tables");
    let fabric_file = match Path::new(&arguments.fabric).exists() {
        true => FabricFile::File(absolute(Path::new(&arguments.fabric))?),
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
        false => simulated(arguments, &site, &findings, fabric_file, interrupts)?,
    };
    let verdict = match &simulated {
        Some(simulated) => simulated.verdict.clone(),
        None => verdict(&site, &findings, None, ""),
    };
    let outcome = if verdict.healthy { Outcome::Done } else { Outcome::BadNews };
    let answer = match json {
        true => as_json(&site, &findings, &verdict, simulated.as_ref())?,
        false => Answer::text(as_text(&findings, &verdict, simulated.as_ref())),
    };
    Ok(answer.with(outcome))
}

/// What a simulation has added.
struct Simulated {
    result: RunResult,
    report: PathBuf,
    verdict: Verdict,
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

/// What runs: the flow groups of a file, or what is supposed.
fn traffic(arguments: &Arguments) -> Result<Traffic, Failure> {
    let Some(path) = &arguments.traffic else { return Ok(Traffic::Supposed) };
    // Read to be named as it was given if it cannot be.
    files::read(path, FABRIC_BYTES_MAX)?;
    Ok(Traffic::File(absolute(path)?))
}

/// Asks what happens under load; nothing where there are too few hosts for it or no way to route.
fn simulated(
    arguments: &Arguments,
    site: &Site,
    findings: &[Finding],
    fabric: FabricFile,
    interrupts: &Interrupts,
) -> Result<Option<Simulated>, Failure> {
    let hot = match what_if::hot(site, &arguments.hot) {
        Ok(hot) => hot,
        Err(what_if::HotError::TooFew(_)) if arguments.hot.is_empty() => return Ok(None),
        Err(error) => return Err(Failure::input(error)),
    };
    let progress = Progress::start("1 of 2: which engines are safe here");
    let engines = what_if::screen(site, arguments.lanes, &ports(site, &hot));
    drop(progress);
    let tables = arguments.lft.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?;
    let question = Question {
        site,
        fabric,
        tables,
        lanes: arguments.lanes,
        hot: &hot,
        engines: &engines,
        traffic: traffic(arguments)?,
        seeds: arguments.seeds,
    };
    if !question.has_own() && engines.is_empty() {
        return Ok(None);
    }
    let path = arguments.output.join("diagnosis.toml");
    let experiment = Experiment::parse(&question.experiment(), &path).map_err(Failure::lab)?;
    let made = !arguments.output.exists();
    let folder = RunFolder::claim(&arguments.output, arguments.force).map_err(Failure::lab)?;
    let halt = interrupts.stop_in_good_order(&arguments.output, made);
    let guard = Guard::start(&halt);
    let asked = Asked { threads: 1, partitions: None };
    let options = RunOptions {
        jobs: Jobs::Filling(terminal::cores()),
        memory_bytes: memory::free_bytes(),
        memory_short: guard.short(),
        ..RunOptions::new(1, again(arguments))
    };
    let progress = Progress::of_runs("2 of 2: what if", asked);
    let mut result = lab::run(&experiment, &options, &progress, &halt).map_err(Failure::lab)?;
    drop(progress);
    let said = what_if::answer(&question, &result);
    // Of a host that is only supposed to be hot nothing is to be done, and a fault comes first.
    let is_faulty = findings.iter().any(Finding::is_fault);
    let next = match hot.supposed {
        Some(_) if is_faulty => String::new(),
        Some(_) => "name the host that is hot with --hot".into(),
        None => next(arguments, said.best.as_deref()),
    };
    let verdict = verdict(site, findings, Some(&said), &next);
    result.verdict = Some(verdict.clone());
    let report = folder.fill(&result).map_err(Failure::lab)?;
    Ok(Some(Simulated { result, report, verdict }))
}

/// What comes next against hot traffic, where a variant helps.
fn next(arguments: &Arguments, best: Option<&str>) -> String {
    let fabric = quoted(&arguments.fabric);
    match best {
        None => String::new(),
        Some(what_if::LANE) => {
            "give the hot traffic a service level and a virtual lane of its own".into()
        }
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
    if let Some(Simulated { result, report, .. }) = simulated {
        text.push_str(&format!("\n{}", narrow::headline(&result.headline_table(), 1)));
        text.push_str(&format!("\nreport: {}\n", report.display()));
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
    for finding in findings {
        text.push_str(&format!("  {}: {}\n", finding.fact, finding.text));
        for more in finding.more.iter().take(PLACES) {
            text.push_str(&format!("    {more}\n"));
        }
        if finding.more.len() > PLACES {
            let rest = finding.more.len() - PLACES;
            text.push_str(&format!("    and {rest} more; --json has them\n"));
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
        serde_json::from_str(&simulated.result.to_json())
            .map_err(|error| Failure::Internal(error.to_string()))
    };
    let fields = json!({
        "fabric": site.name,
        "healthy": verdict.healthy,
        "verdict": answer::value(verdict)?,
        "facts": answer::value(&findings)?,
        "what_if": simulated.map(summary).transpose()?,
        "partial": simulated.is_some_and(|s| s.result.status() == Status::Partial),
    });
    Ok(Answer::json("clearlane-diagnosis/1", fields))
}
