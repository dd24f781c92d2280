//! The report: one HTML file, the page's template with the results in it.

mod congestion;
mod control;
mod curves;
mod data;
mod finding;
mod flows;
mod frames;
mod groups;
mod layout;
mod map;
mod over_time;
mod packed;
mod paths;
mod picture;
mod suffering;
mod sweep;

pub use picture::{Theme, picture};
pub use sweep::{AxisValue, SweepAxis, SweepData, SweepFigure, SweepPage, SweepPoint};

use crate::result::RunResult;

/// Built from `web/` by this crate's build script.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));
/// Where the template wants its data.
const PLACEHOLDER: &str = "__CLEARLANE_DATA__";

/// The report of a result.
pub(crate) fn page(result: &RunResult) -> String {
    filled(&data::report(result))
}

/// The report of a sweep, one HTML file.
pub fn sweep_page(page: &SweepPage) -> String {
    filled(&data::sweep_report(page))
}

fn filled(report: &data::Report) -> String {
    // Everything in the data is a string, a finite number or null, so it can be written.
    let data = serde_json::to_string(report).unwrap_or_default();
    // No end tag of the script element can come from a name in a file.
    TEMPLATE.replacen(PLACEHOLDER, &data.replace('<', "\\u003c"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_one_place_for_the_data() {
        assert_eq!(TEMPLATE.matches(PLACEHOLDER).count(), 1);
    }
}
