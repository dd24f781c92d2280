//! The repository as files and as crates.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that hold no sources of ours.
const NOT_OURS: &[&str] =
    &[".git", ".venv", "__pycache__", "dist", "node_modules", "runs", "target"];

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("crates/cli is there")
}

/// Paths of the repository's files from its root, sorted: what git tracks or would track; without
/// git, all files outside the folders that builds and runs make.
pub fn files() -> Vec<String> {
    let root = root();
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let mut files = match Command::new("git").args(list).current_dir(&root).output() {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).expect("paths in UTF-8");
            names.split_terminator('\0').map(str::to_owned).collect()
        }
        _ => walk(&root),
    };
    files.retain(|path| root.join(path).is_file());
    files.sort();
    files.dedup();
    assert!(
        files.iter().any(|path| path == "crates/cli/tests/it/tidy.rs"),
        "this file is not listed"
    );
    files
}

fn walk(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder just listed") {
            let path = entry.expect("an entry just listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                folders.push(path);
            } else if path.is_file() {
                let below = path.strip_prefix(root).expect("below the root");
                files.push(below.to_string_lossy().into_owned());
            }
        }
    }
    files
}

/// A crate of the workspace.
pub struct Crate {
    /// Its folder under `crates`.
    pub folder: String,
    /// Folders of the workspace's crates it depends on, in any section.
    pub uses: Vec<String>,
    /// Whether it takes the lints of the workspace.
    pub workspace_lints: bool,
}

/// All crates, by folder.
pub fn crates() -> Vec<Crate> {
    let manifest = |path: &String| path.starts_with("crates/") && path.ends_with("/Cargo.toml");
    files().iter().filter(|path| manifest(path)).map(|path| read_crate(path)).collect()
}

/// A crate by the path of its manifest.
pub fn read_crate(path: &str) -> Crate {
    let text = std::fs::read_to_string(root().join(path)).expect("a file just listed");
    let folder = path.trim_start_matches("crates/").trim_end_matches("/Cargo.toml").to_owned();
    let (mut section, mut uses, mut workspace_lints) = (String::new(), Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.to_owned();
        }
        // `clearlane-ib.workspace = true`, or a section `[dependencies.clearlane-ib]`.
        let used = line.trim_start_matches('[').split("clearlane-").nth(1);
        if let Some(used) = used.filter(|_| section.contains("dependencies")) {
            let word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            uses.push(used.chars().take_while(|c| word(*c)).collect());
        }
        workspace_lints |= section == "[lints]" && line.replace(' ', "") == "workspace=true";
    }
    Crate { folder, uses, workspace_lints }
}

#[test]
fn the_arrows_that_exist_are_seen() {
    let crates = crates();
    let of = |name: &str| crates.iter().find(|c| c.folder == name).expect("it exists").uses.clone();
    assert!(of("fabric").contains(&"ib".to_owned()));
    assert!(of("sim").contains(&"subnet".to_owned()));
    assert!(of("ib").is_empty());
}

#[test]
fn the_walk_finds_what_git_lists() {
    let walked = walk(&root());
    for path in files() {
        assert!(walked.contains(&path), "{path} is not walked");
    }
}
