//! Incoming connections that have proven nothing: they have shown neither certificate nor token.
//! [`Admission`] says which of them may wait. The others are closed.

use crate::admission::Admission;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most connections that wait at a time.
const UNPROVEN_MAX: usize = 256;
/// Connections that the system holds until they are accepted: those of a moment of a flood.
const BACKLOG: i32 = 4096;
/// Pause after a connection could not be accepted.
const REFUSED_WAIT: Duration = Duration::from_millis(10);

/// All connections that have proven nothing.
#[derive(Clone, Debug)]
pub struct Unproven(Arc<State>);

#[derive(Debug)]
struct State {
    since: Instant,
    waiting: Mutex<Admission<Arc<TcpStream>>>,
}

/// A connection that has proven nothing. Its place is free when this is dropped.
#[derive(Debug)]
pub struct Newcomer {
    /// The connection.
    pub stream: Arc<TcpStream>,
    /// Address that it comes from.
    pub from: SocketAddr,
    /// Its place.
    pub entered: Entered,
}

/// The place of a connection. It is free when this is dropped.
#[derive(Debug)]
pub struct Entered {
    all: Unproven,
    number: u64,
    has_shown: bool,
}

impl Entered {
    /// Frees the place of a connection that has shown a certificate or a token.
    pub fn proven(mut self) {
        self.has_shown = true;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.waiting().leave(self.number, self.has_shown);
    }
}

/// Listens at an address. To accept a connection then does not wait for one.
pub fn listener(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    // Remains of ended connections must not keep it from listening.
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Default for Unproven {
    fn default() -> Self {
        let waiting = Mutex::new(Admission::new(UNPROVEN_MAX));
        Unproven(Arc::new(State { since: Instant::now(), waiting }))
    }
}

impl Unproven {
    fn waiting(&self) -> MutexGuard<'_, Admission<Arc<TcpStream>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next connection that comes within a time and may wait; `None` if there is none.
    pub fn next(&self, listener: &TcpListener, within: Duration) -> Option<Newcomer> {
        let (tv_sec, tv_nsec) = (within.as_secs() as i64, i64::from(within.subsec_nanos()));
        let mut watched = [PollFd::new(listener, PollFlags::IN)];
        // An interrupted wait does no harm: `accept` says whether a connection is there.
        let _ = poll(&mut watched, Some(&Timespec { tv_sec, tv_nsec }));
        match listener.accept() {
            Ok((stream, from)) => self.enter(stream, from),
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    // A reset, or no descriptor is left. Another try at once would fail.
                    std::thread::sleep(REFUSED_WAIT);
                }
                None
            }
        }
    }

    /// Takes a connection in, unless it is the one that has to go.
    fn enter(&self, stream: TcpStream, from: SocketAddr) -> Option<Newcomer> {
        stream.set_nonblocking(false).ok()?;
        let stream = Arc::new(stream);
        let now_s = self.0.since.elapsed().as_secs();
        let (number, gone) = self.waiting().enter(now_s, from.ip(), Arc::clone(&stream));
        if let Some((_, gone)) = &gone {
            // The thread of that connection reads the end and notes it.
            let _ = gone.shutdown(Shutdown::Both);
        }
        if gone.is_some_and(|(gone, _)| gone == number) {
            return None;
        }
        let entered = Entered { all: self.clone(), number, has_shown: false };
        Some(Newcomer { stream, from, entered })
    }

    /// Closes all connections that wait.
    pub fn close(&self) {
        for stream in self.waiting().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_oldest_goes_and_those_that_are_proven_do_not_count() {
        let listener = listener(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let at = listener.local_addr().unwrap();
        let all = Unproven::default();
        let connected = || {
            let client = TcpStream::connect(at).unwrap();
            client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let come = all.next(&listener, Duration::from_secs(60)).unwrap();
            assert_eq!(come.from, client.local_addr().unwrap());
            (client, come.stream, come.entered)
        };
        assert!(all.next(&listener, Duration::from_millis(1)).is_none());
        let is_open = |client: &mut TcpStream| !matches!(client.read(&mut [0]), Ok(0));
        let mut open: Vec<_> = (0..UNPROVEN_MAX).map(|_| connected()).collect();
        assert!(open.iter_mut().all(|(client, ..)| is_open(client)));
        // The first is proven and goes on; the next is then the oldest.
        let (mut proven, _stream, entered) = open.remove(0);
        entered.proven();
        open.push(connected());
        assert!(is_open(&mut open[0].0));
        open.push(connected());
        assert!(!is_open(&mut open[0].0) && is_open(&mut open[1].0) && is_open(&mut proven));
        all.close();
        assert!(!open.iter_mut().any(|(client, ..)| is_open(client)) && is_open(&mut proven));
    }
}
