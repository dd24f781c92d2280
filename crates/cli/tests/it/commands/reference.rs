//! The reference in `docs/reference` is what the program writes; completions and man pages name
//! every command.

use super::binary::Scratch;
use std::path::Path;

#[test]
fn the_reference_is_the_one_the_program_writes() {
    let scratch = Scratch::new("reference");
    scratch.call("docs -o out").text();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let written = names(&scratch.path("out"));
    assert!(written.len() > 8, "{written:?}");
    assert_eq!(written, names(&folder), "run `make docs` and commit docs/reference");
    for name in written {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        let same = read(&scratch.path("out")) == read(&folder);
        assert!(same, "docs/reference/{name:?} is not up to date; run `make docs` and commit it");
    }
    let again = scratch.call("docs -o out");
    assert!(again.failure(2).contains("--force"), "{again:?}");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let scratch = Scratch::new("completions");
    let help = scratch.call("--help");
    let commands = help.text().lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> =
        commands.map_while(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.call(&format!("completions {shell}"));
        for command in &commands {
            assert!(script.text().contains(command.as_str()), "{shell}: {command}");
        }
    }
    assert!(scratch.call("completions csh").failure(2).contains("csh"));
    scratch.call("man -o man").text();
    for command in &commands {
        let page = scratch.read(&format!("man/clearlane-{command}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{command}: {page}");
    }
    assert!(scratch.read("man/clearlane.1").contains("output not writable"));
}
