//! What it is: other names and GUIDs for a fabric, and the same ones in its table dumps, so that a
//! site can give both away. Cables, port numbers, LIDs, vendor and device ids stay.
//!
//! By order: `leaf00`, `spine00`, `host0000`, … as they come. By hash: names and GUIDs are the
//! beginning of SHA-256 over a salt and the old GUID, so that two files of one site agree; who does
//! not have the salt cannot try old GUIDs.

use crate::topologies::numbered;
use crate::{Fabric, FabricError, NodeId, structure};
use clearlane_ib::Guid;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Locally administered, as in `topologies`; the next byte tells made from renamed GUIDs.
const ORDERED_GUID: u64 = 0x0ac1_eaa0_0000_0000;
const SYSTEM_GUID: u64 = 0x0ac1_eaa5_0000_0000;
const UNKNOWN_GUID: u64 = 0x0ac1_eaaf_0000_0000;

/// How new names are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Naming {
    /// By role and order in the fabric.
    Order,
    /// By hash with this salt, which must stay secret.
    Hash(String),
}

/// What became of every GUID, to rename other files of the same site.
#[derive(Clone, Debug)]
pub struct Aliases {
    naming: Naming,
    guids: BTreeMap<Guid, Guid>,
    /// New name of the node by each of its old GUIDs.
    names: BTreeMap<Guid, String>,
}

/// The fabric under new names, and the names. Fails only if two hashes collide.
pub fn anonymize(fabric: &Fabric, naming: &Naming) -> Result<(Fabric, Aliases), FabricError> {
    let mut aliases =
        Aliases { naming: naming.clone(), guids: BTreeMap::new(), names: BTreeMap::new() };
    let names = names(fabric, naming);
    for (index, node) in fabric.nodes().iter().enumerate() {
        aliases.add(node.guid, ORDERED_GUID + ((index as u64) << 8));
        aliases.names.insert(node.guid, names[index].clone());
    }
    for (index, node) in fabric.nodes().iter().enumerate() {
        let base = ORDERED_GUID + ((index as u64) << 8);
        for (number, port) in node.ports.iter().enumerate() {
            // 255 for port 0: the node's own alias has a zero there.
            let offset = if number == 0 { 255 } else { number as u64 };
            aliases.add(port.guid, base + offset);
            aliases.names.entry(port.guid).or_insert_with(|| names[index].clone());
        }
    }
    for (index, node) in fabric.nodes().iter().enumerate() {
        aliases.add(node.system_guid, SYSTEM_GUID + ((index as u64) << 8));
    }
    let mut renamed = Fabric::new();
    for (node, name) in fabric.nodes().iter().zip(names) {
        let mut node = node.clone();
        node.name = name;
        node.guid = aliases.guid(node.guid);
        node.system_guid = aliases.guid(node.system_guid);
        for port in &mut node.ports {
            (port.guid, port.link) = (aliases.guid(port.guid), None);
        }
        renamed.add_node(node)?;
    }
    for link in fabric.links() {
        renamed.join(link.a, link.b, link.width, link.speed)?;
    }
    Ok((renamed, aliases))
}

/// The new name of every node.
fn names(fabric: &Fabric, naming: &Naming) -> Vec<String> {
    if let Naming::Hash(salt) = naming {
        let name = |node: &crate::Node| {
            let role = if node.is_switch() { "switch" } else { "host" };
            format!("{role}-{:010x}", hash(salt, node.guid) & 0xff_ffff_ffff)
        };
        return fabric.nodes().iter().map(name).collect();
    }
    let levels = structure::levels(fabric);
    let role = |id: NodeId| match (fabric.node(id).is_switch(), levels[id.index()]) {
        (false, _) => "host".to_owned(),
        (true, Some(0)) => "leaf".to_owned(),
        (true, Some(1)) => "spine".to_owned(),
        (true, Some(2)) => "core".to_owned(),
        (true, Some(level)) => format!("level{level}-"),
        (true, None) => "switch".to_owned(),
    };
    let ids = || (0..fabric.nodes().len()).map(|index| NodeId(index as u32));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    ids().for_each(|id| *counts.entry(role(id)).or_insert(0) += 1);
    let mut given: BTreeMap<String, u64> = BTreeMap::new();
    ids()
        .map(|id| {
            let role = role(id);
            let number = given.entry(role.clone()).or_insert(0);
            *number += 1;
            numbered(&role, *number - 1, counts[&role], if role == "host" { 4 } else { 2 })
        })
        .collect()
}

