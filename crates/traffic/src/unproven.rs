//! Connections that have shown neither certificate nor token. There are few of them at a time: when
//! one more comes, the oldest of the address that has most is closed, so that those who stay silent
//! keep nobody out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// So many at a time.
const UNPROVEN_MAX: usize = 64;

/// The connections, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Unproven(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    streams: Vec<(u64, IpAddr, TcpStream)>,
}

impl List {
    /// Takes out the oldest of the address that has most of them.
    fn take_oldest_of_most(&mut self) -> Option<(u64, IpAddr, TcpStream)> {
        let mut count = BTreeMap::new();
        self.streams.iter().for_each(|(_, from, _)| *count.entry(*from).or_insert(0u32) += 1);
        let most = count.into_iter().max_by_key(|(_, count)| *count)?.0;
        let place = self.streams.iter().position(|(_, from, _)| *from == most)?;
        Some(self.streams.remove(place))
    }
}

/// One of them; it counts until this goes.
#[derive(Debug)]
pub struct Entered {
    all: Unproven,
    number: u64,
}

impl Unproven {
    fn list(&self) -> std::sync::MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all of them.
    pub fn close(&self) {
        for (.., stream) in self.list().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Takes one in, and closes the oldest if there are too many. Fails if the machine has no
    /// descriptor left for it.
    pub fn enter(&self, stream: &TcpStream) -> io::Result<Entered> {
        let from = stream.peer_addr()?.ip();
        let stream = stream.try_clone()?;
        let mut list = self.list();
        if list.streams.len() >= UNPROVEN_MAX
            && let Some((.., oldest)) = list.take_oldest_of_most()
        {
            // Its thread reads the end, and notes that.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let number = list.next;
        list.next += 1;
        list.streams.push((number, from, stream));
        Ok(Entered { all: self.clone(), number })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.list().streams.retain(|(number, ..)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn the_oldest_goes_and_those_that_are_proven_do_not_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let all = Unproven::default();
        let connected = || {
            let client = TcpStream::connect(at).unwrap();
            client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let stream = listener.accept().unwrap().0;
            let entered = all.enter(&stream).unwrap();
            (client, stream, entered)
        };
        let is_open = |client: &mut TcpStream| !matches!(client.read(&mut [0]), Ok(0));
        let mut open: Vec<_> = (0..UNPROVEN_MAX).map(|_| connected()).collect();
        assert!(open.iter_mut().all(|(client, ..)| is_open(client)));
        // The first is proven and goes on; the next is then the oldest.
        let (mut proven, _stream, entered) = open.remove(0);
        drop(entered);
        open.push(connected());
        assert!(is_open(&mut open[0].0));
        open.push(connected());
        assert!(!is_open(&mut open[0].0) && is_open(&mut open[1].0) && is_open(&mut proven));
        all.close();
        assert!(!open.iter_mut().any(|(client, ..)| is_open(client)) && is_open(&mut proven));
    }
}
