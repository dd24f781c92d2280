//! The measures, one a file: what it is, what it takes, how it is answered. A new one is its file
//! and its line in `measures!`.

use super::Entry;

mod chosen;
mod oscillation;
mod outputs;

macro_rules! measures {
    ($($module:ident)*) => {
        $(pub mod $module;)*

        /// All measures.
        pub static ALL: &[&Entry] = &[$(&$module::ENTRY),*];
    };
}

measures! {
    offered_load
    delivered_load
    accepted_load
    accepted_gbps
    total_load
    payload_share
    served
    latency_mean
    latency_p50
    latency_p99
    completion_time
    operation_time
    ideal_time
    link_bound
    host_bound
    jain
    slowdown
    slowdown_uncontrolled
    alone_gbps
    worst_load
    held_back
    outputs_held_back
    notification_overhead
    deadlocks
    flow_share
    becns
    span_load
    peak_load
    time_to_relief
    relieved
    first_path_open
    last_path_open
    open_paths
    oscillation_period
    oscillation_amplitude
    saturation
    ratio
    spread
    largest
    smallest
    first
    last
    gain_along
    mean_over
}

/// The measure of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{AS_WITHIN, Answer, Parameter};

    #[test]
    fn names_are_unique_and_lead_back() {
        // Not by address: what is constant may have several.
        for entry in ALL {
            let named = ALL.iter().filter(|known| known.name == entry.name);
            assert_eq!(named.count(), 1, "{}", entry.name);
            assert_eq!(by_name(entry.name).unwrap().summary, entry.summary);
        }
    }

    #[test]
    fn what_combines_has_something_within_or_is_a_saturation() {
        for entry in ALL {
            let combines = matches!(entry.answer, Answer::Combined(_));
            let within = entry.takes(Parameter::Of) || entry.name == "saturation";
            assert_eq!(combines, within, "{}", entry.name);
            assert!(combines || entry.unit != AS_WITHIN, "{}", entry.name);
        }
    }

    #[test]
    fn thresholds_are_those_that_summaries_name() {
        let percent = |share: f64| format!("more than {} % of", share * 100.0);
        for relief in [&relieved::ENTRY, &time_to_relief::ENTRY] {
            assert!(relief.summary.contains(&percent(outputs::RELIEVED)), "{}", relief.summary);
        }
        assert!(outputs_held_back::ENTRY.summary.contains("a tenth of the time or more"));
        assert_eq!(crate::measure::HELD_BACK, 0.1);
    }
}