/// 56 bits of SHA-256 over the salt and a GUID.
fn hash(salt: &str, guid: Guid) -> u64 {
    let mut digest = Sha256::new();
    digest.update((salt.len() as u64).to_be_bytes());
    digest.update(salt.as_bytes());
    digest.update(guid.0.to_be_bytes());
    digest.finalize()[..7].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

impl Aliases {
    fn add(&mut self, guid: Guid, ordered: u64) {
        // GUID 0 says that there is none.
        if guid.0 == 0 {
            return;
        }
        let alias = match &self.naming {
            Naming::Order => Guid(ordered),
            Naming::Hash(salt) => hashed_guid(salt, guid),
        };
        self.guids.entry(guid).or_insert(alias);
    }

    /// What a GUID of the fabric became; an unknown one becomes 0.
    pub fn guid(&self, guid: Guid) -> Guid {
        self.guids.get(&guid).copied().unwrap_or_default()
    }

    /// Renames a table dump (`ibroute`, `dump_fts`, `opensm-lfts.dump`, `opensm.fdbs`,
    /// `opensm-sl2vl.dump`) of the same site: every GUID, and every description in quotes or, in a
    /// section's header, in parentheses. GUIDs the fabric does not have are renamed, too.
    pub fn rename_dump(&self, text: &str) -> String {
        let mut strangers = BTreeMap::new();
        let mut renamed = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            self.rename_line(line, &mut strangers, &mut renamed);
        }
        renamed
    }

    fn rename_line(&self, line: &str, strangers: &mut BTreeMap<Guid, Guid>, renamed: &mut String) {
        let Some((from, to)) = description(line) else {
            self.rename_guids(line, strangers, renamed);
            return;
        };
        let subject = self.rename_guids(&line[..from], strangers, renamed);
        let name = subject.and_then(|guid| self.names.get(&guid));
        renamed.push_str(name.map_or("unknown", String::as_str));
        self.rename_guids(&line[to..], strangers, renamed);
    }

    /// Copies text with its GUIDs renamed; returns the last of them as it was.
    fn rename_guids(
        &self,
        text: &str,
        strangers: &mut BTreeMap<Guid, Guid>,
        renamed: &mut String,
    ) -> Option<Guid> {
        let mut last = None;
        let is_word = |c: char| c.is_ascii_alphanumeric();
        for word in text.split_inclusive(|c| !is_word(c)) {
            let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
            let (body, rest) = word.split_at(end);
            let prefix = if body.starts_with("0x") { "0x" } else { "" };
            // LIDs, ports and hops have fewer digits.
            let digits = &body[prefix.len()..];
            match Guid::from_hex(digits).ok().filter(|_| digits.len() > 8) {
                Some(guid) => {
                    last = Some(guid);
                    let alias = self.guids.get(&guid).copied();
                    let alias = alias.unwrap_or_else(|| self.stranger(guid, strangers));
                    renamed.push_str(prefix);
                    renamed.push_str(&format!("{:016x}", alias.0));
                }
                None => renamed.push_str(body),
            }
            renamed.push_str(rest);
        }
        last
    }

    /// The alias of a GUID that is not in the fabric.
    fn stranger(&self, guid: Guid, strangers: &mut BTreeMap<Guid, Guid>) -> Guid {
        if let Naming::Hash(salt) = &self.naming {
            return hashed_guid(salt, guid);
        }
        let next = Guid(UNKNOWN_GUID + ((strangers.len() as u64) << 8));
        *strangers.entry(guid).or_insert(next)
    }
}

/// The first byte says "locally administered", 56 bits of hash follow.
fn hashed_guid(salt: &str, guid: Guid) -> Guid {
    Guid(0x0a00_0000_0000_0000 | hash(salt, guid))
}

