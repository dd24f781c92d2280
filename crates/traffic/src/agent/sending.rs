//! A flow at its sender: packets that the core decides on, written to its connections.

use super::bucket::{Bucket, on_the_wire};
use super::datagrams;
use super::receiving::is_wait;
use super::session::{Counter, LEASE_RAN_OUT, Session};
use super::spool::Log;
use crate::clock::{now_ns, sleep_until};
use crate::order::Carrier;
use crate::packet::{HEADER_BYTES, Header};
use crate::sender::{Next, Sender, picoseconds};
use clearlane_ib::Picoseconds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a write waits before it is looked whether the run goes on, and a thread that waits.
pub const LOOK: Duration = Duration::from_millis(200);
/// Payload is written from a block of this size again and again, so that it stays in the cache.
const BLOCK_BYTES: usize = 16 << 10;
/// Reads of acknowledgements in a turn.
const READS_MAX: usize = 64;
/// After the end of a run, a packet that has begun is finished within so long.
const GRACE_NS: u64 = 5_000_000_000;

/// A connection of the flow.
pub struct Connection {
    /// Its stream: of packets, or beside datagrams for consent, acknowledgements and the end.
    pub stream: TcpStream,
    /// Where datagrams go, if it sends those.
    pub datagrams: Option<UdpSocket>,
    /// Its counter.
    pub counter: Arc<Counter>,
    /// Its log.
    pub log: Log,
    /// What is left of a packet whose write was cut: bytes of all, bytes that have gone.
    begun: Option<(Header, usize)>,
    /// Bytes of acknowledgements that are not whole.
    heard: Vec<u8>,
    next: u64,
}

impl Connection {
    /// A connection whose receiver consents.
    pub fn new(
        stream: TcpStream,
        datagrams: Option<UdpSocket>,
        counter: Arc<Counter>,
        log: Log,
    ) -> Self {
        Connection { stream, datagrams, counter, log, begun: None, heard: Vec::new(), next: 0 }
    }
}

/// What a flow's thread has.
pub struct Flow {
    /// What decides.
    pub sender: Sender,
    /// Its connections.
    pub connections: Vec<Connection>,
    /// What carries packets.
    pub carrier: Carrier,
    /// The policy's rate, if there is one.
    pub bucket: Option<Arc<Bucket>>,
    /// Bytes that the run may still send at this host.
    pub left: Arc<std::sync::atomic::AtomicU64>,
}

/// How sending ended before its time.
enum Ended {
    /// A fault.
    Fault(String),
    /// Something else has ended the run, and has said why.
    Told,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Fault(clearlane_lab::plain(&error).to_string())
    }
}

impl Flow {
    /// Sends from the start of the run to the end of the flow. Returns why not, if it ended
    /// otherwise.
    pub fn run(mut self, session: &Session) -> Result<(), String> {
        while now_ns() < session.start_ns() {
            if session.is_halted() {
                return Ok(());
            }
            if session.is_abandoned(now_ns()) {
                return Err(LEASE_RAN_OUT.into());
            }
            let near = session.start_ns().min(now_ns() + LOOK.as_nanos() as u64);
            sleep_until(near, LOOK);
        }
        let sent = self.send(session);
        let left_alone = session.is_abandoned(now_ns()) && sent.is_err();
        for connection in &mut self.connections {
            if left_alone {
                // What the kernel still has is not sent either.
                let _ = set_socket_linger(&connection.stream, Some(Duration::ZERO));
                let _ = connection.log.flush();
                continue;
            }
            // The receiver reads what is under way, and then the end.
            let _ = connection.stream.shutdown(Shutdown::Write);
            let _ = connection.log.flush();
        }
        if self.hears() && !left_alone {
            let until = now_ns() + GRACE_NS;
            self.connections.iter_mut().for_each(|connection| connection.hear_out(until));
        }
        match sent {
            Err(Ended::Fault(why)) => Err(why),
            Ok(()) | Err(Ended::Told) => Ok(()),
        }
    }

