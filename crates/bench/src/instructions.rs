//! Instructions per packet-hop: the difference of two runs of different length under callgrind, so
//! that building the network does not count.

use crate::rows::Row;
use std::process::Command;

/// The two runs are these fractions of a row's length.
const FRACTIONS: [u64; 2] = [30, 10];

/// Runs this program twice under callgrind. Fails if valgrind is not installed.
pub(crate) fn per_hop(row: &Row) -> Result<f64, String> {
    let [short, long] = FRACTIONS.map(|part| count(row.name, row.span_us / part));
    let ((i0, h0), (i1, h1)) = (short?, long?);
    Ok((i1 - i0) as f64 / (h1 - h0) as f64)
}

/// (instructions, packet-hops) of one run.
fn count(row: &str, span_us: u64) -> Result<(i64, i64), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--once", row, &span_us.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}; install the Debian package valgrind"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let instructions = collected.and_then(|(_, number)| number.trim().parse().ok());
    let hops = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    instructions.zip(hops).ok_or_else(|| format!("callgrind of {row} printed no count"))
}
