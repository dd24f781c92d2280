//! Which hosts stand out by how busy the way to them is: in counters of a site, or in a run.

use crate::words::count;

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

/// The hosts that stand out, and a sentence on them. `hosts` are the busiest ones or all, with the
/// share of time, 0 to 1, that the way to each is busy; `middle` is that of the host in the middle
/// of all.
pub fn stand_out(hosts: &[(String, f64)], middle: f64) -> Result<(Vec<String>, String), BusyError> {
    let percent = |share: f64| (100.0 * share).round() as u64;
    let is_hot = |share: f64| share >= BUSY && share >= TIMES * middle;
    let hot: Vec<String> =
        hosts.iter().filter(|(_, share)| is_hot(*share)).map(|(name, _)| name.clone()).collect();
    let busiest = hosts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).ok_or(BusyError::Nothing)?;
    let Some(first) = hot.first() else {
        let (name, share) = (busiest.0.clone(), percent(busiest.1));
        return Err(BusyError::Nobody { name, share });
    };
    let more = match hot.len() {
        1 => String::new(),
        all => format!(" and {}", count(all as u64 - 1, "other", "others")),
    };
    let note = format!(
        "hot by what is counted: {first}{more}, busy for up to {} %, the host in the middle for \
         {} %",
        percent(busiest.1),
        percent(middle)
    );
    Ok((hot, note))
}

/// The share of the host in the middle; 0 without hosts.
pub fn middle(hosts: &[(String, f64)]) -> f64 {
    let mut shares: Vec<f64> = hosts.iter().map(|(_, share)| *share).collect();
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(shares: &[f64]) -> Vec<(String, f64)> {
        shares.iter().enumerate().map(|(host, share)| (format!("h{host}"), *share)).collect()
    }

    #[test]
    fn hosts_that_stand_out_are_hot() {
        let hosts = hosts(&[0.1, 0.95, 0.2, 0.85, 0.1]);
        let (hot, note) = stand_out(&hosts, middle(&hosts)).unwrap();
        assert_eq!(hot, ["h1", "h3"]);
        assert!(note.contains("h1 and 1 other, busy for up to 95 %, the host"), "{note}");
    }

    #[test]
    fn where_all_are_busy_or_none_is_nobody_stands_out() {
        assert_eq!(stand_out(&[], 0.0), Err(BusyError::Nothing));
        let said = |shares: &[f64]| {
            let hosts = hosts(shares);
            stand_out(&hosts, middle(&hosts)).unwrap_err().to_string()
        };
        assert!(said(&[0.9, 0.9, 0.95]).contains("h2, is busy for 95 %"));
        assert!(said(&[0.0, 0.79]).contains("from 80 % and 2 times"));
    }
}
