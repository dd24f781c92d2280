//! How much memory is free, as far as the system says.

use std::fs;

/// Three quarters of what is free: the rest is for what grows less. Nothing where the system does
/// not say.
pub fn free_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let free = available(&meminfo)?;
    // In a container, what it may still take.
    let of = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok();
    let number = |text: String| text.trim().parse::<u64>().ok();
    let limit = of("max").and_then(number);
    let used = of("current").and_then(number).unwrap_or(0);
    let left = limit.map_or(free, |limit| limit.saturating_sub(used).min(free));
    Some(left / 4 * 3)
}

/// `MemAvailable:  1234 kB`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_are_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    123 kB\n"), Some(125_952));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert_eq!(available("MemAvailable: many\n"), None);
    }
}
