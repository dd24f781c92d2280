//! The limits of memory of this process: what the machine has available, every level of control
//! groups, and `ulimit -v` and `-d`.

use super::groups::{self, Level};
use super::keeper::largest;
use super::{Read, Room};

/// Places in which limits are found.
pub struct Limits {
    levels: Vec<Level>,
}

impl Limits {
    /// Finds the limits of this process, which stays in its control group.
    pub fn found(read: Read<'_>) -> Self {
        Limits { levels: groups::levels(read) }
    }

    /// Room that each limit leaves.
    pub fn rooms(&self, read: Read<'_>) -> Vec<Room> {
        let mut rooms = self.filled(read);
        let limits = read("/proc/self/limits").unwrap_or_default();
        let status = read("/proc/self/status").unwrap_or_default();
        for (limit, used, of) in [
            ("Max address space", "VmSize:", "the address space (ulimit -v)"),
            ("Max data size", "VmData:", "the data segment (ulimit -d)"),
        ] {
            if let (Some(limit), Some(used)) = (soft(&limits, limit), kilobytes(&status, used)) {
                let left = limit.saturating_sub(used);
                // The allocator keeps memory free for each thread: in VmSize, not in VmData.
                let doubled = kilobytes(&status, "VmData:").unwrap_or(0);
                rooms.push(Room { of: of.into(), left, doubled });
            }
        }
        rooms
    }

    /// Room that those limits leave for which the system kills. Limits of addresses are left out,
    /// because there the system refuses.
    pub fn filled(&self, read: Read<'_>) -> Vec<Room> {
        let doubled = largest();
        let groups = self.levels.iter().filter_map(|level| level.room(doubled, read));
        let mut rooms: Vec<Room> = groups.collect();
        let meminfo = read("/proc/meminfo").unwrap_or_default();
        if let Some(left) = kilobytes(&meminfo, "MemAvailable:") {
            rooms.push(Room { of: "the machine's memory".into(), left, doubled });
        }
        rooms
    }
}

/// Bytes that this process has filled, without pages of files.
pub fn own_bytes(read: Read<'_>) -> u64 {
    let status = read("/proc/self/status").unwrap_or_default();
    kilobytes(&status, "RssAnon:").unwrap_or(0)
}

/// `MemAvailable:  1234 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit in `Max address space  1000000  unlimited  bytes`; `None` if there is none.
fn soft(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A system of these files.
    pub fn files<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn the_systems_words_are_read() {
        let of = |text| kilobytes(text, "MemAvailable:");
        assert_eq!(of("MemTotal: 9 kB\nMemAvailable:    123 kB\n"), Some(125_952));
        assert_eq!(of("MemTotal: 9 kB\n"), None);
        assert_eq!(of("MemAvailable: many\n"), None);
        let limits = "Limit   Soft Limit  Hard Limit  Units\n\
            Max data size       unlimited   unlimited   bytes\n\
            Max address space   1073741824  unlimited   bytes\n";
        assert_eq!(soft(limits, "Max address space"), Some(1 << 30));
        assert_eq!(soft(limits, "Max data size"), None);
        assert_eq!(soft("", "Max data size"), None);
    }

    #[test]
    fn every_limit_there_is_counts() {
        let limits = "Max address space 9000000 9000000 bytes\nMax data size 500000 5 bytes\n";
        let texts = [
            ("/proc/meminfo", "MemAvailable: 4000 kB\n"),
            ("/proc/self/limits", limits),
            ("/proc/self/status", "VmSize:\t 2000 kB\nVmData:\t 1000 kB\n"),
        ];
        let system = files(&texts);
        let rooms = |system: Read<'_>| Limits::found(system).rooms(system);
        let doubled = |room: &Room| if room.of.contains("ulimit") { room.doubled } else { 0 };
        let left: Vec<_> =
            rooms(&system).into_iter().map(|r| (r.of.clone(), r.left, doubled(&r))).collect();
        assert_eq!(
            left,
            [
                ("the machine's memory".into(), 4_096_000, 0),
                ("the address space (ulimit -v)".into(), 6_952_000, 1_024_000),
                // Less than is in use already.
                ("the data segment (ulimit -d)".into(), 0, 1_024_000),
            ]
        );
        assert_eq!(rooms(&files(&[])), []);
    }
}
