//! Work on files, done by a thread of its own in the order in which it comes. A disk may hang: the
//! server of a mount has gone, or a pipe stands where a file should be. Only this thread then
//! hangs. Callers hold no lock, wait a limited time, and get a time-out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Time that a request waits for a disk which must answer before something is done.
pub const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Most pieces of work that wait for the disk.
const JOBS_MAX: usize = 512;
/// Time between two checks whether to wait on.
const LOOK: Duration = Duration::from_millis(5);

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A thread that works on files, with the state that it needs. It ends when this is dropped and all
/// work is done.
#[derive(Debug)]
pub struct Disk<S> {
    jobs: SyncSender<Job<S>>,
}

impl<S: Send + 'static> Disk<S> {
    /// Starts the thread under a name. Fails if the machine has no thread to give.
    pub fn new(name: &str, mut state: S) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel::<Job<S>>(JOBS_MAX);
        let work = move || waiting.into_iter().for_each(|job| job(&mut state));
        std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Disk { jobs })
    }

    /// Has a piece of work done and returns its result. Fails if the work fails or is not done
    /// `within` that time. Work that has not begun by then is dropped.
    pub fn ask<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl FnOnce(&mut S) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let until = Instant::now() + within;
        self.ask_while(|| Instant::now() < until, work)
    }

    /// Has a piece of work done and returns its result. Waits as long as `waits` says so.
    pub fn ask_while<T: Send + 'static>(
        &self,
        waits: impl Fn() -> bool,
        work: impl FnOnce(&mut S) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let since = Instant::now();
        let (told, answer) = sync_channel(1);
        let asker = Arc::new(());
        let asked = Arc::downgrade(&asker);
        let job = move |state: &mut S| {
            if asked.upgrade().is_some() {
                // A caller that has given up meanwhile hears nothing.
                let _ = told.send(work(state));
            }
        };
        self.put(Box::new(job), &waits)?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) if waits() => {}
                Err(RecvTimeoutError::Timeout) => return Err(silent(since)),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            }
        }
    }

    /// Hands work over and does not wait for it. While too much waits already, it tries again for
    /// as long as `waits` says so, and fails then.
    pub fn tell(
        &self,
        waits: impl Fn() -> bool,
        work: impl FnOnce(&mut S) + Send + 'static,
    ) -> io::Result<()> {
        self.put(Box::new(work), &waits)
    }

    fn put(&self, mut job: Job<S>, waits: &impl Fn() -> bool) -> io::Result<()> {
        let since = Instant::now();
        loop {
            job = match self.jobs.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(ended()),
                Err(TrySendError::Full(_)) if !waits() => return Err(silent(since)),
                Err(TrySendError::Full(job)) => job,
            };
            std::thread::sleep(LOOK);
        }
    }
}

fn silent(since: Instant) -> io::Error {
    let seconds = since.elapsed().as_secs_f64();
    let words = format!("the disk has not answered for {seconds:.1} s");
    io::Error::new(io::ErrorKind::TimedOut, words)
}

/// The error of a caller whose thread has panicked.
fn ended() -> io::Error {
    io::Error::other("nobody works on the disk any more")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_disk_that_hangs_keeps_nobody_waiting_and_what_was_told_is_done_later() {
        let disk = Disk::new("disk", Vec::new()).unwrap();
        let (free, held) = channel::<()>();
        let never = || false;
        disk.tell(never, move |_: &mut Vec<u32>| held.recv().unwrap()).unwrap();
        let asked = |number| {
            disk.ask(Duration::from_millis(30), move |done: &mut Vec<u32>| {
                done.push(number);
                Ok(())
            })
        };
        let error = asked(1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().starts_with("the disk has not answered for 0."), "{error}");
        // A limited amount of work waits.
        let told = |number| disk.tell(never, move |done| done.push(number));
        let taken = (2..).take_while(|number| told(*number).is_ok()).count();
        assert!((JOBS_MAX - 2..=JOBS_MAX).contains(&taken), "{taken}");
        free.send(()).unwrap();
        // Work whose caller has given up is not done any more.
        let done = disk.ask(LONG, |done| Ok(done.clone())).unwrap();
        assert_eq!(done, (2..).take(taken).collect::<Vec<u32>>());
    }

    #[test]
    fn work_that_panics_is_no_answer() {
        let disk = Disk::new("disk", ()).unwrap();
        let error = disk.ask(LONG, |()| -> io::Result<()> { panic!("on purpose") }).unwrap_err();
        assert!(error.to_string().starts_with("nobody works on the disk"), "{error}");
    }
}
