//! Which hosts stand out by how busy the way to them is: in counters of a site, or in a run.

use crate::words::count;
use clearlane_lab::BusiestHosts;

/// Share of the link's rate from which the way to a host is called busy. Hosts rarely take all of
/// it: headers and the bus of the adapter take their part.
const BUSY: f64 = 0.8;
/// How many times busier than the host in the middle one is that stands out.
const TIMES: f64 = 2.0;

/// Why nobody stands out.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BusyError {
    /// There is nothing about hosts.
    #[error("it has no counters of a switch port to a host of this fabric")]
    Nothing,
    /// The ways to all hosts are idle enough.
    #[error(
        "no host stands out: the way to the busiest, {name}, is busy for {share} %, and one is hot \
         from {} % and {TIMES} times the host in the middle; name it with --hot",
        100.0 * BUSY
    )]
    Nobody {
        /// The busiest host.
        name: String,
        /// How busy, in percent.
        share: u64,
    },
}

/// The hosts that stand out, and a sentence on them.
pub fn stand_out(busy: &BusiestHosts) -> Result<(Vec<String>, String), BusyError> {
    let BusiestHosts { hosts, middle } = busy;
    let percent = |share: f64| (100.0 * share).round() as u64;
    let is_hot = |share: f64| share >= BUSY && share >= TIMES * *middle;
    // A host with several ports is hot once.
    let mut hot: Vec<String> = Vec::new();
    for host in hosts.iter().filter(|host| is_hot(host.load)) {
        if !hot.contains(&host.host) {
            hot.push(host.host.clone());
        }
    }
    let busiest = hosts.first().ok_or(BusyError::Nothing)?;
    let Some(first) = hot.first() else {
        let (name, share) = (busiest.host.clone(), percent(busiest.load));
        return Err(BusyError::Nobody { name, share });
    };
    let more = match hot.len() {
        1 => String::new(),
        all => format!(" and {}", count(all as u64 - 1, "other", "others")),
    };
    let note = format!(
        "hot by what is counted: {first}{more}, busy for up to {} %, the host in the middle for \
         {} %",
        percent(busiest.load),
        percent(*middle)
    );
    Ok((hot, note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_lab::HostLoad;

    fn hosts(loads: &[f64]) -> BusiestHosts {
        let host = |(at, load): (usize, &f64)| HostLoad { host: format!("h{at}"), load: *load };
        BusiestHosts::among(loads.iter().enumerate().map(host).collect())
    }

    #[test]
    fn hosts_that_stand_out_are_hot() {
        let (hot, note) = stand_out(&hosts(&[0.1, 0.95, 0.2, 0.85, 0.1])).unwrap();
        assert_eq!(hot, ["h1", "h3"]);
        assert!(note.contains("h1 and 1 other, busy for up to 95 %, the host"), "{note}");
    }

    #[test]
    fn a_host_with_two_busy_ports_is_hot_once() {
        let mut hosts = hosts(&[0.9, 0.8, 0.1, 0.1, 0.1]);
        hosts.hosts[1].host = "h0".into();
        let (hot, note) = stand_out(&hosts).unwrap();
        assert_eq!(hot, ["h0"]);
        assert!(note.contains("h0, busy for up to 90 %"), "{note}");
    }

    #[test]
    fn where_all_are_busy_or_none_is_nobody_stands_out() {
        assert_eq!(stand_out(&hosts(&[])), Err(BusyError::Nothing));
        let said = |loads: &[f64]| stand_out(&hosts(loads)).unwrap_err().to_string();
        assert!(said(&[0.9, 0.9, 0.95]).contains("h2, is busy for 95 %"));
        assert!(said(&[0.0, 0.79]).contains("from 80 % and 2 times"));
    }
}
