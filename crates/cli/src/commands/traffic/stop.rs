//! `clearlane traffic stop`.

use super::keys::{Asked, Told};
use crate::answer::{Answer, Verdict};
use crate::failure::Failure;
use clap::Args;
use clearlane_ib::visible;
use serde_json::json;

/// Whom to stop.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,
}

/// Stops them.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let answers = arguments.asked.ask(|link| link.stop())?;
    let is_whole = answers.iter().all(|(_, answer)| answer.is_ok());
    let verdict = if is_whole { Verdict::Done } else { Verdict::BadNews };
    if json {
        let one = |(known, answer): &Told<Option<String>>| match answer {
            Ok(plan) => json!({ "name": known.name, "address": known.address, "stopped": plan }),
            Err(error) => {
                let problem = error.to_string();
                json!({ "name": known.name, "address": known.address, "problem": problem })
            }
        };
        let fields = json!({ "agents": answers.iter().map(one).collect::<Vec<_>>() });
        return Ok(Answer::json("clearlane-traffic-stop/1", fields).with(verdict));
    }
    let line = |(known, answer): &Told<Option<String>>| match answer {
        Ok(Some(plan)) => format!("{}: stopped run {plan}\n", known.name),
        Ok(None) => format!("{}: no run was under way\n", known.name),
        Err(error) => format!("{}\n", visible(&error.to_string())),
    };
    Ok(Answer::text(answers.iter().map(line).collect::<String>()).with(verdict))
}
