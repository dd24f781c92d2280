//! What `run`, `compare` and `sweep` share: reading an experiment, running it, writing its folder.

use super::resume::{self, Call, wall_time};
use crate::answer::{self, Answer, Verdict};
use crate::arguments::between;
use crate::division::Asked;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupts;
use crate::memory::{self, Guard};
use crate::progress::Progress;
use crate::table::count;
use crate::terminal;
use crate::writing::{self, Writing};
use clap::{Args, ValueEnum};
use clearlane_capture::write::{Container, Kept, Style, Wrapping};
use clearlane_ib::visible;
use clearlane_lab::{
    CaptureRequest, Checkpoints, Ends, Experiment, Filled, Jobs, Mode, Plan, Processes, Quiet,
    RunFolder, RunOptions, RunResult, SiteFiles, Status, Theme, Unfinished, captures_in, grouped,
    picture, run,
};
use serde_json::{Value, json};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Flags of all three commands.
#[derive(Args, Debug)]
pub struct Shared {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: PathBuf,
    /// Folder for summary, tables and report [default: runs/ and the experiment's name, of a sweep
    /// with -sweep behind it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run on this fabric file instead of the experiment's
    #[arg(long, value_name = "FILE")]
    pub fabric: Option<PathBuf>,
    /// Forwarding tables of that fabric; with further --lft its SL2VL and the SLs of its paths
    #[arg(long, value_name = "FILE")]
    pub lft: Vec<PathBuf>,
    /// Names of nodes by GUID, as `ibnetdiscover --node-name-map` takes them
    #[arg(long, value_name = "FILE")]
    pub node_name_map: Option<PathBuf>,
    /// If the fabric of --fabric lacks a host that the experiment names, use its first hosts
    /// instead
    #[arg(long, requires = "fabric")]
    pub stand_in: bool,
    /// First seed
    #[arg(long, value_name = "S", value_parser = between(0u64, u64::MAX))]
    pub seed: Option<u64>,
    /// How many seeds each variant is run with
    #[arg(long, value_name = "N", value_parser = between(1u32, 1000))]
    pub seeds: Option<u32>,
    /// Runs at a time; does not change results [default: the machine's cores ÷ the threads of a
    /// run]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024))]
    pub jobs: Option<u32>,
    /// Threads for each run, 1 to 1024; they do not change results. Use them for large fabrics on
    /// idle cores: beside other work, several threads are slower than one. A run takes fewer if the
    /// machine has fewer cores or the fabric has no work for them
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = between(1u32, 1024))]
    pub threads: u32,
    /// Parts the fabric is divided into, 1 to 1024, even if it is too small to gain; does not
    /// change results [default: one for each thread the fabric has work for]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024))]
    pub partitions: Option<u32>,
    /// Replace the run that is in the folder
    #[arg(long)]
    pub force: bool,
    /// Save runs under way at this interval, 1 s to 24 h, for `clearlane resume`; without it they
    /// are saved when the command is interrupted
    #[arg(long, value_name = "TIME", value_parser = wall_time)]
    pub checkpoint_every: Option<Duration>,
    /// Print the experiment with every default spelt out and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How the command was called
    #[arg(skip)]
    pub call: Call,
}

/// The flags of `run` and `compare` for captures.
#[derive(Args, Clone, Debug, Default)]
pub struct Captured {
    /// Capture packets at these ports, comma-separated: H4 is all ports of a host or switch, S2:3
    /// one; hosts and all. Of each variant the first run is captured, into the folder of the
    /// results, from which `clearlane resume` then begins it anew
    #[arg(long, value_name = "PORTS", value_delimiter = ',')]
    capture: Vec<String>,
    /// What packets are written as
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, requires = "capture")]
    capture_format: CaptureFormat,
    /// Write headers alone: no payload and no CRC
    #[arg(long, requires = "capture")]
    capture_headers: bool,
}

/// What packets are written as.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum CaptureFormat {
    /// InfiniBand in pcapng, interfaces by name, queue, CCTI and path as comments
    #[default]
    Pcapng,
    /// InfiniBand in pcap with ERF records, as ibdump has it
    Ibdump,
    /// RoCE v2 in pcapng
    Roce,
}

impl Captured {
    /// Whether anything is to be captured.
    pub fn is_asked(&self) -> bool {
        !self.capture.is_empty()
    }

    /// A line for each capture in the folder of the results.
    fn written(&self, out: &Path) -> String {
        let asked = self.is_asked().then(|| captures_in(out));
        let line = |(path, bytes): (PathBuf, u64)| {
            format!("capture: {} ({} MB)\n", path.display(), grouped(bytes.div_ceil(1_000_000)))
        };
        asked.into_iter().flatten().map(line).collect()
    }

