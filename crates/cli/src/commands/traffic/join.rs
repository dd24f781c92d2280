//! `clearlane traffic join`.

use super::keys::{Folder, of_enrolment, of_keys};
use crate::answer::Answer;
use crate::failure::Failure;
use clap::Args;
use clearlane_lab::Unfinished;
use clearlane_traffic::agent::{POLICY_FILE, write_policy};
use clearlane_traffic::enrolment::{EnrolmentToken, join};
use clearlane_traffic::keys::Replace;
use clearlane_traffic::name::Role;
use serde_json::json;

/// With what.
#[derive(Args, Debug)]
pub struct Arguments {
    /// What `clearlane traffic enrol` printed for this host
    #[arg(value_name = "TOKEN")]
    token: String,
    #[command(flatten)]
    folder: Folder,
    /// Replace the keys that are in the folder, as when their certificate ends
    #[arg(long)]
    force: bool,
}

/// Joins.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    // The token itself is a secret, and not repeated.
    let token: EnrolmentToken = arguments
        .token
        .parse()
        .map_err(|error| Failure::Input(format!("what was given {error}")))?;
    let folder = arguments.folder.path()?;
    let replace = if arguments.force { Replace::Keys } else { Replace::Nothing };
    let keys = join(&token, &folder, replace, unfinished).map_err(of_enrolment)?;
    let policy = folder.join(POLICY_FILE);
    if keys.identity.role == Role::Agent {
        write_policy(&folder).map_err(of_keys)?;
    }
    let (role, name) = (keys.identity.role, keys.identity.name.as_str());
    if json {
        let fields = json!({ "folder": folder, "name": name, "role": role.word() });
        return Ok(Answer::json("clearlane-traffic-join/1", fields));
    }
    let next = match role {
        Role::Agent if arguments.force => "next: end the agent and start it again\n".into(),
        Role::Agent => format!(
            "what it allows: {}; loopback alone until you change that\nnext: clearlane traffic \
             agent --listen ADDRESS:PORT\n",
            policy.display()
        ),
        _ => "next: clearlane traffic status NAME@ADDRESS:PORT, of the agents to look at\n".into(),
    };
    Ok(Answer::text(format!("{} has the keys of {role} {name}\n{next}", folder.display())))
}
