//! `clearlane traffic testbed`.

use super::phases::{Phase, phases, shares};
use crate::answer::{Answer, Verdict};
use crate::arguments::between;
use crate::commands::experiment::quoted;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::terminal;
use clap::{Args, ValueEnum};
use clearlane_lab::{
    Align, Experiment, FLOW_SERIES_FILE, FlowSlice, HostPlan, Table, read_flow_series,
};
use clearlane_traffic::testbed::{
    Built, Layout, Members, Queue, members, must_work, prefix, scratch, sweep, within,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What to build and run.
#[derive(Args, Debug)]
#[command(
    after_help = "Needs root, iproute2 and, with --tcpdump, tcpdump. The fabric must be a tree. \
    Everything is taken away in the end, and when the command is interrupted.\n\n\
    Example:\n  clearlane traffic testbed experiments/ctbg-parking-lot.toml --tcpdump"
)]
pub struct Arguments {
    /// Experiment file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Which of its variants [default: the first]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// How switches queue what comes in at several ports
    #[arg(long, value_enum, default_value_t)]
    queue: Queues,
    /// Cables so many times slower than the plan's, for machines that do not carry those: shares
    /// are the same, rates are not
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between(1u32, 1000))]
    slower: u32,
    /// Run everything again with tcpdump at every host, as ibdump was run
    #[arg(long)]
    tcpdump: bool,
    /// Folder for the results, one in it for each run [default: runs/ and the experiment's name,
    /// with -testbed behind it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace what is in the folder
    #[arg(long)]
    force: bool,
}

/// Queues of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Queues {
    /// One first-in first-out queue for each output
    Fifo,
    /// At each output a queue for each input port, in turns, as input-buffered switches have
    ByInput,
    /// Both, one after the other
    #[default]
    Both,
}

/// How tcpdump is run, as its flags; the first is without it.
const CAPTURES: &[(&str, &[&str])] = &[
    ("no tcpdump", &[]),
    ("tcpdump", &["-s", "0"]),
    ("tcpdump -s 96", &["-s", "96"]),
    ("tcpdump -s 0 -B 65536", &["-s", "0", "-B", "65536"]),
];
/// What stands over the table of shares.
const SHARES: &str =
    "shares of all that is received, %, in the last two thirds of each part of the run";
/// What a reader has to know beside the shares.
const DIFFERS: &str = "what differs: a fabric holds packets back with credits, so inputs share an \
    output; TCP learns of a full queue by losing packets, so senders share a queue, unevenly, and \
    not at once";
/// From here on cores are too busy for what is measured to be the queues': parts of a run in which
/// few send are in the mean too.
const BUSY_FROM: f64 = 0.6;
const UP_MAX: Duration = Duration::from_secs(15);

/// One run on the testbed.
struct Arm {
    queue: Queue,
    /// Place in `CAPTURES`.
    capture: usize,
}

impl Arm {
    fn name(&self) -> String {
        let queue = match self.queue {
            Queue::Fifo => "fifo",
            Queue::ByInput => "by-input",
        };
        match self.capture {
            0 => queue.to_owned(),
            number => format!("{queue}-tcpdump-{number}"),
        }
    }
}

/// What came of it.
struct Ran {
    arm: Arm,
    total_gbps: Option<f64>,
    document: Value,
    /// Packets that tcpdump captured and the kernel dropped, at all hosts.
    captured: Option<(u64, u64)>,
    /// The part of the time for which this machine's cores were busy.
    busy: Option<f64>,
}

/// What all runs have in common.
struct Bench<'a> {
    arguments: &'a Arguments,
    plan: &'a HostPlan,
    out: &'a Path,
    scratch: &'a Path,
    program: PathBuf,
    halt: &'a AtomicBool,
}

