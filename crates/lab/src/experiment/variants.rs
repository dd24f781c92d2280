//! `[[variant]]` and `[[axis]]`: the alternatives of an experiment. Each setting of an axis is laid
//! over the experiment beside each setting of the others; a variant may be like another one.

use super::document::Node;
use super::keys::{Field, Keys, nearest};
use super::{AS_IS, Reading, VARIANTS_MAX, Variant, merge, overlay, variant};
use crate::LabError;
use clearlane_ib::ticked;

/// The keys of a variant.
pub(crate) const VARIANT_KEYS: &[&str] =
    &["name", "summary", "like", "fabric", "subnet", "sim", "control", "traffic"];
/// The keys of an axis.
pub(crate) const AXIS_KEYS: &[&str] = &["settings"];
/// The keys of a setting.
pub(crate) const SETTING_KEYS: &[&str] =
    &["name", "summary", "fabric", "subnet", "sim", "control", "traffic"];

/// An alternative as tables that are laid over the experiment one after another.
#[derive(Clone, Default)]
struct Layers<'a> {
    name: String,
    summary: String,
    over: Vec<&'a Node>,
}

/// The variants: those of the axes, the last of which varies fastest, then those of `[[variant]]`;
/// the experiment as it is if there are none.
pub(super) fn read(
    reading: &Reading<'_>,
    root: &Node,
    keys: &Keys<'_>,
) -> Result<Vec<Variant>, LabError> {
    let mut all = match keys.optional("axis") {
        Some(field) => products(&field)?,
        None => Vec::new(),
    };
    if let Some(field) = keys.optional("variant") {
        listed(&field, &mut all)?;
    }
    if all.is_empty() {
        all.push(Layers { name: AS_IS.into(), ..Layers::default() });
    }
    all.into_iter().map(|layers| built(reading, root, layers)).collect()
}

/// Every combination of settings, one of each axis.
fn products<'a>(field: &Field<'a>) -> Result<Vec<Layers<'a>>, LabError> {
    let mut all = vec![Layers::default()];
    for axis in field.items()? {
        let keys = axis.keys(AXIS_KEYS)?;
        let listed = keys.required("settings", "[{ name = \"one\" }, { name = \"two\" }]")?;
        let settings: Vec<Layers<'a>> =
            listed.items()?.iter().map(setting).collect::<Result<_, _>>()?;
        if settings.is_empty() {
            return Err(listed.error("is empty; name the settings, or leave the axis out"));
        }
        if settings.len().saturating_mul(all.len()) > VARIANTS_MAX {
            return Err(listed.error(&format!("makes more than {VARIANTS_MAX} variants")));
        }
        let beside = |of: &Layers<'a>, setting: &Layers<'a>| Layers {
            name: joined(&of.name, &setting.name),
            summary: joined(&of.summary, &setting.summary),
            over: of.over.iter().chain(&setting.over).copied().collect(),
        };
        all = all.iter().flat_map(|of| settings.iter().map(|s| beside(of, s))).collect();
        unlike(&listed, &all)?;
    }
    Ok(all)
}

fn setting<'a>(item: &Field<'a>) -> Result<Layers<'a>, LabError> {
    let keys = item.keys(SETTING_KEYS)?;
    let name = keys.required("name", "\"two lanes\"")?.name()?;
    let summary = keys.optional("summary").map(|field| field.text()).transpose()?;
    let summary = LabError::one_line(summary.unwrap_or_default());
    Ok(Layers { name, summary, over: vec![item.node] })
}

/// Fails if two alternatives have one name.
fn unlike(field: &Field<'_>, all: &[Layers<'_>]) -> Result<(), LabError> {
    let mut names: Vec<&str> = all.iter().map(|layers| layers.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let problem = format!("{} is the name of two variants; rename one", ticked(pair[0]));
            Err(field.error_at(field.node.at, &problem))
        }
    }
}

fn joined(first: &str, second: &str) -> String {
    match (first, second) {
        ("", one) | (one, "") => one.to_owned(),
        (first, second) => format!("{first}, {second}"),
    }
}

/// Adds the variants that are listed one by one.
fn listed<'a>(field: &Field<'a>, all: &mut Vec<Layers<'a>>) -> Result<(), LabError> {
    let items = field.items()?;
    if items.is_empty() || items.len() + all.len() > VARIANTS_MAX {
        return Err(field.error(&format!("is not a list of 1 to {VARIANTS_MAX} variants")));
    }
    for item in items {
        let keys = item.keys(VARIANT_KEYS)?;
        let name = keys.required("name", "\"fat-tree\"")?;
        if all.iter().any(|known| Some(known.name.as_str()) == name.text().ok()) {
            return Err(name.error("is the name of two variants; rename one"));
        }
        let mut layers = match keys.optional("like") {
            None => Layers::default(),
            Some(like) => {
                let wanted = like.text()?;
                let known = all.iter().find(|known| known.name == wanted).cloned();
                known.ok_or_else(|| {
                    let near = nearest(wanted, all.iter().map(|known| known.name.as_str()));
                    like.error(&format!("is no variant before this one{near}"))
                })?
            }
        };
        let summary = keys.optional("summary").map(|field| field.text()).transpose()?;
        if let Some(summary) = summary {
            layers.summary = LabError::one_line(summary);
        }
        layers.name = name.name()?;
        layers.over.push(item.node);
        all.push(layers);
    }
    Ok(())
}

fn built(reading: &Reading<'_>, root: &Node, layers: Layers<'_>) -> Result<Variant, LabError> {
    let mut own = Vec::new();
    let mut merged = root.clone();
    for over in &layers.over {
        reading.count_groups(over)?;
        own.extend(overlay::own(root, over));
        merged = merge::merged(reading.document, &merged, over)?;
    }
    reading.count_groups(&merged)?;
    let root = reading.overlaid(&merged)?;
    Ok(Variant { own, ..variant(reading, &root, layers.name, layers.summary)? })
}
