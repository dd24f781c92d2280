//! What it is: the congestion control policy of NVIDIA's OpenSM, the file that
//! `congestion_control_policy_file` in opensm.conf names and that takes effect with
//! `mlnx_congestion_control 2`. It sets what InfiniBand switches and adapters from HDR on run,
//! DCQCN in firmware, in place of the tables of IBA annex A10.
//!
//! ```text
//! ca_config_start
//!     group: ALL_CAS
//!     rpg_time_reset: 300
//! ca_config_end
//! profiles_start
//!     name: Storage
//!     profile_start
//!         percent: 100
//!         min: 51200
//!         max: 409600
//!     profile_end
//! profiles_end
//! ```
//! Blocks are `ca_config`, `switch_config`, `profiles` with any number of `profile` inside,
//! `sl_config` and `vl_config`. A packet marks by one profile: the set is that which `vl_profiles`
//! names for its VL, the place in it that which `sl_profiles` has for its SL, from 1. A `#` begins
//! a comment.
//!
//! Sources: widths of fields and kinds of groups are those of osm_congestion_control.h of NVIDIA's
//! OpenSM, as installed. What the fields of adapters mean is said in Mellanox/mstflint,
//! tools_open_layouts.h (`roce_cc_ecn`) and mlxcfg_param_lib.cpp, in Mellanox DOC-2790 (DCQCN
//! Parameters) and in NVIDIA's DOCA pages (DCQCN CC Parameters); [`keys`] has them field by field,
//! with what is assumed. Of `aqs_weight`, `aqs_time`, `mode`, `cnp_sl_mode` no meaning is
//! published: they are kept as they are. So is every key and block that is not known here, such as
//! `ca_algo_import`, the programmable algorithms of NDR.

mod drafted;
pub mod keys;
mod meaning;
mod reader;
mod writer;

pub use meaning::{Meaning, Row};

use std::fmt;

/// A policy, item by item in the order of its file. Two are equal that say the same, wherever it
/// stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CongestionControlPolicy {
    /// Blocks, and settings outside all of them.
    pub items: Vec<Item>,
}

/// What a policy or a block of it consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// `key: value`.
    Setting(Setting),
    /// `name_start` to `name_end`.
    Block(Block),
    /// A line of a block that is not known, without the blanks around it.
    Verbatim(String),
}

/// A block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its name, without `_start`.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// What it holds.
    pub items: Vec<Item>,
}

/// A key and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The key.
    pub key: String,
    /// The value.
    pub written: Written,
    /// Where it stands.
    pub place: Place,
}

/// A value as a file writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// A whole number.
    Number(u64),
    /// A number for all SLs or one for each of the 16.
    Numbers(Vec<u64>),
    /// A name for all VLs or one for each.
    Names(Vec<String>),
    /// Anything else, such as a group; the value of a key that is not known.
    Text(String),
}

/// The line of something, from 1; 0 if it was not read. It is no part of what a policy says: all
/// places are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(pub usize);

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

/// Why a file is no policy, or none that can be simulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}; {remedy}")]
pub struct PolicyError {
    /// Name of the file, control characters escaped.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Something odd in a file and how it was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Oddity {
    /// Where it was seen, from 1.
    pub line: usize,
    /// What it is and how it was taken.
    pub what: String,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl PolicyError {
    fn new(file: &str, line: usize, what: String, remedy: impl Into<String>) -> Self {
        let remedy = remedy.into();
        PolicyError { file: file.escape_debug().to_string(), line, what, remedy }
    }
}

impl CongestionControlPolicy {
    /// Reads a file called `file` in errors. Fails on the first thing that is wrong; what is merely
    /// odd is told beside the policy.
    pub fn read(text: &str, file: &str) -> Result<(Self, Vec<Oddity>), PolicyError> {
        reader::read(text, file)
    }

    /// The blocks of that name.
    pub fn blocks<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Block> {
        self.items.iter().filter_map(Item::block).filter(move |block| block.name == name)
    }
}

impl Item {
    /// The block that it is.
    pub fn block(&self) -> Option<&Block> {
        if let Item::Block(block) = self { Some(block) } else { None }
    }

    /// The setting that it is.
    pub fn setting(&self) -> Option<&Setting> {
        if let Item::Setting(setting) = self { Some(setting) } else { None }
    }
}

impl Block {
    /// The settings it holds, those of blocks within left out.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.items.iter().filter_map(Item::setting)
    }

    /// Its setting of that key.
    pub fn setting(&self, key: &str) -> Option<&Setting> {
        self.settings().find(|setting| setting.key == key)
    }

    /// The blocks of that name within.
    pub fn blocks<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Block> {
        self.items.iter().filter_map(Item::block).filter(move |block| block.name == name)
    }

    /// The number of that key, and where it stands.
    fn number(&self, key: &str) -> Option<(u64, usize)> {
        let setting = self.setting(key)?;
        if let Written::Number(number) = setting.written {
            Some((number, setting.place.0))
        } else {
            None
        }
    }

    /// The text of that key.
    fn text(&self, key: &str) -> Option<&str> {
        match &self.setting(key)?.written {
            Written::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Number(number) => write!(f, "{number}"),
            Written::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                f.write_str(&numbers.join(","))
            }
            Written::Names(names) => f.write_str(&names.join(",")),
            Written::Text(text) => f.write_str(text),
        }
    }
}
