//! The default routes of a run, for patterns that are made for them.

use crate::Rank;
use clearlane_ib::LinkRate;

/// An output of a switch, numbered in the order of switches and of their ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Channel(pub u32);

impl Channel {
    /// The same number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What patterns may ask of the tables of a run. Path `n` to a host is the route to its base LID
/// and `n`; path 0 is the default route.
pub trait Routes {
    /// One more than the largest number of a channel. Not every number need belong to a channel.
    fn channels(&self) -> usize;

    /// How people name a channel that is on a route: `leaf03[19] → spine01[4]`.
    fn name(&self, channel: Channel) -> String;

    /// The channel of the port people write as `leaf03[19]`. The error says why it is none between
    /// two switches, and what would be.
    fn find(&self, port: &str) -> Result<Channel, String>;

    /// The rate of a channel that is on a route.
    fn rate(&self, channel: Channel) -> LinkRate;

    /// A number of the switch that `rank` is plugged into. All hosts of a switch have the same
    /// routes to any other host.
    fn switch(&self, rank: Rank) -> u32;

    /// How many paths lead to a rank: the LIDs of its port, at least 1.
    fn paths(&self, destination: Rank) -> u16;

    /// Puts the channels between switches on a path from one rank to another in the place of what
    /// is in `route`, in order; none if both are on one switch or no route arrives. `path` is less
    /// than [`Routes::paths`].
    fn walk(&self, source: Rank, destination: Rank, path: u16, route: &mut Vec<Channel>);
}
