//! A traffic matrix: each pair's share of the load.

use super::{Destinations, Entry, Pattern, TableFile};
use clearlane_ib::ticked;
use crate::{HostRef, Rank, Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "matrix",
    summary: "a table of source, destination and load; loads are shares of the source's link",
    parameters: "file: path of a text with a line `source destination load` per pair, `#` comments",
    reference: "tables as site monitoring exports them",
};

/// The table.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The table.
    pub file: TableFile,
}

#[derive(Debug)]
struct Matrix {
    /// By source: destinations with the running sum of their loads.
    rows: Vec<Vec<(Rank, f64)>>,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let TableFile { path, text } = &self.file;
        let Some(text) = text else { return Err(format!("{path} has not been read")) };
        let mut rows = vec![Vec::<(Rank, f64)>::new(); ranks.count() as usize];
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let place = |problem: String| format!("{path}:{}: {problem}", index + 1);
            let (source, destination, load) = parse(line, ranks).map_err(place)?;
            let row = &mut rows[source.0 as usize];
            let sum = row.last().map_or(0.0, |(_, sum)| *sum);
            row.push((destination, sum + load));
        }
        if rows.iter().all(Vec::is_empty) {
            return Err(format!("{path} lists no pair"));
        }
        Ok(Arc::new(Matrix { rows }))
    }

    fn table(&mut self) -> Option<&mut TableFile> {
        Some(&mut self.file)
    }

    fn file(&self) -> Option<&str> {
        Some(&self.file.path)
    }
}

fn parse(line: &str, ranks: &Ranks) -> Result<(Rank, Rank, f64), String> {
    let fields: Vec<&str> =
        line.split(|c: char| c == ',' || c.is_whitespace()).filter(|f| !f.is_empty()).collect();
    let [source, destination, load] = fields[..] else {
        return Err(format!("expected `source destination load`, found {} fields", fields.len()));
    };
    let host = |text: &str| match text.parse() {
        Ok(number) => ranks.resolve(&HostRef::Number(number)),
        Err(_) => ranks.resolve(&HostRef::Name(text.into())),
    };
    let (source, destination) = (host(source)?, host(destination)?);
    if source == destination {
        return Err("a host does not send to itself through the fabric; drop the line".into());
    }
    match load.parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 4.0 => Ok((source, destination, load)),
        _ => Err(format!("load {} is outside 0 < load ≤ 4", ticked(load))),
    }
}

impl Destinations for Matrix {
    fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank> {
        let row = self.rows.get(source.0 as usize)?;
        let point = stream.unit() * row.last()?.1;
        row.iter().find(|(_, sum)| point <= *sum).or(row.last()).map(|(to, _)| *to)
    }

    fn weight(&self, source: Rank) -> f64 {
        self.rows.get(source.0 as usize).and_then(|row| row.last()).map_or(0.0, |(_, sum)| *sum)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ranks;
    use super::*;

    fn build(text: &str) -> Result<Arc<dyn Destinations>, String> {
        let file = TableFile { path: "m.txt".into(), text: Some(text.into()) };
        Params { file }.build(&ranks(4), None)
    }

    #[test]
    fn loads_are_shares_and_weights() {
        let built = build("# site\n0 host001 0.2\n0, 2, 0.6\nhost003 0 1\n").unwrap();
        assert_eq!(built.weight(Rank(1)), 0.0);
        assert!((built.weight(Rank(0)) - 0.8).abs() < 1e-12);
        let mut stream = Stream::new(1, "test", 0);
        let to_two = (0..1000).filter(|_| built.draw(Rank(0), &mut stream) == Some(Rank(2)));
        assert!((700..800).contains(&to_two.count()));
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = |text| build(text).unwrap_err();
        assert_eq!(
            error("0 1 0.5\n0 1"),
            "m.txt:2: expected `source destination load`, found 2 fields"
        );
        assert!(
            error("0 host01 1").contains("m.txt:1: there is no host `host01`, the nearest name")
        );
        assert!(error("0 9 1").contains("ranks are 0 to 3"));
        assert!(error("0 1 nan").contains("outside 0 < load"));
        assert!(error("1 1 1").contains("to itself"));
        assert!(error("0 1 \u{1a}").contains("load `\\u{1a}` is outside"));
        let long = format!("0 h{}\u{1a} 1", "x".repeat(9000));
        assert!(error(&long).len() < 200 && !error(&long).contains('\u{1a}'));
        assert!(error("0 h\u{0} 1").contains("no host `h\\0`"));
        assert!(error("").contains("lists no pair"));
    }

    proptest::proptest! {
        /// Whatever a file holds: a matrix or one line that says where and why not.
        #[test]
        fn any_text_is_a_matrix_or_an_error_of_one_line(
            text in "([0-9]{1,3}|host00[0-9]|[ ,#\n.]|-|nan|inf|1e999|\\PC){0,60}",
        ) {
            if let Err(error) = build(&text) {
                proptest::prop_assert!(!error.contains('\n'), "{error:?}");
                proptest::prop_assert!(error.starts_with("m.txt"), "{error:?}");
            }
        }
    }
}