    fn send(&mut self, session: &Session) -> Result<(), Ended> {
        let start = session.start_ns();
        let payload = [0u8; BLOCK_BYTES];
        let alone = self.connections.len() == 1 && !self.hears();
        for connection in &self.connections {
            connection.stream.set_nonblocking(!alone)?;
            connection.stream.set_write_timeout(Some(LOOK))?;
            if let Some(datagrams) = &connection.datagrams {
                datagrams.set_nonblocking(!alone)?;
                datagrams.set_write_timeout(Some(LOOK))?;
            }
        }
        loop {
            let now = now_ns();
            if !session.may_send(now) {
                let left_alone = !session.is_halted();
                self.finish(session, &payload)?;
                return match left_alone {
                    true => Err(Ended::Fault(LEASE_RAN_OUT.into())),
                    false => Ok(()),
                };
            }
            if !alone {
                self.hear(start)?;
                self.go_on(&payload)?;
            }
            let time = picoseconds(now.saturating_sub(start));
            let connections = &self.connections;
            match self.sender.next(time, |at| connections[at].begun.is_none()) {
                Next::Ended => return self.finish(session, &payload),
                Next::Wait(until) => self.wait(start, until, alone)?,
                Next::Packet { connection, bytes } => {
                    if let Some(bucket) = &self.bucket
                        && let Err(later) = bucket.take(on_the_wire(bytes, self.carrier), now)
                    {
                        sleep_until(later, LOOK);
                        continue;
                    }
                    self.take_from_quota(bytes)?;
                    self.write(connection, bytes, now, time, &payload)?;
                    if alone {
                        self.end_packet(session, &payload)?;
                    }
                }
            }
        }
    }

    /// Whether anything comes back.
    fn hears(&self) -> bool {
        self.sender.has_reactors()
    }

