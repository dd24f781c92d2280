//! Where a command may write: never over what it reads or what is read-only, and over what is there
//! only if told so.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::files;
use clap::Args;
use clearlane_lab::Unfinished;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Flags of every command that writes what `-o` names.
#[derive(Args, Debug)]
pub struct Writing {
    /// Replace what is there
    #[arg(long)]
    pub force: bool,
    /// Say what would be written and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl Writing {
    /// Fails if one of these files may not be written by a command that reads `inputs`.
    pub fn files(&self, outputs: &[&Path], inputs: &[&Path]) -> Result<(), Failure> {
        for (index, output) in outputs.iter().enumerate() {
            let is_it = |other: &&Path| place(other) == place(output);
            if inputs.iter().any(|input| input.exists() && is_it(input)) {
                return Err(refused(output, "is what this command reads; name another file"));
            }
            if outputs.iter().take(index).any(is_it) {
                return Err(refused(output, "is to be written twice; name another file"));
            }
            writable(output)?;
            if !self.force && output.is_file() {
                return Err(refused(output, "is there already; name another file or add --force"));
            }
        }
        Ok(())
    }

    /// Fails if the folder may not be replaced by one of files of these names: if it holds anything
    /// else, what the command reads or what is read-only, and without `--force` if it holds any.
    pub fn folder(&self, folder: &Path, names: &[&str], inputs: &[&Path]) -> Result<(), Failure> {
        let held = held(folder)?;
        let foreign = |path: &&PathBuf| !names.iter().any(|name| path.ends_with(name));
        if let Some(foreign) = held.iter().find(foreign) {
            let name = Path::new(foreign.file_name().unwrap_or_default()).display();
            let why = format!("holds {name}, which is not written here; name another folder");
            return Err(refused(folder, &format!("{why} with -o")));
        }
        spare(folder, inputs)?;
        if !self.force && !held.is_empty() {
            return Err(refused(
                folder,
                "holds files of an earlier command; name another folder or add --force",
            ));
        }
        Ok(())
    }
}

/// Whether a file name means stdout.
pub fn is_stdout(output: &Path) -> bool {
    output == Path::new("-")
}

/// Writes a text to what `-o` names, unless it is a dry run. Where that is stdout the text is the
/// whole answer, and returned. Fails if JSON is to go there as well.
pub fn deliver(
    output: &Path,
    dry: bool,
    json: bool,
    unfinished: &Unfinished,
    text: impl FnOnce() -> String,
) -> Result<Option<Answer>, Failure> {
    if !is_stdout(output) {
        if !dry {
            files::write(output, text().as_bytes(), unfinished)?;
        }
        return Ok(None);
    }
    if json {
        let line = "-o - and --json both write to stdout; name a file or leave --json out";
        return Err(Failure::Input(line.into()));
    }
    Ok((!dry).then(|| Answer::file(text())))
}

/// Fails if replacing a folder would take away one of the inputs or what is read-only.
pub fn spare(folder: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let within = |input: &&&Path| input.exists() && place(input).starts_with(place(folder));
    if let Some(input) = inputs.iter().find(within) {
        let input = input.display();
        let why = format!("holds {input}, which this command reads; name another folder");
        return Err(refused(folder, &why));
    }
    writable(folder)?;
    held(folder)?.iter().try_for_each(|path| writable(path))
}

/// What lies in a folder; nothing in one that is not there.
fn held(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::writing(folder, &error)),
    }
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::Input(format!("{} {why}", path.display()))
}

/// Whoever took the right to write away meant it, even where root could.
fn writable(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(there) if (there.is_file() || there.is_dir()) && there.permissions().readonly() => {
            let line =
                "it is read-only; name another place, or have its owner allow it with chmod u+w";
            Err(Failure::Machine(format!("cannot write {}: {line}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Fails if a file lies in a folder that this command fills itself.
pub fn outside(file: &Path, folder: &Path) -> Result<(), Failure> {
    match place(file).starts_with(place(folder)) {
        true => Err(refused(file, "lies in the folder of the results; name a file elsewhere")),
        false => Ok(()),
    }
}

/// The one path of a file, however it is named and whether or not it is there yet.
fn place(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for there in whole.ancestors() {
        let (Ok(mut real), Ok(rest)) = (fs::canonicalize(there), whole.strip_prefix(there)) else {
            continue;
        };
        for part in rest.components() {
            // What is not there is no link either: the folder above it is the one written before.
            match part {
                Component::ParentDir => _ = real.pop(),
                part => real.push(part),
            }
        }
        return real;
    }
    whole
}
