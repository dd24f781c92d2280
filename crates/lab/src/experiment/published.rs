//! `[[published]]`: numbers of a paper, and the measure that stands beside each. They are compared
//! with, never tuned to.

use super::keys::{Field, Keys, nearest};
use crate::LabError;
use crate::measure::{Measure, Quantity, Scope, measures};
use clearlane_workload::HostRef;

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
    /// Unit, by default that of the measure.
    pub unit: String,
    /// Where it is published and why the two differ.
    pub note: String,
    place: String,
    written: toml::Value,
}

pub(crate) const KEYS: &[&str] = &["name", "measure", "variant", "published", "unit", "note"];
/// Those of any measure; each takes some of them.
const MEASURE_KEYS: &[&str] = &["kind", "from", "to", "variants", "group", "class", "of", "over"];

impl Published {
    /// Reads one row.
    pub(crate) fn read(field: &Field<'_>) -> Result<Self, LabError> {
        let keys = field.named_keys("published", KEYS)?;
        let name = keys.required("name", "\"share of H1\"")?.name()?;
        let written = keys.required("measure", "{ kind = \"accepted-load\" }")?;
        let measure = measure(&written, false)?;
        let text = |key| keys.optional(key).map(|field| field.text().map(LabError::one_line));
        let (variant, published) = (text("variant").transpose()?, text("published").transpose()?);
        let (unit, note) = (text("unit").transpose()?, text("note").transpose()?);
        Ok(Published {
            name,
            unit: unit.unwrap_or_else(|| measure.unit().to_owned()),
            measure,
            variant,
            published,
            note: note.unwrap_or_default(),
            place: field.place(),
            written: written.node.plain(),
        })
    }

    /// Fails if the row names a variant or a group that is not there.
    pub(crate) fn check(&self, variants: &[&str], groups: &[&str]) -> Result<(), String> {
        let known = |what: &str, word: &str, names: &[&str]| match names.contains(&word) {
            true => Ok(()),
            false => {
                let near = nearest(word, names.iter().copied());
                Err(format!("{}: published.{}: no {what} {word}{near}", self.place, self.name))
            }
        };
        for variant in self.variant.iter().map(String::as_str).chain(self.measure.variants()) {
            known("variant is named", variant, variants)?;
        }
        match self.measure.group() {
            Some(group) => known("traffic group is named", group, groups),
            None => Ok(()),
        }
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
        table.insert("unit".into(), self.unit.clone().into());
        table.insert("note".into(), self.note.clone().into());
        table
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
        _ if Quantity::by_name(name).is_some_and(Quantity::is_scoped) => {
            &["kind", "group", "class"]
        }
        _ => &["kind"],
    })?;
    let measure = match name {
        "flow-share" => Measure::FlowShare {
            from: host(&keys.required("from", "\"H1\"")?)?,
            to: host(&keys.required("to", "\"H4\"")?)?,
        },
        "saturation" => {
            let field = keys.optional("variants");
            let variants = field.map(|field| field.texts()).transpose()?.unwrap_or_default();
            Measure::Saturation { scope: scope(&keys)?, variants }
        }
        "ratio" if within => return Err(kind.error("cannot be within another ratio")),
        "ratio" => {
            let of = measure_within(&keys.required("of", "{ kind = \"latency-mean\" }")?)?;
            let over = keys.required("over", "\"the other variant\"")?.text()?.to_owned();
            Measure::Ratio { of: Box::new(of), over }
        }
        _ => {
            let quantity = Quantity::by_name(name)
                .ok_or_else(|| kind.error("is registered and yet unknown; report this"))?;
            let scope = if quantity.is_scoped() { scope(&keys)? } else { Scope::All };
            Measure::Value { quantity, scope }
        }
    };
    Ok(measure)
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
