//! `[[published]]`: numbers of a paper, and the measure that stands beside each. They are compared
//! with, never tuned to.

use super::keys::{Field, nearest};
use super::measure;
use super::plan::{Ends, Plan};
use crate::LabError;
use crate::measure::{Asked, Parameter};
use crate::port;
use clearlane_fabric::Fabric;
use clearlane_workload::Ranks;

/// A published number and what answers it.
#[derive(Clone, Debug)]
pub struct Published {
    /// What the row is called.
    pub name: String,
    /// What is measured.
    pub measure: Asked,
    /// The variant measured; the first if not given.
    pub variant: Option<String>,
    /// As the source prints it; nothing if the source gives no number.
    pub published: Option<String>,
    /// The bounds of the published value, equal for a single number; nothing if the source gives no
    /// number or none was written.
    pub value: Option<[f64; 2]>,
    /// The row that shows what a changed parameter makes of this one: it moves it towards the
    /// published value.
    pub moved_by: Option<String>,
    /// Unit, by default that of the measure.
    pub unit: String,
    /// Where it is published and why the two differ.
    pub note: String,
    place: String,
    written: toml::Value,
}

pub(crate) const KEYS: &[&str] =
    &["name", "measure", "variant", "each", "published", "value", "moved_by", "unit", "note"];
/// Keys that rows had once, and what says the same now.
const GONE: [(&str, &str); 2] = [
    ("take", "write measure = { kind = \"largest\", of = { kind = … } }, or smallest, first, last"),
    ("provided", "write it into the measure over the points, such as largest"),
];

impl Published {
    /// Reads one row.
    pub(crate) fn read(field: &Field<'_>) -> Result<Self, LabError> {
        for (key, remedy) in GONE {
            if let Some(node) = field.node.get(key) {
                return Err(field.error_at(node.at, &format!("has no key `{key}`; {remedy}")));
            }
        }
        let keys = field.named_keys("published", KEYS)?;
        let name = keys.required("name", "\"share of H1\"")?.name()?;
        let written = keys.required("measure", "{ kind = \"accepted-load\" }")?;
        let measure = measure::read(&written)?;
        let text = |key| keys.optional(key).map(|field| field.text().map(LabError::one_line));
        let moved_by = text("moved_by").transpose()?;
        let (variant, published) = (text("variant").transpose()?, text("published").transpose()?);
        let (unit, note) = (text("unit").transpose()?, text("note").transpose()?);
        let value = keys.optional("value").map(|field| bounds(&field)).transpose()?;
        let value = value.or_else(|| published.as_deref().and_then(number).map(|n| [n, n]));
        if let (Some(_), None) = (&moved_by, value) {
            let problem = format!(
                "{} lacks the value it is moved towards; write value = 25 or \
                value = [2, 3]",
                keys.name()
            );
            return Err(keys.error(&problem));
        }
        Ok(Published {
            name,
            unit: unit.unwrap_or_else(|| measure.unit().to_owned()),
            measure,
            variant,
            published,
            value,
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
            if *row == self.name {
                let place = &self.place;
                return Err(format!(
                    "{place}: published.{row}: moved_by names the row itself; name one in which a \
                     parameter differs"
                ));
            }
        }
        for asked in self.measure.all() {
            if let Some(group) = asked.group() {
                known("traffic group is named", group, groups)?;
            }
            if asked.entry.takes(Parameter::Span) {
                let span = asked.arguments.span;
                let fits = match plan.ends {
                    Ends::Duration => span.fits(plan.slice(), plan.duration),
                    Ends::Programs => span.is_of_whole_run(),
                };
                fits.map_err(|e| format!("{}: published.{}: {e}", self.place, self.name))?;
            }
        }
        Ok(())
    }

    /// Fails if it names a host or an output of a switch that a variant's fabric lacks.
    pub(crate) fn check_site(&self, ranks: &Ranks, fabric: &Fabric) -> Result<(), LabError> {
        let fault = |error: &dyn std::fmt::Display| {
            let place = format!("{}: published.{}", self.place, self.name);
            LabError::Request(LabError::one_line(&format!("{place}: {error}")))
        };
        for asked in self.measure.all() {
            for host in asked.hosts() {
                ranks.resolve(host).map_err(|error| fault(&error))?;
            }
            if let Some(link) = &asked.arguments.link {
                port::named(fabric, link).map_err(|e| fault(&format!("link = {link}: {e}")))?;
            }
        }
        Ok(())
    }

    /// Where it stands and what it is called, for errors.
    pub(crate) fn called(&self) -> String {
        format!("{}: published.{}", self.place, self.name)
    }

    /// The variants it names.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.variant.as_deref().into_iter().chain(self.measure.variants())
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
        if let Some([least, most]) = self.value {
            let bounds = vec![toml::Value::from(least), toml::Value::from(most)];
            table.insert("value".into(), bounds.into());
        }
        if let Some(row) = &self.moved_by {
            table.insert("moved_by".into(), row.clone().into());
        }
        table.insert("unit".into(), self.unit.clone().into());
        table.insert("note".into(), self.note.clone().into());
        table
    }
}

/// A number, or the least and the most of several.
fn bounds(field: &Field<'_>) -> Result<[f64; 2], LabError> {
    let number = |field: &Field<'_>| field.number(-1e18, 1e18);
    let Ok(items) = field.items() else { return number(field).map(|value| [value, value]) };
    match items.as_slice() {
        [least, most] if number(least)? <= number(most)? => Ok([number(least)?, number(most)?]),
        [least, most] => {
            let (least, most) = (number(least)?, number(most)?);
            Err(field.error(&format!("begins with {least}, which is above {most}; swap them")))
        }
        _ => Err(field.error("is neither a number nor [least, most]")),
    }
}

/// `0.25` or `1/4`; nothing of another text.
fn number(text: &str) -> Option<f64> {
    let parts: Option<Vec<f64>> = text.split('/').map(|part| part.trim().parse().ok()).collect();
    match parts?.as_slice() {
        [one] => Some(*one),
        [above, below] => Some(above / below),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_number_may_be_a_fraction() {
        assert_eq!(["0.25", "1/4", " 3 / 2 "].map(number), [0.25, 0.25, 1.5].map(Some));
        assert_eq!(["about 5", "1/0", "1/2/3", ""].map(number), [None; 4]);
    }
}
