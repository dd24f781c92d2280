//! The logs of all connections, fetched from both ends of each, within a quota.

use super::link::Link;
use super::run::{Options, RunError, Watch};
use crate::message::{End, Request};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// What was collected.
pub(super) struct Collected {
    /// By connection: of the sender and of the receiver, a file and its records.
    pub(super) logs: BTreeMap<u32, [(PathBuf, u64); 2]>,
}

/// An end of a connection.
type Part = (u32, End);
/// Its log: a file and its records.
type Fetched = (Part, PathBuf, u64);

/// Fetches the logs of these connections, whose sender and receiver are these agents.
pub(super) fn collect(
    links: &mut [Link],
    wanted: &[(u32, [usize; 2])],
    options: &Options,
    watch: &dyn Watch,
) -> Result<Collected, RunError> {
    let of = |place: usize| -> Vec<Part> {
        let ends = [End::Sender, End::Receiver];
        let both = |(number, places): &(u32, [usize; 2])| {
            let number = *number;
            places
                .iter()
                .zip(ends)
                .filter(|(at, _)| **at == place)
                .map(move |(_, end)| (number, end))
                .collect::<Vec<_>>()
        };
        wanted.iter().flat_map(both).collect()
    };
    let parts: Vec<Vec<Part>> = (0..links.len()).map(of).collect();
    let (all, done) = (2 * wanted.len().max(1), AtomicUsize::new(0));
    let kept = AtomicU64::new(0);
    let fetched: Vec<Result<Vec<Fetched>, RunError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = links
            .iter_mut()
            .zip(&parts)
            .map(|(link, parts)| {
                let (done, kept) = (&done, &kept);
                scope.spawn(move || {
                    let mut fetched = Vec::new();
                    for part in parts {
                        let (path, records) = fetch(link, *part, options, kept)?;
                        fetched.push((*part, path, records));
                        let done = done.fetch_add(1, SeqCst) + 1;
                        watch.collected(done as f64 / all as f64);
                    }
                    Ok(fetched)
                })
            })
            .collect();
        let fault = || Err(RunError::Machine("a thread that collects logs panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| fault())).collect()
    });
    let mut logs: BTreeMap<u32, [(PathBuf, u64); 2]> = BTreeMap::new();
    for (part, path, records) in fetched.into_iter().collect::<Result<Vec<_>, _>>()?.concat() {
        let (connection, end) = part;
        let pair = logs.entry(connection).or_default();
        pair[usize::from(end == End::Receiver)] = (path, records);
    }
    Ok(Collected { logs })
}

/// Fetches one log into a file.
fn fetch(
    link: &mut Link,
    (connection, end): Part,
    options: &Options,
    kept: &AtomicU64,
) -> Result<(PathBuf, u64), RunError> {
    let name = match end {
        End::Sender => format!("{connection}-sent.log"),
        End::Receiver => format!("{connection}-received.log"),
    };
    let path = options.folder.join(name);
    let fault = |error: std::io::Error| {
        RunError::Machine(format!("{}: {}", path.display(), clearlane_lab::plain(&error)))
    };
    let mut new = OpenOptions::new();
    let mut file = new.write(true).create_new(true).mode(0o600).open(&path).map_err(fault)?;
    let mut offset = 0;
    loop {
        let (bytes, records, part) = link.log(&Request::Log { connection, end, offset })?;
        if kept.fetch_add(part.len() as u64, SeqCst) + part.len() as u64 > options.logs_max {
            let most = options.logs_max;
            return Err(RunError::Machine(format!(
                "the logs of packets are more than {most} B; allow more with --logs, or write \
                 larger packets with --packet"
            )));
        }
        file.write_all(&part).map_err(fault)?;
        offset += part.len() as u64;
        if offset >= bytes || part.is_empty() {
            return Ok((path, records));
        }
    }
}
