//! Which engine loads the links of a fabric most evenly, of those that are safe there.

use crate::compared::Figures;
use crate::failure::Failure;
use crate::routing::Routing;
use crate::table::{Align, Table};
use clearlane_fabric::Fabric;
use clearlane_subnet::engines;
use serde_json::{Value, json};

/// Engines that are no choice: `file` fills nothing, and `multipath` needs a mechanism that chooses
/// among its paths.
const LEFT_OUT: [&str; 2] = ["file", "multipath"];

const NOTE: &str = "Bisection is what is left when all hosts send. Against one hot host see \
                    `clearlane diagnose --hot`.";

/// What became of an engine.
enum Outcome {
    /// It reaches every host without a credit loop.
    Safe(Figures),
    /// It does not.
    Unsafe(&'static str),
    /// It does not take this fabric.
    Refused(String),
}

/// The engines tried, the best first.
pub struct Best {
    tried: Vec<(&'static str, Outcome)>,
}

impl Best {
    /// Tries all.
    pub fn of(fabric: &Fabric, routing: &Routing) -> Self {
        let engines = engines::ALL.iter().filter(|entry| !LEFT_OUT.contains(&entry.name));
        let outcome = |name: &str| match routing.with_engine(name).new_subnet(fabric) {
            Err(error) => Outcome::Refused(error.to_string()),
            Ok(subnet) => {
                let figures = Figures::of(fabric, &subnet);
                match figures {
                    Figures { lost: 1.., .. } => Outcome::Unsafe("some paths do not arrive"),
                    Figures { has_loop: true, .. } => Outcome::Unsafe("a credit loop is possible"),
                    safe => Outcome::Safe(safe),
                }
            }
        };
        let mut tried: Vec<_> = engines.map(|entry| (entry.name, outcome(entry.name))).collect();
        // Bisection first: it is what is left when everybody sends. Less than a percent is no
        // difference.
        let key = |outcome: &Outcome| match outcome {
            Outcome::Safe(figures) => ((100.0 * figures.bisection).round(), -figures.mean),
            _ => (-1.0, 0.0),
        };
        tried.sort_by(|(_, a), (_, b)| {
            let (a, b) = (key(a), key(b));
            b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
        Best { tried }
    }

    /// The best engine. Fails if none is safe.
    pub fn engine(&self) -> Result<&'static str, Failure> {
        match self.tried.first() {
            Some((name, Outcome::Safe(_))) => Ok(name),
            _ => {
                let why = |(name, outcome): &(&str, Outcome)| match outcome {
                    Outcome::Safe(_) => String::new(),
                    Outcome::Unsafe(why) => format!("{name}: {why}"),
                    Outcome::Refused(why) => format!("{name}: {}", first_clause(name, why)),
                };
                let each: Vec<String> = self.tried.iter().map(why).collect();
                Err(Failure::Input(format!(
                    "no engine reaches every host without a credit loop here ({}); `clearlane \
                     diagnose` says what is wrong",
                    each.join("; ")
                )))
            }
        }
    }

    /// A row per engine.
    pub fn text(&self) -> String {
        use Align::{Left, Right};
        let mut table = Table::plain(&[Left, Right, Right, Right, Left]);
        table.row(["engine", "bisection, %", "flows on worst link", "lanes", ""]);
        for (place, (name, outcome)) in self.tried.iter().enumerate() {
            let (figures, why) = match outcome {
                Outcome::Safe(figures) => (Some(figures), ""),
                Outcome::Unsafe(why) => (None, *why),
                Outcome::Refused(why) => (None, first_clause(name, why)),
            };
            let cell = |of: &dyn Fn(&Figures) -> String| figures.map_or("–".into(), of);
            let best = if place == 0 && figures.is_some() { "recommended" } else { why };
            table.row([
                (*name).to_owned(),
                cell(&|figures| format!("{:.1}", 100.0 * figures.bisection)),
                cell(&|figures| format!("{:.2}", figures.mean)),
                cell(&|figures| figures.lanes.to_string()),
                best.to_owned(),
            ]);
        }
        format!("{table}{NOTE}\n")
    }

    /// The same as JSON.
    pub fn fields(&self) -> Value {
        let one = |(name, outcome): &(&str, Outcome)| match outcome {
            Outcome::Safe(figures) => json!({ "engine": name, "figures": figures.fields() }),
            Outcome::Unsafe(why) => json!({ "engine": name, "why": why }),
            Outcome::Refused(why) => json!({ "engine": name, "why": why }),
        };
        self.tried.iter().map(one).collect()
    }
}

/// An engine's error without its own name and its remedy, which is another engine.
fn first_clause<'a>(name: &str, why: &'a str) -> &'a str {
    let why = why.strip_prefix(name).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
    why.split_once("; ").map_or(why, |(clause, _)| clause)
}
