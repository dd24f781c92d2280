//! Where data connections come in: nothing is taken from one that shows no token of this agent.

use crate::audit::{Audit, Came};
use crate::consent::{REQUEST_BYTES, Request, Token, TokenId};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a connection may take to show its token, and how many may be about it.
const SHOWING_MAX: Duration = Duration::from_secs(5);
const SHOWING_AT_A_TIME: usize = 64;

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
pub struct Guests(Mutex<BTreeMap<TokenId, Expected>>);

impl Guests {
    /// Expects a connection.
    pub fn expect(&self, expected: Expected) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.insert(expected.token.id(), expected);
    }

    /// Expects none any more.
    pub fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes the one that a request is of, if it shows its key and comes from where it should.
    fn take(&self, request: &Request, from: IpAddr) -> Result<Expected, String> {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = "its token is none that is expected: it is good once, for one connection";
        let expected = guests.get(&request.id).ok_or(unknown)?;
        if !expected.token.allows(request) {
            return Err("it shows no key for its token".into());
        }
        if expected.from.to_canonical() != from.to_canonical() {
            return Err(format!("its token is for {}", expected.from));
        }
        guests.remove(&request.id).ok_or(unknown.into())
    }
}

/// Takes data connections until `halt` is raised.
pub fn keep(
    listener: &TcpListener,
    guests: &Arc<Guests>,
    audit: &Arc<Audit>,
    halt: &AtomicBool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let showing = Arc::new(AtomicUsize::new(0));
    while !halt.load(SeqCst) {
        let (stream, from) = match listener.accept() {
            Ok(come) => come,
            Err(_) => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
        };
        if showing.fetch_add(1, SeqCst) >= SHOWING_AT_A_TIME {
            showing.fetch_sub(1, SeqCst);
            let why = "too many connections show no token";
            let _ = audit.note(Came::Refused, &from.to_string(), "data connection", why);
            continue;
        }
        let (guests, audit, count) = (Arc::clone(guests), Arc::clone(audit), Arc::clone(&showing));
        let thread = std::thread::Builder::new().name("door".into());
        let spawned = thread.spawn(move || {
            let shown = show(stream, from, &guests);
            count.fetch_sub(1, SeqCst);
            match shown {
                Ok((stream, expected)) => (expected.serve)(stream),
                Err(why) => {
                    let _ = audit.note(Came::Refused, &from.to_string(), "data connection", &why);
                }
            }
        });
        if spawned.is_err() {
            showing.fetch_sub(1, SeqCst);
        }
    }
    Ok(())
}

/// Has a connection show its token, and answers that it is known.
fn show(
    mut stream: TcpStream,
    from: SocketAddr,
    guests: &Guests,
) -> Result<(TcpStream, Expected), String> {
    let plain = |error: io::Error| clearlane_lab::plain(&error).to_string();
    stream.set_nonblocking(false).map_err(plain)?;
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
    let expected = guests.take(&request, from.ip())?;
    stream.set_nodelay(true).map_err(plain)?;
    stream.write_all(&expected.token.answer()).map_err(plain)?;
    Ok((stream, expected))
}

/// Connects to a receiver, shows the token, and has its consent, until then at the latest.
pub fn knock(to: SocketAddr, token: &Token, until: Instant) -> Result<TcpStream, String> {
    let plain = |error: io::Error| format!("{to}: {}", clearlane_lab::plain(&error));
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of 0 would be none.
        left.max(Duration::from_millis(1)).min(SHOWING_MAX)
    };
    let mut stream = TcpStream::connect_timeout(&to, left()).map_err(plain)?;
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
