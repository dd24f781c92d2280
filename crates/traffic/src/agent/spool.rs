//! The logs of a run on the agent's disk, within a quota. Threads that send and receive hand over
//! blocks; one thread writes them, so that no packet waits for the disk.

use crate::log::{Encoder, Logged};
use crate::message::End;
use clearlane_ib::Bytes;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What the folder is called.
const FOLDER: &str = "spool";
const BLOCK_BYTES: usize = 64 << 10;
/// Kept free on the disk until it is full, so that the audit log has room to say so.
const RESERVE_FILE: &str = "reserve";
const RESERVE_BYTES: usize = 64 << 10;
/// Blocks that wait for the disk: 32 MiB.
const BLOCKS_MAX: usize = 512;

/// A log: connection and end.
type Which = (u32, End);

/// A block of a log.
struct Block {
    which: Which,
    bytes: Vec<u8>,
}

/// The logs of a run. Its files go when it does.
pub struct Spool {
    folder: PathBuf,
    blocks: Option<SyncSender<Block>>,
    writer: Option<JoinHandle<()>>,
    files: Arc<Mutex<BTreeMap<Which, File>>>,
    records: BTreeMap<Which, Arc<AtomicU64>>,
}

/// Where one connection's packets are noted.
pub struct Log {
    which: Which,
    encoder: Encoder,
    block: Vec<u8>,
    records: Arc<AtomicU64>,
    noted: u64,
    blocks: SyncSender<Block>,
}

/// The log cannot be kept: the disk or the quota is full; who wrote it has said so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotKept;

impl Spool {
    /// Takes away what a killed agent left in a folder.
    pub fn clear(folder: &Path) -> io::Result<()> {
        match fs::remove_dir_all(folder.join(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins the logs of a run. `failed` is told once, why they cannot be kept.
    pub fn begin(
        folder: &Path,
        quota: u64,
        failed: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        Spool::clear(folder)?;
        let folder = folder.join(FOLDER);
        DirBuilder::new().mode(0o700).create(&folder)?;
        fs::write(folder.join(RESERVE_FILE), vec![0xff; RESERVE_BYTES])?;
        let (blocks, waiting) = sync_channel(BLOCKS_MAX);
        let files = Arc::default();
        let (theirs, of) = (Arc::clone(&files), folder.clone());
        let writer = std::thread::Builder::new()
            .name("spool".into())
            .spawn(move || write(&waiting, &theirs, quota, &of, failed))?;
        let (blocks, writer, records) = (Some(blocks), Some(writer), BTreeMap::new());
        Ok(Spool { folder, blocks, writer, files, records })
    }

    /// The log of a connection's end; its file is made here. Fails if there is one already.
    pub fn log(&mut self, connection: u32, end: End) -> io::Result<Log> {
        let which = (connection, end);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600);
        let file = file.open(self.folder.join(end.log_file(connection)))?;
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(which, file);
        let records = Arc::new(AtomicU64::new(0));
        self.records.insert(which, Arc::clone(&records));
        let blocks = self.blocks.clone().ok_or(io::ErrorKind::BrokenPipe)?;
        let block = Vec::with_capacity(BLOCK_BYTES);
        Ok(Log { which, encoder: Encoder::default(), block, records, noted: 0, blocks })
    }

    /// How many logs were begun.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// Waits until everything is on disk. Threads that have logs have ended by then.
    pub fn finish(&mut self) {
        self.blocks = None;
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has ended the run.
            let _ = writer.join();
        }
    }

    /// Bytes and records of a log, and a part of it; nothing if there is no such log.
    pub fn read(
        &self,
        connection: u32,
        end: End,
        offset: u64,
        most: usize,
    ) -> io::Result<Option<(u64, u64, Vec<u8>)>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = files.get_mut(&(connection, end)) else { return Ok(None) };
        let records = self.records.get(&(connection, end));
        let records = records.map_or(0, |records| records.load(SeqCst));
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset.min(length)))?;
        let mut part = Vec::new();
        file.take(most as u64).read_to_end(&mut part)?;
        Ok(Some((length, records, part)))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.finish();
        // Tidiness; the next run clears what is left.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn write(
    waiting: &Receiver<Block>,
    files: &Mutex<BTreeMap<Which, File>>,
    quota: u64,
    folder: &Path,
    failed: impl Fn(String),
) {
    let mut kept = 0;
    for block in waiting {
        kept += block.bytes.len() as u64;
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = files.get_mut(&block.which) else { continue };
        let written = match kept > quota {
            true => Err(format!(
                "the logs of packets are more than the host's policy allows (limits.logs = {})",
                Bytes(quota)
            )),
            false => append(file, &block.bytes)
                .map_err(|error| format!("{}: {}", folder.display(), clearlane_lab::plain(&error))),
        };
        if let Err(why) = written {
            // If it cannot be removed, there is nothing more to give.
            let _ = fs::remove_file(folder.join(RESERVE_FILE));
            failed(why);
            // Blocks that come after are refused to those who send them.
            return;
        }
    }
}

/// Adds a block to a log, or none of it: a log ends with a whole record.
fn append(file: &mut File, block: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.write_all(block).inspect_err(|_| {
        // What cannot be cut either is told by who reads it.
        let _ = file.set_len(length);
    })
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
        self.blocks.send(Block { which: self.which, bytes }).map_err(|_| NotKept)
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

    #[test]
    fn what_is_noted_is_read_back_and_gone_in_the_end() {
        let folder = folder("spool");
        let mut spool = Spool::begin(&folder, 1 << 20, |why| panic!("{why}")).unwrap();
        let mut log = spool.log(7, End::Sender).unwrap();
        assert!(spool.log(7, End::Sender).is_err(), "a log is begun once");
        for at in 0..100_000 {
            log.push(Logged { sequence: at, ns: at * 777, bytes: 2048 }).unwrap();
        }
        log.flush().unwrap();
        drop(log);
        spool.finish();
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
        assert!(!folder.join(FOLDER).exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_quota_is_told_once_and_ends_the_logs() {
        let folder = folder("quota");
        let told = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&told);
        let failed = move |why| theirs.lock().unwrap().push(why);
        let mut spool = Spool::begin(&folder, 100_000, failed).unwrap();
        let mut log = spool.log(0, End::Receiver).unwrap();
        let kept = (0..10_000_000u64)
            .map(|at| log.push(Logged { sequence: at, ns: at * 777, bytes: 2048 }));
        let refused = kept.take_while(Result::is_ok).count();
        assert!(refused < 9_000_000, "nothing was refused");
        drop(log);
        spool.finish();
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("the logs of packets are more than"), "{told:?}");
        drop(spool);
        fs::remove_dir_all(folder).unwrap();
    }
}