    fn take_from_quota(&self, bytes: u32) -> Result<(), Ended> {
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes.into()));
        let why = "the run has sent what the host's policy allows (limits.sent)";
        taken.map(|_| ()).map_err(|_| Ended::Fault(why.into()))
    }

    /// Writes as much of a packet as goes at once.
    fn write(
        &mut self,
        at: usize,
        bytes: u32,
        now: u64,
        time: Picoseconds,
        payload: &[u8; BLOCK_BYTES],
    ) -> Result<(), Ended> {
        let connection = &mut self.connections[at];
        let (number, sequence) = (connection.counter.connection, connection.next);
        let header = Header { bytes, connection: number, sequence, sent_ns: now };
        connection.next += 1;
        connection.log.push(header.logged(now)).map_err(|_| Ended::Told)?;
        connection.counter.packets.store(connection.next, Relaxed);
        connection.counter.bytes.fetch_add(bytes.into(), Relaxed);
        self.sender.sent(at, bytes, time);
        connection.begun = Some((header, 0));
        connection.push_out(payload)?;
        Ok(())
    }

    /// Goes on with packets whose write was cut.
    fn go_on(&mut self, payload: &[u8; BLOCK_BYTES]) -> Result<(), Ended> {
        for connection in &mut self.connections {
            connection.push_out(payload)?;
        }
        Ok(())
    }

    /// Writes the rest of packets that have begun, while the run goes on.
    fn end_packet(&mut self, session: &Session, payload: &[u8; BLOCK_BYTES]) -> Result<(), Ended> {
        while self.connections.iter().any(|connection| connection.begun.is_some())
            && session.may_send(now_ns())
        {
            self.go_on(payload)?;
        }
        Ok(())
    }

    /// Writes the rest of packets that have begun, for some time after the end.
    fn finish(&mut self, session: &Session, payload: &[u8; BLOCK_BYTES]) -> Result<(), Ended> {
        let now = now_ns();
        let until = if session.is_abandoned(now) { now } else { now + GRACE_NS };
        while self.connections.iter().any(|connection| connection.begun.is_some()) {
            if session.is_abandoned(now) {
                return Err(Ended::Fault(LEASE_RAN_OUT.into()));
            }
            if now_ns() >= until {
                return Err(Ended::Fault("a packet could not be finished at the end".into()));
            }
            self.go_on(payload)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Waits until then, until a connection can be written to, or until something comes back.
    fn wait(&mut self, start: u64, until: Picoseconds, alone: bool) -> Result<(), Ended> {
        let until = start.saturating_add(until.0.div_ceil(1000));
        if alone {
            sleep_until(until, LOOK);
            return Ok(());
        }
        let left = Duration::from_nanos(until.saturating_sub(now_ns())).min(LOOK);
        let mut fds: Vec<PollFd<'_>> = self.connections.iter().map(Connection::watched).collect();
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Takes the acknowledgements that have come.
    fn hear(&mut self, start: u64) -> Result<(), Ended> {
        if !self.hears() {
            return Ok(());
        }
        for (at, connection) in self.connections.iter_mut().enumerate() {
            let Some(packets) = connection.acknowledged()? else { continue };
            let time = picoseconds(now_ns().saturating_sub(start));
            let wrong = |why: &str| Ended::Fault(why.to_owned());
            self.sender.acknowledged(at, packets, time).map_err(wrong)?;
        }
        Ok(())
    }
}

impl Connection {
    /// What is waited for on it: room for the rest of a packet, and what comes back.
    fn watched(&self) -> PollFd<'_> {
        match (&self.datagrams, &self.begun) {
            (Some(datagrams), Some(_)) => PollFd::new(datagrams, PollFlags::OUT),
            (None, Some(_)) => PollFd::new(&self.stream, PollFlags::IN | PollFlags::OUT),
            (_, None) => PollFd::new(&self.stream, PollFlags::IN),
        }
    }

    /// Writes as much of a packet that has begun as goes at once.
    fn push_out(&mut self, payload: &[u8; BLOCK_BYTES]) -> Result<(), Ended> {
        while let Some((header, gone)) = self.begun {
            let written = match self.write_part(&header, gone, payload) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(written) => written,
                Err(error) if is_wait(&error) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let gone = gone + written;
            self.begun = (gone < header.bytes as usize).then_some((header, gone));
        }
        Ok(())
    }

    fn write_part(
        &mut self,
        header: &Header,
        gone: usize,
        payload: &[u8; BLOCK_BYTES],
    ) -> io::Result<usize> {
        let bytes = header.bytes as usize;
        let head = header.to_bytes();
        let head = head.get(gone..).unwrap_or_default();
        let mut left = bytes - gone - head.len();
        // As many blocks as one call takes: 64 of 16 KiB hold the largest packet.
        let mut parts = [IoSlice::new(&[]); 1 + (1 << 20) / BLOCK_BYTES];
        parts[0] = IoSlice::new(head);
        let mut count = 1;
        while left > 0 && count < parts.len() {
            let part = left.min(BLOCK_BYTES);
            parts[count] = IoSlice::new(&payload[..part]);
            (left, count) = (left - part, count + 1);
        }
        if let Some(datagrams) = &self.datagrams {
            return datagrams::send(datagrams, &parts[..count]);
        }
        let first = usize::from(head.is_empty());
        (&self.stream).write_vectored(&parts[first..count])
    }

    /// Reads until the receiver has ended too. A stream that is closed with acknowledgements in it
    /// is reset, and what is under way to the receiver is lost (RFC 1122, 4.2.2.13).
    fn hear_out(&mut self, until: u64) {
        let _ = self.stream.set_nonblocking(false);
        let _ = self.stream.set_read_timeout(Some(LOOK));
        while now_ns() < until {
            match (&self.stream).read(&mut [0; 512]) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if is_wait(&error) => {}
                Err(_) => return,
            }
        }
    }

    /// How many packets the receiver has, if it has said so anew.
    fn acknowledged(&mut self) -> Result<Option<u64>, Ended> {
        let mut last = None;
        let mut bytes = [0; 512];
        // As much as comes in one turn; a flood does not keep the sender from looking up.
        for _ in 0..READS_MAX {
            match (&self.stream).read(&mut bytes) {
                Ok(0) => return Err(Ended::Fault("the receiver has gone".into())),
                Ok(read) => self.heard.extend_from_slice(&bytes[..read]),
                Err(error) if is_wait(&error) => return Ok(last),
                Err(error) => return Err(error.into()),
            }
            let whole = self.heard.len() / 8 * 8;
            if let Some(end) = self.heard[..whole].last_chunk::<8>() {
                last = Some(u64::from_le_bytes(*end));
            }
            self.heard.drain(..whole);
        }
        Ok(last)
    }
}

const _: () = assert!(HEADER_BYTES < BLOCK_BYTES);
