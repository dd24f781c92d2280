//! Files as policies.

use super::keys::{self, Key, Kind};
use super::{Block, CongestionControlPolicy, Item, Oddity, Place, PolicyError, Setting, Written};
use clearlane_ib::{ServiceLevel, nearest, short, ticked};
use std::collections::{BTreeMap, BTreeSet};

/// What some editors begin a text in UTF-8 with; it says nothing.
const BYTE_ORDER_MARK: char = '\u{feff}';
const START: &str = "_start";
const END: &str = "_end";
const BLOCKS: &str = "a policy file has blocks such as ca_config_start … ca_config_end";
/// Sets of profiles by VL at most.
const LANES: usize = 16;

/// See [`CongestionControlPolicy::read`].
pub(super) fn read(
    text: &str,
    file: &str,
) -> Result<(CongestionControlPolicy, Vec<Oddity>), PolicyError> {
    let mut reader = Reader { file, items: Vec::new(), open: Vec::new(), oddities: Vec::new() };
    let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line.trim_matches(is_blank))?;
    }
    if let Some(open) = reader.open.last() {
        let Block { name, place, .. } = &open.block;
        let what = format!("block {} does not end", ticked(name));
        let remedy = format!("the file may be cut off; end the block with {}", ended(name));
        return Err(PolicyError::new(file, place.0, what, remedy));
    }
    let policy = CongestionControlPolicy { items: reader.items };
    check(&policy, file)?;
    Ok((policy, reader.oddities))
}

/// The line that ends a block.
fn ended(name: &str) -> String {
    format!("{}{END}", short(name))
}

/// A block under way.
struct Open {
    block: Block,
    /// Its keys; nothing if it is not known, and kept as it is.
    keys: Option<&'static [Key]>,
    /// The keys it has, and where.
    seen: BTreeMap<String, usize>,
}

struct Reader<'a> {
    file: &'a str,
    items: Vec<Item>,
    open: Vec<Open>,
    oddities: Vec<Oddity>,
}

impl Reader<'_> {
    fn error(&self, line: usize, what: String, remedy: impl Into<String>) -> PolicyError {
        PolicyError::new(self.file, line, what, remedy)
    }

    fn odd(&mut self, line: usize, what: String) {
        self.oddities.push(Oddity { line, what });
    }

    /// One line, without the blanks around it.
    fn line(&mut self, number: usize, line: &str) -> Result<(), PolicyError> {
        let words = line.split('#').next().unwrap_or_default().trim();
        if let Some(Open { block, keys: None, .. }) = self.open.last_mut() {
            if words.strip_suffix(END) == Some(&block.name) {
                self.close();
            } else if !line.is_empty() {
                block.items.push(Item::Verbatim(line.to_owned()));
            }
            return Ok(());
        }
        if words.is_empty() {
            return Ok(());
        }
        let is_name = words.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if let Some(name) = words.strip_suffix(START).filter(|name| is_name && !name.is_empty()) {
            return self.start(number, name);
        }
        if let Some(name) = words.strip_suffix(END).filter(|name| is_name && !name.is_empty()) {
            return self.end(number, name);
        }
        match words.split_once(':') {
            Some((key, value)) => self.setting(number, key.trim(), value.trim()),
            None => {
                let what = format!("{} is neither `key: value` nor a block's edge", ticked(words));
                Err(self.error(number, what, BLOCKS))
            }
        }
    }

    fn start(&mut self, line: usize, name: &str) -> Result<(), PolicyError> {
        let known = keys::of_block(name);
        let around = self.open.last().map(|open| (short(&open.block.name), open.block.place.0));
        let fits = match &around {
            None => name != keys::PROFILE,
            Some((outer, _)) => {
                known.is_none() || (outer == keys::PROFILES && name == keys::PROFILE)
            }
        };
        match around {
            None if !fits => {
                let remedy = format!("put it between {}{START} and {0}{END}", keys::PROFILES);
                return Err(self.error(
                    line,
                    format!("{}{START} is in no set", short(name)),
                    remedy,
                ));
            }
            Some((outer, begun)) if !fits => {
                let what = format!(
                    "{outer}, begun in line {begun}, has not ended at {}{START}",
                    short(name)
                );
                return Err(self.error(line, what, format!("end it with {outer}{END}")));
            }
            _ => {}
        }
        if known.is_none() {
            let what = match name {
                keys::CA_ALGO_IMPORT => format!(
                    "{name} loads programmable algorithms, which are not simulated; it is kept as \
                     it is"
                ),
                _ => format!("block {} is not known and kept as it is", ticked(name)),
            };
            self.odd(line, what);
        }
        let block = Block { name: name.to_owned(), place: Place(line), items: Vec::new() };
        self.open.push(Open { block, keys: known, seen: BTreeMap::new() });
        Ok(())
    }

    fn end(&mut self, line: usize, name: &str) -> Result<(), PolicyError> {
        match self.open.last() {
            Some(open) if open.block.name == name => {
                self.close();
                Ok(())
            }
            Some(open) => {
                let outer = short(&open.block.name);
                let begun = open.block.place.0;
                let what = format!("{} ends no block: {outer} is open", ticked(&ended(name)));
                let remedy = format!("end {outer}, begun in line {begun}, with {outer}{END}");
                Err(self.error(line, what, remedy))
            }
            None => {
                let what = format!("{} ends no block", ticked(&ended(name)));
                Err(self.error(line, what, format!("begin it with {}{START}", short(name))))
            }
        }
    }

    /// The innermost block is complete.
    fn close(&mut self) {
        if let Some(Open { block, .. }) = self.open.pop() {
            self.put(Item::Block(block));
        }
    }

    fn put(&mut self, item: Item) {
        match self.open.last_mut() {
            Some(open) => open.block.items.push(item),
            None => self.items.push(item),
        }
    }

    fn setting(&mut self, line: usize, key: &str, value: &str) -> Result<(), PolicyError> {
        if key.is_empty() {
            let what = format!("{} has no key", ticked(value));
            return Err(self.error(line, what, "write key: value"));
        }
        if value.is_empty() {
            let what = format!("{} has no value", ticked(key));
            return Err(self.error(line, what, "write key: value in one line"));
        }
        let Some(open) = self.open.last_mut() else {
            self.odd(line, format!("{} stands in no block and is kept as it is", ticked(key)));
            let written = Written::Text(value.to_owned());
            self.put(Item::Setting(Setting { key: key.to_owned(), written, place: Place(line) }));
            return Ok(());
        };
        let first = *open.seen.entry(key.to_owned()).or_insert(line);
        let (name, known) = (short(&open.block.name), open.keys.unwrap_or_default());
        if first != line {
            let what = format!("{} of {name} stands in line {first} too", ticked(key));
            return Err(self.error(line, what, "drop one of the two"));
        }
        let written = match known.iter().find(|known| known.name == key) {
            Some(known) => self.written(line, known, value)?,
            None => {
                let near = nearest(key, known.iter().map(|known| known.name));
                let near = near.map(|near| format!("; the nearest is `{near}`"));
                self.odd(
                    line,
                    format!(
                        "{name} has no key {} that is known here; it is kept as it is{}",
                        ticked(key),
                        near.unwrap_or_default()
                    ),
                );
                Written::Text(value.to_owned())
            }
        };
        self.put(Item::Setting(Setting { key: key.to_owned(), written, place: Place(line) }));
        Ok(())
    }

    /// The value of a key that is known.
    fn written(&self, line: usize, key: &Key, value: &str) -> Result<Written, PolicyError> {
        let name = key.name;
        match key.kind {
            Kind::Text => Ok(Written::Text(value.to_owned())),
            Kind::Number(most) => self.number(line, key, most, value).map(Written::Number),
            Kind::Levels => {
                let words = value.split(',').map(|word| self.number(line, key, 255, word.trim()));
                let numbers = words.collect::<Result<Vec<_>, _>>()?;
                let levels = ServiceLevel::COUNT;
                if numbers.len() != 1 && numbers.len() != levels {
                    let what = format!("{name} has {} numbers", numbers.len());
                    let remedy = format!("write one for all SLs or {levels} with commas");
                    return Err(self.error(line, what, remedy));
                }
                Ok(Written::Numbers(numbers))
            }
            Kind::Sets => {
                let names: Vec<String> = value.split(',').map(|n| n.trim().to_owned()).collect();
                if names.len() > LANES || names.iter().any(String::is_empty) {
                    let what = format!("{name} is {}", ticked(value));
                    let remedy = format!("write one name for all VLs or up to {LANES} with commas");
                    return Err(self.error(line, what, remedy));
                }
                Ok(Written::Names(names))
            }
        }
    }

    fn number(&self, line: usize, key: &Key, most: u64, word: &str) -> Result<u64, PolicyError> {
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse::<u64>().ok().filter(|number| is_number && *number <= most);
        number.ok_or_else(|| {
            let name = key.name;
            let what = format!("{name} is {}, no whole number from 0 to {most}", ticked(word));
            let remedy = match key.unit {
                "" => "write digits alone".to_owned(),
                unit => format!("write digits alone; the unit is {unit}"),
            };
            self.error(line, what, remedy)
        })
    }
}

