//! List of what a process has on the disk and has not finished: files and folders under temporary
//! names, and folders that it made for results and that are still empty. All of it goes however the
//! process ends: each piece with its [`Aside`], all at once by [`Unfinished::take_away`]. The next
//! process that writes to the same place takes away what a killed one left.

use super::exchange_folders;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Ending of a temporary name.
const ENDING: &str = ".unfinished";
/// Number of tries to have the list. They take a second. A thread that waits for a disk that hangs,
/// or that is being ended, never gives it back.
const TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// The list of a process. Each step that makes or renames something of it is taken under a lock, so
/// that nothing is made once all is taken away.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    /// Files, and folders with all that is in them.
    asides: Vec<PathBuf>,
    /// Folders that go if they are empty, the deepest first.
    made: Vec<PathBuf>,
}

impl Unfinished {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a folder beside `place`, called after it and after `what`.
    pub fn folder(&self, place: &Path, what: &str) -> io::Result<Aside> {
        clear(place, what);
        let path = beside(place, what);
        let mut held = self.held();
        fs::create_dir(&path)?;
        let lock = File::open(&path).inspect_err(|_| drop(fs::remove_dir(&path)))?;
        held.asides.push(path.clone());
        drop(held);
        Ok(Aside::of(self, path, lock))
    }

    /// Makes the file `path`. Returns it with its handle.
    pub(crate) fn file_at(&self, path: PathBuf) -> io::Result<(Aside, File)> {
        self.file_by(path, File::options().write(true).create(true).truncate(true))
    }

    fn file_by(&self, path: PathBuf, options: &OpenOptions) -> io::Result<(Aside, File)> {
        let mut held = self.held();
        let file = options.open(&path)?;
        let lock = file.try_clone().inspect_err(|_| drop(fs::remove_file(&path)))?;
        held.asides.push(path.clone());
        drop(held);
        Ok((Aside::of(self, path, lock), file))
    }

    /// Makes a file beside `place`, under a name made of that of `place`.
    pub fn file(&self, place: &Path) -> io::Result<(Aside, File)> {
        clear(place, "");
        self.file_at(beside(place, ""))
    }

    /// As [`Unfinished::file`], with the permissions `mode`.
    pub fn file_of_mode(&self, place: &Path, mode: u32) -> io::Result<(Aside, File)> {
        clear(place, "");
        self.file_by(beside(place, ""), File::options().write(true).create_new(true).mode(mode))
    }

    /// Renames files to their places; all of them or, where one cannot be, those before it.
    pub fn publish(&self, files: Vec<(Aside, PathBuf)>) -> Result<(), (PathBuf, io::Error)> {
        let mut held = self.held();
        let publish = |(file, place): &(Aside, PathBuf)| {
            fs::rename(&file.path, place).map_err(|error| (place.clone(), error))?;
            held.forget(&file.path);
            file.is_published.set(true);
            Ok(())
        };
        let published = files.iter().try_for_each(publish);
        // Files that were not published go with the list of files, which takes the lock again.
        drop(held);
        published
    }

    /// Makes a folder. Puts `missing`, its parts that were not there, the deepest first, on the
    /// list of folders that go if they are empty.
    pub(super) fn make(&self, folder: &Path, missing: &[PathBuf]) -> io::Result<()> {
        let mut held = self.held();
        held.made.extend_from_slice(missing);
        fs::create_dir_all(folder)
    }

    /// Removes these folders, the deepest first, as far as they are empty, and takes them off the
    /// list.
    pub(super) fn unmake(&self, missing: &[PathBuf]) {
        let mut held = self.held();
        // Fails, as it should, once results are in one. The deepest may have an impossible name.
        let is_gone = |folder: &PathBuf| fs::remove_dir(folder).is_ok() || !folder.exists();
        let _ = missing.iter().all(is_gone);
        held.made.retain(|made| !missing.contains(made));
    }

    /// Takes all of it away. A thread that would make more then waits for the end of the process.
    /// All of it stays if a thread has the list for a second: it cannot go on.
    pub fn take_away(&self) {
        for _ in 0..TRIES {
            match self.0.try_lock() {
                Ok(mut held) => {
                    held.clear();
                    return std::mem::forget(held);
                }
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner().clear(),
                Err(TryLockError::WouldBlock) => std::thread::park_timeout(PAUSE),
            }
        }
    }
}

