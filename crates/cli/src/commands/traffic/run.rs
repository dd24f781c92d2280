//! `clearlane traffic run`.

use super::keys::{Folder, of_run};
use super::live::Live;
use crate::answer::{self, Answer, Verdict};
use crate::commands::experiment::quoted;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::terminal;
use crate::writing;
use clap::Args;
use clearlane_ib::{Bytes, visible};
use clearlane_lab::{
    Experiment, FLOW_SERIES_FILE, HostPlan, PACKET_LOG_FILE, PacketLog, RunFolder, observed_page,
    write_flow_series,
};
use clearlane_traffic::controller::{Inventory, Options, Ordered, Record, orders, run as run_plan};
use clearlane_traffic::order::Carrier;
use clearlane_traffic::packet::{HEADER_BYTES, PACKET_BYTES_MAX};
use clearlane_traffic::results::{
    Measured, finding, measure, page, remarks, series, summary, table,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What to run.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  clearlane traffic run experiments/ctbg-parking-lot.toml --out \
    runs/measured\n  clearlane run experiments/ctbg-parking-lot.toml --out runs/simulated\n  \
    clearlane compare runs/simulated runs/measured\n\n\
    A load of 1 or more with periodic arrivals is full speed. Hosts of the experiment are agents \
    by their names."
)]
pub struct Arguments {
    /// Experiment file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    folder: Folder,
    /// Which of its variants [default: the first]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Bytes of a packet, which is one write, 24 B to 1 MiB [default: the MTU]
    #[arg(long, value_name = "SIZE")]
    packet: Option<Bytes>,
    /// Bytes of packet logs that are collected
    #[arg(long, value_name = "SIZE", default_value = "8 GiB")]
    logs: Bytes,
    /// Folder for results [default: runs/ and the experiment's name, with -measured behind it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the run that is in the folder
    #[arg(long)]
    force: bool,
    /// Print what hosts are to send, and send nothing
    #[arg(long)]
    dry_run: bool,
}

/// Everything the folder holds.
const FILES: &[&str] =
    &["traffic.json", "experiment.toml", FLOW_SERIES_FILE, PACKET_LOG_FILE, "report.html"];
const ROWS_MAX: usize = 40;

/// Runs it.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let experiment = Experiment::read(&arguments.plan).map_err(Failure::lab)?;
    let plan = HostPlan::of(&experiment, arguments.variant.as_deref()).map_err(Failure::lab)?;
    let packet_bytes = arguments.packet.map(packet).transpose()?;
    if arguments.dry_run {
        let orders = orders(&plan, packet_bytes).map_err(Failure::Input)?;
        return dry(&plan, &orders, json);
    }
    let default = || Path::new("runs").join(format!("{}-measured", plan.name));
    let out = arguments.out.clone().unwrap_or_else(default);
    let keys = arguments.folder.of_controller()?;
    let inventory = Inventory::read(&arguments.folder.path()?).map_err(Failure::input)?;
    let (force, unfinished) = (arguments.force, interrupts.unfinished());
    let folder = RunFolder::claim_for(&out, force, FILES, unfinished);
    let mut folder = folder.map_err(Failure::lab)?;
    writing::spare(&out, &[&arguments.plan])?;
    let begun = folder.for_begun().map_err(Failure::lab)?;
    let halt = interrupts.stop_in_good_order(&out);
    // Hosts that send have to be stopped, and what they noted is collected.
    interrupts.deadline().begin();
    let logs = begun.join("logs");
    fs::create_dir(&logs).map_err(|e| Failure::writing(&logs, &e))?;
    let options = Options { packet_bytes, logs_max: arguments.logs.0, folder: logs.clone() };
    let live = Live::new(&plan, halt);
    let record = run_plan(&plan, &keys, &inventory, &options, &live).map_err(of_run)?;
    let busy = live.cores_busy();
    drop(live);
    let measured = measured(&plan, &record, packet_bytes, &begun.join(PACKET_LOG_FILE))?;
    fs::remove_dir_all(&logs).map_err(|e| Failure::writing(&logs, &e))?;
    let command = command(arguments);
    let mut fields = summary(&plan, &measured, &command);
    fields["controller_cores_busy"] = json!(busy);
    let report = fill(folder, (&plan, &measured), &fields, &command)?;
    let verdict = if measured.partial { Verdict::Interrupted } else { Verdict::Done };
    let told = format!("report: {}", report.display());
    if json {
        terminal::remark(&told);
        return Ok(Answer::json("clearlane-traffic/1", fields).with(verdict));
    }
    Ok(Answer::text(format!("{}{told}\n", text(&plan, &measured))).with(verdict))
}

fn packet(bytes: Bytes) -> Result<u32, Failure> {
    let range = HEADER_BYTES as u64..=PACKET_BYTES_MAX.into();
    let fits = u32::try_from(bytes.0).ok().filter(|_| range.contains(&bytes.0));
    fits.ok_or_else(|| Failure::Input(format!("--packet {bytes} is outside 24 B to 1 MiB")))
}

