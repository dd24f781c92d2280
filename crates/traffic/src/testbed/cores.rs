//! How busy the machine's cores are: what a testbed shows is the machine's when they are.

use std::fs;

/// Time that cores have had, and been idle for, in ticks of the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores {
    all: u64,
    idle: u64,
}

impl Cores {
    /// Until now; nothing on a system that does not tell.
    pub fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// From the first line of `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq,
    /// softirq, steal; what guests have is part of user and nice.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks =
            line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        let idle = ticks.get(3)?.saturating_add(*ticks.get(4)?);
        Some(Cores { all: ticks.iter().take(8).sum(), idle })
    }

    /// The part of the time since then for which cores were busy, 0 to 1.
    pub fn busy_since(self, then: Self) -> Option<f64> {
        let all = self.all.checked_sub(then.all).filter(|all| *all > 0)?;
        let idle = self.idle.saturating_sub(then.idle).min(all);
        Some((all - idle) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_busy_when_they_are_not_idle() {
        let cores = |text: &str| Cores::of(text).unwrap();
        let then = cores("cpu  100 0 50 800 50 0 0 0 70 0\ncpu0 1 2 3\n");
        let now = cores("cpu  160 0 80 802 58 0 0 0 90 0\n");
        // 100 ticks, of which 10 were idle.
        assert_eq!(now.busy_since(then), Some(0.9));
        assert_eq!(then.busy_since(then), None);
        assert_eq!(Cores::of("cpu0 1 2 3"), None);
        assert_eq!(Cores::of("cpu  1 x"), None);
    }
}
