//! Why a set-up cannot be simulated.

use clearlane_ib::{Bytes, StateError};

/// Why a set-up cannot be simulated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// No host is cabled to a switch.
    #[error("the fabric has {0} hosts on switches; traffic needs at least 2")]
    TooFewHosts(usize),
    /// Not one program per rank.
    #[error("{programs} programs were given for {ranks} ranks; give one per rank")]
    Programs {
        /// Programs given.
        programs: usize,
        /// Ranks.
        ranks: usize,
    },
    /// A rank of a program cannot be where it is to be.
    #[error("rank {rank} cannot be at host {host}: {why}; place it elsewhere")]
    Placement {
        /// Its rank in its program.
        rank: usize,
        /// Number of the host.
        host: u32,
        /// Why not.
        why: &'static str,
    },
    /// More ports of adapters at a switch than there are places for.
    #[error(
        "the adapters at switch {switch} have {ports} ports in use, more than there are places \
         for; lower adapter_ports"
    )]
    AdapterPorts {
        /// The switch that the first ports are plugged into.
        switch: String,
        /// Ports of these adapters.
        ports: usize,
    },
    /// Fewer partitions than processes, each of which needs one.
    #[error(
        "{processes} processes share {partitions} partitions; start fewer, or ask for more \
         partitions: a fabric has as many as it has switches"
    )]
    Processes {
        /// Processes.
        processes: usize,
        /// Partitions.
        partitions: usize,
    },
    /// A saved state that this set-up cannot go on from.
    #[error(transparent)]
    State(#[from] StateError),
    /// A parameter is outside its range.
    #[error("parameter {name} = {value} is outside {range}")]
    Parameter {
        /// Name.
        name: &'static str,
        /// Value.
        value: String,
        /// Range.
        range: String,
    },
    /// A buffer that cannot hold one packet moves nothing.
    #[error(
        "buffer = {buffer}{} does not hold a packet of {packet} B; raise buffer or lower mtu",
        among(*.lanes)
    )]
    BufferTooSmall {
        /// Bytes per lane.
        buffer: Bytes,
        /// Lanes that share the buffer of a port, if they do.
        lanes: Option<u8>,
        /// Largest packet in bytes.
        packet: u32,
    },
    /// A host has no LID.
    #[error("host {0} has no LID; let the lid manager assign them or correct the file")]
    NoLid(String),
    /// A table sends a packet nowhere.
    #[error(
        "packets for host {host} (LID {lid}) stop at switch {switch}: its table has {what}; \
         run `check` and mend the table"
    )]
    DeadEnd {
        /// Destination.
        host: String,
        /// Its LID.
        lid: u16,
        /// The switch.
        switch: String,
        /// What the entry says.
        what: String,
    },
    /// A group of adaptive routing has a port that leads to no switch.
    #[error("an adaptive group names {port}, which leads to no switch; mend the groups")]
    Group {
        /// The port.
        port: String,
    },
    /// A cable of the grid is missing.
    #[error(
        "the dimension-order rule needs every cable of the grid and {port} is empty; repair it or \
         route with tables"
    )]
    Hole {
        /// The empty port.
        port: String,
    },
    /// A tap that would see nothing.
    #[error("a tap at {port} sees nothing: {why}")]
    Tap {
        /// The port.
        port: String,
        /// Why, and what to do.
        why: &'static str,
    },
    /// More virtual output queues than numbers for them.
    #[error(
        "{queues} virtual output queues (ports × lanes × outputs) are more than the {} that a run \
         may have; take fewer lanes, a smaller fabric or input_queueing = \"fifo\"",
        u32::MAX
    )]
    Queues {
        /// How many there would be.
        queues: u64,
    },
    /// The system starts no more threads.
    #[error(
        "{threads} threads cannot be started at once; lower --threads or --jobs, or allow more \
         (ulimit -u and -v)"
    )]
    Threads {
        /// How many were asked for.
        threads: usize,
    },
    /// The rule forwarder does not fit the fabric.
    #[error(
        "the dimension-order rule needs a grid of at most 8 dimensions of at most 256 switches"
    )]
    NotAGrid,
    /// An instance was asked for that forwards in another way: [`instances`](crate::instances) does
    /// not choose it.
    #[error("this instance of the engine forwards in another way; report this, it is a fault")]
    Forwarder,
}

/// What is said of a buffer that is a share.
fn among(lanes: Option<u8>) -> String {
    lanes.map_or(String::new(), |lanes| format!(" for each of the {lanes} lanes of a port"))
}
