//! What it is: nothing. Packets leave as soon as the link is free, messages take path 0.
//!
//! Source: none; it is what every mechanism is compared with.
//! What we do differently: nothing.
//! Parameters: none.

use crate::mechanism::{Decides, Entry, Mechanism, Scope, Source};
use crate::parameter::{ParameterError, Values};
use crate::reactor::Reactor;

/// `none`.
pub static ENTRY: Entry = Entry {
    name: "none",
    summary: "no mechanism: packets leave as soon as the link is free",
    reference: "none; what every mechanism is compared with",
    notes: "",
    decides: Decides::When,
    parameters: &[],
    port_parameters: &[],
    presets: &[],
    build,
};

fn build(_values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    Ok(Box::new(Absent))
}

#[derive(Debug)]
struct Absent;

impl Mechanism for Absent {
    fn scope(&self) -> Scope {
        Scope::QueuePair
    }

    fn reactor(&self, _source: &Source) -> Option<Box<dyn Reactor>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::Output;
    use clearlane_ib::{Bytes, LinkRate, LinkSpeed, LinkWidth, VirtualLane};

    #[test]
    fn it_has_no_part_anywhere() {
        let mut it = build(&Values::default()).unwrap();
        let output = Output {
            node: 0,
            port: 1,
            lane: VirtualLane::new(0).unwrap(),
            faces_adapter: true,
            buffer: Bytes(65_536),
            packet_max: 2074,
        };
        let link = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        let source = Source { link, packet_max: 2074, paths: 4 };
        assert!(it.marker(&output).is_none() && it.notifier().is_none());
        assert!(it.reactor(&source).is_none());
        assert_eq!(
            it.override_port(0, 1, &Values::default()).unwrap_err().to_string(),
            "a setting of one port cannot be set with this mechanism; set it for the whole fabric"
        );
    }
}
