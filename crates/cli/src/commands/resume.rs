//! `clearlane resume`: a command that was interrupted or killed goes on where its runs were kept
//! last.

use super::Command;
use crate::arguments::{self, Parsed, between};
use crate::failure::Failure;
use crate::terminal;
use clap::Args;
use clearlane_ib::visible;
use clearlane_lab::{Checkpoints, Refusal, Unfinished};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to continue.
#[derive(Args, Debug)]
#[command(
    after_help = "The results have the same bytes as those of a command that was never stopped. \
    Saved runs are\nbeside the folder of the results, in DIR.checkpoint, until the results are \
    complete.\n\n\
    Examples:\n  clearlane run FILE --out runs/long --checkpoint-every 5m\n  \
    clearlane resume runs/long --threads 2"
)]
pub struct Arguments {
    /// Folder of the results, as the command was given it
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Runs at a time [default: as the command was called]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024))]
    jobs: Option<u32>,
    /// Threads for each run, 1 to 1024 [default: as the command was called]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024))]
    threads: Option<u32>,
    /// Parts the fabric is divided into, 1 to 1024 [default: as the command was called]
    #[arg(long, value_name = "N", value_parser = between(1u32, 1024))]
    partitions: Option<u32>,
    /// Save runs under way at this interval, 1 s to 24 h [default: as the command was called]
    #[arg(long, value_name = "TIME", value_parser = wall_time)]
    checkpoint_every: Option<Duration>,
}

/// How a command that runs experiments was called.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The words after the program's name.
    words: Vec<OsString>,
    /// Whether it goes on with what was kept.
    pub resumes: bool,
}

/// A call, as it is kept beside the runs.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: String,
    version: String,
    /// Where it was called.
    folder: Word,
    words: Vec<Word>,
}

/// A word or a path: readable, but for one that is no text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Other(OsString),
}

impl From<OsString> for Word {
    fn from(word: OsString) -> Self {
        word.into_string().map_or_else(Word::Other, Word::Text)
    }
}

impl From<Word> for OsString {
    fn from(word: Word) -> Self {
        match word {
            Word::Text(text) => text.into(),
            Word::Other(other) => other,
        }
    }
}

/// What a call says first, in every version.
#[derive(Debug, Deserialize)]
struct Schema {
    schema: String,
}

const SCHEMA: &str = "clearlane-command/1";
/// What all of them have in common.
const ANY_SCHEMA: &str = "clearlane-command/";

impl Call {
    /// With these words.
    pub fn of(words: Vec<OsString>) -> Self {
        Call { words, resumes: false }
    }

    /// As it is kept, to be read again.
    pub fn text(&self) -> Result<String, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::Internal(error.to_string());
        let kept = Kept {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            folder: std::env::current_dir()
                .map_err(|error| failed(&error))?
                .into_os_string()
                .into(),
            words: self.words.iter().cloned().map(Word::from).collect(),
        };
        serde_json::to_string_pretty(&kept).map_err(|error| failed(&error))
    }
}

/// Says why runs under way were not saved, if any was not.
fn tell_of_unsaved(kept: &Checkpoints) {
    if let Some(problem) = kept.failed() {
        terminal::remark(&format!("clearlane: runs under way were not saved: {problem}"));
    }
}

/// Ends a command that has no results because of a failure.
pub fn given_up(kept: &Checkpoints, out: &Path, failure: &Failure) {
    tell_of_unsaved(kept);
    kept.give_up();
    if matches!(failure, Failure::Interrupted(_)) {
        tell_how_to_go_on(kept, out);
    }
}

/// Tells how to go on with what was saved, if anything was.
fn tell_how_to_go_on(kept: &Checkpoints, out: &Path) {
    if kept.is_there() {
        let out = super::experiment::quoted(&out.to_string_lossy());
        terminal::remark(&format!("clearlane: to continue: clearlane resume {out}"));
    }
}

/// The runs have ended. What was kept is let go of, or it is said how to go on.
pub fn end(kept: &Checkpoints, out: &Path, is_partial: bool) -> Result<(), Failure> {
    tell_of_unsaved(kept);
    if !is_partial {
        return kept.clear().map_err(Failure::lab);
    }
    tell_how_to_go_on(kept, out);
    Ok(())
}

