//! A site's own files in place of an experiment's.

use crate::LabError;
use std::path::PathBuf;

/// What replaces the fabric and the tables of every variant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteFiles {
    /// Fabric file.
    pub fabric: Option<PathBuf>,
    /// Forwarding tables; beside them there may be SL2VL and SLs of paths.
    pub lft: Vec<PathBuf>,
    /// Names by node GUID.
    pub node_name_map: Option<PathBuf>,
    /// Whether the first ranks stand in for hosts that the experiment names and the fabric lacks;
    /// results say so. Without it such a host is an error.
    pub stand_in: bool,
}

impl SiteFiles {
    /// Fails if there are tables and nobody reads them.
    pub(crate) fn check(&self, reads: bool) -> Result<(), LabError> {
        if reads || self.lft.is_empty() {
            return Ok(());
        }
        let problem = "no variant reads forwarding tables; write engine = \"file\" in [subnet] \
            or leave --lft out";
        Err(LabError::Request(problem.into()))
    }
}
