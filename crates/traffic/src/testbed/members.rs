//! Keys, policies and addresses of a testbed's agents: made here, where no token has to travel.

use super::layout::Layout;
use crate::agent::POLICY_FILE;
use crate::controller::{Inventory, Known};
use crate::keys::{Authority, Candidate, KeysError, Replace, write};
use crate::name::{Identity, Name, Role};
use clearlane_lab::Unfinished;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where agents listen, in namespaces of their own.
const CONTROL_PORT: u16 = 7447;
const DATA_PORT: u16 = 7448;

/// Folders of keys of a testbed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    /// The controller's.
    pub controller: PathBuf,
    /// The agents', in the order of hosts, with where each listens for controllers and for data.
    pub agents: Vec<(PathBuf, SocketAddr, SocketAddr)>,
}

/// Makes them in a folder that is empty. Fails if a host's name cannot stand in a certificate.
pub fn members(layout: &Layout, folder: &Path) -> Result<Members, KeysError> {
    let controller = folder.join("controller");
    let name = |text: &str| -> Result<Name, KeysError> {
        let first = text.split_whitespace().next().unwrap_or_default();
        first.parse().map_err(|error| KeysError::Certificate(format!("{error}")))
    };
    let authority = Authority::init(&controller, name("testbed")?, &Unfinished::default())?;
    let mut inventory = Inventory::default();
    let mut agents = Vec::new();
    for (number, host) in layout.hosts.iter().enumerate() {
        let name = name(&host.name)?;
        let own = folder.join(format!("agent-{number}"));
        let candidate = Candidate::new()?;
        let identity = Identity { name: name.clone(), role: Role::Agent };
        let signed = authority.signed(&identity, candidate.key())?;
        candidate.store(
            &own,
            &signed,
            authority.certificate(),
            Replace::Nothing,
            &Unfinished::default(),
        )?;
        write(&own, POLICY_FILE, policy(layout).as_bytes(), 0o644)?;
        let control = SocketAddr::from((host.control, CONTROL_PORT));
        let data = SocketAddr::from((host.data, DATA_PORT));
        inventory.set(Known { name, address: control });
        agents.push((own, control, data));
    }
    let written = inventory.write(&controller, &Unfinished::default());
    written.map_err(|error| KeysError::File {
        path: controller.clone(),
        problem: error.to_string(),
    })?;
    Ok(Members { controller, agents })
}

/// The testbed's hosts, and nobody else.
fn policy(layout: &Layout) -> String {
    let mut text = "[limits]\nconnections = 4096\nduration = \"300 s\"\nsent = \"1024 GiB\"\n\
                    logs = \"8 GiB\"\n"
        .to_owned();
    for host in &layout.hosts {
        text.push_str(&format!(
            "\n[[network]]\nnetwork = \"{}/32\"\nsend = true\nreceive = true\nrate = \"400 Gb/s\"\n\
             udp = true\n",
            host.data
        ));
    }
    text
}
