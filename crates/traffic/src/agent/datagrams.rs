//! Datagrams: sent after a TCP handshake with the same receiver, whose stream stays open beside
//! them; its end is their end.

use super::receiving::{has_been_over, is_wait};
use super::session::{Counter, Session};
use super::spool::Log;
use crate::clock::now_ns;
use crate::packet::{HEADER_BYTES, Header};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a read waits before it is looked whether the sender has ended.
const LOOK: Duration = Duration::from_millis(50);
/// After the sender's end, what is under way is still taken for so long.
const AFTER_NS: u64 = 500_000_000;
const SHOWING_MAX: Duration = Duration::from_secs(5);

/// Sends one datagram.
pub fn send(socket: &UdpSocket, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut nothing = SendAncillaryBuffer::default();
    Ok(sendmsg(socket, parts, &mut nothing, SendFlags::empty())?)
}

/// A socket at the address of a stream's own end, connected to the other's; each end tells its port
/// on the stream.
fn paired(stream: &mut TcpStream) -> io::Result<UdpSocket> {
    let (own, other) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
    let socket = UdpSocket::bind(SocketAddr::new(own, 0))?;
    stream.set_read_timeout(Some(SHOWING_MAX))?;
    stream.write_all(&socket.local_addr()?.port().to_be_bytes())?;
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    socket.connect(SocketAddr::new(other, u16::from_be_bytes(port)))?;
    Ok(socket)
}

/// The socket that datagrams are sent on.
pub fn sender(stream: &mut TcpStream) -> Result<UdpSocket, String> {
    paired(stream).map_err(|error| clearlane_lab::plain(&error).to_string())
}

/// Receives until the sender has ended. Returns why not, if it was otherwise.
pub fn receive(
    mut stream: TcpStream,
    session: &Session,
    counter: &Counter,
    log: &mut Log,
    acks: bool,
) -> Result<(), String> {
    let plain = |error: io::Error| clearlane_lab::plain(&error).to_string();
    let socket = paired(&mut stream).map_err(plain)?;
    socket.set_read_timeout(Some(LOOK)).map_err(plain)?;
    stream.set_nonblocking(true).map_err(plain)?;
    // What strangers sent before the socket was connected; the sender has sent nothing yet.
    socket.set_nonblocking(true).map_err(plain)?;
    while socket.recv(&mut [0; 16]).is_ok() {}
    socket.set_nonblocking(false).map_err(plain)?;
    let taken = take(&socket, &mut stream, session, (counter, log), acks);
    let _ = stream.shutdown(Shutdown::Both);
    match log.flush() {
        Ok(()) => taken,
        // The spool has said why.
        Err(_) => Ok(()),
    }
}

fn take(
    socket: &UdpSocket,
    stream: &mut TcpStream,
    session: &Session,
    (counter, log): (&Counter, &mut Log),
    acks: bool,
) -> Result<(), String> {
    let plain = |error: io::Error| clearlane_lab::plain(&error).to_string();
    let mut buffer = vec![0; 1 << 16];
    let (mut heard, mut looked, mut ended, mut next) = (now_ns(), now_ns(), None, 0);
    let (mut over_since, mut answer) = (None, Acknowledgement::default());
    loop {
        let read = socket.recv(&mut buffer);
        let now = now_ns();
        match read {
            Ok(read) => {
                heard = now;
                let Some(head) = buffer[..read].first_chunk::<HEADER_BYTES>() else { continue };
                // Anybody may send a datagram; one that is none of ours is not counted.
                let Ok(header) = Header::of_bytes(head) else { continue };
                let is_ours =
                    header.connection == counter.connection && header.bytes as usize == read;
                if is_ours {
                    counter.packets.fetch_add(1, Relaxed);
                    counter.bytes.fetch_add(read as u64, Relaxed);
                    next = next.max(header.sequence.saturating_add(1));
                    if log.push(header.logged(now)).is_err() {
                        return Ok(());
                    }
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(plain(error)),
        }
        if now < looked + LOOK.as_nanos() as u64 && !acks {
            continue;
        }
        looked = now;
        if acks {
            // All up to the last that came: those before it that did not are lost.
            answer.say(next, stream);
        }
        if ended.is_none() && has_ended(stream) {
            ended = Some(now);
        }
        let over_ns = has_been_over(session, &mut over_since);
        if ended
            .is_some_and(|ended| now > heard.max(ended) + AFTER_NS / 2 || now > ended + AFTER_NS)
            || over_ns > AFTER_NS
        {
            return Ok(());
        }
    }
}

/// What is said of packets that came: 8 bytes, of which a full socket may take some only.
#[derive(Default)]
struct Acknowledgement {
    bytes: [u8; 8],
    /// Bytes at the end of these that are still to go.
    left: usize,
}

impl Acknowledgement {
    /// Says how many there are, once what was begun has gone. One that does not fit at all is
    /// followed by others.
    fn say(&mut self, packets: u64, stream: &mut impl Write) {
        if self.left == 0 {
            (self.bytes, self.left) = (packets.to_le_bytes(), 8);
        }
        let written = stream.write(&self.bytes[8 - self.left..]).unwrap_or(0);
        // Of one that has not begun, the next is newer.
        self.left = if written == 0 && self.left == 8 { 0 } else { self.left - written };
    }
}

fn has_ended(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(read) => read == 0,
        Err(error) => !is_wait(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that takes some bytes at a time.
    struct Narrow(Vec<u8>, Vec<usize>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let takes = self.1.remove(0).min(bytes.len());
            self.0.extend_from_slice(&bytes[..takes]);
            if takes == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(takes) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn acknowledgements_that_are_cut_go_on_where_they_were() {
        let mut narrow = Narrow(Vec::new(), vec![8, 0, 3, 0, 5, 8]);
        let mut answer = Acknowledgement::default();
        (1..=6).for_each(|packets| answer.say(packets, &mut narrow));
        let said: Vec<u64> =
            narrow.0.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(said, [1, 3, 6]);
    }
}
