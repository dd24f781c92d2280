//! `clearlane traffic stop`.

use super::keys::Asked;
use crate::answer::{Answer, Verdict};
use crate::failure::Failure;
use clap::Args;
use clearlane_traffic::message::Request;
use serde_json::json;

/// Whom to stop.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,
}

/// Stops them.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let answers = arguments.asked.ask(|link| link.have_done(&Request::Stop {}, "stop"))?;
    let failed: Vec<String> =
        answers.iter().filter_map(|(_, answer)| Some(answer.as_ref().err()?.to_string())).collect();
    let verdict = if failed.is_empty() { Verdict::Done } else { Verdict::BadNews };
    let stopped = answers.len() - failed.len();
    if json {
        let fields = json!({ "stopped": stopped, "failed": failed });
        return Ok(Answer::json("clearlane-traffic-stop/1", fields).with(verdict));
    }
    let lines: String = failed.iter().map(|line| format!("{line}\n")).collect();
    Ok(Answer::text(format!("{stopped} of {} agents stopped\n{lines}", answers.len()))
        .with(verdict))
}
