//! What a run gains by being divided among threads.

use crate::bench::Bench;
use crate::cpu_time;
use crate::rows::Row;
use clearlane_ib::Picoseconds;
use clearlane_sim::Division;
use rustix::time::{ClockId, clock_gettime};
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
    #[expect(clippy::disallowed_methods, reason = "wall time is what is measured")]
    fn of(bench: &Bench, division: Division) -> Result<Took, String> {
        let span = Picoseconds(bench.row.span_us * 1_000_000);
        let traffic = bench.traffic(span)?;
        let mut simulation = bench.start(span, division, traffic)?;
        simulation.measure(clock);
        simulation.try_threads(monotonic);
        let (begin, cpu) = (Instant::now(), cpu_time::of_process());
        simulation.run_until(span);
        let (wall, cpu) =
            (begin.elapsed().as_secs_f64(), (cpu_time::of_process() - cpu).as_secs_f64());
        let (all, longest) = simulation.balance();
        let hops = simulation.finish().totals.packet_hops;
        Ok(Took { hops, wall, cpu, balance: all as f64 / longest.max(1) as f64 })
    }
}

/// A clock of nanoseconds.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread in nanoseconds.
fn clock() -> u64 {
    cpu_time::of_thread().as_nanos() as u64
}

/// Runs each row whole on one thread, divided among `threads`, and in as many partitions on one
/// thread, in turns, and prints the medians: wall time of the whole run, how many times faster the
/// divided one is, how many times the CPU time it takes, how evenly work is shared, and what the
/// cut alone costs in CPU time.
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
        "{:<22} {:>9} {:>8} {:>8} {:>8} {:>8}   {threads} partitions on {threads} threads",
        "row", "wall s", "faster", "CPU", "balance", "cut"
    );
    for row in rows {
        let bench = row.prepare()?;
        let [mut wall, mut faster, mut cpu, mut balance, mut cut] = [const { Vec::new() }; 5];
        for _ in 0..runs {
            let whole = Took::of(&bench, Division::WHOLE)?;
            let divided = Took::of(&bench, Division::of_threads(threads))?;
            let alone = Took::of(&bench, Division { partitions: threads, threads: 1 })?;
            if whole.hops != divided.hops {
                let (a, b) = (whole.hops, divided.hops);
                return Err(format!("{}: {a} packet-hops whole, {b} divided", row.name));
            }
            faster.push(whole.wall / divided.wall);
            cpu.push(divided.cpu / whole.cpu);
            balance.push(divided.balance);
            wall.push(whole.wall);
            cut.push(alone.cpu / whole.cpu);
        }
        let [wall, faster, cpu, balance, cut] = [wall, faster, cpu, balance, cut].map(median);
        println!("{:<22} {wall:>9.2} {faster:>8.2} {cpu:>8.2} {balance:>8.2} {cut:>8.2}", row.name);
        let entry = json!({
            "threads": threads, "wall_seconds": wall, "times_faster": faster,
            "times_cpu": cpu, "balance": balance, "times_cpu_on_one_thread": cut,
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
