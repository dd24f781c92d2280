//! What a packet-hop costs the processor, counted by callgrind: the difference of two runs of
//! different length, so that building the network does not count.

use crate::rows::Row;
use std::process::Command;

/// The caches simulated with `--cache`, whatever this machine has: bytes, ways, bytes of a line.
/// The last level is about what a core has to itself: on a shared machine the rest is others'.
const CACHES: [&str; 5] =
    ["--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", LAST_LEVEL];
const LAST_LEVEL: &str = "--LL=524288,8,64";

/// Per packet-hop, or of a whole run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    /// Reads and writes of data that missed the first level.
    pub(crate) d1_misses: f64,
    /// Those that missed the last level too.
    pub(crate) ll_misses: f64,
    /// Branches predicted wrongly, conditional and indirect.
    pub(crate) mispredicts: f64,
}

/// What one run of `--once` counted.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Count {
    hops: u64,
    cost: Cost,
}

/// Instructions per packet-hop. Fails if valgrind is not installed.
pub(crate) fn instructions(row: &Row) -> Result<f64, String> {
    Ok(difference(row, &[])?.instructions)
}

/// All costs per packet-hop, caches and branch prediction simulated.
pub(crate) fn cost(row: &Row) -> Result<Cost, String> {
    difference(row, &CACHES)
}

fn difference(row: &Row, options: &[&str]) -> Result<Cost, String> {
    let [short, long] = row.counted_us.map(|span_us| count(row.name, span_us, options));
    per_hop(short?, long?).ok_or_else(|| format!("{}: the long run has no more hops", row.name))
}

/// The difference of two runs per packet-hop; nothing if the second has no more of them.
fn per_hop(short: Count, long: Count) -> Option<Cost> {
    let hops = long.hops.checked_sub(short.hops).filter(|hops| *hops > 0)? as f64;
    let of = |part: fn(&Cost) -> f64| (part(&long.cost) - part(&short.cost)) / hops;
    Some(Cost {
        instructions: of(|cost| cost.instructions),
        d1_misses: of(|cost| cost.d1_misses),
        ll_misses: of(|cost| cost.ll_misses),
        mispredicts: of(|cost| cost.mispredicts),
    })
}

/// Runs this program under callgrind.
fn count(row: &str, span_us: u64, options: &[&str]) -> Result<Count, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(program)
        .args(["--once", row, &span_us.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}; install the Debian package valgrind"))?;
    let hops = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    let cost = parse(&String::from_utf8_lossy(&output.stderr));
    let both = hops.zip(cost).map(|(hops, cost)| Count { hops, cost });
    both.ok_or_else(|| format!("callgrind of {row} printed no count"))
}

/// Callgrind's totals: a line names the events and another has their numbers. Events that were not
/// simulated count as none.
fn parse(text: &str) -> Option<Cost> {
    let after = |word: &str| text.lines().find_map(|line| line.split_once(word)).map(|(_, r)| r);
    let names: Vec<&str> = after("Events    :")?.split_whitespace().collect();
    let numbers = after("Collected :")?.split_whitespace().map(|word| word.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    if names.len() != numbers.len() || !names.contains(&"Ir") {
        return None;
    }
    let sum = |wanted: &[&str]| {
        let chosen = names.iter().zip(&numbers).filter(|(name, _)| wanted.contains(name));
        chosen.map(|(_, number)| number).sum()
    };
    Some(Cost {
        instructions: sum(&["Ir"]),
        d1_misses: sum(&["D1mr", "D1mw"]),
        ll_misses: sum(&["DLmr", "DLmw"]),
        mispredicts: sum(&["Bcm", "Bim"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATED: &str = "\
==1== Events    : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim
==1== Collected : 1000 300 200 7 40 10 5 20 4 100 9 30 3
==1== D1  misses:           50  (          40 rd +         10 wr)
";

    #[test]
    fn data_misses_and_both_kinds_of_mispredicts_are_read() {
        let cost =
            Cost { instructions: 1000.0, d1_misses: 50.0, ll_misses: 24.0, mispredicts: 12.0 };
        assert_eq!(parse(SIMULATED), Some(cost));
    }

    #[test]
    fn without_caches_only_instructions_are_read() {
        let cost = parse("==1== Events    : Ir\n==1== Collected : 42\n");
        assert_eq!(
            cost,
            Some(Cost { instructions: 42.0, d1_misses: 0.0, ll_misses: 0.0, mispredicts: 0.0 })
        );
    }

    #[test]
    fn a_text_without_totals_is_no_count() {
        assert_eq!(parse("==1== Command: clearlane-bench\n"), None);
        assert_eq!(parse("Events    : Ir Dr\nCollected : 42\n"), None);
        assert_eq!(parse("Events    : Ir\nCollected : many\n"), None);
        assert_eq!(parse("Events    : Dr\nCollected : 42\n"), None);
    }

    #[test]
    fn the_difference_is_taken_per_hop() {
        let of = |hops, parts: [f64; 4]| {
            let [instructions, d1_misses, ll_misses, mispredicts] = parts;
            Count { hops, cost: Cost { instructions, d1_misses, ll_misses, mispredicts } }
        };
        let (short, long) =
            (of(10, [5000.0, 90.0, 30.0, 20.0]), of(30, [20_000.0, 290.0, 40.0, 180.0]));
        let expected = of(0, [750.0, 10.0, 0.5, 8.0]).cost;
        assert_eq!(per_hop(short, long), Some(expected));
        assert_eq!(per_hop(long, short), None);
        assert_eq!(per_hop(short, short), None);
    }
}
