//! The two ways of forwarding, as a set-up names them.

use clearlane_fabric::structure::Grid;
use clearlane_subnet::Subnet;

/// What switches forward by.
#[derive(Clone, Copy, Debug)]
pub enum Forwarding<'a> {
    /// The tables of a subnet: LFT, then SL2VL.
    Tables(&'a Subnet),
    /// Dimension order by coordinates with lane state (a packet moves to lane 1 at the wrap link of
    /// its current dimension): for fabrics beyond a subnet's limits. Not deployable.
    DimensionOrder(&'a Grid, Ties),
}

/// Which way packets go that have as far one way around a ring as the other.
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
            // One before the dateline and one after.
            Forwarding::DimensionOrder(..) => 2,
        }
    }
}