/// Builds, runs and takes away.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let experiment = Experiment::read(&arguments.plan).map_err(Failure::lab)?;
    let plan = HostPlan::of(&experiment, arguments.variant.as_deref()).map_err(Failure::lab)?;
    let queues = match arguments.queue {
        Queues::Fifo => vec![Queue::Fifo],
        Queues::ByInput => vec![Queue::ByInput],
        Queues::Both => vec![Queue::Fifo, Queue::ByInput],
    };
    // What cannot be built is told before anything takes time.
    for queue in &queues {
        Layout::of(&plan, *queue, arguments.slower, &prefix()).map_err(Failure::input)?;
    }
    must_work(arguments.tcpdump).map_err(|e| Failure::Machine(e.to_string()))?;
    let default = || Path::new("runs").join(format!("{}-testbed", plan.name));
    let out = arguments.out.clone().unwrap_or_else(default);
    let halt = interrupts.stop_and_clear("the testbed is taken away first");
    match sweep(&std::env::temp_dir()).len() {
        0 => {}
        some => {
            let what = format!("took away {some} namespaces of a testbed that was killed");
            terminal::remark(&what);
        }
    }
    fs::create_dir_all(&out).map_err(|e| Failure::writing(&out, &e))?;
    let scratch = Scratch::new()?;
    let program = std::env::current_exe()
        .map_err(|e| Failure::Machine(format!("cannot find this program: {e}")))?;
    let bench =
        Bench { arguments, plan: &plan, out: &out, scratch: &scratch.0, program, halt: &halt };
    let simulated = bench.simulate()?;
    let captures = if arguments.tcpdump { CAPTURES.len() } else { 1 };
    let mut all = Vec::new();
    for queue in queues {
        for capture in 0..captures {
            all.push(bench.run(Arm { queue, capture })?);
        }
    }
    let report = bench.overlay(&all)?;
    let phases = phases(&plan);
    let rows = bench.shares(&simulated, &all, &phases)?;
    if json {
        let runs: Vec<Value> = all
            .iter()
            .map(|ran| {
                json!({
                    "run": ran.arm.name(),
                    "tcpdump": CAPTURES[ran.arm.capture].0,
                    "total_gbps": ran.total_gbps,
                    "cores_busy": ran.busy,
                    "captured": ran.captured.map(|(captured, _)| captured),
                    "dropped_by_kernel": ran.captured.map(|(_, dropped)| dropped),
                    "result": ran.document,
                })
            })
            .collect();
        let fields = json!({ "name": plan.name, "shares": rows.json(), "runs": runs });
        return Ok(Answer::json("clearlane-testbed/1", fields));
    }
    let text = format!(
        "{SHARES}\n\n{}\n{}\n{DIFFERS}\n{}report: {}\n",
        rows.table(),
        captured_table(&all),
        of_busy_cores(&all, arguments.slower),
        report.display()
    );
    Ok(Answer::text(text).with(Verdict::Done))
}

