//! Rows of the subnet manager's work: tables of an engine, and the proof that they are sane.

use clearlane_fabric::{Fabric, topologies};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_subnet::lanes::{self, LaneOptions};

/// What is timed.
#[derive(Debug)]
pub(crate) enum Work {
    /// Filling the tables.
    Route,
    /// Reachability of every pair and the search for credit loops, ACKs included.
    Check,
    /// Giving paths their lanes by the policy vftree, 8 lanes; the tables are there.
    Lanes,
}

/// One row.
#[derive(Debug)]
pub(crate) struct TableRow {
    pub(crate) name: &'static str,
    pub(crate) topology: &'static str,
    pub(crate) engine: &'static str,
    pub(crate) lanes: u8,
    pub(crate) work: Work,
    /// CPU seconds.
    pub(crate) goal: Option<f64>,
    pub(crate) note: &'static str,
}

const fn tree(name: &'static str, topology: &'static str, work: Work, goal: f64) -> TableRow {
    TableRow { name, topology, engine: "fat-tree", lanes: 1, work, goal: Some(goal), note: "" }
}

/// All rows. The notes say what OpenSM 3.3.23 and ibdmchk 1.5.7 take on the same kind of machine.
pub(crate) const ROWS: &[TableRow] = &[
    TableRow {
        note: "OpenSM ftree: 1.2 s",
        ..tree("tables-3456", "fat-tree:3456", Work::Route, 0.1)
    },
    TableRow {
        note: "OpenSM ftree: 17.7 s",
        ..tree("tables-11664", "fat-tree:11664", Work::Route, 1.0)
    },
    TableRow { note: "ibdmchk: 19 s", ..tree("check-3456", "fat-tree:3456", Work::Check, 2.0) },
    tree("lanes-11664", "fat-tree:11664", Work::Lanes, 1.0),
    TableRow {
        engine: "layered",
        lanes: 8,
        goal: None,
        note: "OpenSM dfsssp: 35.8 s, then 9 lanes of 8",
        ..tree("tables-8x8x8-2048", "torus:8x8x8,hosts=4", Work::Route, 0.0)
    },
];

/// A fabric and its tables, which are not timed for a row of checks or lanes.
pub(crate) struct TableBench {
    row: &'static TableRow,
    fabric: Fabric,
    subnet: Option<Subnet>,
}

impl TableRow {
    /// Builds the fabric, and the tables if the row is about checking them.
    pub(crate) fn prepare(&'static self) -> Result<TableBench, String> {
        let fabric = topologies::build(self.topology).map_err(|error| error.to_string())?;
        let mut bench = TableBench { row: self, fabric, subnet: None };
        if matches!(self.work, Work::Check | Work::Lanes) {
            bench.subnet = Some(bench.route()?);
        }
        Ok(bench)
    }
}

impl TableBench {
    /// Does the work once.
    pub(crate) fn run(&self) -> Result<(), String> {
        match (&self.subnet, &self.row.work) {
            (None, _) => self.route().map(drop),
            (Some(subnet), Work::Lanes) => {
                let policy = lanes::policy("vftree").map_err(|error| error.to_string())?;
                let assigned =
                    policy.assign(&self.fabric, &mut subnet.clone(), &LaneOptions::new(8));
                assigned.map_err(|error| error.to_string())
            }
            (Some(subnet), _) => {
                let reached = reachability(&self.fabric, subnet);
                let loops = credit_loop(&self.fabric, subnet);
                if reached.is_sane() && loops.is_sane() {
                    return Ok(());
                }
                Err(format!("the tables of {} are not sane", self.row.name))
            }
        }
    }

    fn route(&self) -> Result<Subnet, String> {
        let options = RouteOptions { lanes: self.row.lanes, ..RouteOptions::default() };
        engines::route(self.row.engine, &self.fabric, &options).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use crate::rows;
    use clearlane_fabric::topologies;

    /// Every row's fabric builds; the largest of them has 131,072 switches and takes a second.
    #[test]
    fn the_fabric_of_every_row_is_one_of_today() {
        let of_tables = super::ROWS.iter().map(|row| (row.name, row.topology));
        let all = rows::ROWS.iter().map(|row| (row.name, row.topology)).chain(of_tables);
        for (name, topology) in all {
            let built = topologies::build(topology);
            assert!(
                built.is_ok(),
                "{name}: {}",
                built.err().map_or(String::new(), |e| e.to_string())
            );
        }
        let last = super::ROWS.iter().find(|row| row.name == "tables-8x8x8-2048");
        let hosts = topologies::build(last.expect("a row").topology).map(|f| f.summary().adapters);
        assert_eq!(hosts, Ok(2048));
    }
}
