//! What a run found out, gathered from its partitions and from the processes that have them.

use crate::fleet::Crew;
use crate::outcome::{ChannelRecord, ControlRecord, FlowControl, JobRecord, Recorded};
use crate::view::PartitionView;
use clearlane_ranks::{JobState, Stuck};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By program: how far it is, in all partitions of all processes.
pub(crate) fn job_states(partitions: &[&dyn PartitionView], crew: &Crew) -> Vec<JobState> {
    let count = partitions.first().map_or(0, |part| part.ranks().all.jobs().len());
    let own = (0..count).map(|job| {
        let mut sum = JobState::default();
        partitions.iter().for_each(|part| sum.add(&part.ranks().all.jobs()[job]));
        sum
    });
    let own: Vec<JobState> = own.collect();
    if crew.is_alone() {
        return own;
    }
    let mut sums = vec![JobState::default(); count];
    for states in crew.all(own) {
        sums.iter_mut().zip(&states).for_each(|(sum, state)| sum.add(state));
    }
    sums
}

/// How each program has ended.
pub(crate) fn job_records(partitions: &[&dyn PartitionView], crew: &Crew) -> Vec<JobRecord> {
    let states = job_states(partitions, crew).into_iter();
    let record =
        |state: JobState| JobRecord { unfinished: state.unfinished, ended_at: state.ended_at };
    states.map(record).collect()
}

/// The ranks that have not ended, by their number.
pub(crate) fn stuck(partitions: &[&dyn PartitionView], crew: &Crew) -> Vec<Stuck> {
    let own: Vec<Stuck> =
        partitions.iter().flat_map(|partition| partition.ranks().all.stuck()).collect();
    let mut all = crew.all(own).concat();
    all.sort_unstable_by_key(|stuck| stuck.process);
    all
}

/// What a process hands to the first one: names of probes are of the program and cross as text.
#[derive(Serialize, Deserialize)]
struct Handed {
    recorded: Recorded,
    flows: Vec<(FlowControl, Vec<String>)>,
    dropped: bool,
    bytes: u64,
}

/// The records of all processes, at the first of them; at the others nothing.
pub(crate) fn to_first(
    crew: &Crew,
    recorded: Recorded,
    control: ControlRecord,
) -> (Recorded, ControlRecord) {
    if crew.is_alone() {
        return (recorded, control);
    }
    let named = |flow: FlowControl| {
        let names = flow.probes.iter().map(|(name, _)| (*name).to_owned()).collect();
        (flow, names)
    };
    let ControlRecord { flows, dropped, bytes } = control;
    let flows = flows.into_iter().map(named).collect();
    let (mut all, mut control) = (Recorded::default(), ControlRecord::default());
    let mut known: BTreeMap<String, &'static str> = BTreeMap::new();
    for handed in crew.to_first(Handed { recorded, flows, dropped, bytes }) {
        merge(&mut all, handed.recorded);
        let flows = handed.flows.into_iter().map(|(mut flow, names)| {
            for ((place, _), name) in flow.probes.iter_mut().zip(names) {
                // A handful of names, once a run.
                *place = known.entry(name).or_insert_with_key(|name| name.clone().leak());
            }
            flow
        });
        let flows = flows.collect();
        let part = ControlRecord { flows, dropped: handed.dropped, bytes: handed.bytes };
        merge_control(&mut control, part);
    }
    (all, control)
}

/// Adds what the recorder of another partition has.
pub(crate) fn merge(all: &mut Recorded, part: Recorded) {
    if all.groups.is_empty() {
        all.groups = part.groups;
    } else {
        let slices = all.groups.iter_mut().flatten().zip(part.groups.into_iter().flatten());
        slices.for_each(|(sum, slice)| sum.add(&slice));
    }
    all.flows.extend(part.flows);
    all.flow_bytes += part.flow_bytes;
    all.flows_dropped |= part.flows_dropped;
    all.channels.extend(part.channels);
}

pub(crate) fn merge_control(all: &mut ControlRecord, part: ControlRecord) {
    all.flows.extend(part.flows);
    all.dropped |= part.dropped;
    all.bytes += part.bytes;
}

/// Puts records in order. Limits hold for all partitions together.
pub(crate) fn sort(recorded: &mut Recorded, control: &mut ControlRecord, flow_bytes_max: u64) {
    if recorded.flows_dropped || recorded.flow_bytes > flow_bytes_max {
        (recorded.flows_dropped, recorded.flows) = (true, Vec::new());
    }
    if control.dropped || control.bytes > flow_bytes_max {
        (control.dropped, control.flows) = (true, Vec::new());
    }
    recorded.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination));
    recorded.channels.sort_by_key(|channel: &ChannelRecord| (channel.node, channel.port));
    control.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination, flow.path));
    control.bytes = 0;
}