/// Why nothing can be gone on with beside a folder where nothing is kept.
fn nothing_kept(folder: &Path) -> Failure {
    let is_complete = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        let result: serde_json::Value = serde_json::from_str(&text).ok()?;
        result["status"].as_str().map(|status| status != "partial")
    };
    let has_ended = |name: &str| is_complete(name) == Some(true);
    let problem = if !folder.is_dir() {
        "no such folder; give the folder of the results, as in runs/NAME"
    } else if ["summary.json", "sweep.json"].into_iter().any(has_ended) {
        "all its runs have ended: there is nothing to resume"
    } else if folder.join("points.jsonl").exists() {
        "no unfinished run is saved for it; call the sweep again, it runs the missing points"
    } else {
        "nothing is saved for it; run from the beginning, with --checkpoint-every 5m to be able \
         to resume after a crash"
    };
    Failure::Input(format!("{}: {problem}", folder.display()))
}

/// The command that was kept beside a folder of results, and whether it answers in JSON.
pub fn command(arguments: &Arguments, json: bool) -> Result<(Command, bool), Failure> {
    let folder = &Checkpoints::results(&arguments.folder);
    let checkpoints = Checkpoints::of(folder, None, String::new(), &Unfinished::default());
    let place = checkpoints.command_file().display().to_string();
    let wrong = |problem: &str| Failure::Input(format!("{place}: {problem}"));
    let torn = || wrong("is damaged; run from the beginning with --force");
    let Some(text) = checkpoints.command().map_err(Failure::lab)? else {
        return Err(nothing_kept(folder));
    };
    let schema: Schema = serde_json::from_str(&text).map_err(|_| torn())?;
    if schema.schema != SCHEMA {
        let is_later = schema.schema.starts_with(ANY_SCHEMA);
        let refusal = if is_later { Refusal::Version } else { Refusal::Foreign };
        return Err(wrong(refusal.problem()));
    }
    let kept: Kept = serde_json::from_str(&text).map_err(|_| torn())?;
    if kept.version != env!("CARGO_PKG_VERSION") {
        return Err(wrong(Refusal::Version.problem()));
    }
    let out = plain(folder).map_err(|error| wrong(&error.to_string()))?;
    let called = OsString::from(kept.folder);
    std::env::set_current_dir(&called).map_err(|_| {
        let called = visible(&called.to_string_lossy()).to_string();
        wrong(&format!("the folder it was called in, {called}, is gone; make it again"))
    })?;
    let words: Vec<OsString> = kept.words.into_iter().map(OsString::from).collect();
    let program = std::iter::once(OsString::from("clearlane"));
    let parsed = arguments::parse(program.chain(words.iter().cloned()))?;
    let Parsed::Command(mut command, was_json) = parsed else {
        return Err(torn());
    };
    let Some(shared) = command.shared() else { return Err(torn()) };
    shared.out = Some(out);
    shared.jobs = arguments.jobs.or(shared.jobs);
    shared.threads = arguments.threads.unwrap_or(shared.threads);
    shared.partitions = arguments.partitions.or(shared.partitions);
    shared.checkpoint_every = arguments.checkpoint_every.or(shared.checkpoint_every);
    shared.call = Call { words, resumes: true };
    Ok((*command, json || was_json))
}

/// A folder's path from the root, as plain as it can be said, whether or not the folder is there.
fn plain(folder: &Path) -> std::io::Result<PathBuf> {
    let whole = std::path::absolute(folder)?;
    match (whole.parent().map(Path::canonicalize), whole.file_name()) {
        (Some(Ok(parent)), Some(name)) => Ok(parent.join(name)),
        _ => Ok(whole),
    }
}

/// A span of wall time: a whole number and its unit.
pub fn wall_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time of 1 s to 24 h; write 30s, 5m or 2h");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(at);
    let seconds: u64 = match unit.trim() {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let span = number.saturating_mul(seconds);
    match (1..=24 * 3600).contains(&span) {
        true => Ok(Duration::from_secs(span)),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_text_are_kept_as_they_are() {
        use std::os::unix::ffi::OsStringExt;
        for word in [b"run".to_vec(), b"caf\xe9.toml".to_vec()] {
            let word = OsString::from_vec(word);
            let text = serde_json::to_string(&Word::from(word.clone())).unwrap();
            let again: Word = serde_json::from_str(&text).unwrap();
            assert_eq!(OsString::from(again), word, "{text}");
        }
    }

    #[test]
    fn spans_of_wall_time_have_a_unit_and_a_range() {
        for (text, seconds) in [("1s", 1), ("5m", 300), ("5 min", 300), ("24h", 86_400)] {
            assert_eq!(wall_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "5", "m", "0s", "25h", "5x", "-1s", "99999999999999999999h", "1.5m"] {
            assert!(wall_time(text).is_err(), "{text}");
        }
    }
}
