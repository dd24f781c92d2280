//! The two ways of forwarding, as a set-up names them.

use clearlane_fabric::structure::Grid;
use clearlane_subnet::Subnet;

/// A way of forwarding.
#[derive(Clone, Copy, Debug)]
pub enum Forwarding<'a> {
    /// The tables of a subnet: LFT, then SL2VL.
    Tables(&'a Subnet),
    /// Dimension order by coordinates with lane state (a packet moves to lane 1 at the wrap link of
    /// its current dimension): for fabrics beyond a subnet's limits. Not deployable.
    DimensionOrder(&'a Grid, Ties),
}

/// The way of packets for which both ways around a ring are equally long.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ties {
    /// Half of the switches of every ring send them each way.
    #[default]
    Both,
    /// Up, to the next coordinate: links that lead down carry none of them.
    Up,
}

impl Forwarding<'_> {
    /// Data lanes in use.
    pub fn lanes(&self) -> u8 {
        match self {
            Forwarding::Tables(subnet) => subnet.sl_to_vl.lanes(),
            // A lane before the dateline and a lane after it.
            Forwarding::DimensionOrder(..) => 2,
        }
    }
}
