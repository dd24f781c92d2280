//! A control connection: frames over TLS over TCP, of a client or a server. Nobody can make it wait
//! or grow without bound.

use crate::frame::{FRAME_BYTES_MAX, Frame, FrameError, Inbox, Kind};
use crate::keys;
use crate::name::Identity;
use crate::text::one_line;
use crate::tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection and its handshake may take.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// How long the other side may not read.
const WRITE_MAX: Duration = Duration::from_secs(5);

/// Time for which a connection that is turned away is tried again. The tries are rare enough that
/// its address weighs no more than one that comes once.
const AGAIN_FOR: Duration = Duration::from_secs(5);
const AGAIN_EVERY: Duration = Duration::from_millis(300);

/// Why a control connection ended.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The network or the other side.
    #[error("{}", clearlane_lab::plain(.0))]
    Io(#[from] io::Error),
    /// No certificate of the authority, or none that is meant.
    #[error("{}", tls::in_words(.0))]
    Tls(#[from] rustls::Error),
    /// It said something that is none of ours.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A message that cannot be read.
    #[error("a control message that cannot be read: {0}")]
    Message(String),
    /// It ended.
    #[error("the connection was closed")]
    Closed,
    /// It took too long.
    #[error("no answer within {0} s")]
    Late(u64),
    /// It stopped telling what happens.
    #[error("it said nothing for {0} s, though a run was under way")]
    Silent(u64),
}

/// A control connection.
pub struct Channel {
    tls: Connection,
    tcp: Arc<TcpStream>,
    inbox: Inbox,
}

impl ChannelError {
    /// Whether the other side has closed the connection without a word, as an agent does when too
    /// many come at a time.
    pub fn is_turned_away(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match self {
            ChannelError::Closed => true,
            ChannelError::Io(error) => {
                matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
            }
            _ => false,
        }
    }
}

impl Channel {
    /// Connects and shakes hands.
    pub fn connect(
        to: SocketAddr,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, ChannelError> {
        let tcp = TcpStream::connect_timeout(&to, HANDSHAKE_MAX)?;
        let tls = ClientConnection::new(config, name)?;
        Channel::begun(Arc::new(tcp), tls.into())
    }

    /// Takes a connection that came, and shakes hands.
    pub fn accept(tcp: Arc<TcpStream>, config: Arc<ServerConfig>) -> Result<Self, ChannelError> {
        let tls = ServerConnection::new(config)?;
        Channel::begun(tcp, tls.into())
    }

    fn begun(tcp: Arc<TcpStream>, tls: Connection) -> Result<Self, ChannelError> {
        tcp.set_nodelay(true)?;
        let mut channel = Channel { tls, tcp, inbox: Inbox::default() };
        // A frame is handed over in one piece, and then flushed.
        channel.tls.set_buffer_limit(Some(2 * FRAME_BYTES_MAX));
        let until = Instant::now() + HANDSHAKE_MAX;
        while channel.tls.is_handshaking() {
            channel.flush()?;
            if channel.tls.is_handshaking() && !channel.read(until)? {
                return Err(ChannelError::Late(HANDSHAKE_MAX.as_secs()));
            }
        }
        channel.flush()?;
        Ok(channel)
    }

    /// The other side, by its verified certificate; `None` without a certificate of ours.
    pub fn peer(&self) -> Option<Identity> {
        self.tls.peer_certificates()?.first().and_then(keys::whose)
    }

    /// The address of this side.
    pub fn own_address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Sends what is to be sent. A peer that reads a little now and then gets no more time than a
    /// peer that reads nothing.
    fn flush(&mut self) -> Result<(), ChannelError> {
        let until = Instant::now() + WRITE_MAX;
        while self.tls.wants_write() {
            self.tcp.set_write_timeout(Some(left(until)))?;
            self.tls.write_tls(&mut &*self.tcp)?;
        }
        Ok(())
    }

    /// Reads what came, at the latest until then. Returns whether anything did.
    fn read(&mut self, until: Instant) -> Result<bool, ChannelError> {
        self.tcp.set_read_timeout(Some(left(until)))?;
        match self.tls.read_tls(&mut &*self.tcp) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let state = match self.tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The other side is told why, if it can be.
                let _ = self.flush();
                return Err(error.into());
            }
        };
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut bytes)?;
        self.inbox.push(&bytes);
        self.flush()?;
        Ok(true)
    }

    /// Sends a message.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), ChannelError> {
        let wrong = |error: serde_json::Error| ChannelError::Message(error.to_string());
        let content = serde_json::to_vec(message).map_err(wrong)?;
        if content.len() > FRAME_BYTES_MAX {
            let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
            return Err(FrameError::Long(length).into());
        }
        self.send_frame(&Frame { kind: Kind::Message, content })
    }

    /// Sends a part of a log, at most [`FRAME_BYTES_MAX`].
    pub fn send_log(&mut self, bytes: Vec<u8>) -> Result<(), ChannelError> {
        self.send_frame(&Frame { kind: Kind::Log, content: bytes })
    }

    /// Sends bytes as they are, which may be no frame: for who tries what may not be done.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.tls.writer().write_all(bytes)?;
        self.flush()
    }

    fn send_frame(&mut self, frame: &Frame) -> Result<(), ChannelError> {
        self.tls.writer().write_all(&frame.to_bytes())?;
        self.flush()
    }

    /// The next frame; `None` if none is whole within `wait`.
    pub fn frame(&mut self, wait: Duration) -> Result<Option<Frame>, ChannelError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(frame) = self.inbox.take()? {
                return Ok(Some(frame));
            }
            if !self.read(until)? || Instant::now() >= until {
                return Ok(self.inbox.take()?);
            }
        }
    }

    /// The next message; `None` if none is whole within `wait`.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        wait: Duration,
    ) -> Result<Option<T>, ChannelError> {
        match self.frame(wait)? {
            None => Ok(None),
            Some(Frame { kind: Kind::Message, content }) => read(&content).map(Some),
            Some(Frame { kind: Kind::Log, .. }) => {
                Err(ChannelError::Message("a part of a log that nobody asked for".into()))
            }
        }
    }

    /// The next message, which has to come within `wait`.
    pub fn expect<T: DeserializeOwned>(&mut self, wait: Duration) -> Result<T, ChannelError> {
        self.receive(wait)?.ok_or(ChannelError::Late(wait.as_secs()))
    }

    /// The part of a log that was asked for.
    pub fn expect_log(&mut self, wait: Duration) -> Result<Vec<u8>, ChannelError> {
        match self.frame(wait)?.ok_or(ChannelError::Late(wait.as_secs()))? {
            Frame { kind: Kind::Log, content } => Ok(content),
            Frame { kind: Kind::Message, .. } => {
                Err(ChannelError::Message("no part of a log, which was asked for".into()))
            }
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.tls.send_close_notify();
        let _ = self.flush();
    }
}

