//! The congestion control of a variant as a file for a subnet manager.

use crate::LabError;
use crate::experiment::Experiment;
use crate::opensm_conf::{OpensmConf, controlled};
use crate::policy_conf::PolicyConf;
use clearlane_congestion::mechanisms::{dcqcn, iba_cc};

/// A file for a subnet manager, as the mechanism of the variant wants it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlFile {
    /// iba-cc: options of opensm.conf.
    Conf(OpensmConf),
    /// dcqcn: a congestion control policy file.
    Policy(PolicyConf),
}

impl ControlFile {
    /// That of the only variant with a mechanism in `control.when`. Fails if there is no such
    /// variant or there are several, if no subnet manager sets the mechanism, or as the two kinds
    /// of file do.
    pub fn of(experiment: &Experiment) -> Result<Self, LabError> {
        let (variant, spec) = controlled(experiment)?;
        let (conf, policy) = (iba_cc::ENTRY.name, dcqcn::ENTRY.name);
        match spec.entry.name {
            name if name == conf => OpensmConf::of(experiment).map(ControlFile::Conf),
            name if name == policy => PolicyConf::of(experiment).map(ControlFile::Policy),
            name => {
                let problem = format!(
                    "control.when = \"{name}\" cannot be written: OpenSM sets {conf}, NVIDIA's \
                     {policy} too, and no other mechanism; write when = \"{conf}\" or \"{policy}\""
                );
                Err(LabError::variant(&variant.name, problem))
            }
        }
    }

    /// Name of the variant.
    pub fn variant(&self) -> &str {
        match self {
            ControlFile::Conf(conf) => &conf.variant,
            ControlFile::Policy(policy) => &policy.variant,
        }
    }

    /// What the variant has and the file cannot say, in a sentence each.
    pub fn unsaid(&self) -> &[String] {
        match self {
            ControlFile::Conf(conf) => &conf.unsaid,
            ControlFile::Policy(policy) => &policy.unsaid,
        }
    }

    /// The program that reads the file.
    pub fn reader(&self) -> &'static str {
        match self {
            ControlFile::Conf(_) => "OpenSM",
            ControlFile::Policy(_) => "NVIDIA's OpenSM",
        }
    }

    /// The lines of the file.
    pub fn text(&self) -> String {
        match self {
            ControlFile::Conf(conf) => conf.text(),
            ControlFile::Policy(policy) => policy.text(),
        }
    }
}
