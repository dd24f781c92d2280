//! The victims without the hot flows, beside them.

use crate::experiment::{Ends, Plan};
use crate::measure::{FlowFigures, RunFigures};
use crate::prepare::Prepared;
use crate::result::{Alone, SeedResult};
use clearlane_ib::Picoseconds;
use clearlane_sim::{FlowRecord, Outcome};
use clearlane_workload::{Class, FlowGroup};
use std::ops::Range;

/// What the victims are delivered alone.
pub(crate) struct AloneDelivered {
    /// Payload by slice.
    payload: Vec<u64>,
    /// The slices that count, and how long they take.
    part: Range<usize>,
    span_us: f64,
    /// By group: when its program had ended.
    completions: Vec<Option<Picoseconds>>,
    /// Their flows, of the first seed.
    flows: Vec<FlowRecord>,
}

impl AloneDelivered {
    /// What a run says; with its flows if they are wanted.
    pub(crate) fn of(
        outcome: Outcome,
        figures: &RunFigures,
        completions: Vec<Option<Picoseconds>>,
        prepared: &Prepared,
        with_flows: bool,
    ) -> Self {
        AloneDelivered {
            payload: victims(figures, prepared),
            part: figures.measured.clone(),
            span_us: span_us(figures),
            completions,
            flows: if with_flows { outcome.flows } else { Vec::new() },
        }
    }

    /// Notes in the run beside the hot flows what the victims get without them.
    pub(crate) fn note(&self, run: &mut SeedResult, plan: &Plan, prepared: &Prepared) {
        run.alone = Alone::Finished;
        run.slowdown = self.slowdown(run, plan, prepared);
        run.alone_gbps = self.gbps(run, plan);
        // Runs that end with their programs differ in length: bytes of the one as the other's
        // length would have it.
        let (part, scale) = match plan.ends {
            Ends::Duration => (run.figures.measured.clone(), 1.0),
            Ends::Programs => (self.part.clone(), span_us(&run.figures) / self.span_us),
        };
        let flow = |flow: &FlowRecord| FlowFigures {
            group: usize::from(flow.group),
            source: flow.source,
            destination: flow.destination,
            payload_bytes: {
                let slices = flow.delivered_payload_bytes.get(part.clone());
                let bytes = slices.unwrap_or_default().iter().sum::<u64>();
                if scale == 1.0 { bytes } else { (bytes as f64 * scale).round() as u64 }
            },
        };
        if let Some(history) = &mut run.history {
            history.alone = self.flows.iter().map(flow).collect();
        }
    }

    /// What the victims are delivered alone over what they are delivered in the run. Where both
    /// runs have the same length, that is of the same part; where they end with their programs, of
    /// bytes over time; where all victims are programs, of how long these take. An interrupted run
    /// has none, and neither has one without victims' bytes on either side.
    pub(crate) fn slowdown(
        &self,
        run: &SeedResult,
        plan: &Plan,
        prepared: &Prepared,
    ) -> Option<f64> {
        if run.interrupted {
            return None;
        }
        if let Some(programs) = victim_programs(prepared) {
            return self.slowdown_of_programs(run, &programs);
        }
        let sum = |slices: &[u64], part: &Range<usize>| {
            slices.get(part.clone()).map(|part| part.iter().sum::<u64>())
        };
        let part = &run.figures.measured;
        let (own, scale) = match plan.ends {
            Ends::Duration => (part, 1.0),
            Ends::Programs => (&self.part, span_us(&run.figures) / self.span_us),
        };
        let beside = sum(&victims(&run.figures, prepared), part)?;
        let alone = sum(&self.payload, own)?;
        match beside {
            _ if alone == 0 => None,
            0 => Some(f64::INFINITY),
            _ => Some(alone as f64 / beside as f64 * scale),
        }
    }

    /// What the victims are delivered alone, Gb/s: in the part that is measured of the run, or of
    /// their own run where both end with their programs. Nothing of an interrupted run.
    fn gbps(&self, run: &SeedResult, plan: &Plan) -> Option<f64> {
        let (part, us) = match plan.ends {
            Ends::Duration => (&run.figures.measured, span_us(&run.figures)),
            Ends::Programs => (&self.part, self.span_us),
        };
        let bytes = self.payload.get(part.clone())?.iter().sum::<u64>();
        (!run.interrupted && us > 0.0).then(|| bytes as f64 * 8.0 / (us * 1000.0))
    }

    /// Of the last of these groups to end; nothing if one did not, in either run.
    fn slowdown_of_programs(&self, run: &SeedResult, programs: &[usize]) -> Option<f64> {
        let last = |completions: &[Option<Picoseconds>]| {
            let of = |index: &usize| completions.get(*index).copied().flatten();
            let ends: Option<Vec<Picoseconds>> = programs.iter().map(of).collect();
            ends?.into_iter().max()
        };
        let (beside, alone) = (last(&run.completions)?, last(&self.completions)?);
        (alone.0 > 0).then(|| beside.0 as f64 / alone.0 as f64)
    }
}

/// The groups of victims, if all of them run programs.
fn victim_programs(prepared: &Prepared) -> Option<Vec<usize>> {
    let groups = prepared.groups.iter().enumerate();
    let victims = groups.filter(|(_, group)| group.class == Class::Victim);
    let program = |(index, group): (usize, &FlowGroup)| group.program().map(|_| index);
    let programs: Vec<usize> = victims.map(program).collect::<Option<_>>()?;
    (!programs.is_empty()).then_some(programs)
}

/// How long the measured part is, µs.
fn span_us(figures: &RunFigures) -> f64 {
    figures.warm_up.to_us - figures.warm_up.from_us
}

/// Payload the victims are delivered, by slice.
fn victims(figures: &RunFigures, prepared: &Prepared) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for (group, slices) in prepared.groups.iter().zip(&figures.series) {
        if group.class == Class::Victim {
            sums.resize(sums.len().max(slices.len()), 0);
            let both = sums.iter_mut().zip(slices);
            both.for_each(|(sum, slice)| *sum += slice.delivered_payload_bytes);
        }
    }
    sums
}
