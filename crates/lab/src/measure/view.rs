//! What a measure may look at: a run's figures, and its record before it is put away.

use super::entry::{Answer, Settles};
use super::{Asked, ChannelFigures, Figures, RunFigures, Scope, Slices};
use clearlane_fabric::Fabric;
use clearlane_ib::Picoseconds;
use clearlane_sim::{ChannelRecord, FlowControl, Hosts, Outcome, Totals};
use clearlane_workload::{Bounds, Class, FlowGroup, ProgramSpec};
use std::ops::Range;

/// What programs take at least, by their routes.
pub trait Ideals: std::fmt::Debug {
    /// That of a flow group; nothing of one that is no program whose steps are known.
    fn ideal(&self, group: usize) -> Option<Bounds>;
}

/// A finished run.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// Its figures.
    pub figures: &'a RunFigures,
    /// Its flow groups, by index.
    pub groups: &'a [FlowGroup],
    /// Its hosts.
    pub hosts: &'a Hosts,
    /// Its cables.
    pub fabric: &'a Fabric,
    /// By group: when its program had ended, if it has one and it had.
    pub completions: &'a [Option<Picoseconds>],
    /// What its programs take at least.
    pub ideals: &'a dyn Ideals,
    /// Totals of the run.
    pub totals: &'a Totals,
    /// Payload of the victims alone over that beside the hot flows.
    pub slowdown: Option<f64>,
    /// The same of the victims alone without congestion mechanisms.
    pub slowdown_uncontrolled: Option<f64>,
    /// Payload of the victims alone, Gb/s.
    pub alone_gbps: Option<f64>,
    /// What was measured of the record.
    pub recorded: &'a [(Asked, Option<f64>)],
    /// Whether the network or the ranks of a program deadlocked.
    pub deadlocked: bool,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

fn is_in(group: &FlowGroup, scope: &Scope) -> bool {
    match scope {
        Scope::All => true,
        Scope::Class(class) => group.class == *class,
        Scope::Group(name) => group.name == *name,
    }
}

/// The record of a run.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// What was recorded.
    pub outcome: &'a Outcome,
    /// The figures made of it.
    pub figures: &'a RunFigures,
    /// The hosts of the run.
    pub hosts: &'a Hosts,
    /// Its cables.
    pub fabric: &'a Fabric,
}

impl<'a> RunView<'a> {
    /// What a measure of single runs says.
    pub(crate) fn value(&self, asked: &Asked) -> Option<f64> {
        match asked.entry.answer {
            Answer::Figures(answer) => answer(self, &asked.arguments),
            Answer::Record(_) => {
                self.recorded.iter().find(|(known, _)| known == asked).and_then(|(_, value)| *value)
            }
            Answer::Combined(_) => None,
        }
    }

    /// Whether a value it has, or has not, leaves the mean over seeds one of a steady state.
    pub(crate) fn is_settled(&self, asked: &Asked, has: bool) -> bool {
        let (settles, ended) = (asked.entry.settles, !self.deadlocked && !self.interrupted);
        if !has {
            // Seeds with which a program had not ended are not left out of its mean unsaid.
            return settles != Settles::AtEnd || !ended;
        }
        let of = |scope: &Scope, level: fn(&Figures) -> bool| {
            ended && self.scoped(scope).is_none_or(level)
        };
        match settles {
            Settles::Ending => !self.interrupted,
            Settles::Always | Settles::AtEnd => ended,
            Settles::Throughput => of(&asked.arguments.scope, |f| f.throughput_converged),
            Settles::Latency => of(&asked.arguments.scope, |f| f.latency_converged),
            Settles::Victims => of(&Scope::Class(Class::Victim), |f| f.throughput_converged),
        }
    }

    /// Whether a value is that of a steady state, or would be of a longer run: the latency of
    /// traffic that is not served grows with the run, as does that of a group in which senders
    /// starve.
    pub(crate) fn is_steady(&self, asked: &Asked) -> bool {
        let ended = !self.deadlocked && !self.interrupted;
        let scoped = || self.scoped(&asked.arguments.scope);
        !ended
            || asked.entry.settles != Settles::Latency
            || scoped().is_none_or(|figures| !figures.saturated && figures.starved == 0)
    }

