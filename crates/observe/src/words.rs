//! Numbers as people write them.

use clearlane_capture::FoundFlow;
use clearlane_lab::grouped;

use crate::names::Names;

/// `1 flow`, `1,214 flows`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// `11.8 %`, `0.02 %`; nothing that is not none is told as none.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0 %".into(),
        small if small < 0.01 => "< 0.01 %".into(),
        small if small < 1.0 => format!("{small:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// `2.41 Gb/s`, `940 Mb/s`, `12 kb/s`.
pub(crate) fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e9 => format!("{:.2} Gb/s", b * 1e-9),
        b if b >= 1e6 => format!("{:.0} Mb/s", b * 1e-6),
        b => format!("{:.0} kb/s", b * 1e-3),
    }
}

/// `12 ns`, `4.10 µs`, `3.2 ms`, `1.25 s`.
pub(crate) fn time(ns: u64) -> String {
    match ns as f64 {
        n if n >= 1e9 => format!("{:.2} s", n * 1e-9),
        n if n >= 1e6 => format!("{:.2} ms", n * 1e-6),
        n if n >= 1e3 => format!("{:.2} µs", n * 1e-3),
        n => format!("{n:.0} ns"),
    }
}

/// `h1 → h4`.
pub(crate) fn ends(flow: &FoundFlow, names: &Names) -> String {
    format!("{} → {}", names.of(flow.source), names.of(flow.destination))
}

/// `0x2a → 0x11`, a queue pair that no packet told as `?`.
pub(crate) fn queue_pairs(flow: &FoundFlow) -> String {
    let shown = |queue_pair: Option<u32>| match queue_pair {
        Some(number) => format!("0x{number:x}"),
        None => "?".into(),
    };
    format!("{} → {}", shown(flow.source_queue_pair), shown(flow.queue_pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_a_person_would_choose() {
        assert_eq!(
            [0.0, 0.00002, 0.004, 0.118].map(percent).join(" "),
            "0 % < 0.01 % 0.40 % 11.8 %"
        );
        assert_eq!([2.41e9, 940e6, 12e3].map(rate).join(", "), "2.41 Gb/s, 940 Mb/s, 12 kb/s");
        let times = [12, 4100, 3_200_000, 1_250_000_000].map(time).join(", ");
        assert_eq!(times, "12 ns, 4.10 µs, 3.20 ms, 1.25 s");
        assert_eq!(count(1, "flow", "flows"), "1 flow");
        assert_eq!(count(1214, "flow", "flows"), "1,214 flows");
    }
}
