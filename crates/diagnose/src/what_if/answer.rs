//! What the simulation of a hot host says, in lines.

use super::{Hot, Question, Traffic};
use crate::words::{count, list};
use clearlane_lab::measure::Estimate;
use clearlane_lab::{Line, RunResult, Status, VariantResult, lost};

/// What the runs say.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Lines of the verdict, the most important first.
    pub lines: Vec<Line>,
    /// The variant in which victims lose least, if it is clearly better than what there is, and
    /// all have ended.
    pub best: Option<String>,
    /// Names of variants, or congestion control, that an interruption kept from ending. The lines
    /// say nothing of such variants. There are no lines if the first variant is among them.
    pub cut_short: Vec<String>,
}

/// A variant with what its victims lose to the hot flows, and what they get beside them. Both
/// count: tables with little capacity leave little to lose.
struct Case<'a> {
    variant: &'a VariantResult,
    slowdown: Estimate,
    gbps: Estimate,
}

/// What is within the error.
const SAME: &str = "about the same";

/// How much more or less victims get, 0.1 being a tenth more, and half of its interval.
struct Gain {
    mean: f64,
    half: f64,
    /// Less than this is no difference.
    seen: f64,
}

impl Gain {
    const SEEN: f64 = 0.005;
    /// The same where one seed says nothing of chance.
    const SEEN_ONCE: f64 = 0.05;

    fn of(case: &Case<'_>, own: &Case<'_>) -> Self {
        let relative = |of: &Estimate| of.half_width.unwrap_or(0.0) / of.mean;
        let ratio = case.gbps.mean / own.gbps.mean;
        // Errors of a ratio add as squares, relative to it.
        let half = ratio * relative(&case.gbps).hypot(relative(&own.gbps));
        let has_interval = case.gbps.half_width.is_some() && own.gbps.half_width.is_some();
        let seen = if has_interval { Gain::SEEN } else { Gain::SEEN_ONCE };
        Gain { mean: ratio - 1.0, half, seen }
    }

    fn is_more(&self) -> bool {
        self.mean - self.half > self.seen
    }

    fn is_less(&self) -> bool {
        self.mean + self.half < -self.seen
    }

    fn text(&self) -> String {
        let (share, half) = (100.0 * self.mean.abs(), 100.0 * self.half);
        let interval = if half >= 0.5 { format!(" (± {half:.0})") } else { String::new() };
        match (self.is_more(), self.is_less()) {
            (true, _) if self.mean >= 1.0 => {
                let half =
                    if half >= 5.0 { format!(" (± {:.1})", half / 100.0) } else { String::new() };
                format!("{:.1}{half} times as much", 1.0 + self.mean)
            }
            (true, _) => format!("{share:.0} %{interval} more"),
            (_, true) => format!("{share:.0} %{interval} less"),
            _ => SAME.into(),
        }
    }
}

/// The runs with congestion control.
const CONTROL: &str = "congestion control";

impl Answer {
    /// Notes that congestion control was kept from ending. There is no best variant then.
    pub fn control_is_cut_short(&mut self) {
        self.cut_short.push(CONTROL.into());
        self.best = None;
    }

    /// That nothing was simulated, and why.
    pub fn none(why: &str) -> Self {
        let text = format!("nothing was simulated: {why}");
        Answer { lines: vec![Line { label: "what if", text }], best: None, cut_short: Vec::new() }
    }
}

/// A variant beside what there is.
struct Other {
    name: String,
    gain: Gain,
    loses_nothing: bool,
    /// Whether what victims get was still changing.
    is_moving: bool,
}

/// Names of the variants that an interruption kept from ending.
fn cut_short(result: &RunResult) -> impl Iterator<Item = &String> {
    let cut = result.variants.iter().filter(|variant| !has_ended(result, variant));
    cut.map(|variant| &variant.name)
}

fn has_ended(result: &RunResult, variant: &VariantResult) -> bool {
    result.status_of(variant) != Status::Partial
}

/// The variant there is, or that stands for it, and the others that have ended beside it; nothing
/// if victims get nothing in it.
fn cases(result: &RunResult) -> Option<(Case<'_>, Vec<Other>)> {
    let case = |variant: &'_ VariantResult| {
        if !has_ended(result, variant) {
            return None;
        }
        let slowdown = result.slowdown(&variant.name)?;
        Some((slowdown, result.victims_gbps(&variant.name)?))
    };
    let (first, others) = result.variants.split_first()?;
    let (slowdown, gbps) = case(first).filter(|(_, gbps)| gbps.mean > 0.0)?;
    let own = Case { variant: first, slowdown, gbps };
    let cases = others.iter().filter_map(|variant| {
        let (slowdown, gbps) = case(variant)?;
        Some(Case { variant, slowdown, gbps })
    });
    let other = |case: Case<'_>| Other {
        name: case.variant.name.clone(),
        gain: Gain::of(&case, &own),
        is_moving: !case.gbps.converged,
        loses_nothing: lost(&case.slowdown, false) == "nothing",
    };
    let others = cases.map(other).collect();
    Some((own, others))
}

