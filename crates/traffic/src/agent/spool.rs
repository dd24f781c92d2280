//! The logs of a run on the agent's disk, within a quota. Threads that send and receive hand over
//! blocks. The thread of a [`Disk`] writes them. A packet waits for the disk only while 512 blocks
//! wait. If the disk hangs then, the run ends.

use super::session::Session;
use crate::audit::Audit;
use crate::disk::{ANSWER_MAX, Disk};
use crate::log::{Encoder, Logged};
use crate::message::End;
use clearlane_ib::Bytes;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// What the folder is called.
const FOLDER: &str = "spool";
const BLOCK_BYTES: usize = 64 << 10;
/// Kept free on the disk until it is full, so that the audit log has room to say so.
const RESERVE_FILE: &str = "reserve";
const RESERVE_BYTES: usize = 64 << 10;
/// The run ends when its disk has taken no block for this time.
const BLOCK_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the disk of a run that has been stopped.
const LEAVING_MAX: Duration = Duration::from_millis(500);
/// Longest wait of the controller until everything is on disk.
const FINISH_MAX: Duration = Duration::from_secs(10);

/// A log: connection and end.
type Which = (u32, End);

/// The logs on disk, of one run at a time.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    /// Number of the run; blocks of an earlier run are dropped.
    run: u64,
    /// Bytes of logs so far.
    kept: u64,
    /// Most bytes of logs.
    quota: u64,
    logs: BTreeMap<Which, File>,
}

/// The logs of a run. Its files go when it does.
pub struct Spool {
    disk: Arc<Disk<Files>>,
    run: u64,
    kept: Arc<Kept>,
    records: BTreeMap<Which, Arc<AtomicU64>>,
}

/// Whether the logs of a run are kept.
struct Kept {
    folder: PathBuf,
    session: Arc<Session>,
    audit: Arc<Audit>,
    /// Set once logs are no longer kept.
    has_failed: AtomicBool,
    /// When the run began, and for how many nanoseconds it had run when a block was last written.
    begun: Instant,
    written_ns: AtomicU64,
}

/// Where one connection's packets are noted.
pub struct Log {
    which: Which,
    encoder: Encoder,
    block: Vec<u8>,
    records: Arc<AtomicU64>,
    noted: u64,
    disk: Arc<Disk<Files>>,
    run: u64,
    kept: Arc<Kept>,
}

/// The log cannot be kept: the disk or the quota is full; who wrote it has said so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotKept;

impl Kept {
    /// Ends the run, says why, and keeps its logs no longer.
    fn fail(&self, why: &str) {
        if !self.has_failed.swap(true, SeqCst) {
            self.session.stop(&self.audit, "spool", why);
        }
    }

    /// Notes that a block has been written.
    fn note_written(&self) {
        self.written_ns.store(self.begun.elapsed().as_nanos() as u64, SeqCst);
    }

    /// Time since a block was last written, or since the run began.
    fn since_written(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_nanos(self.written_ns.load(SeqCst)))
    }
}

impl Files {
    /// The log folder of an agent, before its first run.
    pub fn of(folder: &Path) -> Self {
        let folder = folder.join(FOLDER);
        Files { folder, run: 0, kept: 0, quota: 0, logs: BTreeMap::new() }
    }

    /// The folder of the logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes all logs, also those that a killed agent left.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins another run in an empty folder.
    fn begin(&mut self, run: u64, quota: u64) -> io::Result<()> {
        self.logs.clear();
        self.clear()?;
        DirBuilder::new().mode(0o700).create(&self.folder)?;
        fs::write(self.folder.join(RESERVE_FILE), vec![0xff; RESERVE_BYTES])?;
        (self.run, self.kept, self.quota) = (run, 0, quota);
        Ok(())
    }

    /// The logs of a run; fails if another has begun.
    fn logs(&mut self, run: u64) -> io::Result<&mut BTreeMap<Which, File>> {
        match self.run == run {
            true => Ok(&mut self.logs),
            false => Err(io::Error::other("the run has ended")),
        }
    }

    /// Makes the file of a log.
    fn make(&mut self, run: u64, which: Which) -> io::Result<()> {
        let path = self.folder.join(which.1.log_file(which.0));
        let logs = self.logs(run)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        logs.insert(which, file);
        Ok(())
    }

    /// Adds a block to a log.
    fn add(&mut self, run: u64, which: Which, bytes: &[u8], kept: &Kept) {
        // A run that has failed or ended keeps no more blocks.
        if kept.has_failed.load(SeqCst) || self.run != run {
            return;
        }
        self.kept += bytes.len() as u64;
        let Some(file) = self.logs.get_mut(&which) else { return };
        let written = match self.kept > self.quota {
            true => Err(format!(
                "the logs of packets are more than the host's policy allows (limits.logs = {})",
                Bytes(self.quota)
            )),
            false => append(file, bytes).map_err(|error| in_words(&self.folder, &error)),
        };
        kept.note_written();
        if let Err(why) = written {
            // If the reserve cannot be removed, there is nothing more to free.
            let _ = fs::remove_file(self.folder.join(RESERVE_FILE));
            kept.fail(&why);
        }
    }

