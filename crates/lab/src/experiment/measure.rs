//! `measure`: which measure, with which arguments.

use super::document::Value;
use super::keys::{Field, Keys, nearest};
use super::traffic::CLASSES;
use crate::LabError;
use crate::measure::{AS_WITHIN, kinds};
use crate::measure::{Arguments, Asked, Entry, Flow, Parameter, Points, Provided, Scope, Span};
use clearlane_ib::Picoseconds;
use clearlane_workload::HostRef;

/// Measures within measures, at most.
const DEPTH_MAX: usize = 8;

/// The keys of `provided`.
pub(crate) const PROVIDED_KEYS: &[&str] = &["measure", "variant", "least"];

/// Reads a measure.
pub(super) fn read(field: &Field<'_>) -> Result<Asked, LabError> {
    within(field, 0)
}

fn within(field: &Field<'_>, depth: usize) -> Result<Asked, LabError> {
    if depth > DEPTH_MAX {
        let problem = format!("is more than {DEPTH_MAX} measures within each other; write fewer");
        return Err(field.error(&problem));
    }
    let mut keys = field.any_keys()?;
    let kind = keys.required("kind", "\"accepted-load\"")?;
    let name = kind.text()?;
    let Some(entry) = kinds::by_name(name) else {
        let names = kinds::ALL.iter().map(|entry| entry.name);
        return Err(kind.error(&format!("is no measure{}", nearest(name, names))));
    };
    let mut known = vec!["kind"];
    known.extend(entry.takes.iter().flat_map(|parameter| parameter.keys()));
    keys.only(&known)?;
    Ok(Asked { entry, arguments: arguments(entry, &keys, depth)? })
}

fn arguments(entry: &Entry, keys: &Keys<'_>, depth: usize) -> Result<Arguments, LabError> {
    let mut read = Arguments::default();
    for parameter in entry.takes {
        match parameter {
            Parameter::Scope => read.scope = scope(keys)?,
            Parameter::Span => read.span = span(keys)?,
            Parameter::Flow => {
                let from = host(&keys.required("from", "\"H1\"")?)?;
                read.flow = Some(Flow { from, to: host(&keys.required("to", "\"H4\"")?)? });
            }
            Parameter::Source => read.source = Some(host(&keys.required("source", "\"H1\"")?)?),
            Parameter::Link => {
                let link = keys.optional("link").map(|field| field.name()).transpose()?;
                read.link = link;
            }
            Parameter::Of => {
                let example = match entry.unit {
                    AS_WITHIN => "{ kind = \"accepted-load\" }",
                    _ => "{ kind = \"latency-mean\" }",
                };
                read.of = Some(Box::new(within(&keys.required("of", example)?, depth + 1)?));
            }
            Parameter::Over => {
                let over = keys.required("over", "\"the other variant\"")?;
                read.over = Some(over.text()?.to_owned());
            }
            Parameter::Variants => {
                let variants = keys.optional("variants").map(|field| field.texts()).transpose()?;
                read.variants = variants.unwrap_or_default();
            }
            Parameter::Points => read.points = points(keys, depth)?,
        }
    }
    Ok(read)
}

fn points(keys: &Keys<'_>, depth: usize) -> Result<Points, LabError> {
    let along = keys.optional("along").map(|field| field.texts()).transpose()?;
    let provided = keys.optional("provided").map(|field| provided(&field, depth)).transpose()?;
    let settled = keys.optional("settled").map(|field| field.yes_no()).transpose()?;
    let mut bounds = Vec::new();
    if let Some(field) = keys.optional("within") {
        for (key, field) in field.entries()? {
            let bound = |field: &Field<'_>| field.number(-1e18, 1e18);
            match field.items()?.as_slice() {
                [least, most] => bounds.push((key, [bound(least)?, bound(most)?])),
                _ => return Err(field.error("is not two numbers; write [least, most]")),
            }
        }
    }
    Ok(Points {
        along: along.unwrap_or_default(),
        within: bounds,
        provided: provided.map(Box::new),
        settled: settled.unwrap_or(false),
    })
}

fn provided(field: &Field<'_>, depth: usize) -> Result<Provided, LabError> {
    let keys = field.keys(PROVIDED_KEYS)?;
    let variant = keys.optional("variant").map(|field| field.text().map(LabError::one_line));
    Ok(Provided {
        asked: within(&keys.required("measure", "{ kind = \"served\" }")?, depth + 1)?,
        variant: variant.transpose()?,
        least: keys.required("least", "0.95")?.number(-1e12, 1e12)?,
    })
}

fn span(keys: &Keys<'_>) -> Result<Span, LabError> {
    let last = Picoseconds::MAX_RUN;
    let time = |key| keys.optional(key).map(|field| field.quantity(Picoseconds(0), last));
    let from = time("from").transpose()?.unwrap_or_default();
    Ok(Span { from, until: time("until").transpose()? })
}

fn scope(keys: &Keys<'_>) -> Result<Scope, LabError> {
    match (keys.optional("group"), keys.optional("class")) {
        (None, None) => Ok(Scope::All),
        (Some(group), None) => Ok(Scope::Group(group.text()?.to_owned())),
        (None, Some(class)) => Ok(Scope::Class(class.choice(CLASSES)?)),
        (Some(_), Some(class)) => Err(class.error("stands beside `group`; write only one")),
    }
}

fn host(field: &Field<'_>) -> Result<HostRef, LabError> {
    match field.node.value {
        Value::Integer(_) => Ok(HostRef::Number(field.integer(0, u64::from(u32::MAX))? as u32)),
        _ => Ok(HostRef::Name(field.text()?.to_owned())),
    }
}
