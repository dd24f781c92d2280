//! `each` of a published row: the row once for every variant whose name is like a pattern. Words in
//! braces stand for parts of the name, and for the same in the texts of the row.

use super::document::{Document, Node, Value};
use super::keys::Field;
use crate::LabError;

/// Most rows of an experiment.
const ROWS_MAX: usize = 10_000;

/// The whole name, in the texts of a row.
const VARIANT: &str = "variant";

/// Parts of a name by the words that stand for them.
type Parts = Vec<(String, String)>;

/// The rows of a list, each once for every variant it is for.
pub(super) fn rows(
    document: &Document,
    list: &Field<'_>,
    variants: &[&str],
) -> Result<Vec<Node>, LabError> {
    let mut all = Vec::new();
    for item in list.items()? {
        match item.node.get("each") {
            None => all.push(item.node.clone()),
            Some(node) => {
                let field = Field::new(document, "published.each".into(), node);
                all.extend(expanded(&item, &field, variants)?);
            }
        }
        if all.len() > ROWS_MAX {
            return Err(list.error_at(item.node.at, &format!("more than {ROWS_MAX} rows")));
        }
    }
    Ok(all)
}

fn expanded(row: &Field<'_>, each: &Field<'_>, variants: &[&str]) -> Result<Vec<Node>, LabError> {
    let patterns = match &each.node.value {
        Value::Text(_) => vec![each.text()?.to_owned()],
        _ => each.texts()?,
    };
    if row.node.get("variant").is_some() {
        return Err(each.error("stands beside `variant`; write only one"));
    }
    let mut rows = Vec::new();
    for name in variants {
        let Some(mut parts) = patterns.iter().find_map(|pattern| parts(pattern, name)) else {
            continue;
        };
        parts.push((VARIANT.to_owned(), (*name).to_owned()));
        unknown(row, &parts)?;
        let mut node = filled(row.node, &parts);
        if let Value::Table(entries) = &mut node.value {
            entries.retain(|entry| entry.key != "each");
            let value = Node { at: each.node.at, value: Value::Text((*name).to_owned()) };
            let at = each.node.at;
            entries.push(super::document::Entry { key: VARIANT.to_owned(), at, node: value });
        }
        rows.push(node);
    }
    if rows.is_empty() {
        return Err(
            each.error("matches the name of no variant; {word} stands for a part without a comma")
        );
    }
    Ok(rows)
}

/// Fails on a word in braces, in the row's name, that stands for nothing.
fn unknown(row: &Field<'_>, parts: &Parts) -> Result<(), LabError> {
    let Some(name) = row.node.get("name") else { return Ok(()) };
    let Value::Text(text) = &name.value else { return Ok(()) };
    let words = text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    let known = |word: &str| parts.iter().any(|(known, _)| known == word);
    let Some(word) = words.into_iter().find(|word| !known(word)) else { return Ok(()) };
    let all: Vec<String> = parts.iter().map(|(known, _)| format!("{{{known}}}")).collect();
    let problem = format!("{{{word}}} stands for nothing here; known are {}", all.join(", "));
    Err(row.error_at(name.at, &problem))
}

/// What the words in braces of a pattern stand for in a name; nothing if they are not alike. A part
/// has no comma, and ends where what follows the word in the pattern first begins.
fn parts(pattern: &str, name: &str) -> Option<Parts> {
    let (mut pattern, mut name, mut parts) = (pattern, name, Parts::new());
    while let Some((before, rest)) = pattern.split_once('{') {
        let (word, rest) = rest.split_once('}')?;
        name = name.strip_prefix(before)?;
        let next = rest.split('{').next().unwrap_or_default();
        let end = match next {
            "" => name.len(),
            next => name.find(next)?,
        };
        let part = &name[..end];
        if part.is_empty() || part.contains(',') {
            return None;
        }
        parts.push((word.to_owned(), part.to_owned()));
        (pattern, name) = (rest, &name[end..]);
    }
    (pattern == name).then_some(parts)
}

/// A value with the parts in all of its texts.
fn filled(node: &Node, parts: &Parts) -> Node {
    let text = |text: &str| {
        parts
            .iter()
            .fold(text.to_owned(), |text, (word, part)| text.replace(&format!("{{{word}}}"), part))
    };
    let value = match &node.value {
        Value::Text(old) => Value::Text(text(old)),
        Value::Array(items) => Value::Array(items.iter().map(|i| filled(i, parts)).collect()),
        Value::Table(entries) => {
            let mut entries = entries.clone();
            entries.iter_mut().for_each(|entry| entry.node = filled(&entry.node, parts));
            Value::Table(entries)
        }
        other => other.clone(),
    };
    Node { at: node.at, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_parts_without_commas() {
        let of = |pattern: &str, name: &str| {
            let parts = parts(pattern, name)?;
            Some(parts.into_iter().map(|(word, part)| format!("{word}={part}")).collect::<Vec<_>>())
        };
        assert_eq!(of("H{host}, 1 QP", "H3, 1 QP"), Some(vec!["host=3".to_owned()]));
        assert_eq!(of("H{host}, 1 QP", "H3, 4 QPs"), None);
        let two = Some(vec!["a=x".to_owned(), "b=y z".to_owned()]);
        assert_eq!(of("{a}, {b}", "x, y z"), two);
        assert_eq!(of("{a}, {b}", "x, y, z"), None);
        assert_eq!(of("{a}", "x, y"), None);
        assert_eq!(of("drb", "drb"), Some(Vec::new()));
        assert_eq!(of("drb", "drb, tight"), None);
        assert_eq!(of("{a", "x"), None);
        assert_eq!(of("{a}{b}", "xy"), None);
    }
}