impl Held {
    fn forget(&mut self, path: &Path) {
        self.asides.retain(|aside| aside != path);
    }

    /// Nothing better can be done than to try.
    fn clear(&mut self) {
        for path in self.asides.drain(..) {
            let _ = remove(&path);
        }
        for folder in self.made.drain(..) {
            // Fails, as it should, once results are in one.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A file or a folder under a temporary name. Dropped, it is gone with what is in it.
#[derive(Debug)]
pub struct Aside {
    path: PathBuf,
    list: Unfinished,
    is_published: std::cell::Cell<bool>,
    /// Tells others that its process lives; the system gives it back however the process ends.
    _lock: File,
}

impl Aside {
    fn of(list: &Unfinished, path: PathBuf, lock: File) -> Self {
        // Some network disks have no locks. The number of the process must do there.
        let _ = lock.try_lock();
        Aside { path, list: list.clone(), is_published: false.into(), _lock: lock }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file in this folder.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let _held = self.list.held();
        File::create(self.path.join(name))
    }

    /// Moves a file into a folder.
    pub(crate) fn take(&self, file: &Path) -> io::Result<()> {
        let _held = self.list.held();
        fs::rename(file, self.path.join(file.file_name().unwrap_or_default()))
    }

    /// Puts a folder in its place. What was there is aside then, and goes with it.
    pub fn exchange(&self, place: &Path) -> io::Result<()> {
        self.exchange_if(place, |_| Ok(()), |source| source)
    }

    /// Puts a folder in its place if `check` passes what was there, which is aside then. Otherwise
    /// that is back in its place. Nobody takes it away meanwhile.
    pub(crate) fn exchange_if<E>(
        &self,
        place: &Path,
        check: impl FnOnce(&Path) -> Result<(), E>,
        failed: impl Fn(io::Error) -> E,
    ) -> Result<(), E> {
        let mut held = self.list.held();
        if place.is_dir() {
            exchange_folders(&self.path, place).map_err(&failed)?;
            return match check(&self.path) {
                Ok(()) => Ok(()),
                Err(error) => {
                    exchange_folders(&self.path, place).map_err(&failed)?;
                    Err(error)
                }
            };
        }
        fs::rename(&self.path, place).map_err(&failed)?;
        held.forget(&self.path);
        self.is_published.set(true);
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_published.get() {
            let mut held = self.list.held();
            // Best effort: a failure to report came before.
            let _ = remove(&self.path);
            held.forget(&self.path);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// `.out.topo.4711.unfinished` for `out.topo`: hidden, in the same folder so that renaming cannot
/// fail for being on another disk, and unlike that of a second process.
fn beside(place: &Path, what: &str) -> PathBuf {
    let mut name = begin(place, what);
    name.push(format!("{}{ENDING}", std::process::id()));
    place.with_file_name(name)
}

fn begin(place: &Path, what: &str) -> OsString {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{what}"));
    name
}

/// Removes what killed processes left beside a place. A piece is left alone if a process has locked
/// it, or if its number is that of another living process.
fn clear(place: &Path, what: &str) {
    let is_dead =
        |id: u32| id == std::process::id() || !Path::new("/proc").join(id.to_string()).exists();
    for (path, id) in left(place, what) {
        // Opening anything else, such as a pipe, may wait for ever; none of ours is.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|of| of.is_dir() || of.is_file());
        let is_free = || !File::open(&path).is_ok_and(|file| file.try_lock().is_err());
        if is_ours && is_dead(id) && is_free() {
            // Tidiness, no more: what cannot be removed does no harm.
            let _ = remove(&path);
        }
    }
}

/// Takes away all of that kind beside a place that is claimed, and so nobody else's.
pub(crate) fn clear_claimed(place: &Path, what: &str) {
    for (path, _) in left(place, what) {
        let _ = remove(&path);
    }
}

/// Files and folders beside a place under temporary names, each with the process that left it.
fn left(place: &Path, what: &str) -> Vec<(PathBuf, u32)> {
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else { return Vec::new() };
    let begin = begin(place, what);
    let of = |name: &OsString| -> Option<u32> {
        let name = name.to_str()?.strip_prefix(begin.to_str()?)?.strip_suffix(ENDING)?;
        name.bytes().all(|c| c.is_ascii_digit()).then(|| name.parse().ok())?
    };
    let ours = entries.flatten().filter_map(|entry| Some((entry.path(), of(&entry.file_name())?)));
    ours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("clearlane-unfinished-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_not_finished_goes_with_its_owner_and_what_is_published_stays() {
        let scratch = Scratch::new("owner");
        let list = Unfinished::default();
        let place = scratch.0.join("out");
        let (dropped, _) = list.file(&scratch.0.join("a.topo")).unwrap();
        let (kept, _) = list.file(&scratch.0.join("b.topo")).unwrap();
        let folder = list.folder(&place, "").unwrap();
        folder.create("lfts.txt").unwrap();
        assert_eq!(scratch.names().len(), 3);
        drop(dropped);
        list.publish(vec![(kept, scratch.0.join("b.topo"))]).unwrap();
        folder.exchange(&place).unwrap();
        drop(folder);
        assert_eq!(scratch.names(), ["b.topo", "out"]);
        // A second one takes the place of the first, which goes.
        let folder = list.folder(&place, "").unwrap();
        folder.create("psl.txt").unwrap();
        folder.exchange(&place).unwrap();
        assert!(folder.path().join("lfts.txt").is_file());
        drop(folder);
        assert_eq!(scratch.names(), ["b.topo", "out"]);
        assert!(place.join("psl.txt").is_file() && !place.join("lfts.txt").exists());
        assert!(list.held().asides.is_empty());
    }

    #[test]
    fn all_of_it_is_taken_away_at_once_and_nobody_makes_more() {
        let scratch = Scratch::new("all");
        let list = Unfinished::default();
        let place = scratch.0.join("out");
        let folder = list.folder(&place, "captures.").unwrap();
        folder.create("lfts.txt").unwrap();
        let (file, _) = list.file(&scratch.0.join("a.topo")).unwrap();
        for name in ["empty", "full"] {
            let made = scratch.0.join(name);
            list.make(&made, std::slice::from_ref(&made)).unwrap();
        }
        fs::write(scratch.0.join("full/theirs"), "").unwrap();
        list.take_away();
        assert_eq!(scratch.names(), ["full"]);
        assert!(matches!(list.0.try_lock(), Err(TryLockError::WouldBlock)));
        // As a thread that cannot go on: it does not wait for itself for ever.
        list.take_away();
        std::mem::forget((folder, file));
    }

    #[test]
    fn of_a_folder_that_cannot_be_made_nothing_stays() {
        let scratch = Scratch::new("impossible");
        let (list, new) = (Unfinished::default(), scratch.0.join("new"));
        let missing = [new.join("a".repeat(300)), new];
        assert!(list.make(&missing[0], &missing).is_err());
        list.unmake(&missing);
        assert!(scratch.names().is_empty());
    }

    #[test]
    fn what_killed_processes_left_goes_and_what_others_have_stays() {
        let scratch = Scratch::new("left");
        // No process has so high a number.
        let names = [".out.4194305.unfinished", ".out.captures.4194305.unfinished"];
        for name in names.iter().chain(&[".out.mine.unfinished", ".out.1.unfinished"]) {
            fs::create_dir(scratch.0.join(name)).unwrap();
        }
        let locked = scratch.0.join(".out.4194306.unfinished");
        let lock = File::create(&locked).unwrap();
        lock.try_lock().unwrap();
        let list = Unfinished::default();
        drop(list.folder(&scratch.0.join("out"), "").unwrap());
        let mut stays =
            [names[1], ".out.mine.unfinished", ".out.1.unfinished", ".out.4194306.unfinished"];
        stays.sort_unstable();
        assert_eq!(scratch.names(), stays);
        drop(lock);
        // One that has our number from before a restart is no hindrance.
        fs::create_dir(beside(&scratch.0.join("out"), "")).unwrap();
        drop(list.folder(&scratch.0.join("out"), "").unwrap());
        clear_claimed(&scratch.0.join("out"), "captures.");
        assert_eq!(scratch.names(), [".out.1.unfinished", ".out.mine.unfinished"]);
    }
}
