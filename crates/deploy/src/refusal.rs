//! What is refused: files of another kind, and service levels that would not take effect or take
//! others away.

use crate::conf::{OVERRULE, instead};
use crate::policy::PolicyError;
use crate::{Conf, Request, remarks};

/// Why there is nothing to deploy by files.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeployError {
    /// The SLs need more than a policy can say.
    #[error(
        "{what}: a QoS policy of OpenSM cannot say so; deploy it with the routing engine \
         `clearlane` (docs/opensm-plugin.md)"
    )]
    BeyondPolicy {
        /// What does.
        what: &'static str,
    },
    /// All paths are on SL 0.
    #[error("every path is on service level 0 and the tables stay, so nothing changes; {remedy}")]
    Nothing {
        /// What to ask for.
        remedy: &'static str,
    },
    /// A running engine gives SLs itself.
    #[error(
        "{file}:{line}: routing_engine {engine} gives the SL of a path itself and overrules a QoS \
         policy; {}, or add --force",
        instead(engine)
    )]
    Overruled {
        /// opensm.conf.
        file: String,
        /// Its line.
        line: usize,
        /// The engine.
        engine: String,
    },
    /// Programs that cannot have an SL by destination.
    #[error(
        "{clients} give a process one SL for all it sends, and these SLs differ by pair of hosts; \
         take --lane-policy by-class with --lanes 2 and --hot, or add --force"
    )]
    OnePerProcess {
        /// The programs.
        clients: String,
    },
    /// The site has a policy that would be replaced.
    #[error(
        "{file}:{line}: the site uses QoS and may have a policy of its own; give it with \
         --qos-policy, so that its rules stay, an empty file if it has none"
    )]
    Replaces {
        /// opensm.conf.
        file: String,
        /// The line that says so.
        line: usize,
    },
    /// The site has partitions, which may have SLs.
    #[error(
        "{file}:{line}: the site may have partitions, whose service levels would be 0; give the \
         file with --partitions, so that these are named, an empty file if it has none"
    )]
    Partitions {
        /// opensm.conf.
        file: String,
        /// Its line.
        line: usize,
    },
    /// A file is something else.
    #[error("{file}: is no {what}; give the site's own")]
    Other {
        /// The file.
        file: String,
        /// What it should be.
        what: &'static str,
    },
    /// The site's policy is broken.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// Fails where a file is of another kind, and, unless it is forced, where the SLs would not take
/// effect; `levels` are those in use.
pub(crate) fn check(request: &Request<'_>, conf: &Conf, levels: &[u8]) -> Result<(), DeployError> {
    kinds(request, conf)?;
    if request.force {
        return Ok(());
    }
    let name = request.existing.conf.as_ref().map_or("", |(name, _)| name);
    let file = || name.escape_debug().to_string();
    let (line, engines) = conf.engines();
    let overrules = engines.first().filter(|engine| OVERRULE.contains(engine));
    if let (false, Some(engine)) = (request.tables, overrules) {
        let engine = (*engine).to_owned();
        return Err(DeployError::Overruled { file: file(), line, engine });
    }
    if levels != [0] {
        taken_away(request, conf, &file)?;
    }
    let one: Vec<&str> =
        request.clients.iter().filter(|client| !client.asks).map(|client| client.name).collect();
    // One class of hot hosts is two SLs: one for programs that talk to these alone, one for others.
    let is_one_class = request.by_class && levels.len() <= 2;
    match one.is_empty() || is_one_class {
        true => Ok(()),
        false => Err(DeployError::OnePerProcess { clients: one.join(", ") }),
    }
}

/// Fails where the site may have a policy or partitions that nobody gave.
fn taken_away(
    request: &Request<'_>,
    conf: &Conf,
    file: &dyn Fn() -> String,
) -> Result<(), DeployError> {
    // Without a key for it the policy is where OpenSM looks anyway.
    let qos = conf.get("qos").filter(|(_, value)| *value == "TRUE");
    let in_use = qos.and(conf.get("qos_policy_file")).or(qos);
    if let (Some((line, _)), None) = (in_use, &request.existing.policy) {
        return Err(DeployError::Replaces { file: file(), line });
    }
    let partitions = conf.get("partition_config_file");
    match (partitions, &request.existing.partitions) {
        (Some((line, _)), None) => Err(DeployError::Partitions { file: file(), line }),
        _ => Ok(()),
    }
}

/// Fails where a file is of another kind.
fn kinds(request: &Request<'_>, conf: &Conf) -> Result<(), DeployError> {
    let other =
        |name: &str, what| DeployError::Other { file: name.escape_debug().to_string(), what };
    match &request.existing.conf {
        Some((name, _)) if !conf.is_one() => return Err(other(name, "opensm.conf")),
        _ => {}
    }
    match &request.existing.partitions {
        Some((name, text)) if !remarks::are_partitions(text) => Err(other(name, "partitions.conf")),
        _ => Ok(()),
    }
}
