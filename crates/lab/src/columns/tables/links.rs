//! `links.parquet`: counters of every channel, named as in PMA.

use super::{Column, SeedResult, TableEntry, VariantResult, columns, in_time};
use crate::halt::{Deadline, LeftOut};
use crate::measure::ChannelFigures;
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{BitsPerSecond, PortNumber};

/// Its entry.
pub(super) const ENTRY: TableEntry = TableEntry {
    file: "links.parquet",
    summary: "PMA counters, load and wait of every channel: one direction of a cable",
    columns: COLUMNS,
    of,
};

struct Row<'a> {
    variant: &'a str,
    seed: u64,
    fabric: &'a Fabric,
    channel: &'a ChannelFigures,
    from: Endpoint,
    to: Endpoint,
    rate: BitsPerSecond,
}

columns! { |row: Row<'_>|
    text "variant" "" "name of the variant" row.variant;
    count "seed" "" "seed of the run" row.seed;
    text "from_node" "" "name of the node that transmits" &row.fabric.node(row.from.node).name;
    count "from_port" "" "number of its port" u64::from(row.from.port.value());
    text "to_node" "" "name of the node that receives" &row.fabric.node(row.to.node).name;
    count "to_port" "" "number of its port" u64::from(row.to.port.value());
    real "rate_gbps" "Gbps" "data rate of the link, 10^9 bits a second" row.rate.as_gigabits();
    count "PortXmitData_4octets" "4 octets" "transmitted without VCRC in the whole run"
        row.channel.port_xmit_data;
    count "PortXmitPkts_packets" "packets" "transmitted in the whole run"
        row.channel.port_xmit_pkts;
    count "PortRcvData_4octets" "4 octets" "received without VCRC in the whole run"
        row.channel.port_rcv_data;
    count "PortRcvPkts_packets" "packets" "received in the whole run" row.channel.port_rcv_pkts;
    count "PortXmitWait_ps" "ps" "time with data and no credits in the whole run"
        row.channel.port_xmit_wait_ps;
    real "load" "" "busy share of the measured part, 0 to 1" row.channel.load;
    real "held_back" "" "share of the measured part with data and no credits, 0 to 1"
        row.channel.wait;
}

fn of(
    variant: &VariantResult,
    run: &SeedResult,
    deadline: &Deadline,
) -> Result<Option<Vec<Column>>, LeftOut> {
    let fabric = &variant.prepared.fabric;
    let end = |channel: &ChannelFigures| {
        let end = Endpoint { node: NodeId(channel.node), port: PortNumber::new(channel.port)? };
        let link = fabric.link_at(end)?;
        Some((end, fabric.peer(end)?, fabric.link(link).rate()))
    };
    let cabled = run.figures.channels.iter().filter_map(|channel| {
        let (from, to, rate) = end(channel)?;
        let forced = variant.prepared.parameters.link_rate;
        let rate = forced.unwrap_or(rate.bits_per_second());
        Some(Row { variant: &variant.name, seed: run.seed, fabric, channel, from, to, rate })
    });
    in_time(columns(&cabled.collect::<Vec<_>>()), deadline).map(Some)
}
