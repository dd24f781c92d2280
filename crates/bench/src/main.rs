//! `make bench`: how many packet-hops a CPU second simulates, on the fabrics the design is measured
//! by, what memory it takes, and how long tables and checks take. Timings are CPU time of this
//! process, best of several; instructions come from callgrind, bytes from the allocator.
//!
//! `clearlane-bench [ROW…] [--runs N] [--instructions] [--out FILE]` measures and prints a table;
//! `clearlane-bench --once ROW MICROSECONDS` does one run and prints its packet-hops: callgrind
//! runs it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod instructions;
mod rows;
mod tables;

use cpu_time::ProcessTime;
use peak_alloc::PeakAlloc;
use rows::{ROWS, Row};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use tables::TableRow;

/// Counts the bytes in use; two relaxed atomic additions an allocation.
#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("--once") => once(&arguments[1..]),
        _ => measure(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clearlane-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn once(arguments: &[String]) -> Result<(), String> {
    let [name, span] = arguments else { return Err("write --once ROW MICROSECONDS".into()) };
    let span = span.parse().map_err(|_| format!("`{span}` is no number of microseconds"))?;
    let row = find(name)?;
    println!("{}", row.prepare()?.run(span)?);
    Ok(())
}

fn find(name: &str) -> Result<&'static Row, String> {
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> String {
    let names = ROWS.iter().map(|row| row.name).chain(tables::ROWS.iter().map(|row| row.name));
    format!("there is no row `{name}`; rows are {}", names.collect::<Vec<_>>().join(", "))
}

struct Options {
    rows: Vec<&'static Row>,
    tables: Vec<&'static TableRow>,
    runs: u32,
    instructions: bool,
    out: Option<String>,
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options =
        Options { rows: vec![], tables: vec![], runs: 3, instructions: false, out: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--instructions" => options.instructions = true,
            "--out" => options.out = Some(value()?.clone()),
            "--runs" => {
                let text = value()?;
                options.runs = match text.parse() {
                    Ok(runs) if (1..=100).contains(&runs) => runs,
                    _ => return Err(format!("--runs {text} is outside 1 to 100")),
                };
            }
            name => match tables::ROWS.iter().find(|row| row.name == name) {
                Some(row) => options.tables.push(row),
                None => options.rows.push(find(name)?),
            },
        }
    }
    if options.rows.is_empty() && options.tables.is_empty() {
        options.rows = ROWS.iter().collect();
        options.tables = tables::ROWS.iter().collect();
    }
    Ok(options)
}

fn measure(arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    let mut results = Map::new();
    println!("{:<32} {:>10} {:>8}   {:<30} note", "row", "value", "goal", "unit");
    for row in &options.rows {
        simulate(row, &options, &mut results)?;
    }
    for row in &options.tables {
        let bench = row.prepare()?;
        let mut best = f64::INFINITY;
        for _ in 0..options.runs {
            let begin = ProcessTime::now();
            bench.run()?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        let figure = Figure { value: best, unit: "CPU s", goal: row.goal, lower_is_better: true };
        print_row(&mut results, row.name, figure, row.note);
    }
    if let Some(path) = &options.out {
        let text =
            serde_json::to_string_pretty(&Value::Object(results)).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// One row of simulation: its rate, then instructions and memory where it has them.
fn simulate(
    row: &'static Row,
    options: &Options,
    results: &mut Map<String, Value>,
) -> Result<(), String> {
    let bench = row.prepare()?;
    let mut best = 0.0f64;
    for _ in 0..options.runs {
        let begin = ProcessTime::now();
        let hops = bench.run(row.span_us)?;
        let seconds = begin.elapsed().as_secs_f64();
        best = best.max(hops as f64 / seconds / 1e6);
    }
    let unit = "M packet-hops per CPU second";
    let figure = Figure { value: best, unit, goal: row.goal, lower_is_better: false };
    print_row(results, row.name, figure, row.note);
    if let (true, Some(goal)) = (options.instructions, row.instructions) {
        let value = instructions::per_hop(row)?;
        let name = format!("{}-instructions", row.name);
        let figure = Figure { value, unit: "per packet-hop", goal, lower_is_better: true };
        print_row(results, &name, figure, "callgrind");
    }
    let [off, on] = row.memory.map_or([None; 2], |goals| goals.map(Some));
    for (counters, goal, name) in [(false, off, "memory"), (true, on, "memory-counters")] {
        if goal.is_none() {
            continue;
        }
        let value = bench.memory(row.span_us, counters)?;
        let name = format!("{}-{name}", row.name);
        let figure = Figure { value, unit: "bytes per node", goal, lower_is_better: true };
        print_row(results, &name, figure, "besides the fabric itself");
    }
    Ok(())
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
    let shown = goal.map_or("-".to_string(), |goal| format!("{goal}"));
    println!("{name:<32} {value:>10.2} {shown:>8}   {unit:<30} {note}");
    let entry = json!({
        "value": value, "unit": unit, "goal": goal, "lower_is_better": lower_is_better,
    });
    results.insert(name.to_string(), entry);
}