    /// Bytes of a log, and a part of it; `None` if there is no such log.
    fn read(
        &mut self,
        run: u64,
        which: Which,
        offset: u64,
        most: usize,
    ) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(file) = self.logs(run)?.get_mut(&which) else { return Ok(None) };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset.min(length)))?;
        let mut part = Vec::new();
        file.take(most as u64).read_to_end(&mut part)?;
        Ok(Some((length, part)))
    }

    /// Ends a run and removes its files.
    fn end(&mut self, run: u64) {
        if self.run == run {
            self.logs.clear();
            // Tidiness; the next run clears what is left.
            let _ = self.clear();
        }
    }
}

/// Adds a whole block to a log or none of it, so that the log ends with a whole record.
fn append(file: &mut File, block: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.write_all(block).inspect_err(|_| {
        // If the file cannot be cut either, its reader says so.
        let _ = file.set_len(length);
    })
}

fn in_words(folder: &Path, error: &io::Error) -> String {
    format!("{}: {}", folder.display(), clearlane_lab::plain(error))
}

impl Spool {
    /// Begins the logs of a run on the disk of an agent. If they cannot be kept later, the reason
    /// is told once and the run ends.
    pub fn begin(
        disk: &Arc<Disk<Files>>,
        folder: &Path,
        quota: u64,
        (session, audit): (&Arc<Session>, &Arc<Audit>),
    ) -> Result<Self, String> {
        let kept = Kept {
            folder: folder.join(FOLDER),
            session: Arc::clone(session),
            audit: Arc::clone(audit),
            has_failed: AtomicBool::new(false),
            begun: Instant::now(),
            written_ns: AtomicU64::new(0),
        };
        let begun = disk.ask(ANSWER_MAX, move |files| {
            let run = files.run + 1;
            files.begin(run, quota).map(|()| run)
        });
        let run = begun.map_err(|error| in_words(&kept.folder, &error))?;
        let (disk, kept) = (Arc::clone(disk), Arc::new(kept));
        Ok(Spool { disk, run, kept, records: BTreeMap::new() })
    }

    /// Begins the log of a connection's end and its file. Fails if there is one already.
    pub fn log(&mut self, connection: u32, end: End) -> io::Result<Log> {
        let (which, run) = ((connection, end), self.run);
        self.disk.ask(ANSWER_MAX, move |files| files.make(run, which))?;
        let records = Arc::new(AtomicU64::new(0));
        self.records.insert(which, Arc::clone(&records));
        Ok(Log {
            which,
            encoder: Encoder::default(),
            block: Vec::with_capacity(BLOCK_BYTES),
            records,
            noted: 0,
            disk: Arc::clone(&self.disk),
            run,
            kept: Arc::clone(&self.kept),
        })
    }

    /// How many logs were begun.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// Waits until everything is on disk. Threads that have logs have ended by then.
    pub fn finish(&self) -> io::Result<()> {
        self.disk.ask(FINISH_MAX, |_| Ok(()))
    }

    /// Bytes and records of a log, and a part of it; `None` if there is no such log.
    pub fn read(
        &self,
        connection: u32,
        end: End,
        offset: u64,
        most: usize,
    ) -> io::Result<Option<(u64, u64, Vec<u8>)>> {
        let (which, run) = ((connection, end), self.run);
        let records = self.records.get(&which).map_or(0, |records| records.load(SeqCst));
        let read = move |files: &mut Files| files.read(run, which, offset, most);
        let part = self.disk.ask(ANSWER_MAX, read)?;
        Ok(part.map(|(length, part)| (length, records, part)))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let run = self.run;
        // Blocks that are still to be written are no longer wanted.
        self.kept.has_failed.store(true, SeqCst);
        let (ends, begun) = (move |files: &mut Files| files.end(run), Instant::now());
        // If the disk hangs, the next run or the next agent clears the folder.
        if self.disk.tell(|| begun.elapsed() < LEAVING_MAX, ends).is_ok() {
            let _ = self.disk.ask(LEAVING_MAX, |_| Ok(()));
        }
    }
}

