//! The rows: fabrics, tables and loads.

use crate::parameters::{BY_RULE, BY_TABLES, EXCHANGED, LIMITED, LIMITED_VOQ, NSIM, VOQ};
use clearlane_sim::Parameters;
use clearlane_workload::Transport;

/// The way of forwarding.
#[derive(Debug)]
pub(crate) enum By {
    /// Dimension order by coordinates.
    Rule,
    /// The tables of a routing engine, and how many lanes it may use. Traffic on the tables of
    /// `fat-tree` is spread over them.
    Engine(&'static str, u8),
    /// Like `Engine`, and switches choose among the ports that the engine allows.
    Adaptive(&'static str, u8),
    /// The engine `multipath` with four LIDs a host, and how many lanes it may use.
    Multipath(u8),
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether the row is measured only where it is asked for, by name or by `--rare`: its setting
    /// is rare and runs on an instance that other settings pay for.
    pub(crate) rare: bool,
    pub(crate) note: &'static str,
    pub(crate) topology: &'static str,
    pub(crate) by: By,
    pub(crate) parameters: Parameters,
    pub(crate) load: f64,
    /// Instead of a load: pair-wise exchange with messages of this size.
    pub(crate) exchanged: Option<&'static str>,
    pub(crate) transport: Transport,
    /// A congestion mechanism with its defaults.
    pub(crate) control: Option<&'static str>,
    /// Simulated length of a timed run.
    pub(crate) span_us: u64,
    /// Times which a run is compared with one of another commit: about 2 CPU seconds or more.
    pub(crate) pairing: u64,
    /// Lengths of the short and the long run that callgrind counts.
    pub(crate) counted_us: [u64; 2],
    pub(crate) goal: Option<f64>,
    /// Whether its instructions are counted too, and the goal for them.
    pub(crate) instructions: Option<Option<f64>>,
    /// The goal in bytes per node where its memory is measured too.
    pub(crate) memory: Option<f64>,
    /// Whether the memory of its queue pairs is measured, one between any two hosts.
    pub(crate) memory_of_pairs: bool,
}

impl Row {
    /// Whether it offers a load of datagrams, without a mechanism.
    pub(crate) fn is_plain(&self) -> bool {
        let datagrams = self.transport == Transport::Ud && self.exchanged.is_none();
        datagrams && self.control.is_none()
    }

    /// Lengths in microseconds of the short and the long run of a comparison with another commit,
    /// whose difference is free of set-up and audit.
    pub(crate) fn pair_us(&self) -> [u64; 2] {
        let long = self.span_us * self.pairing;
        [long / 3, long]
    }
}

const fn ud(name: &'static str, topology: &'static str, by: By, load: f64, span_us: u64) -> Row {
    Row {
        name,
        rare: false,
        note: "UD with counters",
        topology,
        parameters: match by {
            By::Rule => BY_RULE,
            _ => BY_TABLES,
        },
        by,
        load,
        exchanged: None,
        transport: Transport::Ud,
        control: None,
        span_us,
        pairing: 1,
        counted_us: [span_us / 30, span_us / 10],
        goal: None,
        instructions: None,
        memory: None,
        memory_of_pairs: false,
    }
}

const fn rc(name: &'static str, topology: &'static str, by: By, load: f64, span_us: u64) -> Row {
    Row {
        note: "RC with ACKs and counters; data packets counted",
        transport: Transport::Rc,
        ..ud(name, topology, by, load, span_us)
    }
}

/// An all-to-all in the middle of its steps.
const fn exchange(
    name: &'static str,
    topology: &'static str,
    size: &'static str,
    span_us: u64,
) -> Row {
    Row {
        note: "UD with counters; pair-wise exchange, ranks that match and wait",
        exchanged: Some(size),
        parameters: EXCHANGED,
        ..ud(name, topology, By::Rule, 0.0, span_us)
    }
}

/// The row of RC under a mechanism: beside the one without, what the mechanism costs.
const fn under(
    name: &'static str,
    control: &'static str,
    topology: &'static str,
    by: By,
    load: f64,
    span_us: u64,
) -> Row {
    Row {
        note: "the same under a congestion mechanism",
        control: Some(control),
        ..rc(name, topology, by, load, span_us)
    }
}

/// The row of a setting that few runs have.
const fn rare(row: Row) -> Row {
    Row { rare: true, ..row }
}

/// Links and hosts are written out, so that the rows stay when a builder's defaults change.
const SMALL_TORUS: &str = "torus:8x8,hosts=1,speed=4xQDR";
const TORUS: &str = "torus:16x16x16,hosts=1,speed=4xQDR";
const WIDE_TORUS: &str = "torus:6x6,hosts=16,speed=4xQDR";
const LARGE_TORUS: &str = "torus:64x64x32,hosts=1,speed=4xQDR";
const NSIM_TORUS: &str = "torus:8x8x8,hosts=1,links=4,speed=4xQDR";
const TREE: &str = "fat-tree:648,speed=4xQDR";
const LEAF_SPINE: &str = "leaf-spine:leaves=12,hosts=12,spines=12,speed=4xQDR";
const DOR: By = By::Engine("dor", 2);
const ONE_LANE: By = By::Engine("fat-tree", 1);
const FIFTEEN_LANES: By = By::Engine("fat-tree", 15);
const ADAPTIVE: By = By::Adaptive("fat-tree", 1);

/// All rows. Load is a share of the host link, headers included; 2 KiB messages, one packet each.
pub(crate) const ROWS: &[Row] = &[
    Row {
        goal: Some(6.0),
        instructions: Some(None),
        pairing: 10,
        ..ud("torus-8x8", SMALL_TORUS, DOR, 0.4, 8000)
    },
    Row { pairing: 12, ..rc("torus-8x8-rc", SMALL_TORUS, DOR, 0.4, 2000) },
    Row { pairing: 6, ..under("torus-8x8-rc-iba-cc", "iba-cc", SMALL_TORUS, DOR, 0.4, 2000) },
    Row { pairing: 8, ..under("torus-8x8-rc-dcqcn", "dcqcn", SMALL_TORUS, DOR, 0.4, 2000) },
    Row {
        goal: Some(6.0),
        instructions: Some(Some(750.0)),
        pairing: 2,
        ..ud("torus-16x16x16", TORUS, By::Rule, 0.25, 200)
    },
    Row { pairing: 5, ..rc("torus-16x16x16-rc", TORUS, By::Rule, 0.25, 30) },
    Row { goal: Some(5.0), pairing: 4, ..ud("tree-648-1-lane", TREE, ONE_LANE, 0.5, 1500) },
    Row {
        goal: Some(4.0),
        pairing: 3,
        ..ud("tree-648-8-lanes", TREE, By::Engine("fat-tree", 8), 0.5, 1500)
    },
    Row { pairing: 4, memory_of_pairs: true, ..rc("tree-648-rc", TREE, ONE_LANE, 0.5, 500) },
    Row {
        memory_of_pairs: true,
        ..under("tree-648-rc-iba-cc", "iba-cc", TREE, ONE_LANE, 0.5, 500)
    },
    Row {
        goal: Some(5.0),
        // A packet needs 25 us to cross this fabric: shorter runs only fill it.
        counted_us: [4, 13],
        memory: Some(2200.0),
        ..ud("torus-64x64x32", LARGE_TORUS, By::Rule, 0.06, 40)
    },
    Row {
        goal: Some(8.0),
        ..exchange("alltoall-32x32", "torus:32x32,hosts=1,speed=4xQDR", "20000 B", 3000)
    },
    Row { goal: Some(8.0), ..exchange("alltoall-16x16x16", TORUS, "4032 B", 300) },
    Row {
        note: "the same on the devices of nsim-2014: four links a host, crossbars that read a port \
               for one output at a time",
        parameters: NSIM,
        pairing: 4,
        ..exchange("nsim-8x8x8", NSIM_TORUS, "20000 B", 400)
    },
    Row { parameters: VOQ, pairing: 4, ..rc("leaf-spine-voq", LEAF_SPINE, ONE_LANE, 0.5, 1000) },
    Row {
        parameters: VOQ,
        pairing: 3,
        ..under("leaf-spine-voq-iba-cc", "iba-cc", LEAF_SPINE, ONE_LANE, 0.5, 1000)
    },
    ud("tree-648-adaptive", TREE, ADAPTIVE, 0.5, 1500),
    under("tree-648-adaptive-iba-cc", "iba-cc", TREE, ADAPTIVE, 0.5, 300),
    Row { pairing: 2, ..under("torus-8x8-drb", "drb", SMALL_TORUS, By::Multipath(8), 0.4, 4000) },
    under("torus-16x16x16-rc-dcqcn", "dcqcn", TORUS, By::Rule, 0.25, 60),
    Row { parameters: LIMITED, ..ud("tree-648-adaptive-limited", TREE, ADAPTIVE, 0.5, 1000) },
    Row {
        parameters: LIMITED,
        ..under("torus-16x16x16-limited-rc-dcqcn", "dcqcn", TORUS, By::Rule, 0.25, 60)
    },
    ud("tree-648-15-lanes", TREE, FIFTEEN_LANES, 0.5, 1500),
    under("tree-648-15-lanes-iba-cc", "iba-cc", TREE, FIFTEEN_LANES, 0.5, 500),
    Row { parameters: LIMITED, ..ud("tree-648-15-lanes-limited", TREE, FIFTEEN_LANES, 0.5, 1000) },
    Row {
        parameters: LIMITED,
        ..under("tree-648-15-lanes-limited-iba-cc", "iba-cc", TREE, FIFTEEN_LANES, 0.5, 300)
    },
    // Settings that few runs have.
    rare(Row { pairing: 2, ..ud("tree-648-2-lanes", TREE, By::Engine("fat-tree", 2), 0.5, 1500) }),
    rare(under("tree-648-2-lanes-iba-cc", "iba-cc", TREE, By::Engine("fat-tree", 2), 0.5, 500)),
    rare(Row { pairing: 6, ..ud("torus-6x6-16-hosts", WIDE_TORUS, By::Rule, 0.25, 1500) }),
    rare(Row { parameters: VOQ, ..ud("torus-16x16x16-voq", TORUS, By::Rule, 0.25, 100) }),
    rare(Row { parameters: VOQ, ..ud("tree-648-adaptive-voq", TREE, ADAPTIVE, 0.5, 1500) }),
    rare(Row {
        parameters: LIMITED,
        pairing: 4,
        ..ud("torus-8x8-limited", SMALL_TORUS, DOR, 0.4, 8000)
    }),
    rare(Row {
        parameters: LIMITED,
        pairing: 4,
        ..under("torus-8x8-limited-iba-cc", "iba-cc", SMALL_TORUS, DOR, 0.4, 2000)
    }),
    rare(ud("tree-648-adaptive-15-lanes", TREE, By::Adaptive("fat-tree", 15), 0.5, 1000)),
    rare(Row { parameters: VOQ, ..ud("tree-648-15-lanes-voq", TREE, FIFTEEN_LANES, 0.5, 1000) }),
    rare(Row {
        parameters: VOQ,
        ..under("tree-648-adaptive-voq-iba-cc", "iba-cc", TREE, ADAPTIVE, 0.5, 300)
    }),
    rare(Row {
        pairing: 6,
        ..ud("torus-4x4-80-hosts", "torus:4x4,hosts=80,speed=4xQDR", By::Rule, 0.05, 3000)
    }),
    rare(Row {
        pairing: 4,
        ..under("torus-6x6-16-hosts-rc-dcqcn", "dcqcn", WIDE_TORUS, By::Rule, 0.25, 1500)
    }),
    rare(Row {
        parameters: VOQ,
        ..under("torus-16x16x16-voq-rc-dcqcn", "dcqcn", TORUS, By::Rule, 0.25, 60)
    }),
    rare(Row {
        parameters: LIMITED,
        pairing: 4,
        ..ud("torus-6x6-16-hosts-limited", WIDE_TORUS, By::Rule, 0.25, 1500)
    }),
    rare(Row {
        parameters: LIMITED,
        ..under("tree-648-adaptive-limited-iba-cc", "iba-cc", TREE, ADAPTIVE, 0.5, 300)
    }),
    rare(Row {
        parameters: LIMITED_VOQ,
        pairing: 3,
        ..ud("torus-8x8-limited-voq", SMALL_TORUS, DOR, 0.4, 8000)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_run_is_longer_than_the_short_one() {
        for row in ROWS {
            for [short, long] in [row.pair_us(), row.counted_us] {
                assert!(short > 0 && long >= 3 * short, "{}: {short} and {long} us", row.name);
            }
        }
    }

    #[test]
    fn a_comparison_takes_a_row_so_many_times_its_length() {
        let row = ROWS.iter().find(|row| row.name == "torus-8x8").expect("a row");
        assert_eq!(row.pair_us(), [26_666, 80_000]);
    }
}
