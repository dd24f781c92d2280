//! Enrolment: how a host gets its certificate. The controller's administrator makes a token for a
//! name, the host's administrator gives it to `join`, and the certificate comes back. A token is
//! good once, while the controller waits for it; the host's key never leaves the host.

use crate::audit::{Audit, Outcome};
use crate::channel::{Channel, ChannelError, again};
use crate::keys::{Authority, Candidate, Keys, KeysError, PublicKey, Replace, must_be_free};
use crate::name::{Identity, Name, Role};
use crate::text::{of_text, to_text};
use crate::tls::{self, Fingerprint};
use crate::unproven::{Newcomer, Unproven, listener};
use clearlane_lab::Unfinished;
use ring::rand::SecureRandom;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const SECRET_BYTES: usize = 16;
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Time between two checks whether to wait on.
const LOOK: Duration = Duration::from_millis(50);

/// What a host is enrolled with: `NAME.ROLE.SECRET.FINGERPRINT@ADDRESS`.
#[derive(Clone, PartialEq, Eq)]
pub struct EnrolmentToken {
    /// Who is to be enrolled.
    pub identity: Identity,
    secret: [u8; SECRET_BYTES],
    authority: Fingerprint,
    /// Where the controller waits.
    pub at: SocketAddr,
}

/// Why a text is no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "is no enrolment token; copy the whole of what `clearlane traffic enrol` prints: \
     NAME.ROLE.SECRET.FINGERPRINT@ADDRESS"
)]
pub struct TokenError;

/// Why an enrolment failed.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    /// Keys cannot be made or stored.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The controller cannot be reached or is not the token's.
    #[error("{at}: {error}; is `clearlane traffic enrol` still waiting there?")]
    Channel {
        /// The controller's address.
        at: SocketAddr,
        /// What happened.
        error: ChannelError,
    },
    /// The controller refused.
    #[error("the controller refuses: {0}")]
    Refused(String),
    /// The machine refused.
    #[error("{what}: {}", clearlane_lab::plain(error))]
    Machine {
        /// What failed.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    name: Name,
    role: Role,
    secret: String,
    public_key: String,
}

/// What a host says when it has kept its certificate.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Joined {
    Certificate { certificate: String, authority: String },
    Refused { reason: String },
}

impl FromStr for EnrolmentToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let (parts, at) = text.split_once('@').ok_or(TokenError)?;
        let parts: Vec<&str> = parts.split('.').collect();
        let [name, role, secret, authority] = parts[..] else { return Err(TokenError) };
        let role = Role::ALL.into_iter().find(|known| known.word() == role).ok_or(TokenError)?;
        let bytes = |text| of_text(text).ok_or(TokenError);
        Ok(EnrolmentToken {
            identity: Identity { name: name.parse().map_err(|_| TokenError)?, role },
            secret: bytes(secret)?.try_into().map_err(|_| TokenError)?,
            authority: bytes(authority)?.try_into().map_err(|_| TokenError)?,
            at: at.parse().map_err(|_| TokenError)?,
        })
    }
}

impl fmt::Display for EnrolmentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { name, role } = &self.identity;
        let (secret, authority) = (to_text(&self.secret), to_text(&self.authority));
        write!(f, "{name}.{role}.{secret}.{authority}@{}", self.at)
    }
}

/// Secrets are not shown.
impl fmt::Debug for EnrolmentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnrolmentToken").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Joins with a token: the keys in the folder are who this is from then on, in place of those that
/// are there, if that is wanted.
pub fn join(
    token: &EnrolmentToken,
    folder: &Path,
    replace: Replace,
    unfinished: &Unfinished,
) -> Result<Keys, EnrolmentError> {
    must_be_free(folder, replace)?;
    let candidate = Candidate::new()?;
    let failed = |error| EnrolmentError::Channel { at: token.at, error };
    let config = tls::enrolment_client(token.authority)?;
    let name = tls::enrolment_name()?;
    let connect = || Channel::connect(token.at, Arc::clone(&config), name.clone());
    let mut channel = again(connect, ChannelError::is_turned_away).map_err(failed)?;
    let Identity { name, role } = token.identity.clone();
    let (secret, public_key) = (to_text(&token.secret), to_text(&candidate.public()));
    channel.send(&Join { name, role, secret, public_key }).map_err(failed)?;
    let (certificate, authority) = match channel.expect(ANSWER_MAX).map_err(failed)? {
        Joined::Refused { reason } => return Err(EnrolmentError::Refused(reason)),
        Joined::Certificate { certificate, authority } => (certificate, authority),
    };
    let no = || EnrolmentError::Refused("it sent no certificate".into());
    let [certificate, authority] = [certificate, authority].map(|text| of_text(&text));
    let certificate = CertificateDer::from(certificate.ok_or_else(no)?);
    let authority = CertificateDer::from(authority.ok_or_else(no)?);
    if tls::fingerprint(&authority) != token.authority {
        return Err(EnrolmentError::Refused("it sent another authority than the token's".into()));
    }
    candidate.store(folder, &certificate, &authority, replace, unfinished)?;
    let keys = Keys::read(folder)?;
    // The controller says if it does not hear it; the keys are good all the same.
    let _ = channel.send(&Stored {});
    Ok(keys)
}

/// Waits for those who are to be enrolled.
pub struct Enrolment {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    authority: Authority,
    tokens: Mutex<Vec<EnrolmentToken>>,
}

/// What came of a host's joining.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joining {
    /// It has its certificate.
    Stored,
    /// Its certificate was sent, and no word came that it is kept.
    Unsure,
}