/// A folder that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(scratch());
        fs::create_dir(&path).map_err(|e| Failure::writing(&path, &e))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing better can be done than to try.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Bench<'_> {
    /// What a command of this program failed with, as if it were this one's failure.
    fn failed(&self, what: &str, output: &Output) -> Failure {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        let last = last.strip_prefix("clearlane: ").unwrap_or(last).to_owned();
        match output.status.code() {
            Some(2) => Failure::Input(last),
            Some(3) => Failure::Input(format!(
                "{what} ended in a deadlock, which Ethernet has not; choose another engine or \
                 fabric"
            )),
            _ if last.is_empty() => {
                Failure::Machine(format!("{what} ended with {}", output.status))
            }
            _ => Failure::Machine(format!("{what}: {last}")),
        }
    }

    fn path(path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    /// Runs a command of this program that has to succeed.
    fn own(&self, mut command: Command, what: &str) -> Result<String, Failure> {
        let failed = |e| Failure::Machine(format!("{what}: {}", clearlane_lab::plain(&e)));
        let output = self.ended(command.stderr(Stdio::piped())).map_err(failed)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false if self.halt.load(Ordering::SeqCst) => {
                Err(Failure::Interrupted(format!("interrupted in {what}")))
            }
            false => Err(self.failed(what, &output)),
        }
    }

    /// Runs a command to its end. It hears of an interruption from here, once, wherever that came
    /// from.
    fn ended(&self, command: &mut Command) -> std::io::Result<Output> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let child = command.spawn()?;
        let pid = child.id().to_string();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || child.wait_with_output());
            let mut is_told = false;
            while !waiting.is_finished() {
                if self.halt.load(Ordering::SeqCst) && !is_told {
                    is_told = true;
                    let _ = Command::new("kill").args(["-INT", &pid]).status();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let panicked = || Err(std::io::Error::other("the thread that waits panicked"));
            waiting.join().unwrap_or_else(|_| panicked())
        })
    }

    /// The simulated run of the same file.
    fn simulate(&self) -> Result<PathBuf, Failure> {
        let out = self.out.join("simulated");
        let mut command = Command::new(&self.program);
        command.args([
            "compare",
            &Self::path(&self.arguments.plan),
            "--variants",
            &self.plan.variant,
        ]);
        command.args(["--out", &Self::path(&out)]);
        if self.arguments.force {
            command.arg("--force");
        }
        terminal::remark("simulating the plan");
        self.own(command, "the simulation")?;
        Ok(out)
    }

    /// Builds a testbed, runs the plan on it, and takes it away.
    fn run(&self, arm: Arm) -> Result<Ran, Failure> {
        if self.halt.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted("interrupted".into()));
        }
        let name = arm.name();
        terminal::remark(&format!("running on the testbed: {name}"));
        let layout = Layout::of(self.plan, arm.queue, self.arguments.slower, &prefix())
            .map_err(Failure::input)?;
        let folder = self.scratch.join(&name);
        fs::create_dir(&folder).map_err(|e| Failure::writing(&folder, &e))?;
        let members = members(&layout, &folder).map_err(Failure::input)?;
        let mut built = Built::new(&layout).map_err(|e| Failure::Machine(e.to_string()))?;
        self.start(&mut built, &layout, &members)?;
        let (_, flags) = CAPTURES[arm.capture];
        if !flags.is_empty() {
            for host in &layout.hosts {
                let port = host.ports.first().map_or("any", String::as_str);
                let file = folder.join(format!("{}.pcap", host.namespace));
                let mut words = vec!["tcpdump", "-i", port, "-n", "-w"];
                let file = Self::path(&file);
                words.push(&file);
                words.extend(flags);
                let started = built.spawn_telling(&host.namespace, &words);
                started.map_err(|e| Failure::Machine(e.to_string()))?;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        let text = self.measure(&layout, &members, &name);
        let counts = built.told().iter().map(|said| counted(said)).collect::<Vec<_>>();
        let sum = |(all, lost), (taken, dropped): &(u64, u64)| (all + taken, lost + dropped);
        let captured = (!flags.is_empty()).then(|| counts.iter().fold((0, 0), sum));
        drop(built);
        // Captures are large, and their size is not what is asked.
        let _ = fs::remove_dir_all(&folder);
        let document: Value = serde_json::from_str(&text?)
            .map_err(|e| Failure::Internal(format!("traffic run printed no JSON: {e}")))?;
        let total_gbps = document["total_gbps"].as_f64();
        // All hosts are this machine.
        let busy = document["controller_cores_busy"].as_f64();
        Ok(Ran { arm, total_gbps, document, captured, busy })
    }

    /// Starts the agents, and waits until all answer.
    fn start(&self, built: &mut Built, layout: &Layout, members: &Members) -> Result<(), Failure> {
        let program = Self::path(&self.program);
        for (host, (folder, control, data)) in layout.hosts.iter().zip(&members.agents) {
            let (folder, control, data) =
                (Self::path(folder), control.to_string(), data.to_string());
            let words = [
                &program, "traffic", "agent", "--dir", &folder, "--listen", &control, "--data",
                &data,
            ];
            let started = built.spawn(&host.namespace, &words);
            started.map_err(|e| Failure::Machine(e.to_string()))?;
        }
        let until = Instant::now() + UP_MAX;
        loop {
            let controller = Self::path(&members.controller);
            let words = [program.as_str(), "traffic", "status", "--dir", &controller];
            match self.own(within(&layout.controller, &words), "asking the agents") {
                Ok(_) => return Ok(()),
                Err(Failure::Interrupted(why)) => return Err(Failure::Interrupted(why)),
                Err(failure) if Instant::now() >= until => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// Runs the plan under the testbed's controller. The document that it prints.
    fn measure(&self, layout: &Layout, members: &Members, name: &str) -> Result<String, Failure> {
        let (program, controller) = (Self::path(&self.program), Self::path(&members.controller));
        let (plan, out) = (Self::path(&self.arguments.plan), Self::path(&self.out.join(name)));
        let mut words = vec![
            program.as_str(),
            "--json",
            "traffic",
            "run",
            &plan,
            "--dir",
            &controller,
            "--out",
            &out,
            "--variant",
            &self.plan.variant,
        ];
        if self.arguments.force {
            words.push("--force");
        }
        // The run is watched as any other.
        let mut command = within(&layout.controller, &words);
        let failed = |e| Failure::Machine(format!("run {name}: {}", clearlane_lab::plain(&e)));
        let output = self.ended(command.stderr(Stdio::inherit())).map_err(failed)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false if self.halt.load(Ordering::SeqCst) => {
                Err(Failure::Interrupted(format!("interrupted in run {name}")))
            }
            false => Err(Failure::Machine(format!("run {name} failed; it has said why"))),
        }
    }

    /// Lays the runs without tcpdump over the simulated one. The path of the report.
    fn overlay(&self, all: &[Ran]) -> Result<PathBuf, Failure> {
        let out = self.out.join("overlay");
        let mut command = Command::new(&self.program);
        command.args(["compare", &Self::path(&self.out.join("simulated"))]);
        for ran in all.iter().filter(|ran| ran.arm.capture == 0) {
            command.arg(self.out.join(ran.arm.name()));
        }
        command.args(["--out", &Self::path(&out)]);
        if self.arguments.slower > 1 {
            command.arg("--scaled");
        }
        if self.arguments.force {
            command.arg("--force");
        }
        self.own(command, "the overlay")?;
        Ok(out.join("report.html"))
    }

    fn rows(&self, folder: &Path) -> Result<Vec<FlowSlice>, Failure> {
        let path = folder.join(FLOW_SERIES_FILE);
        let bytes = fs::read(&path).map_err(|e| Failure::reading(&path, &e))?;
        let rows = read_flow_series(bytes);
        rows.map_err(|why| Failure::Input(format!("{} {why}", quoted(&Self::path(&path)))))
    }

    fn shares(&self, simulated: &Path, all: &[Ran], phases: &[Phase]) -> Result<Shares, Failure> {
        let mut records = vec![("simulated".to_owned(), self.rows(simulated)?)];
        for ran in all.iter().filter(|ran| ran.arm.capture == 0) {
            records.push((ran.arm.name(), self.rows(&self.out.join(ran.arm.name()))?));
        }
        let mut rows = Vec::new();
        for phase in phases {
            for (source, destination) in &phase.flows {
                let of = |(_, slices): &(String, Vec<FlowSlice>)| {
                    shares(slices, phase).get(&(source.clone(), destination.clone())).copied()
                };
                let values = records.iter().map(of).collect();
                rows.push((phase.name(), format!("{source} → {destination}"), values));
            }
        }
        Ok(Shares { records: records.into_iter().map(|(name, _)| name).collect(), rows })
    }
}

/// Shares by part of the run, flow and record.
struct Shares {
    records: Vec<String>,
    rows: Vec<(String, String, Vec<Option<f64>>)>,
}

impl Shares {
    fn table(&self) -> Table {
        let mut table = Table::new([("part", "", Align::Left), ("flow", "", Align::Left)]);
        for name in &self.records {
            table.columns.push(clearlane_lab::Column {
                label: name.clone(),
                unit: "%".into(),
                align: Align::Right,
            });
        }
        let mut before = String::new();
        for (part, flow, values) in &self.rows {
            let shown = if *part == before { String::new() } else { part.clone() };
            before.clone_from(part);
            let value = |share: &Option<f64>| match share {
                Some(share) => format!("{:.1}", share * 100.0),
                None => "-".into(),
            };
            let cells = [shown, flow.clone()].into_iter().chain(values.iter().map(value));
            table.rows.push(cells.collect());
        }
        table
    }

    fn json(&self) -> Value {
        let row = |(part, flow, values): &(String, String, Vec<Option<f64>>)| {
            let shares: serde_json::Map<String, Value> = self
                .records
                .iter()
                .zip(values)
                .map(|(name, share)| (name.clone(), json!(share)))
                .collect();
            json!({ "part": part, "flow": flow, "shares": shares })
        };
        self.rows.iter().map(row).collect()
    }
}

/// Throughput with and without tcpdump.
fn captured_table(all: &[Ran]) -> Table {
    let mut table = Table::new([
        ("run", "", Align::Left),
        ("capture", "", Align::Left),
        ("received", "Gb/s", Align::Right),
        ("of none", "%", Align::Right),
        ("cores busy", "%", Align::Right),
        ("captured", "packets", Align::Right),
        ("dropped", "packets", Align::Right),
    ]);
    for ran in all {
        let none = all.iter().find(|other| other.arm.queue == ran.arm.queue);
        let none = none.and_then(|other| other.total_gbps);
        let number = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let share = ran.total_gbps.zip(none).map(|(own, none)| 100.0 * own / none);
        let count = |value: Option<u64>| value.map_or("-".to_owned(), clearlane_lab::grouped);
        table.rows.push(vec![
            ran.arm.name(),
            CAPTURES[ran.arm.capture].0.to_owned(),
            number(ran.total_gbps, 3),
            number(share, 1),
            number(ran.busy.map(|busy| busy * 100.0), 0),
            count(ran.captured.map(|(captured, _)| captured)),
            count(ran.captured.map(|(_, dropped)| dropped)),
        ]);
    }
    table
}

/// Says when the machine was too busy to show what queues do.
fn of_busy_cores(all: &[Ran], slower: u32) -> String {
    let busy = all.iter().filter_map(|ran| ran.busy).fold(0.0, f64::max);
    match busy >= BUSY_FROM {
        false => String::new(),
        true => format!(
            "note  this machine's cores were busy for {:.0} % of a run: shares may be theirs and \
             not the queues'; try --slower {}\n",
            busy * 100.0,
            slower.saturating_mul(10).min(1000)
        ),
    }
}

/// What tcpdump says in the end: packets captured, and dropped by the kernel.
fn counted(said: &str) -> (u64, u64) {
    let number = |what: &str| {
        let line = said.lines().find(|line| line.contains(what))?;
        line.split_whitespace().next()?.parse().ok()
    };
    (number("packets captured").unwrap_or(0), number("packets dropped by kernel").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tcpdump_says_is_counted() {
        let said = "tcpdump: listening on p1\n1200 packets captured\n1300 packets received by \
                    filter\n100 packets dropped by kernel\n";
        assert_eq!(counted(said), (1200, 100));
        assert_eq!(counted("tcpdump: p1: no such device"), (0, 0));
    }
}
