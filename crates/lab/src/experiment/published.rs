//! `[[published]]`: numbers of a paper, and the measure that stands beside each. They are compared
//! with, never tuned to.

use super::keys::{Field, Keys, nearest};
use super::plan::{Ends, Plan};
use crate::LabError;
use crate::measure::{Flow, Measure, Quantity, Scope, Span, Timed, measures};
use clearlane_ib::Picoseconds;
use clearlane_workload::{HostRef, Ranks};

/// A published number and what answers it.
#[derive(Clone, Debug)]
pub struct Published {
    /// What the row is called.
    pub name: String,
    /// What is measured.
    pub measure: Measure,
    /// The variant measured; the first if not given.
    pub variant: Option<String>,
    /// As the source prints it; nothing if the source gives no number.
    pub published: Option<String>,
    /// Which point of a sweep answers it; nothing if single runs do.
    pub(crate) take: Option<Take>,
    /// The condition on points of a sweep.
    pub(crate) provided: Option<Provided>,
    /// The row that shows what a changed parameter makes of this one.
    pub moved_by: Option<String>,
    /// Unit, by default that of the measure.
    pub unit: String,
    /// Where it is published and why the two differ.
    pub note: String,
    place: String,
    written: toml::Value,
}

/// Which of the points of a sweep that fulfil the condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Take {
    /// The one with the largest figure.
    Largest,
    /// The one with the smallest figure.
    Smallest,
    /// The first in the order of the grid.
    First,
    /// The last.
    Last,
}

const TAKES: &[(&str, Take)] = &[
    ("largest", Take::Largest),
    ("smallest", Take::Smallest),
    ("first", Take::First),
    ("last", Take::Last),
];

/// What a point of a sweep has to show to be taken.
#[derive(Clone, Debug)]
pub(crate) struct Provided {
    /// A measure.
    pub(crate) measure: Measure,
    /// The variant measured; that of the row if not given.
    pub(crate) variant: Option<String>,
    /// At least this, over the seeds' mean.
    pub(crate) least: f64,
    written: toml::Value,
}

pub(crate) const KEYS: &[&str] =
    &["name", "measure", "variant", "published", "take", "provided", "moved_by", "unit", "note"];
pub(crate) const PROVIDED_KEYS: &[&str] = &["measure", "variant", "least"];
/// Those of any measure; each takes some of them.
const MEASURE_KEYS: &[&str] =
    &["kind", "source", "from", "until", "to", "variants", "group", "class", "of", "over"];

impl Published {
    /// Reads one row.
    pub(crate) fn read(field: &Field<'_>) -> Result<Self, LabError> {
        let keys = field.named_keys("published", KEYS)?;
        let name = keys.required("name", "\"share of H1\"")?.name()?;
        let written = keys.required("measure", "{ kind = \"accepted-load\" }")?;
        let measure = measure(&written, false)?;
        let take = keys.optional("take").map(|field| field.choice(TAKES)).transpose()?;
        let provided = match (keys.optional("provided"), take) {
            (Some(field), None) => return Err(field.error("goes with `take`; write that too")),
            (field, _) => field.map(|field| Provided::read(&field)).transpose()?,
        };
        let text = |key| keys.optional(key).map(|field| field.text().map(LabError::one_line));
        let moved_by = text("moved_by").transpose()?;
        let (variant, published) = (text("variant").transpose()?, text("published").transpose()?);
        let (unit, note) = (text("unit").transpose()?, text("note").transpose()?);
        Ok(Published {
            name,
            unit: unit.unwrap_or_else(|| measure.unit().to_owned()),
            measure,
            variant,
            published,
            take,
            provided,
            moved_by,
            note: note.unwrap_or_default(),
            place: field.place(),
            written: written.node.plain(),
        })
    }