/// Lines on the first variant, what there is, and on whether the others help; `control` has other
/// runs with congestion control.
pub fn answer(question: &Question<'_>, result: &RunResult, control: Option<&RunResult>) -> Answer {
    let mut cut: Vec<String> = cut_short(result).cloned().collect();
    if cut.contains(&result.variants[0].name) {
        return Answer { lines: Vec::new(), best: None, cut_short: cut };
    }
    if control.is_some_and(|control| cut_short(control).next().is_some()) {
        cut.push(CONTROL.into());
    }
    let Some((own, mut others)) = cases(result) else {
        return Answer::none("by these tables nothing of the victims' traffic arrives");
    };
    let mut lines = vec![bottleneck(question, own.variant), victims(&own)];
    // Who loses nothing needs no help.
    if lost(&own.slowdown, false) == "nothing" {
        return Answer { lines, best: None, cut_short: cut };
    }
    others.extend(control.and_then(cases).map(|(_, others)| others).unwrap_or_default());
    others.sort_by(|a, b| b.gain.mean.total_cmp(&a.gain.mean));
    prefer_one_lane(&mut others);
    let (helps, not): (Vec<Other>, Vec<Other>) =
        others.into_iter().partition(|other| other.gain.is_more());
    let than = |gain: &str| match question.has_own() {
        true if question.lost() > 0 => ", also between hosts that cannot talk now".into(),
        true => String::new(),
        false if gain == SAME || gain.ends_with("as much") => {
            format!(" as with those of {}", own.variant.name)
        }
        false => format!(" than with those of {}", own.variant.name),
    };
    let gets = |other: &Other| {
        let gain = other.gain.text();
        let lost = if other.loses_nothing { " and lose nothing" } else { "" };
        let others = [super::LANE, super::VFTREE, super::IBA_CC, super::FIRMWARE];
        let is_engine = !others.contains(&&*other.name);
        let than = if is_engine { than(&gain) } else { String::new() };
        let moving = if other.is_moving { ", still changing" } else { "" };
        format!("{}: victims get {gain}{than}{lost}{moving}", means(&other.name, question))
    };
    let mut say = |label, others: &[Other]| {
        if !others.is_empty() {
            let all: Vec<String> = others.iter().map(gets).collect();
            lines.push(Line { label, text: all.join("; ") });
        }
    };
    say("helps", &helps);
    say("does not", &not);
    let best = helps.into_iter().next().map(|other| other.name);
    Answer { lines, best: best.filter(|_| cut.is_empty()), cut_short: cut }
}

/// A lane for the hot traffic alone comes before lanes by leaf pairs that give no more for certain:
/// it takes two service levels, so it also reaches programs that have one for all they send.
fn prefer_one_lane(others: &mut [Other]) {
    let place = |name: &str| others.iter().position(|other| other.name == name);
    if let (Some(pairs), Some(own)) = (place(super::VFTREE), place(super::LANE))
        && pairs < own
        && others[own].gain.mean + others[own].gain.half + others[own].gain.seen
            >= others[pairs].gain.mean - others[pairs].gain.half
    {
        others[pairs..=own].rotate_right(1);
    }
}

/// What a variant does, as one says it.
fn means(name: &str, question: &Question<'_>) -> String {
    match name {
        super::LANE => "hot traffic on a lane of its own".into(),
        super::VFTREE => {
            format!("pairs of leaf switches on {} lanes (vFtree)", question.lanes_vftree())
        }
        super::IBA_CC | super::FIRMWARE => name.into(),
        engine => format!("tables of engine {engine}"),
    }
}

fn bottleneck(question: &Question<'_>, own: &VariantResult) -> Line {
    let Hot { nodes, supposed, .. } = question.hot;
    let names: Vec<String> = nodes.iter().map(|node| question.site.node(*node)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (is, its) = match names.len() {
        1 => ("is", "its link is"),
        _ => ("are", "their links are"),
    };
    if let Traffic::File(_) = &question.traffic {
        let waited = own.suffering().and_then(|found| found.roots.into_iter().next());
        let text = match waited {
            Some((link, _)) => format!("most victims wait for {link}"),
            None => format!("the busiest link is {}", own.worst_link().unwrap_or_default()),
        };
        return Line { label: "bottleneck", text };
    }
    let own = &own.name;
    let hot = match supposed {
        Some(why) => {
            format!("supposed that {} {is} hot ({why}): {its} then full", list(&names))
        }
        None => format!("{} {is} hot and {its} full", list(&names)),
    };
    let by = match (question.has_own(), question.tables.is_empty()) {
        (true, _) if question.lost() == 0 => String::new(),
        (true, _) => {
            let lost = count(question.lost(), "path that does", "paths that do");
            format!("; simulated without the {lost} not arrive")
        }
        (false, true) => format!("; simulated with tables of engine {own}"),
        (false, false) => {
            format!("; simulated with tables of engine {own}, as no path of the site's arrives")
        }
    };
    Line { label: "bottleneck", text: hot + &by }
}

fn victims(own: &Case<'_>) -> Line {
    let lost = lost(&own.slowdown, true);
    let text = match own.variant.suffering() {
        None => format!("others lose {lost}"),
        Some(found) => {
            let flows = count(found.victims as u64, "other flow", "other flows");
            let mut roots = found.roots.iter().take(2);
            let first = roots.next().map(|(root, number)| format!("; {number} wait for {root}"));
            let second = roots.next().map(|(root, number)| format!(", {number} for {root}"));
            let cause = first.unwrap_or_default() + &second.unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::Gain;

    #[test]
    fn a_gain_within_its_interval_is_none() {
        let of = |mean, half| Gain { mean, half, seen: Gain::SEEN }.text();
        assert_eq!(of(0.25, 0.02), "25 % (± 2) more");
        assert_eq!(of(-0.5, 0.001), "50 % less");
        assert_eq!(of(15.95, 0.3), "16.9 (± 0.3) times as much");
        assert_eq!(of(1.0, 0.01), "2.0 times as much");
        assert_eq!(of(0.03, 0.04), "about the same");
        assert_eq!(of(0.004, 0.0), "about the same");
        let once = Gain { mean: 0.04, half: 0.0, seen: Gain::SEEN_ONCE };
        assert_eq!(once.text(), "about the same");
    }
}
