//! What the software of a rank costs and how it goes about long messages.

use clearlane_workload::programs::SIZE_MAX;

/// Who goes on with a long message while its rank computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The rank itself, in its next call: a request to send that arrives while it computes waits.
    Call,
    /// A thread or an adapter of its own: no CPU of the rank is busy with it.
    Async,
}

/// The same for all ranks of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// For each message posted the CPU is busy for so long, in ps: LogGP's o of the sender
    /// (Alexandrov et al., SPAA 1995).
    pub send_overhead: u64,
    /// The same for each message taken: LogGP's o of the receiver.
    pub receive_overhead: u64,
    /// The same for each stripe of a message after its first.
    pub stripe_overhead: u64,
    /// The same for each test and probe.
    pub poll_overhead: u64,
    /// Payload up to which a two-sided message is sent at once, in bytes; a longer one waits to be
    /// read.
    pub eager_max: u64,
    /// Payload of a request to send and of a FIN, in bytes.
    pub control_bytes: u64,
    /// Whether messages of one process to another may come in another order than they were posted
    /// in. If not, nobody numbers them: that takes memory for every pair.
    pub overtaking: bool,
    /// Who goes on with a long message.
    pub progress: Progress,
}

impl Settings {
    /// Whether no message of a program is so long that it waits to be read.
    pub(crate) const fn all_eager(&self) -> bool {
        self.eager_max >= SIZE_MAX.0
    }
}
