//! What controllers and agents tell each other: JSON documents, one a frame, over TLS.

use crate::consent::Token;
use crate::name::Name;
use crate::order::Order;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The version of these messages; both sides have the same.
pub const PROTOCOL: u32 = 3;

/// What a controller or viewer says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// First of all: who speaks is in the certificate.
    Hello {
        /// Version of these messages.
        protocol: u32,
        /// Version of clearlane.
        version: String,
    },
    /// How is the agent? Every role may ask.
    Status {},
    /// What does its clock show?
    Clock {},
    /// Take part in a run; the agent is in no other until it ends.
    Begin {
        /// Name of the plan, for the audit log.
        plan: String,
        /// How long senders may send, ns.
        duration_ns: u64,
    },
    /// Expect a flow.
    Receive {
        /// The flow.
        order: Order,
        /// Address of who will send.
        from: std::net::IpAddr,
    },
    /// Connect to a receiver, and be ready to send.
    Send {
        /// The flow.
        order: Order,
        /// Where the receiver listens.
        to: SocketAddr,
        /// A token for each connection.
        tokens: Vec<Token>,
    },
    /// Begin at this time of the agent's clock, ns.
    Start {
        /// When.
        at_ns: u64,
    },
    /// The controller is there; data stops when it has not been said for some time.
    Lease {},
    /// Stop sending, whoever's run it is.
    Stop {},
    /// Hand over a part of the log of a connection.
    Log {
        /// Connection.
        connection: u32,
        /// Which end.
        end: End,
        /// First byte.
        offset: u64,
    },
    /// The run has ended; its logs are deleted.
    End {},
}

/// What an agent answers, or tells unasked while a run is under way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// To `Hello`.
    Hello {
        /// Version of these messages.
        protocol: u32,
        /// Version of clearlane.
        version: String,
        /// Where data connections are taken.
        data: SocketAddr,
    },
    /// To `Status`.
    Status(Status),
    /// To `Clock`: when the question came and when this left, ns of the agent's clock.
    Clock {
        /// When the question came.
        received_ns: u64,
        /// When this left.
        sent_ns: u64,
    },
    /// Done; to `Begin`, `Start` and `End`.
    Done {},
    /// To `Stop`. Nothing more is sent.
    Stopped {
        /// Name of the plan of the run that was under way, if one was.
        plan: Option<String>,
    },
    /// To `Receive`: a token for each connection.
    Expected {
        /// The tokens.
        tokens: Vec<Token>,
    },
    /// To `Send`: connected, with the receiver's consent.
    Ready {
        /// Rate that the agent's policy holds the flow to, bit/s; shared with other flows.
        held_to_bps: Option<u64>,
    },
    /// To anything: it is not done.
    Refused {
        /// Why, and a remedy.
        reason: String,
    },
    /// Unasked: what has happened since the start.
    Progress(Progress),
    /// To `Log`: so many bytes follow in a frame of their own.
    Log {
        /// Bytes of the whole log.
        bytes: u64,
        /// Records in it.
        records: u64,
    },
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Who sends.
    Sender,
    /// Who receives.
    Receiver,
}

impl End {
    /// What the log of a connection at this end is called: a name made of a number and a word of
    /// ours, so that it leads nowhere else.
    pub fn log_file(self, connection: u32) -> String {
        match self {
            End::Sender => format!("{connection}-sent.log"),
            End::Receiver => format!("{connection}-received.log"),
        }
    }
}

/// How an agent is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Name of the agent.
    pub name: Name,
    /// The run it takes part in.
    pub run: Option<StatusOfRun>,
    /// What its policy allows, a line each.
    pub policy: Vec<String>,
}

/// The run an agent takes part in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusOfRun {
    /// Name of the plan.
    pub plan: String,
    /// Who controls it.
    pub controller: Name,
    /// What is being done.
    pub state: State,
    /// Why it was stopped before its end; empty if it was not.
    pub stopped: String,
}

/// What a run is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Connections are made.
    Preparing,
    /// Data may be sent.
    Sending,
    /// All is sent; its logs wait for the controller.
    Ended,
}

/// What has happened at an agent since the start of the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Connection, packets and bytes so far, of the connections it sends on.
    pub sent: Vec<(u32, u64, u64)>,
    /// The same of those it receives on.
    pub received: Vec<(u32, u64, u64)>,
    /// Connections whose part here has ended.
    pub ended: u32,
    /// Connections it has.
    pub connections: u32,
    /// Why the run was stopped here before its end; empty if it was not.
    pub stopped: String,
}