/// Fails where blocks name what no other has.
fn check(policy: &CongestionControlPolicy, file: &str) -> Result<(), PolicyError> {
    let mut sets: BTreeMap<&str, usize> = BTreeMap::new();
    let mut most = 0;
    for set in policy.blocks(keys::PROFILES) {
        let Some(name) = set.setting("name") else {
            let what = "a set of profiles has no name".to_owned();
            return Err(PolicyError::new(file, set.place.0, what, "write name: and one"));
        };
        let Written::Text(text) = &name.written else { continue };
        if let Some(first) = sets.insert(text, set.place.0) {
            let what = format!("the set begun in line {first} has the name {} too", ticked(text));
            return Err(PolicyError::new(file, name.place.0, what, "give each set its own"));
        }
        most = most.max(set.blocks(keys::PROFILE).count() as u64);
    }
    for setting in policy.blocks(keys::VL_CONFIG).flat_map(Block::settings) {
        let Written::Names(names) = &setting.written else { continue };
        let unknown = names.iter().collect::<BTreeSet<_>>();
        if let Some(name) = unknown.into_iter().find(|name| !sets.contains_key(name.as_str())) {
            let what = format!("no set of profiles has the name {}", ticked(name));
            let near = nearest(name, sets.keys().copied());
            let remedy = match near {
                Some(near) => format!("the nearest is {}", ticked(near)),
                None => "add it, or name one that is there".to_owned(),
            };
            return Err(PolicyError::new(file, setting.place.0, what, remedy));
        }
    }
    for setting in policy.blocks(keys::SL_CONFIG).flat_map(Block::settings) {
        let Written::Numbers(numbers) = &setting.written else { continue };
        if let Some(number) = numbers.iter().find(|number| !(1..=most).contains(*number)) {
            let what = format!("no set has a profile {number}: the largest has {most}");
            let remedy = "profiles are counted from 1; add them, or write another number";
            return Err(PolicyError::new(file, setting.place.0, what, remedy));
        }
    }
    Ok(())
}