/// Where the description in a line begins and ends, quotes excluded.
fn description(line: &str) -> Option<(usize, usize)> {
    let within = |open: char, close: char, start: usize| {
        let from = start + line[start..].find(open)? + 1;
        let to = line.rfind(close)?;
        (from <= to).then_some((from, to))
    };
    let header = || within('(', ')', line.find("guid 0x")?);
    within('\'', '\'', 0).or_else(|| within('"', '"', 0)).or_else(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{read, write};
    use crate::topologies::build;
    use clearlane_ib::{Lid, Lmc};

    fn site() -> Fabric {
        let mut fabric = build("leaf-spine:leaves=2,hosts=2,spines=1").unwrap();
        for index in 0..fabric.nodes().len() as u32 {
            let node = fabric.node_mut(NodeId(index));
            node.name = format!("secret-{index}");
            let port = usize::from(!node.is_switch());
            node.ports[port].lid = Lid::new(100 + index as u16);
            node.ports[port].lmc = Lmc::new(1).unwrap();
        }
        fabric
    }

    const DUMP: &str = "\
Unicast lids [0-14] of switch Lid 100 guid 0x0ac1ea5100000000 ('secret-0'):
0x0067 001 # Channel Adapter portguid 0x0ac1eaca00000001: 'secret-3'
0x0065 003 # Switch portguid 0x0ac1ea5100000100: 'secret-1'
0x0070 003 # Channel Adapter portguid 0x0002c90000000001: 'gone's'
Unicast lids [0x0-0xe] of switch Lid 2 guid 0x0ac1ea5100000200 (secret-2):
3 lids dumped
";

    #[test]
    fn roles_and_order_make_the_names_and_nothing_old_is_left() {
        let (renamed, aliases) = anonymize(&site(), &Naming::Order).unwrap();
        let names: Vec<_> = renamed.nodes().iter().map(|node| node.name.as_str()).collect();
        let hosts = ["host0000", "host0001", "host0002", "host0003"];
        assert_eq!(names, [["leaf00", "leaf01", "spine00"].as_slice(), &hosts].concat());
        assert_eq!(renamed.links(), site().links());
        assert_eq!(renamed.node(NodeId(3)).ports[1].lid, Lid::new(103));
        let text = write(&renamed);
        assert!(!text.contains("secret") && !text.contains("ac1ea51") && !text.contains("ac1eaca"));
        assert_eq!(read(&text, "x").unwrap().fabric, renamed);
        assert_eq!(
            aliases.rename_dump(DUMP),
            "\
Unicast lids [0-14] of switch Lid 100 guid 0x0ac1eaa000000000 ('leaf00'):
0x0067 001 # Channel Adapter portguid 0x0ac1eaa000000301: 'host0000'
0x0065 003 # Switch portguid 0x0ac1eaa000000100: 'leaf01'
0x0070 003 # Channel Adapter portguid 0x0ac1eaaf00000000: 'unknown'
Unicast lids [0x0-0xe] of switch Lid 2 guid 0x0ac1eaa000000200 (spine00):
3 lids dumped
"
        );
    }

    #[test]
    fn a_salt_keeps_two_files_consistent() {
        let naming = Naming::Hash("pepper".into());
        let whole = anonymize(&site(), &naming).unwrap();
        let part = crate::damage::without(&site(), &[NodeId(0)]).unwrap();
        let part = anonymize(&part, &naming).unwrap();
        assert_eq!(part.0.node(NodeId(0)).name, whole.0.node(NodeId(1)).name);
        assert_eq!(part.0.node(NodeId(0)).guid, whole.0.node(NodeId(1)).guid);
        let line = "0x0001 : 001 of Switch 0x0ac1ea5100000000\n";
        assert_eq!(part.1.rename_dump(line), whole.1.rename_dump(line));
        let other = anonymize(&site(), &Naming::Hash("salt".into())).unwrap();
        assert_ne!(other.0.node(NodeId(1)).guid, whole.0.node(NodeId(1)).guid);
        assert!(!whole.1.rename_dump(DUMP).contains("secret"));
    }

    #[test]
    fn structure_survives_new_names() {
        let fabric = build("torus:3x4").unwrap();
        let (renamed, _) = anonymize(&fabric, &Naming::Order).unwrap();
        assert_eq!(structure::grid(&renamed), structure::grid(&fabric));
    }
}
