//! `clearlane traffic init`.

use super::keys::{Folder, of_keys};
use crate::answer::Answer;
use crate::failure::Failure;
use clap::Args;
use clearlane_lab::Unfinished;
use clearlane_traffic::keys::Authority;
use clearlane_traffic::name::Name;
use serde_json::json;

/// Whose keys.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  clearlane traffic init\n\n\
    The folder then holds the authority's key, which signs certificates: keep it as a root \
    password.")]
pub struct Arguments {
    #[command(flatten)]
    folder: Folder,
    /// Name of the controller in audit logs
    #[arg(long, value_name = "NAME", default_value = "controller", conflicts_with = "renew")]
    name: Name,
    /// Make a new key and certificate for the controller whose folder this is: one is good for a
    /// year
    #[arg(long)]
    renew: bool,
}

/// Makes them.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    let folder = arguments.folder.path()?;
    let name = match arguments.renew {
        true => Authority::renew(&folder, unfinished).map_err(of_keys)?,
        false => {
            Authority::init(&folder, arguments.name.clone(), unfinished).map_err(of_keys)?;
            arguments.name.clone()
        }
    };
    let name = name.as_str();
    if json {
        let fields = json!({ "folder": folder, "controller": name });
        return Ok(Answer::json("clearlane-traffic-init/1", fields));
    }
    let folder = folder.display();
    if arguments.renew {
        return Ok(Answer::text(format!("{folder} has new keys of controller {name}\n")));
    }
    Ok(Answer::text(format!(
        "{folder} has the keys of controller {name}\nnext: clearlane traffic enrol \
         HOST@ADDRESS:PORT …, with the address at which each host's agent will listen\n"
    )))
}