    /// The figures of the measured part; nothing of a run that was stopped in its warm-up, where a
    /// zero would be no measurement.
    pub fn measured(&self) -> Option<&'a RunFigures> {
        (!self.figures.measured.is_empty()).then_some(self.figures)
    }

    /// The figures of some over the measured part.
    pub fn of(&self, scope: &Scope) -> Option<&'a Figures> {
        self.measured()?;
        self.scoped(scope)
    }

    fn scoped(&self, scope: &Scope) -> Option<&'a Figures> {
        let figures = self.figures;
        match scope {
            Scope::All => Some(&figures.all),
            Scope::Class(class) => {
                figures.classes.iter().find(|(known, _)| known == class).map(|(_, f)| f)
            }
            Scope::Group(name) => {
                let index = self.groups.iter().position(|group| group.name == *name)?;
                figures.groups.get(index)
            }
        }
    }

    /// The flow groups that are meant.
    pub fn groups_of(&self, scope: &Scope) -> impl Iterator<Item = &'a FlowGroup> {
        self.groups.iter().filter(move |group| is_in(group, scope))
    }

    /// The programs of some, and when they had ended.
    pub fn programs(
        &self,
        scope: &Scope,
    ) -> impl Iterator<Item = (&'a ProgramSpec, Option<Picoseconds>)> {
        let groups = self.groups.iter().zip(self.completions);
        let meant = groups.filter(move |(group, _)| is_in(group, scope));
        meant.filter_map(|(group, end)| Some((group.program()?, *end)))
    }

    /// The least times of the one program that is meant; nothing of several, which share links.
    pub fn bounds(&self, scope: &Scope) -> Option<Bounds> {
        let meant =
            |(_, group): &(usize, &FlowGroup)| is_in(group, scope) && group.program().is_some();
        let mut programs = self.groups.iter().enumerate().filter(meant);
        let (group, _) = programs.next()?;
        let alone = programs.next().is_none();
        alone.then(|| self.ideals.ideal(group)).flatten()
    }

    /// The channels that leave a switch.
    pub fn switch_channels(&self) -> impl Iterator<Item = &'a ChannelFigures> {
        let fabric = self.fabric;
        self.figures.channels.iter().filter(move |channel| leaves_switch(fabric, channel.node))
    }
}

impl<'a> RecordView<'a> {
    /// What a measure says of it; nothing if it is no measure of records.
    pub(crate) fn value(&self, asked: &Asked) -> Option<f64> {
        match asked.entry.answer {
            Answer::Record(answer) => answer(self, &asked.arguments),
            Answer::Figures(_) | Answer::Combined(_) => None,
        }
    }

    /// How it is cut.
    pub fn cut(&self) -> Slices {
        self.figures.slices
    }

    /// From the begin of a range of slices to the end of the one of this number in it, µs.
    pub fn until(&self, slices: &Range<usize>, index: usize) -> f64 {
        let cut = self.cut();
        let (from, end) = (cut.start(slices.start), cut.end(slices.start + index));
        Picoseconds(end.0.saturating_sub(from.0)).as_microseconds()
    }

    /// What mechanisms did to flows; nothing if there were too many to be recorded one by one.
    pub fn control(&self) -> Option<&'a [FlowControl]> {
        (!self.outcome.control.dropped).then_some(self.outcome.control.flows.as_slice())
    }

    /// The channels that leave a switch.
    pub fn switch_channels(&self) -> impl Iterator<Item = &'a ChannelRecord> {
        let fabric = self.fabric;
        self.outcome.channels.iter().filter(move |channel| leaves_switch(fabric, channel.node))
    }

    /// By slice, the share of time the busiest of these channels is busy.
    pub(super) fn loads(
        &self,
        channels: impl Iterator<Item = &'a ChannelRecord>,
        slices: &Range<usize>,
    ) -> Vec<f64> {
        let mut most: Vec<u64> = Vec::new();
        for channel in channels {
            let busy = within(&channel.busy_ps, slices);
            most.resize(most.len().max(busy.len()), 0);
            most.iter_mut().zip(busy).for_each(|(most, busy)| *most = (*most).max(*busy));
        }
        let load = |(index, busy): (usize, u64)| match self.cut().length_of(slices.start + index).0
        {
            0 => 0.0,
            // What is leaving when the run ends is booked to its own end.
            length => (busy as f64 / length as f64).min(1.0),
        };
        most.into_iter().enumerate().map(load).collect()
    }

    /// The share of time a channel is busy over slices; nothing without any.
    pub(super) fn load(&self, channel: &ChannelRecord, slices: &Range<usize>) -> Option<f64> {
        let busy = within(&channel.busy_ps, slices);
        let last = (slices.start + busy.len()).checked_sub(1)?;
        let cut = self.cut();
        let span = cut.end(last).0.saturating_sub(cut.start(slices.start).0);
        (span > 0).then(|| busy.iter().sum::<u64>() as f64 / span as f64)
    }
}

fn leaves_switch(fabric: &Fabric, node: u32) -> bool {
    fabric.nodes().get(node as usize).is_some_and(|node| node.is_switch())
}

/// The part of a series.
pub(super) fn within<'a, T>(series: &'a [T], slices: &Range<usize>) -> &'a [T] {
    let to = slices.end.min(series.len());
    series.get(slices.start.min(to)..to).unwrap_or_default()
}
