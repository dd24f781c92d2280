//! Which changes of flows are taken together.

/// Rates change whenever a flow begins or ends. To compute them anew each time would take as long
/// as there are flows, times as many changes: changes that come within a short span are taken
/// together.
///
/// The span is measured in ends: so long as a `share` of the flows under way takes to end, by their
/// rates and by how long they are. Until its end a flow that has begun has its share of the links
/// as they are, what others leave or an even part of it, and what one leaves that has ended is for
/// those that begin. Both errors are of the same size and against each other where as many begin
/// as end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Batching {
    /// Of the flows under way, 0 to 1. 0 is exact: rates are computed at every instant at which
    /// flows begin or end.
    pub share: f64,
    /// So many flows or fewer are computed exactly whatever the share: it costs little.
    pub exact_flows: usize,
}

impl Batching {
    /// Rates are computed at every instant of a change.
    pub const EXACT: Batching = Batching { share: 0.0, exact_flows: 0 };
}

impl Default for Batching {
    /// A sixteenth: completion times of collectives change by less than one per cent against
    /// [`Batching::EXACT`] (`tests/it/batching.rs`).
    fn default() -> Self {
        Batching { share: 1.0 / 16.0, exact_flows: 64 }
    }
}