/// Hears who joins. What it fails with ends the waiting.
pub type Told<'a> = &'a (dyn Fn(&Identity, Joining) -> io::Result<()> + Sync);

impl Enrolment {
    /// Makes a token for each, and listens; hosts that join come to `listen`.
    pub fn new(
        keys: &Keys,
        authority: Authority,
        listen: SocketAddr,
        who: Vec<Identity>,
        random: &dyn SecureRandom,
    ) -> Result<Self, EnrolmentError> {
        let failed =
            |error| EnrolmentError::Machine { what: format!("cannot listen at {listen}"), error };
        let listener = listener(listen).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let fingerprint = tls::fingerprint(authority.certificate());
        let token = |identity| {
            let mut secret = [0; SECRET_BYTES];
            random
                .fill(&mut secret)
                .map_err(|_| KeysError::Certificate("the machine has no random numbers".into()))?;
            Ok(EnrolmentToken { identity, secret, authority: fingerprint, at })
        };
        let tokens = who.into_iter().map(token).collect::<Result<_, KeysError>>()?;
        let (config, tokens) = (tls::enrolment_server(keys)?, Mutex::new(tokens));
        Ok(Enrolment { listener, config, authority, tokens })
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<EnrolmentToken>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens that wait.
    pub fn tokens(&self) -> Vec<EnrolmentToken> {
        self.waiting().clone()
    }

    /// Waits until all have joined, or `halt` is raised. Those who show no token keep nobody out.
    pub fn wait(&self, audit: &Audit, halt: &AtomicBool, told: Told<'_>) -> io::Result<()> {
        let (unproven, failed) = (Unproven::default(), Mutex::new(None));
        let failure = || failed.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::scope(|scope| {
            while !halt.load(Ordering::SeqCst) && !self.waiting().is_empty() && failure().is_none()
            {
                let Some(newcomer) = unproven.next(&self.listener, LOOK) else { continue };
                let failure = &failure;
                let serve = move || {
                    if let Err(error) = self.serve(newcomer, audit, told) {
                        *failure() = Some(error);
                    }
                };
                // If there is no thread for the connection, it is closed, and enrolment goes on.
                let thread = std::thread::Builder::new().name("join".into());
                let _ = thread.spawn_scoped(scope, serve);
            }
            unproven.close();
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Serves one.
    fn serve(&self, newcomer: Newcomer, audit: &Audit, told: Told<'_>) -> io::Result<()> {
        let Newcomer { stream, from, entered } = newcomer;
        let from = &from.to_string();
        let joined = || -> Result<(Channel, Join), ChannelError> {
            let mut channel = Channel::accept(stream, Arc::clone(&self.config))?;
            let join = channel.expect(ANSWER_MAX)?;
            Ok((channel, join))
        };
        let (mut channel, join) = match joined() {
            Ok(joined) => joined,
            Err(error) => {
                audit.refuse_stranger(from, "join", &error.to_string());
                return Ok(());
            }
        };
        // What follows takes no time of this connection's choosing.
        drop(entered);
        let identity = Identity { name: join.name.clone(), role: join.role };
        let certificate = match self.signed(&join) {
            Ok(certificate) => certificate,
            Err(reason) => {
                let _ = channel.send(&Joined::Refused { reason: reason.clone() });
                audit.refuse_stranger(from, "join", &format!("{identity}: {reason}"));
                return Ok(());
            }
        };
        audit.note(Outcome::Done, from, "join", &identity.to_string())?;
        let authority = to_text(self.authority.certificate());
        let certificate = to_text(&certificate);
        let sent = channel.send(&Joined::Certificate { certificate, authority });
        let stored = sent.and_then(|()| channel.expect::<Stored>(ANSWER_MAX));
        told(&identity, if stored.is_ok() { Joining::Stored } else { Joining::Unsure })
    }

    /// The certificate that a token is good for. The token is used up by it, whether or not the
    /// answer arrives.
    fn signed(&self, join: &Join) -> Result<CertificateDer<'static>, String> {
        let secret = of_text(&join.secret).unwrap_or_default();
        let identity = Identity { name: join.name.clone(), role: join.role };
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"enrolment");
        let tag = |secret: &[u8]| ring::hmac::sign(&key, secret);
        // Compared by their tags, which takes as long whatever is wrong.
        let fits = |token: &EnrolmentToken| {
            token.identity == identity
                && ring::hmac::verify(&key, &secret, tag(&token.secret).as_ref()).is_ok()
        };
        let mut tokens = self.waiting();
        let place = tokens.iter().position(fits).ok_or_else(|| {
            format!("no token waits for {identity} with this secret; it is good once")
        })?;
        let public = of_text(&join.public_key).and_then(PublicKey::of_bytes);
        let public = public.ok_or("it sent no public key")?;
        let signed =
            self.authority.signed(&identity, &public).map_err(|error| error.to_string())?;
        tokens.remove(place);
        Ok(signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tokens_are_read_as_they_are_printed(
            secret in any::<[u8; 16]>(), authority in any::<[u8; 32]>(), port in any::<u16>(),
        ) {
            let identity = Identity { name: "H1".parse().unwrap(), role: Role::Agent };
            let at = SocketAddr::from(([10, 0, 0, 9], port));
            let token = EnrolmentToken { identity, secret, authority, at };
            prop_assert_eq!(token.to_string().parse::<EnrolmentToken>(), Ok(token));
        }

        #[test]
        fn any_text_is_a_token_or_refused(text in ".{0,120}") {
            if let Ok(token) = text.parse::<EnrolmentToken>() {
                prop_assert_eq!(token.to_string().parse(), Ok(token));
            }
        }
    }
}