    /// What is captured into a folder; nothing if nothing is asked for.
    fn request(
        &self,
        folder: &mut RunFolder,
        processes: &Processes,
    ) -> Result<Option<CaptureRequest>, Failure> {
        if self.capture.is_empty() {
            return Ok(None);
        }
        if processes.count() > 1 {
            let why = "each process sees its own packets alone";
            return Err(Failure::Input(format!("--capture: {why}; call it without mpirun")));
        }
        let (container, wrapping) = match self.capture_format {
            CaptureFormat::Pcapng => (Container::Pcapng, Wrapping::Native),
            CaptureFormat::Ibdump => (Container::Erf, Wrapping::Native),
            CaptureFormat::Roce => (Container::Pcapng, Wrapping::RoceV2),
        };
        let kept = if self.capture_headers { Kept::Headers } else { Kept::Full };
        let style = Style { container, wrapping, kept };
        let folder = folder.for_begun().map_err(Failure::lab)?;
        Ok(Some(CaptureRequest { ports: self.capture.clone(), style, folder }))
    }
}

/// The flag of `run` and `compare` for a drawing.
#[derive(Args, Debug)]
pub struct Picture {
    /// Draw the first three variants side by side, with their congestion trees, as SVG
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Colours of the drawing
    #[arg(long, value_enum, default_value_t = Colours::Light, requires = "picture")]
    theme: Colours,
}

impl Picture {
    /// Whether one is to be drawn.
    pub fn is_asked(&self) -> bool {
        self.picture.is_some()
    }
}

/// For light or for dark pages.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Colours {
    /// Dark on light
    Light,
    /// Light on dark
    Dark,
}

impl Picture {
    /// Fails if the drawing may not be written, as into the folder of the results, `out`.
    fn check(&self, shared: &Shared, out: &Path) -> Result<(), Failure> {
        // A command that goes on is to draw what it was to draw.
        let writing = Writing { force: shared.force || shared.call.resumes, dry_run: false };
        self.picture.iter().try_for_each(|path| {
            writing::outside(path, out)?;
            writing.files(&[path], &shared.inputs())
        })
    }

    /// Draws, if it is asked for: what is complete.
    fn draw(&self, result: &RunResult, unfinished: &Unfinished) -> Result<(), Failure> {
        let Some(path) = &self.picture else { return Ok(()) };
        const SIDE_BY_SIDE: usize = 3;
        let names: Vec<&str> = result.variants.iter().map(|v| v.name.as_str()).collect();
        let theme = match self.theme {
            Colours::Light => Theme::Light,
            Colours::Dark => Theme::Dark,
        };
        let shown = &names[..names.len().min(SIDE_BY_SIDE)];
        let drawing = picture(result, shown, theme).map_err(Failure::lab)?;
        files::write(path, drawing.as_bytes(), unfinished)
    }
}

/// What is asked of an experiment beside the shared flags.
pub struct Task<'a> {
    /// The command.
    pub command: &'static str,
    /// Names of variants; all if there are none.
    pub variants: &'a [String],
    /// What is drawn.
    pub picture: &'a Picture,
    /// What is captured.
    pub captured: &'a Captured,
    /// Who runs it.
    pub processes: &'a Processes,
}