fn measured(
    plan: &HostPlan,
    record: &Record,
    packet_bytes: Option<u32>,
    path: &Path,
) -> Result<Measured, Failure> {
    let file = File::create_new(path).map_err(|e| Failure::writing(path, &e))?;
    let wrong = |error: &dyn std::fmt::Display| Failure::Machine(error.to_string());
    let mut packets = PacketLog::new(file).map_err(|e| wrong(&e))?;
    let progress = Progress::start("reading the logs of packets");
    let told = |share| progress.done(share);
    let measured = measure(plan, record, packet_bytes, &mut packets, &told);
    let measured = measured.map_err(|e| wrong(&e))?;
    packets.end().map_err(|e| wrong(&e))?;
    Ok(measured)
}

/// Puts everything into the folder. Returns the path of the report.
fn fill(
    folder: RunFolder,
    (plan, measured): (&HostPlan, &Measured),
    fields: &Value,
    command: &str,
) -> Result<PathBuf, Failure> {
    let document = answer::document("clearlane-traffic/1", fields);
    let rows = write_flow_series(&series(plan, measured));
    let rows = rows.map_err(|e| Failure::Internal(e.to_string()))?;
    let page = observed_page(&page(plan, measured, command));
    let contents = vec![
        (FILES[0], document.into_bytes()),
        (FILES[1], plan.resolved.clone().into_bytes()),
        (FILES[2], rows),
        (FILES[4], page.into_bytes()),
    ];
    folder.fill_with(contents).map_err(Failure::lab)
}

/// The command line that makes the same again.
fn command(arguments: &Arguments) -> String {
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let mut words = vec!["clearlane traffic run".to_owned(), path(&arguments.plan)];
    words.extend(arguments.variant.iter().map(|name| format!("--variant {}", quoted(name))));
    let packet = arguments.packet.map(|bytes| bytes.exact().replace(' ', ""));
    words.extend(packet.map(|bytes| format!("--packet {bytes}")));
    words.extend(arguments.out.iter().map(|out| format!("--out {}", path(out))));
    words.join(" ")
}

/// What hosts are to send.
fn dry(plan: &HostPlan, orders: &[Ordered], json: bool) -> Result<Answer, Failure> {
    if json {
        let flow = |Ordered { order, .. }: &Ordered| {
            Ok(json!({
                "source": order.source,
                "destination": order.destination,
                "group": order.group,
                "carrier": answer::value(&order.carrier)?,
                "connections": order.paths,
                "packet_bytes": order.packet_bytes,
                "pace": answer::value(&order.pace)?,
                "load": order.load,
                "link_gbps": order.link_bps as f64 * 1e-9,
                "start_us": order.start_ns as f64 * 1e-3,
                "stop_us": order.stop_ns as f64 * 1e-3,
            }))
        };
        let flows = orders.iter().map(flow).collect::<Result<Vec<Value>, Failure>>()?;
        let (name, variant, mechanisms) = (&plan.name, &plan.variant, plan.mechanisms());
        let fields =
            json!({ "name": name, "variant": variant, "mechanisms": mechanisms, "flows": flows });
        return Ok(Answer::json("clearlane-traffic-plan/1", fields));
    }
    let line = |Ordered { flow, order }: &Ordered| {
        let flow = &plan.flows[*flow];
        let (source, destination, group) = (&flow.source, &flow.destination, &flow.group);
        let link = flow.link.bits_per_second();
        let pace = match flow.at_full_speed {
            true => format!("full speed (its link: {link})"),
            false => format!("{:.6} Gb/s of {link}", flow.load * link.0 as f64 * 1e-9),
        };
        let start = order.start_ns as f64 * 1e-9;
        let stop = order.stop_ns as f64 * 1e-9;
        let carrier = match order.carrier {
            Carrier::Tcp => "TCP",
            Carrier::Udp => "UDP",
        };
        let connections = match order.paths {
            1 => String::new(),
            many => format!(", {many} connections"),
        };
        let ends = format!("{source} → {destination}");
        format!("{ends}: {group}, {carrier}{connections}, {pace}, {start} s to {stop} s\n")
    };
    let mechanisms = match plan.mechanisms() {
        none if none.is_empty() => String::new(),
        some => format!("mechanisms: {}\n", some.join(", ")),
    };
    Ok(Answer::text(orders.iter().map(line).collect::<String>() + &mechanisms))
}

fn text(plan: &HostPlan, measured: &Measured) -> String {
    let (table, left_out) = table(measured, ROWS_MAX);
    let more = match left_out {
        0 => String::new(),
        many => format!("and {many} flows more; traffic.json has all\n"),
    };
    let notes: String =
        remarks(plan, measured).iter().map(|line| format!("note  {}\n", visible(line))).collect();
    format!("{}\n\n{table}{more}{notes}", visible(&finding(measured)))
}
