//! `make bench`: how many packet-hops a CPU second simulates, on the fabrics the design is measured
//! by. Timings are CPU time of this process, best of several; instructions come from callgrind.
//!
//! `clearlane-bench [ROW…] [--runs N] [--instructions] [--out FILE]` measures and prints a table;
//! `clearlane-bench --once ROW MICROSECONDS` does one run and prints its packet-hops: callgrind
//! runs it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod instructions;
mod rows;

use cpu_time::ProcessTime;
use rows::{ROWS, Row};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

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
    let known = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    ROWS.iter()
        .find(|row| row.name == name)
        .ok_or_else(|| format!("there is no row `{name}`; rows are {}", known()))
}

struct Options {
    rows: Vec<&'static Row>,
    runs: u32,
    instructions: bool,
    out: Option<String>,
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options { rows: vec![], runs: 3, instructions: false, out: None };
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
            name => options.rows.push(find(name)?),
        }
    }
    if options.rows.is_empty() {
        options.rows = ROWS.iter().collect();
    }
    Ok(options)
}

fn measure(arguments: &[String]) -> Result<(), String> {
    let options = parse(arguments)?;
    let mut results = Map::new();
    println!("{:<28} {:>10} {:>8}   {:<34} note", "row", "value", "goal", "unit");
    for row in &options.rows {
        let bench = row.prepare()?;
        let mut best = 0.0f64;
        for _ in 0..options.runs {
            let begin = ProcessTime::now();
            let hops = bench.run(row.span_us)?;
            let seconds = begin.elapsed().as_secs_f64();
            best = best.max(hops as f64 / seconds / 1e6);
        }
        let unit = "M packet-hops per CPU second";
        print_row(&mut results, row.name, best, unit, row.goal, false, row.note);
        if options.instructions && row.instructions {
            let count = instructions::per_hop(row)?;
            let name = format!("{}-instructions", row.name);
            let unit = "instructions per packet-hop";
            print_row(&mut results, &name, count, unit, None, true, "callgrind");
        }
    }
    if let Some(path) = &options.out {
        let text =
            serde_json::to_string_pretty(&Value::Object(results)).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn print_row(
    results: &mut Map<String, Value>,
    name: &str,
    value: f64,
    unit: &str,
    goal: Option<f64>,
    lower_is_better: bool,
    note: &str,
) {
    let shown = goal.map_or("-".to_string(), |goal| format!("{goal}"));
    println!("{name:<28} {value:>10.2} {shown:>8}   {unit:<34} {note}");
    let entry = json!({
        "value": value, "unit": unit, "goal": goal, "lower_is_better": lower_is_better,
    });
    results.insert(name.to_string(), entry);
}
