//! `clearlane docs` and `clearlane man`: the reference and the man pages as folders of files.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::files::{self, Content};
use crate::reference::{self, Page};
use crate::table::count;
use crate::writing::Writing;
use clap::Args;
use clearlane_lab::Unfinished;
use serde_json::json;
use std::path::PathBuf;

/// Where to.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    writing: Writing,
}

/// Writes the reference.
pub fn reference(
    arguments: &Arguments,
    json: bool,
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    write(arguments, json, &reference::pages(), unfinished)
}

/// Writes the man pages.
pub fn man(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    let pages = reference::man_pages().map_err(|e| Failure::Internal(e.to_string()))?;
    write(arguments, json, &pages, unfinished)
}

fn write(
    arguments: &Arguments,
    json: bool,
    pages: &[Page],
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    arguments.writing.folder(&arguments.output, &names, &[])?;
    if !arguments.writing.dry_run {
        let contents: Vec<(&str, Content<'_>)> = pages
            .iter()
            .map(|(name, bytes)| {
                let content: Content<'_> = Box::new(move |out| out.write_all(bytes));
                (name.as_str(), content)
            })
            .collect();
        files::write_folder(&arguments.output, &contents, unfinished)?;
    }
    let folder = arguments.output.display().to_string();
    if json {
        let written = !arguments.writing.dry_run;
        let fields = json!({ "folder": folder, "written": written, "files": names });
        return Ok(Answer::json("clearlane-docs/1", fields));
    }
    let would = if arguments.writing.dry_run { "would write " } else { "" };
    Ok(Answer::text(format!("{would}{folder}: {}\n", count(names.len(), "page", "pages"))))
}
