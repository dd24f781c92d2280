//! How different the paths to a host's LIDs are, as text and as JSON.

use crate::table::{Align, Table, grouped};
use clearlane_subnet::check::{Disjointness, PathClass};
use serde_json::{Value, json};

/// LID offsets whose lengths the text shows; JSON has all.
const LENGTHS_MAX: usize = 8;

/// A table, a row for each class of pairs.
pub fn text(found: &Disjointness) -> String {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::plain(&[left, right, right, right, right, right, right, left]);
    let head = format!("paths        to {} LIDs", found.offsets);
    table.row([
        head.as_str(),
        "pairs",
        "different",
        "link-disjoint: mean",
        "least",
        "cables",
        "longest detour",
        "cables by LID offset",
    ]);
    for class in &found.classes {
        let shown = class.lengths.iter().take(LENGTHS_MAX).map(|length| format!("{length:.2}"));
        let mut lengths: Vec<String> = shown.collect();
        if class.lengths.len() > LENGTHS_MAX {
            lengths.push("…".to_owned());
        }
        table.row([
            format!("             {}", class.name),
            grouped(class.pairs),
            format!("{:.2}", class.distinct),
            format!("{:.2}", class.disjoint),
            class.disjoint_least.to_string(),
            format!("{:.2}", class.shortest),
            class.detour_most.to_string(),
            lengths.join(" "),
        ]);
    }
    table.to_string()
}

/// The same as JSON.
pub fn fields(found: &Disjointness) -> Value {
    let class = |class: &PathClass| {
        json!({
            "name": class.name,
            "pairs": class.pairs,
            "distinct": class.distinct,
            "disjoint": class.disjoint,
            "disjoint_least": class.disjoint_least,
            "cables_shortest": class.shortest,
            "cables_by_offset": class.lengths,
            "detour_most": class.detour_most,
        })
    };
    let classes: Vec<Value> = found.classes.iter().map(class).collect();
    json!({ "offsets": found.offsets, "classes": classes })
}
