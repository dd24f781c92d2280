//! However large or strange a file is, it is read in linear time and in a few times its memory.
//! One test: memory is that of the whole process.

use clearlane_fabric::formats::{read, write};
use clearlane_fabric::topologies;
use std::fmt::Write as _;
use std::fs;

/// What the slowest case may take of a processor. Each takes about a second; one that was quadratic
/// would take minutes.
const CPU_SECONDS_MAX: f64 = 20.0;

/// CPU seconds of this thread, as Linux counts them: the clock of a busy machine says nothing.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
    nanoseconds * 1e-9
}

/// A line of this process' memory account in bytes.
fn memory(key: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = text.lines().find(|line| line.starts_with(key)).expect("it is listed");
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

/// Reads a text; what it was taken for, CPU seconds, and peak memory beside the text in times of
/// its size.
fn cost(text: &str) -> (String, f64, f64) {
    // 5 sets the peak back to what is in use (man 5 proc, clear_refs).
    fs::write("/proc/self/clear_refs", "5").expect("it is our own");
    let (before, start) = (memory("VmRSS:"), cpu_seconds());
    let taken = match read(text, "big") {
        Ok(reading) => reading.fabric.summary().to_string(),
        Err(error) => error.to_string(),
    };
    let peak = memory("VmHWM:") - before;
    (taken, cpu_seconds() - start, peak.max(0.0) / text.len() as f64)
}

/// Adapters that all have the name they came with, on switches of 254 ports.
fn port_list(adapters: u64) -> String {
    let mut text = String::new();
    for n in 0..adapters {
        let (lid, guid, port, switch) = (n % 49_000 + 1, n << 8, n % 254 + 1, n / 254);
        let _ = writeln!(
            text,
            "CA {lid} 1 0x{guid:016x} 4x QDR - SW 1 {port} 0x1{switch:015x} ( 'MT25408 ConnectX \
             Mellanox Technologies' - 's{switch}' )"
        );
    }
    text
}

#[test]
fn large_files_take_linear_time_and_a_few_times_their_memory() {
    const MILLION: usize = 1_000_000;
    let torus = topologies::build("torus:20x20x20,hosts=3").unwrap();
    let header = "Switch 4 \"S-1\"\n";
    let cases = [
        ("netlist", write(&torus), 4.0, "24000 hosts, 8000 switches, 48000 cables"),
        ("port list", port_list(100_000), 6.0, "100000 hosts, 394 switches, 100000 cables"),
        (
            "one name",
            format!("Switch 4 \"S-1\" # \"{}\"\n", "a".repeat(100 * MILLION)),
            2.5,
            "0 hosts, 1 switches, 0 cables",
        ),
        (
            "no quote",
            format!("Switch 4 \"{}", "a".repeat(20 * MILLION)),
            0.5,
            "big:1: expected a node id in quotes, found \"Switch 4",
        ),
        ("zeros", "\0".repeat(100 * MILLION), 0.5, "big:1: no line is of a known fabric format"),
        (
            "brackets",
            format!("{header}{}", "[".repeat(20 * MILLION)),
            0.5,
            "big:2: expected a port line",
        ),
        (
            "noise by turns",
            format!("{header}{}", "x\n#\n".repeat(5 * MILLION)),
            0.5,
            "0 hosts, 1 switches, 0 cables",
        ),
    ];
    for (name, text, times_max, expected) in cases {
        let (taken, seconds, times) = cost(&text);
        let figures = format!("{name}: {seconds:.1} s, {times:.1} times {} bytes", text.len());
        println!("{figures}");
        assert!(taken.starts_with(expected), "{name}: {taken}");
        assert!(taken.len() < 500, "{name}: {taken}");
        assert!(seconds < CPU_SECONDS_MAX && times < times_max, "{figures}");
    }
}
