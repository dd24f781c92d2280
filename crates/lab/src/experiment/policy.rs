//! Congestion control policy files of NVIDIA's OpenSM: read, and what DCQCN makes of them.

use crate::LabError;
use crate::error::named;
use crate::text;
use clearlane_congestion::policy_file::{CongestionControlPolicy, Meaning, Oddity};
use clearlane_congestion::{Entry, Parameter, mechanisms::dcqcn};
use std::path::{Path, PathBuf};

/// Bytes of such a file at most.
const POLICY_BYTES_MAX: u64 = 16 << 20;
/// More oddities of one file than that help nobody in a report.
const ODDITIES_SHOWN: usize = 8;

/// A policy file that was read.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    /// Where it lies, seen from where the program was called.
    pub path: PathBuf,
    /// Its content.
    pub policy: CongestionControlPolicy,
    /// Its oddities.
    pub oddities: Vec<Oddity>,
    /// What that means to DCQCN.
    pub meaning: Meaning,
}

/// Whether a mechanism has its parameters from such files.
pub(super) fn serves(entry: &Entry) -> bool {
    entry.name == dcqcn::ENTRY.name
}

impl PolicyFile {
    /// Reads a file. Fails if it is not there, is no policy or has what is not simulated at all.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        let text = text::read(path, POLICY_BYTES_MAX)?;
        let file = named(path);
        let fault = |error: &dyn std::fmt::Display| LabError::Request(error.to_string());
        let (policy, oddities) =
            CongestionControlPolicy::read(&text, &file).map_err(|error| fault(&error))?;
        if policy.items.is_empty() {
            let problem = "holds no congestion control policy; the file may be cut off";
            return Err(fault(&format!("{file}: {problem}")));
        }
        let meaning = policy.meaning(&file).map_err(|error| fault(&error))?;
        Ok(PolicyFile { path: path.to_owned(), policy, oddities, meaning })
    }

    /// Where the file says a parameter, and how: `cc.conf:12: rpg_gd 12`.
    pub(super) fn source(&self, parameter: &Parameter) -> String {
        let file = LabError::one_line(&named(&self.path));
        let of = |of: Option<&Parameter>| of.is_some_and(|of| of.name == parameter.name);
        let mut rows = self.meaning.rows.iter();
        match rows.find(|row| of(row.parameter.as_ref().map(|(of, _)| *of))) {
            Some(row) => format!("{file}:{}: {} {}", row.line, row.key, row.written),
            None => format!("{file} does not say it"),
        }
    }

    /// What a reader of results should know of it.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let file = named(&self.path);
        let odd = self.oddities.iter().take(ODDITIES_SHOWN).map(ToString::to_string);
        let more = self.oddities.len().saturating_sub(ODDITIES_SHOWN);
        let more = (more > 0).then(|| format!("{more} more lines are odd"));
        let all = odd.chain(more).chain(self.meaning.unsaid.iter().cloned());
        all.map(|sentence| LabError::one_line(&format!("{file}: {sentence}"))).collect()
    }
}
