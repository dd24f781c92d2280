//! `clearlane completions`: what a shell needs to complete commands and flags.

use crate::answer::Answer;
use crate::arguments;
use crate::failure::Failure;
use clap::Args;
use clap_complete::Shell;

/// For which shell.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane completions bash > /etc/bash_completion.d/clearlane\n  \
    clearlane completions zsh > ~/.zfunc/_clearlane\n  \
    clearlane completions fish > ~/.config/fish/completions/clearlane.fish")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    let mut definition = arguments::definition();
    clap_complete::generate(arguments.shell, &mut definition, "clearlane", &mut script);
    let text = String::from_utf8(script).map_err(|e| Failure::Internal(e.to_string()))?;
    Ok(Answer::text(text))
}
