//! What a run gains by being divided among threads.

use crate::bench::Bench;
use crate::rows::Row;
use clearlane_ib::Picoseconds;
use clearlane_sim::Division;
use cpu_time::{ProcessTime, ThreadTime};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// One run, set-up and audit left out, in seconds.
struct Took {
    hops: u64,
    wall: f64,
    cpu: f64,
    /// CPU time of all threads over that of the one each window took longest on, summed.
    balance: f64,
}

impl Took {
    fn of(bench: &Bench, division: Division) -> Result<Took, String> {
        let span = Picoseconds(bench.row.span_us * 1_000_000);
        let traffic = bench.uniform(span)?;
        let mut simulation = bench.start(span, bench.row.recorded, division, traffic)?;
        simulation.measure(clock);
        let (begin, cpu) = (Instant::now(), ProcessTime::now());
        simulation.run_until(span);
        let (wall, cpu) = (begin.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
        let (all, longest) = simulation.balance();
        let hops = simulation.finish().totals.packet_hops;
        Ok(Took { hops, wall, cpu, balance: all as f64 / longest.max(1) as f64 })
    }
}

/// CPU time of this thread in nanoseconds.
fn clock() -> u64 {
    ThreadTime::now().as_duration().as_nanos() as u64
}

/// Runs each row whole on one thread and divided among `threads` in turns, and prints the medians
/// of their ratios.
pub(crate) fn compare(
    rows: &[&'static Row],
    threads: usize,
    runs: u32,
) -> Result<Map<String, Value>, String> {
    let mut results = Map::new();
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let load = load.split_whitespace().next().unwrap_or("?");
        println!("load average before: {load}; wall ratios mean nothing unless cores are idle");
    }
    println!(
        "{:<22} {:>9} {:>8} {:>8} {:>8}   one partition on one thread beside {threads} on {threads}",
        "row", "wall s", "faster", "CPU", "balance"
    );
    for row in rows {
        let bench = row.prepare()?;
        let (mut faster, mut cpu, mut balance, mut wall) = (vec![], vec![], vec![], vec![]);
        for _ in 0..runs {
            let whole = Took::of(&bench, Division::WHOLE)?;
            let divided = Took::of(&bench, Division::of_threads(threads))?;
            if whole.hops != divided.hops {
                let (a, b) = (whole.hops, divided.hops);
                return Err(format!("{}: {a} packet-hops whole, {b} divided", row.name));
            }
            faster.push(whole.wall / divided.wall);
            cpu.push(divided.cpu / whole.cpu);
            balance.push(divided.balance);
            wall.push(whole.wall);
        }
        let [wall, faster, cpu, balance] = [wall, faster, cpu, balance].map(median);
        println!("{:<22} {wall:>9.2} {faster:>8.2} {cpu:>8.2} {balance:>8.2}", row.name);
        let entry = json!({
            "threads": threads, "wall_seconds": wall, "times_faster": faster,
            "times_cpu": cpu, "balance": balance,
        });
        results.insert(row.name.to_string(), entry);
    }
    Ok(results)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    if all.len() % 2 == 1 { all[middle] } else { (all[middle - 1] + all[middle]) / 2.0 }
}
