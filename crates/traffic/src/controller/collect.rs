//! The logs of all connections, fetched from both ends of each, within a quota. What cannot be
//! fetched is missing, with the reason, and keeps nothing else away.

use super::run::{KeptLog, Member, Options, RunError, Watch};
use crate::message::{End, Request};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Of the sender and of the receiver of a connection.
pub(super) type Logs = [Option<KeptLog>; 2];

/// A log that is wanted.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Its connection.
    pub(super) connection: u32,
    /// Its end of it.
    pub(super) end: End,
    /// Which agent has it.
    pub(super) place: usize,
}

/// What all threads that fetch have in common.
struct Fetching<'a> {
    options: &'a Options,
    watch: &'a dyn Watch,
    /// Bytes of all logs so far.
    bytes: AtomicU64,
    /// Logs so far, of how many.
    done: AtomicUsize,
    all: usize,
    /// Whether the run had been stopped before logs were fetched: then it is for them that it was.
    was_stopped: bool,
    /// Nothing more is to be fetched.
    halt: AtomicBool,
}

/// Fetches logs, by connection. Of an agent that is lost or gets lost, they are missing.
pub(super) fn collect(
    members: &mut [Member],
    wanted: &[Part],
    options: &Options,
    watch: &dyn Watch,
) -> Result<BTreeMap<u32, Logs>, RunError> {
    let fetching = Fetching {
        options,
        watch,
        bytes: AtomicU64::new(0),
        done: AtomicUsize::new(0),
        all: wanted.len().max(1),
        was_stopped: watch.is_stopped(),
        halt: AtomicBool::new(false),
    };
    let fetched = std::thread::scope(|scope| {
        let fetching = &fetching;
        let one = |(place, member): (usize, _)| {
            let parts: Vec<Part> =
                wanted.iter().filter(|part| part.place == place).copied().collect();
            scope.spawn(move || fetching.all_of(member, &parts))
        };
        let threads: Vec<_> = members.iter_mut().enumerate().map(one).collect();
        let fault = || Err(RunError::Machine("a thread that collects logs panicked".into()));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| fault()))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut logs: BTreeMap<u32, Logs> = BTreeMap::new();
    for (part, log) in fetched.into_iter().flatten() {
        let pair = logs.entry(part.connection).or_default();
        pair[usize::from(part.end == End::Receiver)] = Some(log);
    }
    Ok(logs)
}

impl Fetching<'_> {
    /// The logs of an agent, until it is lost. Fails if the disk here refuses.
    fn all_of(
        &self,
        member: &mut Member,
        parts: &[Part],
    ) -> Result<Vec<(Part, KeptLog)>, RunError> {
        let mut fetched = Vec::new();
        for part in parts {
            if !member.lost.is_empty() {
                break;
            }
            let Some(log) = self.one(member, *part)? else { break };
            fetched.push((*part, log));
            let done = self.done.fetch_add(1, SeqCst) + 1;
            self.watch.collected(done as f64 / self.all as f64);
        }
        Ok(fetched)
    }

    /// Fetches one log into a file; nothing, and nothing of it is kept, if that is not to be.
    fn one(&self, member: &mut Member, part: Part) -> Result<Option<KeptLog>, RunError> {
        let Part { connection, end, .. } = part;
        let path = self.options.folder.join(end.log_file(connection));
        let fault = |error: std::io::Error| {
            RunError::Machine(format!("{}: {}", path.display(), clearlane_lab::plain(&error)))
        };
        let mut new = OpenOptions::new();
        let mut file = new.write(true).create_new(true).mode(0o600).open(&path).map_err(fault)?;
        let mut offset = 0;
        loop {
            let asked = member.link.log(&Request::Log { connection, end, offset });
            let part = asked.map_err(|error| error.reason()).and_then(|(bytes, records, part)| {
                self.may_keep(part.len() as u64).map(|()| (bytes, records, part))
            });
            let (bytes, records, part) = match part {
                Ok(part) => part,
                Err(why) => {
                    member.lost = why;
                    fs::remove_file(&path).map_err(fault)?;
                    return Ok(None);
                }
            };
            file.write_all(&part).map_err(fault)?;
            offset += part.len() as u64;
            if offset >= bytes || part.is_empty() {
                return Ok(Some(KeptLog { path, records }));
            }
        }
    }

    /// Whether so many bytes more may be kept; why not.
    fn may_keep(&self, bytes: u64) -> Result<(), String> {
        let most = self.options.logs_max;
        if self.bytes.fetch_add(bytes, SeqCst) + bytes > most || self.halt.load(SeqCst) {
            self.halt.store(true, SeqCst);
            return Err(format!(
                "the logs of all packets are more than {most} B; allow more with --logs, or write \
                 larger packets with --packet"
            ));
        }
        match self.watch.is_stopped() && !self.was_stopped {
            true => Err("interrupted while logs were collected".into()),
            false => Ok(()),
        }
    }
}
