//! `[fabric]`: a file or a builder, and what is cut out of it.

use super::document::Document;
use super::keys::Keys;
use crate::LabError;
use std::path::{Path, PathBuf};

/// Where the cables come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricSource {
    /// A file in one of the fabric formats.
    File(PathBuf),
    /// A builder's specification, such as `fat-tree:648`.
    Build(String),
}

/// Cables cut at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomCut {
    /// How many cables between switches, 1 to 1,000,000.
    pub links: u32,
    /// Which ones; apart from the run's seed, the damage is part of the question.
    pub seed: u64,
    /// A leaf keeps at least so many cables to other switches.
    pub keep_uplinks: u32,
}

/// The fabric of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FabricSpec {
    /// File or builder.
    pub source: FabricSource,
    /// Names by node GUID, as `ibnetdiscover --node-name-map` takes them.
    pub node_name_map: Option<PathBuf>,
    /// Cables taken out, by the name of a port or of both.
    pub cut: Vec<String>,
    /// Cables taken out at random.
    pub cut_random: Option<RandomCut>,
}

/// The keys of the table.
pub(crate) const KEYS: &[&str] = &["file", "build", "node_name_map", "cut", "cut_random"];

impl FabricSpec {
    /// Reads the table.
    pub(crate) fn read(mut keys: Keys<'_>) -> Result<Self, LabError> {
        keys.only(KEYS)?;
        let (file, build) = (keys.optional("file"), keys.optional("build"));
        let source = match (file, build) {
            (Some(file), None) => FabricSource::File(file.path_of(file.text()?)),
            (None, Some(build)) => FabricSource::Build(build.name()?),
            (None, None) => {
                let problem = "fabric has neither `file` nor `build`; write one of them";
                return Err(keys.error(problem));
            }
            (Some(_), Some(build)) => {
                return Err(build.error("stands beside `file`; write only one of them"));
            }
        };
        let map = keys.optional("node_name_map");
        let map = map.map(|field| field.text().map(|text| field.path_of(text)));
        let node_name_map = map.transpose()?;
        let cut = keys.optional("cut").map(|field| field.texts()).transpose()?.unwrap_or_default();
        let cut_random = match keys.optional("cut_random") {
            None => None,
            Some(field) => {
                let keys = field.keys(&["links", "seed", "keep_uplinks"])?;
                let links = keys.required("links", "13")?.integer(1, 1_000_000)? as u32;
                let seed = keys.optional("seed").map(|f| f.integer(0, i64::MAX as u64));
                let keep = keys.optional("keep_uplinks").map(|f| f.integer(0, 254));
                let seed = seed.transpose()?.unwrap_or(1);
                let keep_uplinks = keep.transpose()?.unwrap_or(1) as u32;
                Some(RandomCut { links, seed, keep_uplinks })
            }
        };
        Ok(FabricSpec { source, node_name_map, cut, cut_random })
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        match &self.source {
            FabricSource::File(path) => table.insert("file".into(), text_of(path)),
            FabricSource::Build(spec) => table.insert("build".into(), spec.clone().into()),
        };
        if let Some(path) = &self.node_name_map {
            table.insert("node_name_map".into(), text_of(path));
        }
        if !self.cut.is_empty() {
            table.insert("cut".into(), self.cut.clone().into());
        }
        if let Some(cut) = self.cut_random {
            let mut random = toml::Table::new();
            random.insert("links".into(), i64::from(cut.links).into());
            random.insert("seed".into(), (cut.seed as i64).into());
            random.insert("keep_uplinks".into(), i64::from(cut.keep_uplinks).into());
            table.insert("cut_random".into(), random.into());
        }
        table
    }
}

/// A path as the resolved experiment writes it.
pub(crate) fn text_of(path: &Path) -> toml::Value {
    toml::Value::String(path.to_string_lossy().into_owned())
}

/// A table of the experiment that a variant has to have.
pub(crate) fn section<'a>(
    document: &'a Document,
    root: &'a super::document::Node,
    name: &'static str,
) -> Result<Keys<'a>, LabError> {
    match root.get(name) {
        Some(node) => Keys::of(document, name, node),
        None => {
            let problem = format!("the experiment lacks the table [{name}]; add it");
            Err(document.error(root.at, &problem))
        }
    }
}
