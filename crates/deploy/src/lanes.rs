//! The lanes of service levels, as far as one SL2VL for all ports says them.

use crate::refusal::DeployError;
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{ServiceLevel, VirtualLane};
use clearlane_subnet::Subnet;

/// The lane of each SL, where a policy and one SL2VL say it all. On a link with fewer VLs OpenSM
/// keeps the low bits of the lane that its OperationalVLs leave (osm_qos.c, sl2vl_update_table).
pub(crate) fn of_levels(
    fabric: &Fabric,
    subnet: &Subnet,
    link_lanes: &[(Endpoint, u8)],
) -> Result<[u8; 16], DeployError> {
    if subnet.path_sl.offsets() > 1 {
        let what = "the SL depends on the LID offset";
        return Err(DeployError::BeyondPolicy { what });
    }
    let of_row = |row: &[VirtualLane; 16]| row.map(VirtualLane::value);
    let mut whole = of_row(&subnet.sl_to_vl.adapter);
    for row in subnet.sl_to_vl.tables().iter().flat_map(|table| table.rows()) {
        let lanes = of_row(row);
        whole = std::array::from_fn(|sl| whole[sl].max(lanes[sl]));
    }
    let levels = subnet.path_sl.levels();
    let is_kept = |lane: &dyn Fn(ServiceLevel) -> VirtualLane, lanes: u8| {
        let kept = |sl: &ServiceLevel| {
            // VL 0-14 are no power of two: nothing is cut off.
            let mask = if lanes == 15 { u8::MAX } else { lanes.wrapping_sub(1) };
            lane(*sl).value() == whole[usize::from(sl.value())] & mask
        };
        levels.iter().all(kept)
    };
    let fewer = |end: Endpoint| {
        let of = |(link, lanes): &(Endpoint, u8)| {
            (*link == end || fabric.peer(*link) == Some(end)).then_some(*lanes)
        };
        link_lanes.iter().filter_map(of).min()
    };
    let of_switch = |switch: NodeId| {
        let table = subnet.sl_to_vl.table(switch);
        let ports = || fabric.neighbours(switch).map(|(port, ..)| port);
        let mut pairs = ports().flat_map(|input| ports().map(move |output| (input, output)));
        pairs.all(|(input, output)| {
            let lanes = fewer(Endpoint { node: switch, port: output }).unwrap_or(0);
            is_kept(&|sl| table.lane(input, output, sl), lanes)
        })
    };
    let adapter = |sl: ServiceLevel| subnet.sl_to_vl.adapter[usize::from(sl.value())];
    let of_adapters = link_lanes.iter().map(|(_, lanes)| *lanes).chain([0]);
    let is_one = subnet.tables.switches().iter().all(|switch| of_switch(*switch))
        && of_adapters.into_iter().any(|lanes| is_kept(&adapter, lanes));
    match is_one {
        true => Ok(whole),
        false => Err(DeployError::BeyondPolicy {
            what: "the lane of an SL depends on the ports of a switch",
        }),
    }
}
