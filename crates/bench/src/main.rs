//! `make bench`: how many packet-hops a CPU second simulates, on the fabrics the design is measured
//! by, what memory it takes, and how long tables and checks take. Timings are CPU time of this
//! process while it simulates, best of several; set-up and audit are told apart. Counts per
//! packet-hop come from callgrind, bytes from the allocator.
//!
//! `clearlane-bench [ROW…] [--rare] [--runs N] [--instructions] [--out FILE]` measures and prints
//! a table: of these rows, of those of rare settings, or else of all others. `clearlane-bench
//! --cache [ROW…] [--out FILE]` has callgrind count instructions, misses and mispredicts per
//! packet-hop; without rows, those of datagrams. `clearlane-bench --threads N [ROW…] [--runs N]
//! [--out FILE]` runs each row whole and divided among so many threads, in turns, and prints the
//! ratios of wall and CPU time and the balance. `clearlane-bench --once ROW MICROSECONDS` does
//! one run and prints its packet-hops: callgrind and scripts/bench-pair run it. `clearlane-bench
//! --spans [--rare]` prints every row with the lengths in microseconds of the two runs that
//! script compares. `clearlane-bench --capture ROW PACKETS FILE` writes a capture as that row has
//! it, for other programs to be compared with.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod all_pairs;
mod arguments;
mod bench;
mod callgrind;
mod captures;
mod cpu_time;
mod divided;
mod parameters;
mod rows;
mod tables;

use arguments::{Command, Options};
use peak_alloc::PeakAlloc;
use rows::{ROWS, Row};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Counts the bytes in use; two relaxed atomic additions an allocation.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Command::parse(&words).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clearlane-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Once(row, span_us) => println!("{}", row.prepare()?.run(span_us)?.hops),
        Command::Spans { rare } => {
            for row in ROWS.iter().filter(|row| row.rare == rare) {
                let [short, long] = row.pair_us();
                println!("{} {short} {long}", row.name);
            }
        }
        Command::Capture(row, packets, path) => row.write(&path, packets)?,
        Command::Measure(options) => measure(&options)?,
        Command::Cache(rows, out) => count(&rows, out.as_deref())?,
        Command::Threads(threads, options) => {
            let results = divided::compare(&options.rows, threads, options.runs)?;
            write(options.out.as_deref(), results)?;
        }
    }
    Ok(())
}

fn measure(options: &Options) -> Result<(), String> {
    let mut results = Map::new();
    println!("{:<32} {:>10} {:>12}   {:<30} note", "row", "value", "goal", "unit");
    for row in &options.rows {
        simulate(row, options, &mut results)?;
    }
    for row in &options.tables {
        let bench = row.prepare()?;
        let mut best = f64::INFINITY;
        for _ in 0..options.runs {
            let begin = cpu_time::of_process();
            bench.run()?;
            best = best.min((cpu_time::of_process() - begin).as_secs_f64());
        }
        let figure = Figure { value: best, unit: "CPU s", goal: row.goal, lower_is_better: true };
        print_row(&mut results, row.name, figure, row.note);
    }
    for row in &options.captures {
        let bench = row.prepare()?;
        let mut best = f64::INFINITY;
        for _ in 0..options.runs {
            let begin = cpu_time::of_process();
            bench.run()?;
            best = best.min((cpu_time::of_process() - begin).as_secs_f64());
        }
        let (value, unit) = (best * 1e9 / f64::from(bench.packets()), "CPU ns per packet");
        let figure = Figure { value, unit, goal: row.goal, lower_is_better: true };
        print_row(&mut results, row.name, figure, row.note);
    }
    write(options.out.as_deref(), results)
}

/// One row of simulation: its rate, then instructions and memory where it has them.
fn simulate(
    row: &'static Row,
    options: &Options,
    results: &mut Map<String, Value>,
) -> Result<(), String> {
    let bench = row.prepare()?;
    let mut best = bench.run(row.span_us)?;
    for _ in 1..options.runs {
        let next = bench.run(row.span_us)?;
        if next.run < best.run {
            best = next;
        }
    }
    let value = best.hops as f64 / best.run / 1e6;
    let unit = "M packet-hops per CPU second";
    let figure = Figure { value, unit, goal: row.goal, lower_is_better: false };
    let apart = format!("besides set-up {:.2} s, audit {:.2} s", best.setup, best.audit);
    print_row(results, row.name, figure, &format!("{}; {apart}", row.note));
    if let (true, Some(goal)) = (options.instructions, row.instructions) {
        let value = callgrind::instructions(row)?;
        let name = format!("{}-instructions", row.name);
        let figure = Figure { value, unit: "per packet-hop", goal, lower_is_better: true };
        print_row(results, &name, figure, "callgrind");
    }
    if let Some(goal) = row.memory {
        let value = bench.memory(row.span_us)?;
        let name = format!("{}-memory-counters", row.name);
        let (unit, goal) = ("bytes per node", Some(goal));
        let figure = Figure { value, unit, goal, lower_is_better: true };
        print_row(results, &name, figure, "besides the fabric itself");
    }
    if row.memory_of_pairs {
        let value = bench.memory_of_pairs()?;
        let unit = "bytes per active queue pair";
        let figure = Figure { value, unit, goal: None, lower_is_better: true };
        let name = format!("{}-memory", row.name);
        print_row(results, &name, figure, "every host has sent to every other");
    }
    Ok(())
}

/// What a packet-hop costs, row by row.
fn count(rows: &[&'static Row], out: Option<&str>) -> Result<(), String> {
    let mut results = Map::new();
    let head = ["instructions", "D1 misses", "LL misses", "mispredicts"];
    println!(
        "{:<22} {:>12} {:>10} {:>10} {:>12}   per packet-hop",
        "row", head[0], head[1], head[2], head[3]
    );
    for row in rows {
        let cost = callgrind::cost(row)?;
        let [short, long] = row.counted_us;
        println!(
            "{:<22} {:>12.0} {:>10.2} {:>10.2} {:>12.2}   {short} to {long} us",
            row.name, cost.instructions, cost.d1_misses, cost.ll_misses, cost.mispredicts
        );
        let entry = json!({
            "instructions": cost.instructions, "d1_misses": cost.d1_misses,
            "ll_misses": cost.ll_misses, "mispredicts": cost.mispredicts,
            "unit": "per packet-hop", "span_us": row.counted_us,
        });
        results.insert(row.name.to_string(), entry);
    }
    write(out, results)
}

fn write(path: Option<&str>, results: Map<String, Value>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(&Value::Object(results)).map_err(|e| e.to_string())?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{path}: {error}"))
}

/// What a row shows.
struct Figure {
    value: f64,
    unit: &'static str,
    goal: Option<f64>,
    lower_is_better: bool,
}

fn print_row(results: &mut Map<String, Value>, name: &str, figure: Figure, note: &str) {
    let Figure { value, unit, goal, lower_is_better } = figure;
    let is_missed = |goal| if lower_is_better { value > goal } else { value < goal };
    let shown = match goal {
        None => "-".to_string(),
        Some(goal) if is_missed(goal) => format!("{goal} missed"),
        Some(goal) => format!("{goal}"),
    };
    println!("{name:<32} {value:>10.2} {shown:>12}   {unit:<30} {note}");
    let entry = json!({
        "value": value, "unit": unit, "goal": goal, "lower_is_better": lower_is_better,
    });
    results.insert(name.to_string(), entry);
}
