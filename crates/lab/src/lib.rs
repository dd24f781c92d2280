//! Experiments from file to report: one TOML file in, a folder with a summary, tables and one HTML
//! page out. `(experiment file, seed, version)` fixes every byte of it.
//!
//! The way through:
//!
//! ```text
//! let mut experiment = Experiment::read(path)?;            // parsed and checked, file:line errors
//! experiment.override_site(&SiteFiles { fabric, lft, ..SiteFiles::default() })?;
//! experiment.override_seeds(seed, seeds)?;
//! experiment.keep_variants(&["as-is", "fat-tree"])?;
//! experiment.resolved();                                     // TOML, for --dry-run
//! let result = run(&experiment, &RunOptions::new(jobs, command), &progress, &cancel)?;
//! result.headline_table();                                   // Table, prints aligned
//! result.published_table();                                  // Option<Table>
//! result.to_json();                                          // clearlane-summary/2
//! result.status();                                           // Status
//! let unfinished = Unfinished::default();                    // what goes if the process ends
//! let report = write_run_folder(&result, out, force, &unfinished)?;  // path of report.html
//!
//! let sweep = Sweep::read(path, &["traffic.load=0.1..0.9:9".into()], &[])?;
//! let folder = SweepFolder::claim(&sweep, out, force, false, &unfinished)?;
//! let result = run_sweep(&sweep, &options, &folder, &progress, &cancel)?;
//! let report = folder.fill(&result)?;
//! ```
//!
//! `Progress::on_progress(&self, done: f64, packet_hops: u64)` is called from worker threads with
//! the share of all simulated time that is done and the packet-hops so far. Where runs end with
//! their programs, `on_elapsed` is called instead, with how many runs have ended and the time
//! simulated so far. `cancel` is an `AtomicBool`; once true the runs stop and the result is
//! [`Status::Partial`].

#![forbid(unsafe_code)]

mod advance;
mod alone;
pub mod calibrate;
mod capturing;
mod checkpoint;
mod columns;
mod control;
mod control_file;
mod error;
mod experiment;
mod fact;
mod figures;
mod folder;
mod halt;
mod headline;
mod host_plan;
mod ideal;
pub mod measure;
mod opensm_conf;
mod part;
mod policy_conf;
mod port;
mod prepare;
mod processes;
mod question;
mod queue_pairs;
mod reachable;
mod remarks;
mod report;
mod result;
mod results;
mod routes;
mod run;
mod simulator;
mod status;
mod sweep;
mod table;
mod text;
pub mod tune;
mod verdict;
mod waiting;

pub use advance::Elapsed;
pub use capturing::{CaptureRequest, captures_in};
pub use checkpoint::{Checkpoints, Refusal, decode, encode};
pub use clearlane_sim::{Division, Fleet, fleet_of_threads};
pub use columns::{
    Described, FLOW_SERIES_FILE, FlowSlice, LoggedPacket, PACKET_LOG_COLUMNS, PACKET_LOG_FILE,
    PacketLog, TABLES, TableEntry, read_flow_series, write_flow_series,
};
pub use control_file::ControlFile;
pub use error::{LabError, named, plain, read_remedy};
pub use experiment::reference;
pub use experiment::{
    Axis, ControlSpec, DemandSpec, DevicesSpec, Ends, Experiment, FabricSource, FabricSpec,
    LanePolicySpec, MechanismSpec, Mode, OfferedSpec, Plan, PolicyFile, PortSpec, Published,
    RandomCut, Routing, Senders, SiteFiles, SubnetSpec, TrafficSpec, Variant, WarmUp,
};
pub use fact::Fact;
pub use figures::History;
pub use folder::{Aside, Unfinished};
pub use halt::Deadline;
pub use headline::{Better, ControlTotals, Moved, PublishedRow};
pub use host_plan::{CabledPort, HostCable, HostFlow, HostPlan};
pub use opensm_conf::OpensmConf;
pub use port::named as named_port;
pub use prepare::{FABRIC_BYTES_MAX, TABLE_BYTES_MAX};
pub use processes::Processes;
pub use remarks::NOT_MODELLED;
pub use report::{
    AxisValue, ObservedColumn, ObservedLine, ObservedPage, ObservedRecord, ObservedRow, Suffering,
    SweepAxis, SweepData, SweepFigure, SweepPage, SweepPoint, Theme, lost, observed_page, picture,
    sweep_page,
};
pub use result::{Alone, RunResult, SeedResult, VariantResult};
pub use results::{BusiestHosts, Filled, HostLoad, RunFolder, write_run_folder};
pub use run::{Begun, Jobs, Progress, Quiet, RunOptions, run};
pub use status::Status;
pub use sweep::{
    POINTS_COLUMNS, POINTS_FILE, Point, Sweep, SweepFolder, SweepResult, VariantPoint, run_sweep,
};
pub use table::{Align, Column, Table, grouped};
pub use text::read_text;
pub use verdict::{Found, Line, Verdict};
pub use waiting::WaitingRank;
