//! What `event_plugin_options` of opensm.conf says: words `key=value`, apart by blanks.

use clearlane_ib::quoted;
use clearlane_subnet::engines;
use clearlane_subnet::lanes::LANES;
use std::path::PathBuf;

/// Where `clearlane route` has put its files, unless `folder=` says otherwise.
pub const FOLDER: &str = "/etc/opensm/clearlane";

/// Where tables come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// From the files in the folder.
    Files,
    /// Up*/down* tables with the lane policy vftree, computed whenever the fabric is routed.
    VfTree,
}

/// Who decides how much a lane may send at a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arbitration {
    /// All lanes have the same weight.
    Equal,
    /// opensm.conf's `qos_vlarb_high`, `qos_vlarb_low` and their like.
    OpenSm,
}

/// What the routing engine is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Where tables come from.
    pub mode: Mode,
    /// The folder with the files.
    pub folder: PathBuf,
    /// Data VLs to spread SLs over, 1 to 15; ports with fewer take VL s mod their number.
    pub lanes: u8,
    /// The routing engine of ours that computes tables where no file's will do: one that has no
    /// credit loop on any fabric it takes.
    pub safe: &'static str,
    /// Who decides about VL arbitration.
    pub arbitration: Arbitration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Files,
            folder: FOLDER.into(),
            lanes: LANES,
            safe: LAST_RESORT,
            arbitration: Arbitration::Equal,
        }
    }
}

/// The engine that takes every fabric and needs one lane.
pub const LAST_RESORT: &str = "up-down";

/// What cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("event_plugin_options: {what}; {remedy}")]
pub struct OptionsError {
    what: String,
    remedy: String,
}

/// The keys, for errors.
const KEYS: &str = "write mode=, folder=, lanes=, safe= or arbitration=, each once at most";

impl Options {
    /// Reads the text; an empty one, or OpenSM's `(null)`, is the default. Fails on an unknown key
    /// or value and on a key that is there twice.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut options = Options::default();
        let mut seen: Vec<&str> = Vec::new();
        for word in text.split_whitespace().filter(|word| *word != "(null)") {
            let Some((key, value)) = word.split_once('=') else {
                return Err(error(format!("{} is no key=value", quoted(word)), KEYS));
            };
            if seen.contains(&key) {
                return Err(error(format!("{} is there twice", quoted(key)), KEYS));
            }
            seen.push(key);
            options.set(key, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        let wrong = |remedy: &str| Err(error(format!("{key}={}", quoted(value)), remedy));
        match (key, value) {
            ("mode", "files") => self.mode = Mode::Files,
            ("mode", "vftree") => self.mode = Mode::VfTree,
            ("mode", _) => return wrong("modes are files and vftree"),
            ("folder", path) if path.starts_with('/') => self.folder = path.into(),
            ("folder", _) => return wrong("write the whole path, from / on"),
            ("lanes", number) => match number.parse() {
                Ok(lanes @ 1..=15) => self.lanes = lanes,
                _ => return wrong("lanes are 1 to 15"),
            },
            ("safe", name) => match safe_engines().find(|safe| *safe == name) {
                Some(safe) => self.safe = safe,
                None => {
                    let known = safe_engines().collect::<Vec<_>>().join(", ");
                    return wrong(&format!("engines without credit loops are {known}"));
                }
            },
            ("arbitration", "equal") => self.arbitration = Arbitration::Equal,
            ("arbitration", "opensm") => self.arbitration = Arbitration::OpenSm,
            ("arbitration", _) => return wrong("arbitration is equal or opensm"),
            _ => return Err(error(format!("unknown key {}", quoted(key)), KEYS)),
        }
        Ok(())
    }
}

/// Our engines that have no credit loop on any fabric they take.
pub fn safe_engines() -> impl Iterator<Item = &'static str> {
    engines::ALL.iter().filter(|entry| entry.claims.deadlock_free).map(|entry| entry.name)
}

fn error(what: String, remedy: &str) -> OptionsError {
    OptionsError { what, remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_the_default() {
        for text in ["", "  ", "(null)"] {
            assert_eq!(Options::parse(text), Ok(Options::default()), "{text:?}");
        }
        assert!(safe_engines().any(|safe| safe == LAST_RESORT));
    }

    #[test]
    fn every_key_is_taken() {
        let text = "mode=vftree folder=/a/b lanes=4 safe=layered\tarbitration=opensm";
        let options = Options::parse(text).unwrap();
        let expected = Options {
            mode: Mode::VfTree,
            folder: "/a/b".into(),
            lanes: 4,
            safe: "layered",
            arbitration: Arbitration::OpenSm,
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, part) in [
            ("mode=ftree", "modes are files and vftree"),
            ("colour=red", "unknown key \"colour\""),
            ("lanes=16", "lanes are 1 to 15"),
            ("lanes=-1", "lanes are 1 to 15"),
            ("lanes=4 lanes=8", "\"lanes\" is there twice"),
            ("safe=min-hop", "engines without credit loops are"),
            ("folder=tables", "the whole path"),
            ("vftree", "is no key=value"),
            ("a\u{7}=\u{1b}", "unknown key"),
        ] {
            let error = Options::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains(char::is_control), "{error}");
        }
        assert!(!Options::parse("safe=min-hop").unwrap_err().to_string().contains("min-hop,"));
    }
}
