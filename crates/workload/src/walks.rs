//! The routes of a program's messages: what gaps and ideal times are computed from.

use crate::programs::Planned;
use crate::{Channel, Rank, Routes};

/// Walks the routes of messages, and counts what is on the links of one step.
pub(crate) struct Walks<'a> {
    routes: &'a dyn Routes,
    /// By rank of the program.
    hosts: &'a [Rank],
    /// By channel: messages of the step.
    on: Vec<u32>,
    /// Channels with any.
    used: Vec<usize>,
    /// The routes of the step's messages, one after the other, and where each ends.
    all: Vec<Channel>,
    ends: Vec<usize>,
    route: Vec<Channel>,
}

impl<'a> Walks<'a> {
    /// Those of a program whose rank r sits at `hosts[r]`.
    pub(crate) fn new(routes: &'a dyn Routes, hosts: &'a [Rank]) -> Self {
        let on = vec![0; routes.channels()];
        let (used, all, ends, route) = Default::default();
        Walks { routes, hosts, on, used, all, ends, route }
    }

    /// The links of a message between switches; none if both ranks are on one.
    pub(crate) fn walk(&mut self, message: &Planned) -> &[Channel] {
        let host = |rank: Rank| self.hosts.get(rank.0 as usize).copied();
        self.route.clear();
        if let (Some(from), Some(to)) = (host(message.from), host(message.to))
            && from != to
        {
            self.routes.walk(from, to, 0, &mut self.route);
        }
        &self.route
    }

    /// Tells of each message how many links between switches it takes.
    pub(crate) fn hops(&mut self, messages: &[Planned], mut note: impl FnMut(&Planned, u32)) {
        for message in messages {
            let hops = self.walk(message).len() as u32;
            note(message, hops);
        }
    }

    /// Tells of each message the most messages, itself included, on any link of its route; 0 if it
    /// takes no link between switches.
    pub(crate) fn overlaps(&mut self, messages: &[Planned], mut note: impl FnMut(&Planned, u32)) {
        self.all.clear();
        self.ends.clear();
        for message in messages {
            self.walk(message);
            for channel in &self.route {
                let on = &mut self.on[channel.index()];
                if *on == 0 {
                    self.used.push(channel.index());
                }
                *on += 1;
            }
            self.all.extend(&self.route);
            self.ends.push(self.all.len());
        }
        let mut begin = 0;
        for (message, end) in messages.iter().zip(&self.ends) {
            let most = self.all[begin..*end].iter().map(|channel| self.on[channel.index()]).max();
            note(message, most.unwrap_or(0));
            begin = *end;
        }
        self.used.drain(..).for_each(|channel| self.on[channel] = 0);
    }
}