/// Connects. Tries again for some seconds while it is turned away.
pub fn again<T, E>(
    mut connect: impl FnMut() -> Result<T, E>,
    is_turned_away: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let until = Instant::now() + AGAIN_FOR;
    loop {
        let next = Instant::now() + AGAIN_EVERY;
        match connect() {
            Err(error) if is_turned_away(&error) && next < until => {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            connected => return connected,
        }
    }
}

/// A message from its JSON document.
pub fn read<T: DeserializeOwned>(content: &[u8]) -> Result<T, ChannelError> {
    let wrong = |error: serde_json::Error| ChannelError::Message(one_line(&error.to_string()));
    serde_json::from_slice(content).map_err(wrong)
}

/// The time left until then, 1 ms at least: a socket takes no timeout of 0.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_turned_away_comes_again_and_who_is_refused_does_not() {
        let times = |error: fn(u32) -> Option<ChannelError>| {
            let mut times = 0;
            let connect = || {
                times += 1;
                error(times).map_or(Ok(times), Err)
            };
            (again(connect, ChannelError::is_turned_away).ok(), times)
        };
        fn io_error(kind: io::ErrorKind) -> Option<ChannelError> {
            Some(io::Error::from(kind).into())
        }
        fn turned_away(time: u32) -> Option<ChannelError> {
            match time {
                1 => Some(ChannelError::Closed),
                2 => io_error(io::ErrorKind::ConnectionReset),
                _ => None,
            }
        }
        assert_eq!(times(turned_away), (Some(3), 3));
        assert_eq!(times(|_| Some(ChannelError::Late(5))), (None, 1));
        assert_eq!(times(|_| io_error(io::ErrorKind::TimedOut)), (None, 1));
    }
}
