//! Ports as experiment files name them: `leaf03[19]`.

use clearlane_fabric::{Endpoint, Fabric, damage};
use clearlane_ib::PortNumber;

/// The port of this name. Fails if it is not there or has no cable.
pub fn named(fabric: &Fabric, text: &str) -> Result<Endpoint, String> {
    let parts = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let number = parts.and_then(|(_, number)| PortNumber::new(number.parse().ok()?));
    let (Some((node, _)), Some(port)) = (parts, number) else {
        return Err("is no port; write the switch and the port, as in S1[3]".into());
    };
    let node = damage::node(fabric, node).map_err(|error| error.to_string())?;
    let end = Endpoint { node, port };
    match fabric.peer(end) {
        Some(_) => Ok(end),
        None => Err("has no cable; name one that has".into()),
    }
}
