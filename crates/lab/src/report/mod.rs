//! The report: one HTML file, the page's template with the results in it.

mod congestion;
mod control;
mod curves;
mod data;
mod distances;
mod excerpt;
mod finding;
mod flows;
mod frames;
mod groups;
mod layout;
mod link_series;
mod map;
mod observed;
mod over_time;
mod packed;
mod paths;
mod picture;
mod programs;
mod suffering;
mod sweep;

pub use finding::lost;
pub use observed::{ObservedColumn, ObservedLine, ObservedPage, ObservedRecord, ObservedRow};
pub use picture::{Theme, picture};
pub use suffering::Suffering;
pub use sweep::{AxisValue, SweepAxis, SweepData, SweepFigure, SweepPage, SweepPoint};

use crate::halt::{Deadline, LeftOut};
use crate::result::RunResult;
use clearlane_ib::visible;
use std::borrow::Cow;

/// Built from `web/` by this crate's build script.
const TEMPLATE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));
/// Where the template wants its data.
const PLACEHOLDER: &str = "__CLEARLANE_DATA__";

/// The report of a result.
pub(crate) fn page(result: &RunResult, deadline: &Deadline) -> Result<String, LeftOut> {
    let report = data::report(result, deadline)?;
    deadline.go_on()?;
    Ok(filled(&report))
}

/// The report of a sweep, one HTML file.
pub fn sweep_page(page: &SweepPage) -> String {
    filled(&data::sweep_report(page))
}

/// The page of what was observed, one HTML file.
pub fn observed_page(page: &ObservedPage) -> String {
    filled(&data::observed_report(page))
}

fn filled(report: &data::Report) -> String {
    // Everything in the data is a string, a finite number or null, so it can be written.
    let data = serde_json::to_string(report).unwrap_or_default();
    // No end tag of the script element can come from a name in a file.
    TEMPLATE.replacen(PLACEHOLDER, &readable(&data).replace('<', "\\u003c"), 1)
}

/// The data with what would be hidden on a page, or reorder it, spelt out in its texts.
fn readable(data: &str) -> String {
    // Control characters are escaped in the document itself; one more backslash makes them text.
    let mut out = String::with_capacity(data.len());
    let mut chars = data.chars();
    while let Some(c) = chars.next() {
        let mut one = [0; 4];
        match (c, visible(c.encode_utf8(&mut one))) {
            ('\\', _) => match chars.next() {
                Some('u') => out.push_str("\\\\u"),
                next => out.extend([c].into_iter().chain(next)),
            },
            (_, Cow::Owned(spelt)) => out.push_str(&spelt.replace('\\', "\\\\")),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_show_what_is_hidden_in_them() {
        for (text, shown) in [
            ("\u{1b}]0;x\u{7}", "\\u001b]0;x\\u0007"),
            ("\u{202e}gpj", "\\u202egpj"),
            ("back\\slash \"quoted\" and\nbroken é", "back\\slash \"quoted\" and\nbroken é"),
            ("\\u001b", "\\u001b"),
        ] {
            let data = serde_json::to_string(&[text]).unwrap();
            let read: Vec<String> = serde_json::from_str(&readable(&data)).unwrap();
            assert_eq!(read, [shown]);
        }
    }

    #[test]
    fn the_template_has_one_place_for_the_data() {
        assert_eq!(TEMPLATE.matches(PLACEHOLDER).count(), 1);
    }
}
