//! `clearlane traffic status`.

use super::keys::{Folder, agents, ask_all};
use crate::answer::{Answer, Verdict, value};
use crate::failure::Failure;
use clap::Args;
use clearlane_lab::{Align, Table};
use clearlane_traffic::controller::{Known, LinkError};
use clearlane_traffic::message::Status;
use serde_json::json;

/// Of whom.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Agents, by name or as NAME@ADDRESS:PORT; all that are enrolled without any
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
    #[command(flatten)]
    folder: Folder,
}

/// Asks.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let keys = arguments.folder.keys()?;
    let agents = agents(&arguments.folder, &arguments.agents)?;
    let answers = ask_all(&keys, &agents, |link| link.status());
    let is_whole = answers.iter().all(Result::is_ok);
    let verdict = if is_whole { Verdict::Done } else { Verdict::BadNews };
    if json {
        let one = |(known, answer): (&Known, &Result<Status, LinkError>)| match answer {
            Ok(status) => value(status),
            Err(error) => Ok(json!({ "name": known.name, "problem": error.to_string() })),
        };
        let all = agents.iter().zip(&answers).map(one).collect::<Result<Vec<_>, _>>()?;
        let fields = json!({ "agents": all });
        return Ok(Answer::json("clearlane-traffic-status/1", fields).with(verdict));
    }
    let mut table = Table::new([
        ("agent", "", Align::Left),
        ("address", "", Align::Left),
        ("run", "", Align::Left),
        ("it may", "", Align::Left),
    ]);
    for (known, answer) in agents.iter().zip(&answers) {
        let (name, address) = (known.name.to_string(), known.address.to_string());
        match answer {
            Err(error) => table.rows.push(vec![name, address, error.to_string(), String::new()]),
            Ok(status) => {
                let run = status.run.as_ref().map_or("-".to_owned(), |run| {
                    let what = if run.is_sending { "under way" } else { "being prepared" };
                    format!("{} of {}, {what}", run.plan, run.controller)
                });
                let mut rows = status.policy.iter();
                let first = rows.next().cloned().unwrap_or_default();
                table.rows.push(vec![name, address, run, first]);
                let none = String::new;
                table.rows.extend(rows.map(|line| vec![none(), none(), none(), line.clone()]));
            }
        }
    }
    Ok(Answer::text(format!("{table}")).with(verdict))
}