/// Runs the variants and writes the folder. Of several processes the first has the answer, and
/// alone writes; the others say nothing.
pub fn answer(
    task: &Task<'_>,
    shared: &Shared,
    json: bool,
    interrupts: &Interrupts,
    text: impl Fn(&RunResult) -> String,
) -> Result<Answer, Failure> {
    let Task { command, variants, picture: drawing, captured, processes } = *task;
    let mut experiment = Experiment::read(&shared.experiment).map_err(Failure::lab)?;
    if !variants.is_empty() {
        experiment.keep_variants(variants).map_err(Failure::lab)?;
    }
    experiment.override_site(&shared.site()).map_err(Failure::lab)?;
    experiment.override_seeds(shared.seed, shared.seeds).map_err(Failure::lab)?;
    let default = || Path::new("runs").join(&experiment.name);
    let out = shared.out.clone().unwrap_or_else(default);
    if !processes.is_first() {
        let halt = interrupts.stop_silently();
        return helped(task, shared, &experiment, (&out, halt), interrupts.unfinished());
    }
    if shared.dry_run {
        return resolved(&experiment, json);
    }
    drawing.check(shared, &out)?;
    let unfinished = interrupts.unfinished();
    let checkpoints = shared.checkpoints(&out, Again::Refused, unfinished)?;
    let force = shared.force || shared.call.resumes;
    let mut folder = RunFolder::claim(&out, force, unfinished).map_err(Failure::lab)?;
    writing::spare(&out, &shared.inputs())?;
    let capture = captured.request(&mut folder, processes)?;
    let halt = interrupts.stop_in_good_order(&out);
    // Several stop together, at whatever they do.
    if processes.count() > 1 {
        interrupts.deadline().begin();
    }
    let command = again(command, shared, variants);
    checkpoints.begin().map_err(Failure::lab)?;
    let options = |guard: &Guard| RunOptions {
        capture: capture.clone(),
        deadline: interrupts.deadline().clone(),
        ..shared.options(command.clone(), guard, Some(&checkpoints), processes)
    };
    let names = count(experiment.variants.len(), "variant", "variants");
    let progress = Progress::of_runs(&format!("running {names}"), shared.asked());
    let result = run_watched(options, &experiment, &progress, &halt)
        .inspect_err(|failure| resume::given_up(&checkpoints, &out, failure))?;
    // Freeing its many pieces takes a second in a large run, and the process is about to end.
    let result = ManuallyDrop::new(result);
    progress.on_results();
    let filled = folder.fill(&result, interrupts.deadline()).map_err(Failure::lab)?;
    let is_partial = result.status() == Status::Partial || !filled.left_out.is_empty();
    resume::end(&checkpoints, &out, is_partial)?;
    if !is_partial {
        drawing.draw(&result, unfinished)?;
    }
    let verdict = if is_partial { Verdict::Interrupted } else { verdict(result.status()) };
    let report = format!("{}{}", captured.written(&out), told(&filled, &out));
    progress.end();
    if json {
        terminal::remark(&report);
        return Ok(Answer::text(filled.summary).with(verdict));
    }
    if !filled.left_out.is_empty() {
        return Ok(Answer::text(format!("{report}\n")).with(verdict));
    }
    let text =
        format!("{}{}{report}\n", text(&result), oddities(&result.oddities(), "summary.json"));
    Ok(Answer::text(text).with(verdict))
}

/// Line that names the report, or the files that were left out.
pub fn told(filled: &Filled, out: &Path) -> String {
    match (&filled.report, filled.left_out.is_empty()) {
        (Some(report), true) => format!("report: {}", report.display()),
        _ => {
            let files = filled.left_out.join(", ");
            format!("partial results: {}, without {files}", out.display())
        }
    }
}

/// Runs the part of a process that is not the first. The first says when runs are kept, and clears
/// what was kept.
fn helped(
    task: &Task<'_>,
    shared: &Shared,
    experiment: &Experiment,
    (out, halt): (&Path, Arc<AtomicBool>),
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    if !shared.dry_run {
        let guard = Guard::start(&halt)?;
        let kept = Checkpoints::of(out, None, shared.call.text()?, unfinished);
        let kept = if shared.call.resumes { kept.resumed() } else { kept };
        let options = shared.options(String::new(), &guard, Some(&kept), task.processes);
        run(experiment, &options, &Quiet, &halt).map_err(Failure::lab)?;
    }
    Ok(Answer::text(String::new()))
}

fn run_watched(
    options: impl Fn(&Guard) -> RunOptions,
    experiment: &Experiment,
    progress: &Progress,
    halt: &Arc<AtomicBool>,
) -> Result<RunResult, Failure> {
    let guard = Guard::start(halt)?;
    run(experiment, &options(&guard), progress, halt).map_err(Failure::lab)
}

/// The folder of a command that makes many runs of an experiment for one answer: `out`, or one in
/// runs/ that is called after both. Fails if it would take the place of the experiment.
pub fn folder(experiment: &Path, answer: &str, out: Option<&Path>) -> Result<PathBuf, Failure> {
    let name = experiment.file_stem().unwrap_or_default().to_string_lossy();
    let default = || Path::new("runs").join(format!("{name}-{answer}"));
    let out = out.map_or_else(default, Path::to_path_buf);
    writing::spare(&out, &[experiment])?;
    Ok(out)
}

/// How such a command runs: each run on one thread, so many at a time, or one for each core.
pub fn many(
    jobs: Option<u32>,
    guard: &Guard,
    command: String,
    interrupts: &Interrupts,
) -> RunOptions {
    RunOptions {
        jobs: jobs.map_or(Jobs::Filling(terminal::cores()), |jobs| Jobs::Exactly(jobs as usize)),
        memory_bytes: memory::free_bytes(),
        memory_short: guard.short(),
        unfinished: interrupts.unfinished().clone(),
        deadline: interrupts.deadline().clone(),
        ..RunOptions::new(1, command)
    }
}

