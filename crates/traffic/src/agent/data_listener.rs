//! Where data connections come in: nothing is taken from one that shows no token of this agent.

use super::give_way::give_way;
use crate::audit::Audit;
use crate::consent::{REQUEST_BYTES, Request, Token, TokenId};
use crate::unproven::{Newcomer, Unproven};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a connection may take to show its token.
const SHOWING_MAX: Duration = Duration::from_secs(5);
/// Time between two checks whether to wait on.
const LOOK: Duration = Duration::from_millis(50);

/// A connection that is expected.
pub struct Expected {
    /// Its token.
    pub token: Token,
    /// Where it is to come from.
    pub from: IpAddr,
    /// What becomes of it.
    pub serve: Box<dyn FnOnce(TcpStream) + Send>,
}

/// The connections that are expected: each comes once.
#[derive(Default)]
pub struct ExpectedConnections(Mutex<BTreeMap<TokenId, Expected>>);

impl ExpectedConnections {
    /// Expects a connection.
    pub fn expect(&self, expected: Expected) {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.insert(expected.token.id(), expected);
    }

    /// Expects none any more.
    pub fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes the one that a request is of, if it shows its key and comes from where it should.
    fn take(&self, request: &Request, from: IpAddr) -> Result<Expected, String> {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = "its token is none that is expected: it is good once, for one connection";
        let expected = awaited.get(&request.id).ok_or(unknown)?;
        if !expected.token.allows(request) {
            return Err("it shows no key for its token".into());
        }
        if expected.from.to_canonical() != from.to_canonical() {
            return Err(format!("its token is for {}", expected.from));
        }
        awaited.remove(&request.id).ok_or(unknown.into())
    }
}

/// Takes data connections until `halt` is raised.
pub fn listen(
    listener: &TcpListener,
    awaited: &Arc<ExpectedConnections>,
    audit: &Arc<Audit>,
    halt: &AtomicBool,
) {
    let unproven = Unproven::default();
    while !halt.load(SeqCst) {
        let Some(newcomer) = unproven.next(listener, LOOK) else { continue };
        let (awaited, audit) = (Arc::clone(awaited), Arc::clone(audit));
        let Newcomer { stream, from, entered } = newcomer;
        let serve = move || match show(&stream, from, &awaited) {
            Ok(expected) => {
                entered.proven();
                // A thread that closes the stream shares it meanwhile.
                let own = Arc::try_unwrap(stream).or_else(|shared| shared.try_clone());
                if let Ok(stream) = own {
                    give_way();
                    (expected.serve)(stream);
                }
            }
            Err(why) => audit.refuse_stranger(&from.to_string(), "data connection", &why),
        };
        // If there is no thread for the connection, it is refused, and the run goes on.
        let _ = std::thread::Builder::new().name("data connection".into()).spawn(serve);
    }
}

/// Has a connection show its token, and answers that it is known.
fn show(
    mut stream: &TcpStream,
    from: SocketAddr,
    awaited: &ExpectedConnections,
) -> Result<Expected, String> {
    let plain = |error: io::Error| clearlane_lab::plain(&error).to_string();
    let mut bytes = [0; REQUEST_BYTES];
    let (mut have, until) = (0, Instant::now() + SHOWING_MAX);
    while have < REQUEST_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("it showed no token in time".into());
        }
        stream.set_read_timeout(Some(left)).map_err(plain)?;
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err("it ended without a token".into()),
            Ok(read) => have += read,
            Err(error) if super::receiving::is_wait(&error) => {}
            Err(error) => return Err(plain(error)),
        }
    }
    let request = Request::of_bytes(&bytes).ok_or("it shows no token of clearlane traffic")?;
    let expected = awaited.take(&request, from.ip())?;
    stream.set_nodelay(true).map_err(plain)?;
    stream.write_all(&expected.token.answer()).map_err(plain)?;
    Ok(expected)
}

/// Connects to a receiver from an address of this host (any, if it is unspecified), shows the
/// token, and has its consent, until then at the latest.
pub fn connect(
    from: IpAddr,
    to: SocketAddr,
    token: &Token,
    until: Instant,
) -> Result<TcpStream, String> {
    let plain = |error: io::Error| format!("{to}: {}", clearlane_lab::plain(&error));
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of 0 would be none.
        left.max(Duration::from_millis(1)).min(SHOWING_MAX)
    };
    let mut stream = connected(from, to, left()).map_err(plain)?;
    stream.set_nodelay(true).map_err(plain)?;
    stream.set_write_timeout(Some(SHOWING_MAX)).map_err(plain)?;
    stream.write_all(&token.request()).map_err(plain)?;
    let mut answer = [0; crate::consent::ANSWER_BYTES];
    let no_consent = || format!("{to} does not consent to be sent to");
    let mut have = 0;
    while have < answer.len() {
        if Instant::now() >= until {
            return Err(no_consent());
        }
        stream.set_read_timeout(Some(left())).map_err(plain)?;
        match stream.read(&mut answer[have..]) {
            Ok(0) | Err(_) => return Err(no_consent()),
            Ok(read) => have += read,
        }
    }
    match token.is_accepted(&answer) {
        true => Ok(stream),
        false => Err(no_consent()),
    }
}

/// A stream from an address: flows go over the network that was chosen for data, whatever the
/// routes of the host prefer.
fn connected(from: IpAddr, to: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let kind = Domain::for_address(to);
    let socket = Socket::new(kind, Type::STREAM, Some(Protocol::TCP))?;
    // A host of the other family than the address has no such choice.
    if !from.is_unspecified() && from.is_ipv4() == to.is_ipv4() {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&to.into(), within)?;
    Ok(socket.into())
}