impl Log {
    /// Notes a packet.
    #[inline]
    pub fn push(&mut self, record: Logged) -> Result<(), NotKept> {
        self.encoder.push(record, &mut self.block);
        self.noted += 1;
        match self.block.len() < BLOCK_BYTES - crate::log::RECORD_BYTES_MAX {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Hands over what was noted.
    pub fn flush(&mut self) -> Result<(), NotKept> {
        let bytes = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
        if bytes.is_empty() {
            return Ok(());
        }
        self.records.store(self.noted, SeqCst);
        let (which, run, kept) = (self.which, self.run, Arc::clone(&self.kept));
        let begun = Instant::now();
        let waits = || {
            let waited = begun.elapsed();
            // Others' blocks may be written meanwhile: then the disk does not hang.
            let goes_on = match self.kept.session.is_halted() {
                true => waited < LEAVING_MAX,
                false => waited.min(self.kept.since_written()) < BLOCK_MAX,
            };
            goes_on && !self.kept.has_failed.load(SeqCst)
        };
        if self.kept.has_failed.load(SeqCst) {
            return Err(NotKept);
        }
        let added = self.disk.tell(waits, move |files| files.add(run, which, &bytes, &kept));
        added.map_err(|error| {
            self.kept.fail(&in_words(&self.kept.folder, &error));
            NotKept
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Decoder;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("clearlane-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    /// Begins the logs of a run in a folder.
    fn begun(folder: &Path, quota: u64) -> (Spool, Arc<Session>) {
        let disk = Arc::new(Disk::new("spool", Files::of(folder)).unwrap());
        let audit = Arc::new(Audit::open(folder).unwrap());
        let session = Arc::new(Session::new("plan".into(), "boss".parse().unwrap(), 1));
        let spool = Spool::begin(&disk, folder, quota, (&session, &audit)).unwrap();
        (spool, session)
    }

    #[test]
    fn what_is_noted_is_read_back_and_gone_in_the_end() {
        let folder = folder("spool");
        let (mut spool, session) = begun(&folder, 1 << 20);
        let mut log = spool.log(7, End::Sender).unwrap();
        assert!(spool.log(7, End::Sender).is_err(), "a log is begun once");
        for at in 0..100_000 {
            log.push(Logged { sequence: at, ns: at * 777, bytes: 2048 }).unwrap();
        }
        log.flush().unwrap();
        drop(log);
        spool.finish().unwrap();
        let (mut at, mut decoder, mut count) = (0, Decoder::default(), 0);
        loop {
            let (length, records, part) = spool.read(7, End::Sender, at, 1000).unwrap().unwrap();
            assert_eq!(records, 100_000);
            at += part.len() as u64;
            decoder
                .read(&part, |record| {
                    assert_eq!(record, Logged { sequence: count, ns: count * 777, bytes: 2048 });
                    count += 1;
                })
                .unwrap();
            if at == length {
                break;
            }
        }
        assert_eq!(count, 100_000);
        assert!(spool.read(8, End::Sender, 0, 10).unwrap().is_none());
        drop(spool);
        assert!(!folder.join(FOLDER).exists() && !session.is_halted());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_quota_is_told_once_and_ends_the_logs() {
        let folder = folder("quota");
        let (mut spool, session) = begun(&folder, 100_000);
        let mut log = spool.log(0, End::Receiver).unwrap();
        let kept = (0..10_000_000u64)
            .map(|at| log.push(Logged { sequence: at, ns: at * 777, bytes: 2048 }));
        let refused = kept.take_while(Result::is_ok).count();
        assert!(refused < 9_000_000, "nothing was refused");
        drop(log);
        spool.finish().unwrap();
        let told = session.stopped();
        assert!(told.starts_with("the logs of packets are more than"), "{told}");
        drop(spool);
        let audit = fs::read_to_string(folder.join(crate::audit::AUDIT_FILE)).unwrap();
        assert_eq!(audit.lines().filter(|line| line.contains("spool")).count(), 1, "{audit}");
        fs::remove_dir_all(folder).unwrap();
    }

    /// While the disk hangs, blocks wait for some time. Then the run ends, and its writer goes on.
    #[test]
    fn a_disk_that_hangs_ends_the_run_and_holds_nobody() {
        let folder = folder("hung");
        let (mut spool, session) = begun(&folder, 1 << 40);
        let mut log = spool.log(0, End::Sender).unwrap();
        let (free, held) = std::sync::mpsc::channel::<()>();
        let hang = move |_: &mut Files| held.recv().unwrap();
        spool.disk.tell(|| false, hang).unwrap();
        // A run that has been stopped waits less long.
        session.halt();
        let kept = (0..).map(|at| log.push(Logged { sequence: at, ns: at * 777, bytes: 2048 }));
        // At most 32 MiB wait for the disk, at two or three bytes a packet.
        let kept = kept.take_while(Result::is_ok).count();
        assert!((1 << 20..1 << 25).contains(&kept), "{kept}");
        assert!(log.flush().is_ok() && log.push(Logged { sequence: 0, ns: 0, bytes: 24 }).is_ok());
        assert_eq!(log.flush(), Err(NotKept));
        let why = session.stopped();
        assert!(why.contains("spool: the disk has not answered for 0."), "{why}");
        let gone = Instant::now();
        drop((log, spool));
        assert!(gone.elapsed() < BLOCK_MAX, "it waited for the disk");
        free.send(()).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