/// The exit code's reason.
pub fn verdict(status: Status) -> Verdict {
    match status {
        Status::Complete | Status::Starved | Status::NotConverged | Status::NotEnded => {
            Verdict::Done
        }
        Status::Partial => Verdict::Interrupted,
        Status::Deadlock => Verdict::Deadlock,
    }
}

/// What a command does that was interrupted and is called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// It is told of `clearlane resume`.
    Refused,
    /// It goes on where it was.
    GoesOn,
}

impl Shared {
    /// The files the command line names.
    pub fn inputs(&self) -> Vec<&Path> {
        let all = [&self.experiment].into_iter().chain(&self.fabric).chain(&self.lft);
        all.chain(&self.node_name_map).map(PathBuf::as_path).collect()
    }

    /// A site's files in place of the experiment's.
    pub fn site(&self) -> SiteFiles {
        SiteFiles {
            fabric: self.fabric.clone(),
            lft: self.lft.clone(),
            node_name_map: self.node_name_map.clone(),
            stand_in: self.stand_in,
        }
    }

    /// How to run: on all cores unless told otherwise, and in the memory that is free.
    pub fn options(
        &self,
        command: String,
        guard: &Guard,
        checkpoints: Option<&Checkpoints>,
        processes: &Processes,
    ) -> RunOptions {
        let (asked, cores) = (self.asked(), terminal::cores());
        let (threads, partitions) = (asked.threads_on(cores), asked.partitions);
        let jobs = self.jobs.map_or(Jobs::Filling(cores), |jobs| Jobs::Exactly(jobs as usize));
        let (memory_bytes, memory_short) = (memory::free_bytes(), guard.short());
        RunOptions {
            jobs,
            threads,
            partitions,
            memory_bytes,
            memory_short,
            checkpoints: checkpoints.cloned(),
            processes: processes.clone(),
            ..RunOptions::new(1, command)
        }
    }

    /// Where runs under way are kept. Those of an interrupted command that are there are gone on
    /// with by one that resumes it, by the same sweep called again, and replaced by force. Any
    /// other command fails.
    pub fn checkpoints(
        &self,
        out: &Path,
        again: Again,
        unfinished: &Unfinished,
    ) -> Result<Checkpoints, Failure> {
        let (every, asked) = (self.checkpoint_every, self.call.text()?);
        let checkpoints = Checkpoints::of(out, every, asked, unfinished);
        checkpoints.check_owner().map_err(Failure::lab)?;
        if self.call.resumes {
            return Ok(checkpoints.resumed());
        }
        if self.force || !checkpoints.is_there() {
            return Ok(checkpoints);
        }
        if again == Again::GoesOn {
            return Ok(checkpoints.called_again());
        }
        let (kept, out) = (checkpoints.folder().display(), quoted(&out.to_string_lossy()));
        Err(Failure::Input(format!(
            "{kept}: holds an interrupted command; continue it with `clearlane resume {out}`, or \
             add --force to delete it"
        )))
    }

    /// How runs are to be divided.
    pub fn asked(&self) -> Asked {
        let partitions = self.partitions.map(|partitions| partitions as usize);
        Asked { threads: self.threads as usize, partitions }
    }
}

/// The experiment with every default spelt out.
fn resolved(experiment: &Experiment, json: bool) -> Result<Answer, Failure> {
    let text = experiment.resolved();
    if !json {
        return Ok(Answer::text(text));
    }
    let value: Value = toml::from_str(&text).map_err(|e| Failure::Internal(e.to_string()))?;
    let fields = json!({ "resolved": answer::value(&value)? });
    Ok(Answer::json("clearlane-experiment/1", fields))
}

/// Title of a result: what was asked and how often it was run.
pub fn title(result: &RunResult) -> String {
    let experiment = &result.experiment;
    let plan = &experiment.plan;
    let seeds = count(plan.seeds as usize, "seed", "seeds");
    let interval = if plan.seeds > 1 { ", ± is the 95 % interval over seeds" } else { "" };
    let status = match result.status() {
        Status::Complete => String::new(),
        // Where the rest is steady, the table says so figure by figure.
        Status::NotConverged => format!("  [not converged: {}]", moving(result)),
        Status::NotEnded => "  [programs not ended: raise duration]".into(),
        status => format!("  [{status}]"),
    };
    let summary = match experiment.summary.as_str() {
        "" => String::new(),
        summary => format!(": {}", visible(summary)),
    };
    let length = length(plan);
    format!("{}{summary}{status}\n{length} per variant, {seeds}{interval}\n", experiment.name)
}

