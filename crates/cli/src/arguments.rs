//! The command line, and its errors as one line.

use crate::commands::Command;
use crate::exit_codes;
use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;

const EXAMPLES: &str = "\
Examples:
  clearlane fabric show site.topo
  clearlane check site.topo --lft site.lft
  clearlane run experiments/demo-hot-spot.toml --out runs/demo --fabric site.topo --lft site.lft
  clearlane compare experiments/demo-hot-spot.toml --out runs/engines
  clearlane sweep experiments/latency-load-torus8.toml --out runs/latency-load
  clearlane route fat-tree:648 --engine fat-tree -o deploy
  clearlane list engines

Results go to stdout, progress and remarks to stderr. Exit codes:
";

fn examples_and_codes() -> String {
    format!("{EXAMPLES}{}", exit_codes::lines())
}

/// Finds, reproduces and removes congestion in InfiniBand fabrics.
#[derive(Parser)]
#[command(
    name = "clearlane",
    bin_name = "clearlane",
    version,
    disable_help_subcommand = true,
    after_help = examples_and_codes()
)]
struct CommandLine {
    /// Print one JSON document with a "schema" instead of text; where there is no answer (exit
    /// codes 2 and 5), stdout stays empty and stderr has the error as one plain line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// The command line's definition: what completions, man pages and the reference are made from.
pub fn definition() -> clap::Command {
    CommandLine::command()
}

/// What a command line asks for.
pub enum Parsed {
    /// Help or version, to be printed.
    Text(String),
    /// A command and whether it answers in JSON.
    Command(Box<Command>, bool),
}

/// Flags that several commands have, with what those that lack them would need.
const SHARED: &[(&str, &str)] = &[
    ("--seed", "uses no random numbers"),
    ("--seeds", "does not repeat runs with several seeds"),
    ("--jobs", "takes the cores that it needs"),
    ("--dry-run", "writes nothing"),
    ("--force", "replaces nothing"),
];

/// Reads a flag's number in a range.
pub fn between<N>(least: N, most: N) -> impl Fn(&str) -> Result<N, String> + Clone + 'static
where
    N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("give a number from {least} to {most}")),
    }
}

/// A flag, the first command that has it, and what it says there.
pub struct Flag {
    pub name: String,
    pub command: String,
    pub help: String,
}

/// The flag of this name, `--threads` or `threads`, if any command has one.
pub fn flag(name: &str) -> Option<Flag> {
    let long = name.trim_start_matches('-');
    let line = CommandLine::command();
    let mut commands: Vec<_> = line.get_subcommands().collect();
    // The one a person meets first, then the others as `--help` lists them.
    commands.sort_by_key(|command| command.get_name() != "run");
    let of = |command: &&clap::Command| {
        let mut all = command.get_arguments();
        let argument = all.find(|argument| argument.get_long() == Some(long))?;
        Some(Flag {
            name: format!("--{long}"),
            command: format!("clearlane {}", command.get_name()),
            help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    };
    commands.iter().find_map(of)
}

/// Parses a command line, program name first.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let words: Vec<_> = words.into_iter().collect();
    match CommandLine::try_parse_from(&words) {
        Ok(line) => Ok(Parsed::Command(Box::new(line.command), line.json)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Parsed::Text(error.render().to_string()))
            }
            _ => Err(Failure::Input(one_line(&error, &command_of(&words)))),
        },
    }
}

/// What clap says over several lines, on one and with the remedy.
fn one_line(error: &clap::Error, command: &str) -> String {
    let text = error.render().to_string();
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(flag) = context(ContextKind::InvalidArg)
        && let Some((_, why)) = SHARED.iter().find(|(shared, _)| *shared == flag)
    {
        return format!("{flag} has no effect on `{command}`, which {why}; leave it out");
    }
    let help_instead = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if [help_instead, ErrorKind::MissingSubcommand].contains(&error.kind()) {
        return format!("`{command}` needs a command; see `{command} --help`");
    }
    let body = text.lines().take_while(|line| !line.starts_with("Usage:")).map(str::trim);
    let mut line = String::new();
    // That a wrong flag might be meant as a value is no help.
    for part in body.filter(|part| !part.is_empty() && !part.starts_with("tip: to pass")) {
        let part = part.strip_prefix("error: ").unwrap_or(part);
        let part = part.strip_prefix("tip: ").unwrap_or(part);
        let glue = match line.chars().next_back() {
            None => "",
            Some(':') => " ",
            Some(_) => "; ",
        };
        line.push_str(glue);
        line.push_str(part);
    }
    let line = line.replace("; For more information, try '--help'.", "");
    format!("{line}; see `{command} --help`")
}

/// The command that these words ask for, as far as they name one: `clearlane fabric show`.
fn command_of(words: &[OsString]) -> String {
    let mut command = &CommandLine::command();
    let mut path = command.get_name().to_owned();
    let names = words.iter().skip(1).filter(|word| !word.to_string_lossy().starts_with('-'));
    for name in names {
        let Some(next) = command.find_subcommand(name) else { break };
        path = format!("{path} {}", next.get_name());
        command = next;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(words: &str) -> String {
        match parse(words.split_whitespace().map(OsString::from)) {
            Err(failure) => failure.line(),
            Ok(_) => panic!("`{words}` was accepted"),
        }
    }

    #[test]
    fn the_definitions_hold_together() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn wrong_command_lines_are_told_on_one_line() {
        assert_eq!(
            error("clearlane fabric show f --seed 1"),
            "--seed has no effect on `clearlane fabric show`, which uses no random numbers; leave \
             it out"
        );
        assert_eq!(
            error("clearlane lsit"),
            "unrecognized subcommand 'lsit'; a similar subcommand exists: 'list'; \
             see `clearlane --help`"
        );
        assert_eq!(
            error("clearlane list --wide"),
            "unexpected argument '--wide' found; see `clearlane list --help`"
        );
        assert_eq!(error("clearlane"), "`clearlane` needs a command; see `clearlane --help`");
        assert_eq!(
            error("clearlane route"),
            "the following required arguments were not provided: --output <DIR>; <FABRIC>; \
             see `clearlane route --help`"
        );
        assert_eq!(
            error("clearlane --json route fat-tree:648 --output d --lmc 9"),
            "invalid value '9' for '--lmc <N>': give a number from 0 to 7; \
             see `clearlane route --help`"
        );
    }
}
