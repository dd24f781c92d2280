//! What control groups leave of memory: every level from the process's own group up to the top.

use super::{Read, Room};

/// A hierarchy of control groups that knows memory: names of its files.
struct Version {
    /// Its file system.
    kind: &'static str,
    limit: &'static str,
    used: &'static str,
    /// What of it the system takes back when it is needed: pages of files that were read.
    cached: [&'static str; 2],
}

/// Limits from here on are none.
const NO_LIMIT: u64 = 1 << 62;

static ONE: Version = Version {
    kind: "cgroup",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
};
static TWO: Version = Version {
    kind: "cgroup2",
    limit: "memory.max",
    used: "memory.current",
    cached: ["inactive_file", "active_file"],
};

/// A control group that this process is in, by itself or by one below.
pub(super) struct Level {
    folder: String,
    version: &'static Version,
}

/// Every level of both versions.
pub(super) fn levels(read: Read<'_>) -> Vec<Level> {
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    let mut levels = Vec::new();
    for version in [&TWO, &ONE] {
        let Some(group) = group(&own, version) else { continue };
        for mount in mounts.lines().filter_map(|line| mount(line, version)) {
            let folders = folders(group, &mount).into_iter();
            levels.extend(folders.map(|folder| Level { folder, version }));
        }
    }
    levels
}

impl Level {
    /// Room that this level leaves; `None` if it has no limit.
    pub(super) fn room(&self, doubled: u64, read: Read<'_>) -> Option<Room> {
        let Level { folder, version } = self;
        let number = |name: &str| read(&format!("{folder}/{name}"))?.trim().parse::<u64>().ok();
        // `max` is no number, and version 1 says 2^63 less a page for it.
        let limit = number(version.limit).filter(|limit| *limit < NO_LIMIT)?;
        let used = number(version.used)?;
        let stat = read(&format!("{folder}/memory.stat")).unwrap_or_default();
        let words = stat.lines().filter_map(|line| line.split_once(' '));
        let cached = words.filter(|(name, _)| version.cached.contains(name));
        let cached: u64 = cached.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum();
        let left = limit.saturating_sub(used.saturating_sub(cached));
        let of = format!("the memory of the control group {folder}");
        Some(Room { of, left, doubled })
    }
}

/// The process's group: `0::/job/step` of version 2, `4:memory:/job/step` of version 1.
fn group<'t>(own: &'t str, version: &Version) -> Option<&'t str> {
    own.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let ours = match version.kind {
            "cgroup2" => number == "0" && controllers.is_empty(),
            _ => controllers.split(',').any(|name| name == "memory"),
        };
        ours.then_some(path)
    })
}

/// Where a hierarchy is mounted, and from which of its groups on.
struct Mount {
    root: String,
    at: String,
}

/// `30 23 0:26 /root /at rw - cgroup cgroup rw,memory`, with any number of words before the dash.
fn mount(line: &str, version: &Version) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut kind = kind.split_whitespace();
    if kind.next()? != version.kind {
        return None;
    }
    let options = kind.nth(1)?;
    if version.kind == ONE.kind && !options.split(',').any(|name| name == "memory") {
        return None;
    }
    let mut place = place.split_whitespace().skip(3);
    Some(Mount { root: unescaped(place.next()?), at: unescaped(place.next()?) })
}

/// Blanks and backslashes of a path are written in octal there.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// The folders of the group and of all above it, as far as they are mounted. A container that sees
/// its own group as the top may be told another path: then the top is its group.
fn folders(group: &str, mount: &Mount) -> Vec<String> {
    let root = mount.root.trim_end_matches('/');
    let within = group.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let within = within.filter(|rest| !rest.split('/').any(|name| name == "..")).unwrap_or("");
    let mut folder = format!("{}{}", mount.at.trim_end_matches('/'), within.trim_end_matches('/'));
    let mut levels = vec![folder.clone()];
    while folder.len() > mount.at.trim_end_matches('/').len() {
        let Some(above) = folder.rfind('/') else { break };
        folder.truncate(above);
        levels.push(folder.clone());
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::super::limits::tests::files;
    use super::*;

    fn left(system: &[(&str, &str)]) -> Vec<(String, u64)> {
        let system = files(system);
        let short = |room: Room| {
            (room.of.trim_start_matches("the memory of the control group ").to_owned(), room.left)
        };
        let rooms = levels(&system).into_iter().filter_map(|level| level.room(0, &system));
        rooms.map(short).collect()
    }

    const TWO_MOUNTED: &str = "24 1 0:2 / /sys rw - sysfs sysfs rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn every_level_above_a_job_counts_and_pages_of_files_do_not() {
        let found = left(&[
            ("/proc/self/cgroup", "0::/slurm/job_7/step_0\n"),
            ("/proc/self/mountinfo", TWO_MOUNTED),
            ("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"),
            ("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "400\n"),
            ("/sys/fs/cgroup/slurm/job_7/memory.max", "1000\n"),
            ("/sys/fs/cgroup/slurm/job_7/memory.current", "900\n"),
            (
                "/sys/fs/cgroup/slurm/job_7/memory.stat",
                "anon 600\ninactive_file 200\nactive_file 50\n",
            ),
            ("/sys/fs/cgroup/slurm/memory.max", "5000\n"),
            ("/sys/fs/cgroup/slurm/memory.current", "6000\n"),
        ]);
        let job = ("/sys/fs/cgroup/slurm/job_7".to_owned(), 350);
        assert_eq!(found, [job, ("/sys/fs/cgroup/slurm".to_owned(), 0)]);
    }

    #[test]
    fn version_1_has_a_mount_of_its_own_for_memory() {
        let found = left(&[
            ("/proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/batch/a b\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "33 1 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu\n\
                 35 1 0:32 / /cg/my\\040memory rw shared:1 - cgroup cgroup rw,memory\n\
                 36 1 0:33 / /cg/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("/cg/my memory/batch/a b/memory.limit_in_bytes", "700\n"),
            ("/cg/my memory/batch/a b/memory.usage_in_bytes", "300\n"),
            ("/cg/my memory/batch/a b/memory.stat", "inactive_file 9\ntotal_inactive_file 100\n"),
            ("/cg/my memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/cg/my memory/memory.usage_in_bytes", "4096\n"),
            ("/cg/cpu/x/memory.limit_in_bytes", "1\n"),
            ("/cg/cpu/x/memory.usage_in_bytes", "1\n"),
        ]);
        assert_eq!(found, [("/cg/my memory/batch/a b".to_owned(), 500)]);
    }

    #[test]
    fn a_container_finds_its_own_limit_at_the_top() {
        for (group, root) in [("/", "/"), ("/docker/abc", "/docker/abc"), ("/../../x", "/")] {
            let own = format!("0::{group}\n");
            let mounts = format!("30 24 0:26 {root} /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
            let found = left(&[
                ("/proc/self/cgroup", &own),
                ("/proc/self/mountinfo", &mounts),
                ("/sys/fs/cgroup/memory.max", "1000"),
                ("/sys/fs/cgroup/memory.current", "250"),
            ]);
            assert_eq!(found, [("/sys/fs/cgroup".to_owned(), 750)], "{group} {root}");
        }
    }

    #[test]
    fn what_is_no_such_file_limits_nothing() {
        assert_eq!(left(&[]), []);
        let odd = [("/proc/self/cgroup", "x\n0:\n"), ("/proc/self/mountinfo", "- cgroup2\n - \n")];
        assert_eq!(left(&odd), []);
    }
}
