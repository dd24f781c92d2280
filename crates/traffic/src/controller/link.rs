//! An agent as the controller sees it: questions and answers.

use super::inventory::Known;
use crate::channel::{Channel, ChannelError, again};
use crate::clock::{Exchange, Offset, now_ns};
use crate::keys::Keys;
use crate::message::{Answer, PROTOCOL, Progress, Request, Status};
use crate::name::{Identity, Role};
use crate::tls;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Exchanges by which a clock is compared.
const EXCHANGES: usize = 32;
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Why an agent does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It cannot be reached, or its connection ended.
    #[error("agent {agent} at {address}: {error}")]
    Channel {
        /// Its name.
        agent: String,
        /// Where it listens.
        address: SocketAddr,
        /// What happened.
        error: ChannelError,
    },
    /// There is no connection to it.
    #[error("agent {agent} at {address}: {error}{}", remedy(error))]
    Unreached {
        /// Its name.
        agent: String,
        /// Where it should listen.
        address: SocketAddr,
        /// What happened.
        error: Box<ChannelError>,
    },
    /// It refused.
    #[error("agent {agent} refuses: {reason}")]
    Refused {
        /// Its name.
        agent: String,
        /// Why.
        reason: String,
    },
    /// It answered something else.
    #[error("agent {agent} gave no answer to {question}")]
    Answer {
        /// Its name.
        agent: String,
        /// What it was asked.
        question: &'static str,
    },
    /// Keys.
    #[error(transparent)]
    Keys(#[from] crate::keys::KeysError),
}

/// The remedy for a connection that failed.
fn remedy(error: &ChannelError) -> &'static str {
    match error {
        // Something answers there, and the error has its own remedy.
        ChannelError::Tls(_) => "",
        _ => "; is `clearlane traffic agent` running there?",
    }
}

impl LinkError {
    /// Whether the agent closed the connection without a word.
    fn is_turned_away(&self) -> bool {
        match self {
            LinkError::Channel { error, .. } => error.is_turned_away(),
            LinkError::Unreached { error, .. } => error.is_turned_away(),
            _ => false,
        }
    }

    /// What happened, without whose agent it is.
    pub fn reason(&self) -> String {
        match self {
            LinkError::Channel { error, .. } => error.to_string(),
            LinkError::Unreached { error, .. } => format!("{error}{}", remedy(error)),
            LinkError::Refused { reason, .. } => reason.clone(),
            LinkError::Answer { question, .. } => format!("it gave no answer to {question}"),
            LinkError::Keys(error) => error.to_string(),
        }
    }
}

/// An agent.
pub struct Link {
    /// Who it is and where it listens.
    pub known: Known,
    /// Where it takes data connections.
    pub data: SocketAddr,
    channel: Channel,
    /// Answers to come that nobody waits for: to being told to stop.
    owed: u32,
}

impl Link {
    /// Connects, and says hello.
    pub fn connect(keys: &Keys, known: &Known) -> Result<Self, LinkError> {
        again(|| Link::connect_once(keys, known), LinkError::is_turned_away)
    }

    fn connect_once(keys: &Keys, known: &Known) -> Result<Self, LinkError> {
        let who = Identity { name: known.name.clone(), role: Role::Agent };
        let (config, name) = (tls::client(keys)?, tls::server_name(&who)?);
        let channel = Channel::connect(known.address, config, name);
        let channel = channel.map_err(|error| LinkError::Unreached {
            agent: known.name.to_string(),
            address: known.address,
            error: Box::new(error),
        })?;
        let mut link = Link { known: known.clone(), data: known.address, channel, owed: 0 };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        match link.ask(&Request::Hello { protocol: PROTOCOL, version })? {
            Answer::Hello { data, .. } => Ok(Link { data, ..link }),
            _ => Err(link.wrong("hello")),
        }
    }

    fn failed(&self, error: ChannelError) -> LinkError {
        let agent = self.known.name.to_string();
        LinkError::Channel { agent, address: self.known.address, error }
    }

