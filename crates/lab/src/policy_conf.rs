//! The congestion control policy file of NVIDIA's OpenSM, from what a variant sets.

use crate::LabError;
use crate::error::named;
use crate::experiment::Experiment;
use crate::opensm_conf::{controlled, preamble};
use clearlane_congestion::mechanisms::dcqcn;
use clearlane_congestion::policy_file::CongestionControlPolicy;

/// The congestion control of a variant as a policy file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyConf {
    /// Name of the variant.
    pub variant: String,
    /// What the variant has and the file says otherwise or not at all, in a sentence each.
    pub unsaid: Vec<String>,
    policy: CongestionControlPolicy,
    /// What it is, in one line.
    title: String,
}

/// What holds whatever is written.
const ALWAYS: &[&str] = &[
    "Only NVIDIA's OpenSM reads such a file (MLNX_OFED, UFM). Two lines of its opensm.conf select \
     the file: `mlnx_congestion_control 2` and `congestion_control_policy_file PATH`, where PATH \
     is the path of this file.",
    "min and max of a profile are written in bytes and rpg_byte_reset in units of 64 bytes: \
     neither unit is published beyond doubt. What else keys mean: `clearlane control --policy` of \
     this file.",
    "No OpenSM has been tested with this file: NVIDIA's OpenSM was not available.",
];

impl PolicyConf {
    /// That of the only variant with a mechanism in `control.when`. What a policy file of the
    /// variant has stays; parameters that the experiment sets upon it are put in. Fails if there
    /// is no such variant or there are several, if the mechanism is another than dcqcn, or if a
    /// value is none that the file can say.
    pub fn of(experiment: &Experiment) -> Result<Self, LabError> {
        let (variant, spec) = controlled(experiment)?;
        let fault = |problem: String| LabError::variant(&variant.name, problem);
        let ours = dcqcn::ENTRY.name;
        if spec.entry.name != ours {
            let problem = format!("control.when = \"{}\" is not {ours}", spec.entry.name);
            return Err(fault(format!("{problem}, which a policy file sets; write {ours}")));
        }
        // Two thresholds that contradict each other are found out here.
        (spec.entry.build)(&spec.values).map_err(|error| fault(error.to_string()))?;
        let drafted = match &spec.policy {
            Some(file) => file.policy.with(&file.meaning.values, &spec.values),
            None => CongestionControlPolicy::of(&spec.values),
        };
        let (policy, mut unsaid) =
            drafted.map_err(|error| fault(format!("control.{ours}: {error}")))?;
        if let Some(which) = &variant.control.which {
            let name = which.entry.name;
            unsaid.push(format!("{name} chooses paths, and OpenSM cannot set it"));
        }
        let from = match (&spec.preset, &spec.policy) {
            (Some(preset), _) => format!(", preset {}", preset.name),
            (None, Some(file)) => format!(", policy file {}", named(&file.path)),
            (None, None) => String::new(),
        };
        let title = format!(
            "Congestion control ({ours}{from}) of variant \"{}\" of experiment \"{}\"",
            variant.name, experiment.name
        );
        let title = LabError::one_line(&title);
        Ok(PolicyConf { variant: variant.name.clone(), unsaid, policy, title })
    }

    /// The lines of the file: comments first, then the blocks.
    pub fn text(&self) -> String {
        let mut text = preamble(&self.title, ALWAYS, &self.unsaid);
        text.push_str(&self.policy.write());
        text
    }
}
