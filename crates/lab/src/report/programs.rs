//! When programs were complete, by variant.

use crate::measure::{Asked, Scope, kinds};
use crate::result::{RunResult, VariantResult};
use serde::Serialize;

/// A program of an experiment.
#[derive(Serialize)]
pub(super) struct ProgramData {
    name: String,
    kind: &'static str,
    class: &'static str,
    completions: Vec<CompletionData>,
}

/// A program in a variant.
#[derive(Serialize)]
struct CompletionData {
    variant: String,
    /// How many ranks it has there.
    ranks: usize,
    /// From the beginning of the run until its last rank had ended, mean over the seeds in which
    /// it had, µs; nothing if it had in none.
    us: Option<f64>,
    /// Half of the 95 % interval; nothing with one seed.
    interval_us: Option<f64>,
    /// Seeds in which it had ended, and how many were run.
    ended: usize,
    seeds: usize,
}

/// The programs of all variants, by name.
pub(super) fn programs(result: &RunResult) -> Vec<ProgramData> {
    let mut all: Vec<ProgramData> = Vec::new();
    for variant in &result.variants {
        for group in &variant.prepared.groups {
            let Some(program) = group.program() else { continue };
            let one = completion(result, variant, &group.name, group.senders.len());
            match all.iter_mut().find(|known| known.name == group.name) {
                Some(known) => known.completions.push(one),
                None => all.push(ProgramData {
                    name: group.name.clone(),
                    kind: program.name(),
                    class: group.class.name(),
                    completions: vec![one],
                }),
            }
        }
    }
    all
}

fn completion(
    result: &RunResult,
    variant: &VariantResult,
    group: &str,
    ranks: usize,
) -> CompletionData {
    let scope = Scope::Group(group.to_owned());
    let asked = Asked::scoped(&kinds::completion_time::ENTRY, scope);
    let estimate = result.ask(&asked, variant);
    CompletionData {
        variant: variant.name.clone(),
        ranks,
        us: estimate.map(|estimate| estimate.mean),
        interval_us: estimate.and_then(|estimate| estimate.half_width),
        ended: estimate.map_or(0, |estimate| estimate.seeds),
        seeds: variant.runs.len(),
    }
}
