//! What is asked, as a fingerprint: of two experiments with the same one every byte of the results
//! is the same.

use crate::LabError;
use crate::experiment::{Experiment, FabricSource, Routing, TrafficSpec};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What an experiment asks, files it reads included. `files` knows those that were read before.
pub(crate) fn question(
    experiment: &Experiment,
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
) -> Result<String, LabError> {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    let mut asked = experiment.resolved_table();
    // What else is asked, and what others found, changes nothing here.
    asked.remove("sweep");
    add(toml::to_string(&asked).unwrap_or_default().as_bytes());
    for path in inputs(experiment) {
        if !files.contains_key(&path) {
            let bytes = std::fs::read(&path)
                .map_err(|source| LabError::Read { path: path.clone(), source })?;
            files.insert(path.clone(), Sha256::digest(&bytes).to_vec());
        }
        add(files.get(&path).map_or(&[][..], Vec::as_slice));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The files an experiment reads.
fn inputs(experiment: &Experiment) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for variant in &experiment.variants {
        if let FabricSource::File(path) = &variant.fabric.source {
            paths.push(path.clone());
        }
        if let Routing::Files(tables) = &variant.subnet.routing {
            paths.extend(tables.iter().cloned());
        }
        paths.extend(variant.traffic.iter().flat_map(TrafficSpec::files));
        let policies = variant.control.all().filter_map(|spec| spec.policy.as_ref());
        paths.extend(policies.map(|policy| policy.path.clone()));
    }
    paths
}
