//! `notification-overhead`: of the whole run, warm-up included.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};
use clearlane_ib::wire;

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "notification-overhead",
    summary: "bytes of CNPs ÷ all bytes that switches sent in the run",
    unit: "",
    takes: &[],
    settles: Settles::Always,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    // PortXmitData leaves the VCRC out.
    let vcrc = u64::from(wire::VCRC);
    let bytes = run.switch_channels().map(|c| c.port_xmit_data * 4 + c.port_xmit_pkts * vcrc);
    let cnps = run.totals.cnp_hops * u64::from(wire::CNP);
    Some(bytes.sum::<u64>()).filter(|all| *all > 0).map(|all| cnps as f64 / all as f64)
}