    /// Fails if the row names a variant, a group or a row that is not there, or a span that the
    /// runs do not have.
    pub(crate) fn check(
        &self,
        [variants, groups, rows]: [&[&str]; 3],
        plan: &Plan,
    ) -> Result<(), String> {
        let known = |what: &str, word: &str, names: &[&str]| match names.contains(&word) {
            true => Ok(()),
            false => {
                let near = nearest(word, names.iter().copied());
                Err(format!("{}: published.{}: no {what} {word}{near}", self.place, self.name))
            }
        };
        for variant in self.named() {
            known("variant is named", variant, variants)?;
        }
        if let Some(row) = &self.moved_by {
            known("published row is named", row, rows)?;
        }
        for measure in self.measures() {
            if let Some(group) = measure.group() {
                known("traffic group is named", group, groups)?;
            }
            if let Some(span) = measure.timed().and_then(Timed::span) {
                let fits = match plan.ends {
                    Ends::Duration => span.fits(plan.slice(), plan.duration),
                    Ends::Programs => span.is_of_whole_run(),
                };
                fits.map_err(|e| format!("{}: published.{}: {e}", self.place, self.name))?;
            }
        }
        Ok(())
    }

    /// Fails if it names a host that `ranks` lacks.
    pub(crate) fn check_hosts(&self, ranks: &Ranks) -> Result<(), LabError> {
        let mut hosts = self.measures().flat_map(Measure::hosts);
        hosts.try_for_each(|host| match ranks.resolve(host) {
            Ok(_) => Ok(()),
            Err(error) => {
                let place = format!("{}: published.{}", self.place, self.name);
                Err(LabError::Request(LabError::one_line(&format!("{place}: {error}"))))
            }
        })
    }

    /// Everything it measures.
    pub(crate) fn measures(&self) -> impl Iterator<Item = &Measure> {
        [&self.measure].into_iter().chain(self.provided.as_ref().map(|p| &p.measure))
    }

    /// The variants it names.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let provided = self.provided.as_ref().and_then(|provided| provided.variant.as_deref());
        let measured = self.measures().flat_map(|measure| measure.variants());
        self.variant.as_deref().into_iter().chain(provided).chain(measured)
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("name".into(), self.name.clone().into());
        table.insert("measure".into(), self.written.clone());
        if let Some(variant) = &self.variant {
            table.insert("variant".into(), variant.clone().into());
        }
        if let Some(published) = &self.published {
            table.insert("published".into(), published.clone().into());
        }
        if let Some(take) = &self.take {
            table.insert("take".into(), super::keys::word(TAKES, take));
        }
        if let Some(provided) = &self.provided {
            table.insert("provided".into(), provided.written.clone());
        }
        if let Some(row) = &self.moved_by {
            table.insert("moved_by".into(), row.clone().into());
        }
        table.insert("unit".into(), self.unit.clone().into());
        table.insert("note".into(), self.note.clone().into());
        table
    }
}

impl Provided {
    fn read(field: &Field<'_>) -> Result<Self, LabError> {
        let keys = field.keys(PROVIDED_KEYS)?;
        let variant = keys.optional("variant").map(|field| field.text().map(LabError::one_line));
        Ok(Provided {
            measure: measure(&keys.required("measure", "{ kind = \"served\" }")?, false)?,
            variant: variant.transpose()?,
            least: keys.required("least", "0.95")?.number(-1e12, 1e12)?,
            written: field.node.plain(),
        })
    }
}

