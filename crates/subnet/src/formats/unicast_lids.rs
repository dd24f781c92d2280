//! What it is: the layout that opensm-lfts.dump and ibroute share.
//!
//! ```text
//! Unicast lids [0x0-0xe] of switch Lid 2 guid 0x0ac1ea5100000000 (leaf00):
//! 0x0001 003 : (Channel Adapter portguid 0x0ac1eaca00000001: 'host0000')
//! 14 valid lids dumped
//! ```
//! Lines that are neither a heading, nor an entry, nor the closing count are passed over, as OpenSM
//! does; sections of multicast LIDs too.

use super::{Dump, DumpEntry, DumpError, Oddity, Section};
use clearlane_ib::{Guid, Lid, PortNumber, quoted};

/// How every section begins.
const HEADING: &str = "Unicast lids";

/// Whether a text holds such sections; `mark` follows the port of an entry.
pub(super) fn sniff(text: &str, mark: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    if !lines.any(|line| line.starts_with(HEADING)) {
        return false;
    }
    // The first entry tells the dialect; a bare one is OpenSM's.
    let entry = lines.find(|line| line.starts_with("0x"));
    let rest = entry.and_then(|line| line.split_whitespace().nth(2));
    rest.map_or(mark == "#", |word| word.starts_with(mark))
}

/// Reads all sections.
pub(super) fn read(text: &str, file: &str) -> Result<Dump, DumpError> {
    let mut dump = Dump::default();
    // Whether the lines at hand belong to a section of unicast LIDs.
    let mut inside = false;
    let (mut open, mut closed) = (false, 0);
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.starts_with(HEADING) {
            let guid = heading_guid(line).ok_or_else(|| {
                let what = "a heading without \" guid 0x…\"".to_string();
                DumpError::new(file, number, what, "dump the table again")
            })?;
            dump.sections.push(Section { guid, line: number, entries: Vec::new() });
            (inside, open) = (true, true);
        } else if line.starts_with("Multicast") {
            inside = false;
        } else if line.starts_with("0x") && inside {
            let entry = entry(line, number, file)?;
            if let Some(section) = dump.sections.last_mut() {
                section.entries.push(entry);
            }
        } else if line.starts_with("0x") && dump.sections.is_empty() {
            let what = "an entry before the first heading".to_string();
            let remedy = "keep the line \"Unicast lids … guid 0x…\" that names its switch";
            return Err(DumpError::new(file, number, what, remedy));
        } else if let Some(count) = closing_count(line).filter(|_| inside && open) {
            // Only the first count closes a section: going through it again for each of a million
            // would take hours.
            check_count(&mut dump, count, number);
            (open, closed) = (false, closed + 1);
        }
    }
    if dump.sections.is_empty() {
        let what = "no section \"Unicast lids\"".to_string();
        let remedy = "give the output of dump_fts, ibroute or opensm -D 0x43";
        return Err(DumpError::new(file, 1, what, remedy));
    }
    if open && closed > 0 {
        let what = "the last section has no closing count; the file may be cut off".to_string();
        dump.oddities.push(Oddity { line: text.lines().count(), what });
    }
    Ok(dump)
}

fn check_count(dump: &mut Dump, count: usize, line: usize) {
    let Some(section) = dump.sections.last() else { return };
    let found = section.entries.iter().filter(|entry| entry.port.is_some()).count();
    if found != count && section.entries.len() != count {
        let what = format!("{count} LIDs are announced for {} and {found} given", section.guid);
        dump.oddities.push(Oddity { line, what });
    }
}

fn heading_guid(line: &str) -> Option<Guid> {
    let (_, rest) = line.split_once(" guid ")?;
    let word = rest.split(|c: char| c.is_whitespace() || c == '(' || c == ':').next()?;
    Guid::from_hex(word.strip_prefix("0x")?).ok()
}

/// The number of "14 lids dumped" or "306 valid lids dumped".
fn closing_count(line: &str) -> Option<usize> {
    let count = line.strip_suffix("lids dumped")?.split_whitespace().next()?;
    count.parse().ok()
}

fn entry(line: &str, number: usize, file: &str) -> Result<DumpEntry, DumpError> {
    let error = |what: String| {
        let remedy = "an entry is 0x<LID> <port>, LIDs 0x1 to 0xbfff, ports 0 to 254";
        DumpError::new(file, number, what, remedy)
    };
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or_default();
    let lid = word
        .strip_prefix("0x")
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .and_then(Lid::new)
        .ok_or_else(|| error(format!("{} is no unicast LID", quoted(word))))?;
    let word = words.next().unwrap_or_default();
    let port: u8 =
        super::decimal(word).ok_or_else(|| error(format!("{} is no port number", quoted(word))))?;
    let port_guid = match line.split_once(" portguid ") {
        None => None,
        Some((_, rest)) => {
            let word = rest.split(|c: char| c.is_whitespace() || c == ':').next().unwrap_or("");
            let digits = word.strip_prefix("0x").and_then(|digits| Guid::from_hex(digits).ok());
            Some(digits.ok_or_else(|| error(format!("{} is no port GUID", quoted(word))))?)
        }
    };
    Ok(DumpEntry { lid, port: PortNumber::new(port), port_guid, line: number })
}
