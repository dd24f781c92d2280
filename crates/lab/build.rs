//! Makes the report page's template from `web/` and hands it to the crate.
//!
//! Runs `npm ci && npm run build` there when `web/dist/report.html` is missing or older than what
//! it is made from; writes nothing into the source tree but `web/node_modules` and `web/dist`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What the page is made from, relative to `web/`.
const SOURCES: &[&str] = &["src", "build.mjs", "package.json", "package-lock.json"];

fn main() {
    if let Err(problem) = make() {
        // Cargo shows a panic of a build script as the reason why the crate does not build.
        panic!("the report page cannot be built: {problem}");
    }
}

fn make() -> Result<(), String> {
    let folder = |key| env::var_os(key).map(PathBuf::from).ok_or(format!("{key} is not set"));
    let web = folder("CARGO_MANIFEST_DIR")?.join("../../web");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    // The page itself is not watched: it changes while this runs, and all would be built again.
    let page = web.join("dist/report.html");
    if is_older(&page, &web) {
        let lock = web.join("package-lock.json");
        let installed = web.join("node_modules/.package-lock.json");
        if changed(&installed) < changed(&lock) {
            npm(&web, &["ci", "--no-audit", "--no-fund"])?;
        }
        npm(&web, &["run", "build"])?;
    }
    let text = fs::read(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let target = folder("OUT_DIR")?.join("report.html");
    fs::write(&target, text).map_err(|error| format!("{}: {error}", target.display()))
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let call = format!("npm {} in {}", arguments.join(" "), web.display());
    let output =
        Command::new("npm").args(arguments).current_dir(web).output().map_err(|error| {
            format!("{call}: {error}; install Node.js 20 or newer with npm (`make setup` says how)")
        })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
            Err(format!("{call} failed: {}", said[said.len().saturating_sub(8)..].join(" | ")))
        }
    }
}

/// When a file last changed; the beginning of time if it is not there.
fn changed(path: &Path) -> SystemTime {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn is_older(page: &Path, web: &Path) -> bool {
    let made = changed(page);
    !page.exists() || SOURCES.iter().any(|source| newest(&web.join(source)) > made)
}

/// The latest change below a folder, or of a file.
fn newest(path: &Path) -> SystemTime {
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    below.map(|entry| newest(&entry.path())).fold(changed(path), SystemTime::max)
}