fn measure(field: &Field<'_>, within: bool) -> Result<Measure, LabError> {
    let mut keys = field.keys(MEASURE_KEYS)?;
    let kind = keys.required("kind", "\"accepted-load\"")?;
    let name = kind.text()?;
    if !measures::ALL.iter().any(|entry| entry.name == name) {
        let names = measures::ALL.iter().map(|entry| entry.name);
        return Err(kind.error(&format!("is no measure{}", nearest(name, names))));
    }
    keys.only(match name {
        "flow-share" => &["kind", "from", "to"],
        "saturation" => &["kind", "variants", "group", "class"],
        "ratio" => &["kind", "of", "over"],
        "spread" => &["kind", "of", "variants"],
        "becns" => &["kind", "source", "from", "until"],
        "oscillation-period" | "oscillation-amplitude" => &["kind", "from", "to"],
        _ if Timed::in_span(name).is_some() => &["kind", "from", "until"],
        _ if Quantity::by_name(name).is_some_and(Quantity::is_scoped) => {
            &["kind", "group", "class"]
        }
        _ => &["kind"],
    })?;
    let measure = match name {
        "ratio" | "spread" | "saturation" if within => {
            return Err(kind.error("cannot be within a ratio or a spread; write a single measure"));
        }
        "flow-share" => Measure::FlowShare {
            from: host(&keys.required("from", "\"H1\"")?)?,
            to: host(&keys.required("to", "\"H4\"")?)?,
        },
        "saturation" => {
            let field = keys.optional("variants");
            let variants = field.map(|field| field.texts()).transpose()?.unwrap_or_default();
            Measure::Saturation { scope: scope(&keys)?, variants }
        }
        "ratio" => {
            let of = measure_within(&keys.required("of", "{ kind = \"latency-mean\" }")?)?;
            let over = keys.required("over", "\"the other variant\"")?.text()?.to_owned();
            Measure::Ratio { of: Box::new(of), over }
        }
        "spread" => {
            let of = measure_within(&keys.required("of", "{ kind = \"accepted-load\" }")?)?;
            let field = keys.optional("variants");
            let variants = field.map(|field| field.texts()).transpose()?.unwrap_or_default();
            Measure::Spread { of: Box::new(of), variants }
        }
        "becns" => {
            let source = host(&keys.required("source", "\"H1\"")?)?;
            Measure::Timed(Timed::Becns { source, span: span(&keys)? })
        }
        "oscillation-period" | "oscillation-amplitude" => {
            let from = host(&keys.required("from", "\"H1\"")?)?;
            let flow = Flow { from, to: host(&keys.required("to", "\"H4\"")?)? };
            Measure::Timed(match name {
                "oscillation-period" => Timed::OscillationPeriod(flow),
                _ => Timed::OscillationAmplitude(flow),
            })
        }
        _ if let Some(timed) = Timed::in_span(name) => Measure::Timed(timed(span(&keys)?)),
        _ => {
            let quantity = Quantity::by_name(name)
                .ok_or_else(|| kind.error("is registered and yet unknown; report this"))?;
            let scope = if quantity.is_scoped() { scope(&keys)? } else { Scope::All };
            Measure::Value { quantity, scope }
        }
    };
    Ok(measure)
}

fn span(keys: &Keys<'_>) -> Result<Span, LabError> {
    let last = Picoseconds::MAX_RUN;
    let time = |key| keys.optional(key).map(|field| field.quantity(Picoseconds(0), last));
    let from = time("from").transpose()?.unwrap_or_default();
    Ok(Span { from, until: time("until").transpose()? })
}

fn measure_within(field: &Field<'_>) -> Result<Measure, LabError> {
    measure(field, true)
}

fn scope(keys: &Keys<'_>) -> Result<Scope, LabError> {
    let classes = super::traffic::CLASSES;
    match (keys.optional("group"), keys.optional("class")) {
        (None, None) => Ok(Scope::All),
        (Some(group), None) => Ok(Scope::Group(group.text()?.to_owned())),
        (None, Some(class)) => Ok(Scope::Class(class.choice(classes)?)),
        (Some(_), Some(class)) => Err(class.error("stands beside `group`; write only one")),
    }
}

fn host(field: &Field<'_>) -> Result<HostRef, LabError> {
    match field.node.value {
        super::document::Value::Integer(_) => {
            Ok(HostRef::Number(field.integer(0, u64::from(u32::MAX))? as u32))
        }
        _ => Ok(HostRef::Name(field.text()?.to_owned())),
    }
}