    fn wrong(&self, question: &'static str) -> LinkError {
        LinkError::Answer { agent: self.known.name.to_string(), question }
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, LinkError> {
        self.tell(request)?;
        let until = Instant::now() + ANSWER_MAX;
        loop {
            // What comes unasked does not prolong the wait.
            let left = until.saturating_duration_since(Instant::now());
            let answer = self.channel.receive(left).map_err(|error| self.failed(error))?;
            let late = || self.failed(ChannelError::Late(ANSWER_MAX.as_secs()));
            match answer.ok_or_else(late)? {
                // It was under way when the question was asked.
                Answer::Progress(_) => {}
                Answer::Stopped { .. } if self.owed > 0 => self.owed -= 1,
                Answer::Refused { reason } => {
                    let agent = self.known.name.to_string();
                    return Err(LinkError::Refused { agent, reason });
                }
                answer => return Ok(answer),
            }
        }
    }

    /// Asks for something that is done or not.
    pub fn have_done(
        &mut self,
        request: &Request,
        question: &'static str,
    ) -> Result<(), LinkError> {
        match self.ask(request)? {
            Answer::Done {} => Ok(()),
            _ => Err(self.wrong(question)),
        }
    }

    /// Says something that has no answer.
    pub fn tell(&mut self, request: &Request) -> Result<(), LinkError> {
        self.channel.send(request).map_err(|error| self.failed(error))
    }

    /// It has said nothing for so long, though it should have.
    pub fn silent(&self, wait: Duration) -> LinkError {
        self.failed(ChannelError::Silent(wait.as_secs()))
    }

    /// Has it stop, and does not wait until it has.
    pub fn tell_to_stop(&mut self) -> Result<(), LinkError> {
        self.owed += 1;
        self.tell(&Request::Stop {})
    }

    /// Stops the agent. Returns the plan of the run that was under way, if one was.
    pub fn stop(&mut self) -> Result<Option<String>, LinkError> {
        match self.ask(&Request::Stop {})? {
            Answer::Stopped { plan } => Ok(plan),
            _ => Err(self.wrong("stop")),
        }
    }

    /// How it is.
    pub fn status(&mut self) -> Result<Status, LinkError> {
        match self.ask(&Request::Status {})? {
            Answer::Status(status) => Ok(status),
            _ => Err(self.wrong("status")),
        }
    }

    /// How its clock relates to ours.
    pub fn clock(&mut self) -> Result<Offset, LinkError> {
        let mut exchanges = Vec::with_capacity(EXCHANGES);
        for _ in 0..EXCHANGES {
            let asked_ns = now_ns();
            let answer = self.ask(&Request::Clock {})?;
            let heard_ns = now_ns();
            let Answer::Clock { received_ns, sent_ns } = answer else {
                return Err(self.wrong("the time"));
            };
            exchanges.push(Exchange { asked_ns, received_ns, answered_ns: sent_ns, heard_ns });
        }
        Offset::of(&exchanges).ok_or_else(|| self.wrong("the time"))
    }

    /// What it tells unasked, if it tells something within `wait`.
    pub fn progress(&mut self, wait: Duration) -> Result<Option<Progress>, LinkError> {
        match self.channel.receive(wait).map_err(|error| self.failed(error))? {
            Some(Answer::Progress(progress)) => Ok(Some(progress)),
            Some(Answer::Refused { reason }) => {
                Err(LinkError::Refused { agent: self.known.name.to_string(), reason })
            }
            Some(Answer::Stopped { .. }) if self.owed > 0 => {
                self.owed -= 1;
                Ok(None)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// A part of a log, with the bytes and records of all of it.
    pub fn log(&mut self, request: &Request) -> Result<(u64, u64, Vec<u8>), LinkError> {
        match self.ask(request)? {
            Answer::Log { bytes, records } => {
                let part = self.channel.expect_log(ANSWER_MAX);
                Ok((bytes, records, part.map_err(|error| self.failed(error))?))
            }
            _ => Err(self.wrong("the log of a connection")),
        }
    }
}
