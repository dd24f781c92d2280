//! A diagnosis that can be given away: the site's files under made-up names, and the command on
//! those. What is simulated and reported has never seen the true names.

use super::Arguments;
use crate::failure::Failure;
use crate::files::{self, Content};
use crate::site;
use crate::writing::Writing;
use clearlane_diagnose::{Site, what_if};
use clearlane_fabric::anonymize::{Naming, anonymize};
use clearlane_fabric::formats;
use clearlane_lab::{RunFolder, TABLE_BYTES_MAX, Unfinished};
use std::path::{Path, PathBuf};

/// The fabric's file among those written.
const FABRIC: &str = "site.ibnetdiscover";

/// The same question about renamed files, which are written beside the results: `runs/away-files`
/// for `runs/away`.
pub(super) fn arguments(named: &Arguments, unfinished: &Unfinished) -> Result<Arguments, Failure> {
    // Nothing is written beside results that may not be.
    drop(RunFolder::claim(&named.output, named.force, unfinished).map_err(Failure::lab)?);
    let opened = site::open(&named.fabric)?;
    let (fabric, aliases) = anonymize(&opened.fabric, &Naming::Order).map_err(Failure::input)?;
    let (hot, supposed) = hot_guids(named, &opened.fabric, &fabric)?;
    let renamed =
        |path: &PathBuf| files::read(path, TABLE_BYTES_MAX).map(|text| aliases.rename_dump(&text));
    let tables: Vec<String> = named.lft.iter().map(renamed).collect::<Result<_, _>>()?;
    let names: Vec<String> = (1..=tables.len()).map(|number| format!("tables-{number}")).collect();
    let text = formats::write(&fabric);
    let mut contents: Vec<(&str, Content<'_>)> =
        vec![(FABRIC, Box::new(|out| out.write_all(text.as_bytes())))];
    for (name, table) in names.iter().zip(&tables) {
        contents.push((name, Box::new(|out| out.write_all(table.as_bytes()))));
    }
    let folder = beside(&named.output, "-files");
    let inputs: Vec<&Path> = named.lft.iter().map(PathBuf::as_path).collect();
    let inputs: Vec<&Path> = inputs.into_iter().chain([Path::new(&named.fabric)]).collect();
    let written: Vec<&str> = contents.iter().map(|(name, _)| *name).collect();
    Writing { force: named.force, dry_run: false }.folder(&folder, &written, &inputs)?;
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(|error| Failure::writing(parent, &error))?;
    }
    files::write_folder(&folder, &contents, unfinished)?;
    Ok(Arguments {
        fabric: folder.join(FABRIC).to_string_lossy().into_owned(),
        lft: names.iter().map(|name| folder.join(name)).collect(),
        hot,
        supposed,
        names: site::Names::default(),
        ..named.clone()
    })
}

/// The hot hosts by their made-up GUIDs, and why they are supposed to be hot if nobody named them:
/// names tell who is likely to be, and go.
fn hot_guids(
    named: &Arguments,
    known: &clearlane_fabric::Fabric,
    renamed: &clearlane_fabric::Fabric,
) -> Result<(Vec<String>, Option<String>), Failure> {
    let mut fabric = known.clone();
    named.names.apply(&mut fabric, &named.fabric)?;
    let site = Site::new(named.fabric.as_str(), fabric, Vec::new(), None);
    let hot = match what_if::hot(&site, &named.hot) {
        Ok(hot) => hot,
        Err(what_if::HotError::TooFew(_)) if named.hot.is_empty() => return Ok((vec![], None)),
        Err(error) => return Err(Failure::input(error)),
    };
    let guids = hot.nodes.iter().map(|node| renamed.node(*node).guid.to_string());
    Ok((guids.collect(), hot.supposed))
}

/// A folder beside another.
pub(super) fn beside(folder: &Path, ending: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    folder.with_file_name(name)
}
