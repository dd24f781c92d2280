//! Which outputs of switches a measure over time is about.

use crate::measure::{Arguments, RecordView};
use crate::port;
use clearlane_sim::ChannelRecord;

/// A switch output that is busy for more than this share of a slice is not relieved.
pub(super) const RELIEVED: f64 = 0.95;

/// The one that is named, or all; nothing if the fabric does not have it.
pub(super) fn outputs<'a>(
    record: &RecordView<'a>,
    arguments: &Arguments,
) -> Option<impl Iterator<Item = &'a ChannelRecord>> {
    let named = match &arguments.link {
        Some(name) => {
            let end = port::named(record.fabric, name).ok()?;
            Some((end.node.0, end.port.value()))
        }
        None => None,
    };
    let is_meant = move |channel: &&ChannelRecord| {
        named.is_none_or(|named| named == (channel.node, channel.port))
    };
    Some(record.switch_channels().filter(is_meant))
}
