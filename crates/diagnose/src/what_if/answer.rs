//! What the simulation of a hot host says, in lines.

use super::{Hot, Question};
use crate::words::{count, list};
use clearlane_lab::measure::Estimate;
use clearlane_lab::{Line, RunResult, VariantResult, lost};

/// What the runs say.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Lines of the verdict, the most important first.
    pub lines: Vec<Line>,
    /// The variant in which victims lose least, if it is clearly better than what there is.
    pub best: Option<String>,
}

/// A variant with what its victims lose.
struct Case<'a> {
    variant: &'a VariantResult,
    slowdown: Estimate,
}

impl Case<'_> {
    fn least(&self) -> f64 {
        self.slowdown.mean - self.slowdown.half_width.unwrap_or(0.0)
    }

    fn most(&self) -> f64 {
        self.slowdown.mean + self.slowdown.half_width.unwrap_or(0.0)
    }
}

/// Lines on the first variant, what there is, and on whether the others help.
pub fn answer(question: &Question<'_>, result: &RunResult) -> Answer {
    let cases: Vec<Case<'_>> = result
        .variants
        .iter()
        .filter_map(|variant| Some(Case { variant, slowdown: result.slowdown(&variant.name)? }))
        .collect();
    let Some((own, others)) = cases.split_first() else {
        return Answer { lines: Vec::new(), best: None };
    };
    let mut lines = vec![bottleneck(question), victims(own)];
    // Better or worse by more than both intervals, and by what rounding shows.
    let (mut helps, mut not): (Vec<&Case<'_>>, Vec<&Case<'_>>) =
        others.iter().partition(|other| other.most() + 0.005 < own.least());
    helps.sort_by(|a, b| a.slowdown.mean.total_cmp(&b.slowdown.mean));
    not.sort_by(|a, b| a.slowdown.mean.total_cmp(&b.slowdown.mean));
    let loses = |case: &&Case<'_>| {
        format!("{}: they lose {}", means(&case.variant.name), lost(&case.slowdown, false))
    };
    let mut say = |label, cases: &[&Case<'_>]| {
        if !cases.is_empty() {
            let all: Vec<String> = cases.iter().map(loses).collect();
            lines.push(Line { label, text: all.join("; ") });
        }
    };
    say("helps", &helps);
    say("does not", &not);
    let best = helps.first().map(|case| case.variant.name.clone());
    Answer { lines, best }
}

/// What a variant does, as one says it.
fn means(name: &str) -> String {
    match name {
        super::LANE => "hot traffic on a lane of its own".into(),
        engine => format!("tables of engine {engine}"),
    }
}

fn bottleneck(question: &Question<'_>) -> Line {
    let Hot { nodes, supposed, .. } = question.hot;
    let names: Vec<String> = nodes.iter().map(|node| question.site.node(*node)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (is, its) =
        if names.len() == 1 { ("is", "its link is") } else { ("are", "their links are") };
    let text = match supposed {
        Some(why) => format!("supposed: {} {is} hot ({why}), {its} full", list(&names)),
        None => format!("{} {is} hot and {its} full", list(&names)),
    };
    Line { label: "bottleneck", text }
}

fn victims(own: &Case<'_>) -> Line {
    let lost = lost(&own.slowdown, true);
    let text = match own.variant.suffering() {
        None => format!("others lose {lost}"),
        Some(found) => {
            let flows = count(found.victims as u64, "other flow", "other flows");
            let roots: Vec<String> = found
                .roots
                .iter()
                .take(2)
                .map(|(root, number)| format!("{root} ({number})"))
                .collect();
            let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
            let cause = match roots.as_slice() {
                [] => String::new(),
                roots => format!("; they wait for {}", list(roots)),
            };
            let starved = match found.starved {
                0 => String::new(),
                some => format!(", {some} starve"),
            };
            format!(
                "{} of {flows} lose a fifth or more{starved}; all together lose {lost}{cause}",
                found.suffer
            )
        }
    };
    Line { label: "victims", text }
}