/// How long a run is, and of what if not of packets.
pub fn length(plan: &Plan) -> String {
    let length = match plan.ends {
        Ends::Duration => plan.duration.to_string(),
        Ends::Programs => format!("until programs end (at most {})", plan.duration),
    };
    match plan.mode {
        Mode::Packets => length,
        Mode::Flow => format!("{length} in flow mode"),
    }
}

/// What had not converged, in few words.
fn moving(result: &RunResult) -> String {
    match result.not_converged().as_slice() {
        [] => "the run is too short".into(),
        few if few.len() <= 4 => few.join(", "),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// What the marks in a table mean, if it has any: runs ended so.
pub fn marks(table: &str, ended: &[Status]) -> String {
    if !table.contains('*') {
        return String::new();
    }
    let mut why: Vec<&str> = Vec::new();
    for (status, words) in [
        (Status::NotConverged, "still changing while it was measured (raise warm_up or duration)"),
        (Status::NotEnded, "a program had not ended with every seed"),
        (Status::Deadlock, "the run ended in a deadlock"),
        (Status::Partial, "the run was interrupted"),
    ] {
        if ended.contains(&status) {
            why.push(words);
        }
    }
    if why.is_empty() {
        why.push("still changing while it was measured (raise warm_up or duration)");
    }
    format!("* not converged: {}\n", why.join(", or "))
}

/// When each of several programs was complete, below the headline; nothing without several.
pub fn programs(result: &RunResult) -> String {
    result.programs_table().map_or(String::new(), |table| format!("\n{table}"))
}

/// Which output of a switch is busiest, below the headline: by variant where they differ.
pub fn worst_links(result: &RunResult) -> String {
    let mut links: Vec<(String, Vec<&str>)> = Vec::new();
    for variant in &result.variants {
        let Some(link) = variant.worst_link() else { continue };
        match links.iter_mut().find(|(known, _)| *known == link) {
            Some((_, names)) => names.push(&variant.name),
            None => links.push((link, vec![&variant.name])),
        }
    }
    let all = result.variants.len();
    let each = links.iter().map(|(link, names)| match names.len() == all {
        true => visible(link).into_owned(),
        false => format!("{} in {}", visible(link), names.join(", ")),
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        String::new()
    } else {
        format!("worst link  {}\n", each.join("\n            "))
    }
}

/// What congestion mechanisms did, below the headline; nothing without any.
pub fn control(result: &RunResult) -> String {
    result.control_table().map_or(String::new(), |table| format!("\n{table}"))
}

/// How the variants of a run ended.
pub fn ended(result: &RunResult) -> Vec<Status> {
    result.variants.iter().map(|variant| result.status_of(variant)).collect()
}

/// What a careful reader should know, the first few.
pub fn oddities(all: &[String], file: &str) -> String {
    const SHOWN: usize = 8;
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!("\noddities  {}\n", all.len());
    for oddity in all.iter().take(SHOWN) {
        text.push_str(&format!("  {oddity}\n"));
    }
    if all.len() > SHOWN {
        text.push_str(&format!("  and {} more in {file}\n", all.len() - SHOWN));
    }
    text
}

/// The command line that gives the same results, without what has no influence on them.
pub fn again(command: &str, shared: &Shared, variants: &[String]) -> String {
    let mut line = format!("clearlane {command} {}", quoted(&shared.experiment.to_string_lossy()));
    if !variants.is_empty() {
        line.push_str(&format!(" --variants {}", quoted(&variants.join(","))));
    }
    let fabric = shared.fabric.iter().map(|path| ("--fabric", path));
    let tables = shared.lft.iter().map(|path| ("--lft", path));
    let names = shared.node_name_map.iter().map(|path| ("--node-name-map", path));
    for (flag, path) in fabric.chain(tables).chain(names) {
        line.push_str(&format!(" {flag} {}", quoted(&path.to_string_lossy())));
    }
    if shared.stand_in {
        line.push_str(" --stand-in");
    }
    if let Some(seed) = shared.seed {
        line.push_str(&format!(" --seed {seed}"));
    }
    if let Some(seeds) = shared.seeds {
        line.push_str(&format!(" --seeds {seeds}"));
    }
    line
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("runs/demo-1.toml"), "runs/demo-1.toml");
        assert_eq!(quoted("my site's.topo"), r"'my site'\''s.topo'");
        assert_eq!(quoted(""), "''");
    }
}
