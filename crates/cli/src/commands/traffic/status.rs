//! `clearlane traffic status`.

use super::keys::{Asked, Told};
use crate::answer::{Answer, Verdict, value};
use crate::failure::Failure;
use clap::Args;
use clearlane_ib::visible;
use clearlane_lab::{Align, Table};
use clearlane_traffic::message::{State, Status};
use serde_json::json;

/// Of whom.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,
}

/// Asks.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let answers = arguments.asked.ask(|link| link.status())?;
    let is_whole = answers.iter().all(|(_, answer)| answer.is_ok());
    let verdict = if is_whole { Verdict::Done } else { Verdict::BadNews };
    if json {
        let one = |(known, answer): &Told<Status>| match answer {
            Ok(status) => {
                let mut fields = value(status)?;
                fields["address"] = json!(known.address);
                Ok(fields)
            }
            Err(error) => {
                let problem = error.to_string();
                Ok(json!({ "name": known.name, "address": known.address, "problem": problem }))
            }
        };
        let all = answers.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let fields = json!({ "agents": all });
        return Ok(Answer::json("clearlane-traffic-status/1", fields).with(verdict));
    }
    let mut table = Table::new([
        ("agent", "", Align::Left),
        ("address", "", Align::Left),
        ("run", "", Align::Left),
        ("it may", "", Align::Left),
    ]);
    let mut problems = String::new();
    for (known, answer) in &answers {
        let (name, address) = (known.name.to_string(), known.address.to_string());
        match answer {
            Err(error) => {
                table.rows.push(vec![name, address, "no answer".into(), String::new()]);
                problems += &format!("note  {}\n", visible(&error.to_string()));
            }
            Ok(status) => {
                let run = status.run.as_ref().map_or("-".to_owned(), |run| {
                    let what = match run.state {
                        State::Preparing => "being prepared".to_owned(),
                        State::Sending => "sending".to_owned(),
                        State::Ended if run.stopped.is_empty() => "ended, logs wait".to_owned(),
                        State::Ended => run.stopped.clone(),
                    };
                    format!("{} of {}: {what}", run.plan, run.controller)
                });
                let mut rows = status.policy.iter();
                let first = rows.next().cloned().unwrap_or_default();
                table.rows.push(vec![name, address, run, first]);
                let none = String::new;
                table.rows.extend(rows.map(|line| vec![none(), none(), none(), line.clone()]));
            }
        }
    }
    Ok(Answer::text(format!("{table}{problems}")).with(verdict))
}
