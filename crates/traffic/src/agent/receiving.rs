//! A data connection at its receiver: headers are noted, payload is not looked at.

use super::session::{Counter, Session};
use super::spool::Log;
use crate::clock::now_ns;
use crate::packet::Walker;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What one read takes at most.
const READ_BYTES: usize = 256 << 10;
/// How long a read waits before it is looked whether the run goes on.
const LOOK: Duration = Duration::from_millis(200);
const WRITE_MAX: Duration = Duration::from_secs(5);
/// After the end of a run, what was sent is still taken for so long.
const GRACE_NS: u64 = 5_000_000_000;

/// Receives until the sender has ended. Returns why not, if it was otherwise.
pub fn receive(
    mut stream: TcpStream,
    session: &Session,
    counter: &Counter,
    log: &mut Log,
    acks: bool,
) -> Result<(), String> {
    let taken = take(&mut stream, session, counter, log, acks);
    // Who still sends is told that nobody listens.
    let _ = stream.shutdown(Shutdown::Both);
    match log.flush() {
        Ok(()) => taken,
        // The spool has said why.
        Err(_) => Ok(()),
    }
}

fn take(
    stream: &mut TcpStream,
    session: &Session,
    counter: &Counter,
    log: &mut Log,
    acks: bool,
) -> Result<(), String> {
    let plain = |error: io::Error| clearlane_lab::plain(&error).to_string();
    stream.set_read_timeout(Some(LOOK)).map_err(plain)?;
    // A sender that does not read acknowledgements holds nobody.
    stream.set_write_timeout(Some(WRITE_MAX)).map_err(plain)?;
    let mut walker = Walker::new(counter.connection);
    let mut buffer = vec![0; READ_BYTES];
    let (mut over_since, mut is_heard) = (None, acks);
    loop {
        if has_been_over(session, &mut over_since) > GRACE_NS {
            return Err("the run was stopped and the sender did not end".into());
        }
        let read = match stream.read(&mut buffer) {
            Ok(0) if walker.is_between_packets() => return Ok(()),
            Ok(0) => return Err("the sender ended within a packet".into()),
            Ok(read) => read,
            Err(error) if is_wait(&error) => continue,
            Err(error) => return Err(plain(error)),
        };
        // The time at which the packet's header could be had.
        let now = now_ns();
        let (mut packets, mut bytes, mut kept) = (0, 0, Ok(()));
        let walked = walker.walk(&buffer[..read], |header| {
            packets += 1;
            bytes += u64::from(header.bytes);
            kept = kept.and_then(|()| log.push(header.logged(now)));
        });
        counter.bytes.fetch_add(bytes, Relaxed);
        let all = counter.packets.fetch_add(packets, Relaxed) + packets;
        walked.map_err(|error| error.to_string())?;
        if kept.is_err() {
            return Ok(());
        }
        if is_heard && packets > 0 {
            match stream.write_all(&all.to_le_bytes()) {
                Ok(()) => {}
                // A sender that has ended hears nothing any more; what it sent is still taken.
                Err(error) if has_gone(&error) => is_heard = false,
                Err(error) => return Err(plain(error)),
            }
        }
    }
}

/// How long the run has been over for a receiver, ns, whatever still comes; 0 while it goes on.
pub(super) fn has_been_over(session: &Session, since: &mut Option<u64>) -> u64 {
    let now = now_ns();
    if !session.is_halted() && !session.is_abandoned(now) {
        return 0;
    }
    now - (*since.get_or_insert(now)).min(now)
}

fn has_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Whether a call is to be made again.
pub(super) fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
