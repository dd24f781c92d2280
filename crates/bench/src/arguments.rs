//! What the command line asks for.

use crate::captures::{self, CaptureRow};
use crate::rows::{ROWS, Row};
use crate::tables::{self, TableRow};

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// One run of so many microseconds.
    Once(&'static Row, u64),
    /// The lengths of the runs that scripts/bench-pair compares, of the rows of rare settings or of
    /// all others.
    Spans { rare: bool },
    /// A capture of so many packets, as a row has it, in a file.
    Capture(&'static CaptureRow, u32, String),
    /// Time and memory.
    Measure(Options),
    /// What a hop costs by callgrind.
    Cache(Vec<&'static Row>, Option<String>),
    /// What several threads gain.
    Threads(usize, Options),
}

/// Of `Measure`.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) rows: Vec<&'static Row>,
    pub(crate) tables: Vec<&'static TableRow>,
    pub(crate) captures: Vec<&'static CaptureRow>,
    pub(crate) runs: u32,
    pub(crate) instructions: bool,
    pub(crate) out: Option<String>,
}

impl Command {
    /// Reads the words after the program's name.
    pub(crate) fn parse(words: &[String]) -> Result<Command, String> {
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["--once", name, span] => {
                let span = match span.parse() {
                    Ok(span) if (1..=1_000_000_000).contains(&span) => span,
                    _ => return Err(format!("{span} is no number of microseconds, 1 to 10^9")),
                };
                Ok(Command::Once(find(name)?, span))
            }
            ["--once", ..] => Err("write --once ROW MICROSECONDS".into()),
            ["--spans"] => Ok(Command::Spans { rare: false }),
            ["--spans", "--rare"] => Ok(Command::Spans { rare: true }),
            ["--capture", name, packets, path] => {
                let packets = match packets.parse() {
                    Ok(packets) if (1..=100_000_000).contains(&packets) => packets,
                    _ => return Err(format!("{packets} is no number of packets, 1 to 10^8")),
                };
                let row = captures::ROWS.iter().find(|row| row.name == name);
                Ok(Command::Capture(row.ok_or_else(|| unknown(name))?, packets, path.into()))
            }
            ["--capture", ..] => Err("write --capture ROW PACKETS FILE".into()),
            _ => measure(words),
        }
    }
}

fn measure(words: &[String]) -> Result<Command, String> {
    let mut options = Options {
        rows: vec![],
        tables: vec![],
        captures: vec![],
        runs: 3,
        instructions: false,
        out: None,
    };
    let (mut cache, mut threads) = (false, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--instructions" => options.instructions = true,
            "--cache" => cache = true,
            "--rare" => options.rows.extend(ROWS.iter().filter(|row| row.rare)),
            "--threads" => {
                let text = value()?;
                threads = match text.parse() {
                    Ok(threads) if (2..=64).contains(&threads) => Some(threads),
                    _ => return Err(format!("--threads {text} is outside 2 to 64")),
                };
            }
            "--out" => options.out = Some(value()?.clone()),
            "--runs" => options.runs = runs(value()?)?,
            name => {
                let capture = captures::ROWS.iter().find(|row| row.name == name);
                match (tables::ROWS.iter().find(|row| row.name == name), capture) {
                    (Some(row), _) => options.tables.push(row),
                    (None, Some(row)) => options.captures.push(row),
                    (None, None) => options.rows.push(find(name)?),
                }
            }
        }
    }
    let others = options.tables.is_empty() && options.captures.is_empty();
    let all = options.rows.is_empty() && others;
    let names = options.tables.iter().map(|row| row.name);
    let unhopped = names.chain(options.captures.iter().map(|row| row.name)).next();
    if let (true, Some(name)) = (cache || threads.is_some(), unhopped) {
        return Err(format!("`{name}` has no packet-hops to count by"));
    }
    if cache && threads.is_some() {
        return Err("--cache and --threads are two questions; ask one at a time".into());
    }
    if let Some(threads) = threads {
        if all {
            let chosen = ROWS.iter().filter(|row| !row.rare && row.control.is_none());
            options.rows = chosen.collect();
        }
        return Ok(Command::Threads(threads, options));
    }
    if cache {
        let chosen = ROWS.iter().filter(|row| !row.rare && row.is_plain());
        let rows = if all { chosen.collect() } else { options.rows };
        return Ok(Command::Cache(rows, options.out));
    }
    if all {
        options.rows = ROWS.iter().filter(|row| !row.rare).collect();
        options.tables = tables::ROWS.iter().collect();
        options.captures = captures::ROWS.iter().collect();
    }
    Ok(Command::Measure(options))
}

/// The number of runs that a text says.
fn runs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(runs) if (1..=100).contains(&runs) => Ok(runs),
        _ => Err(format!("--runs {text} is outside 1 to 100")),
    }
}

fn find(name: &str) -> Result<&'static Row, String> {
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> String {
    let names = ROWS.iter().map(|row| row.name).chain(tables::ROWS.iter().map(|row| row.name));
    let names = names.chain(captures::ROWS.iter().map(|row| row.name));
    format!("there is no row `{name}`; rows are {}", names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command, String> {
        let words: Vec<String> = text.split_whitespace().map(String::from).collect();
        Command::parse(&words)
    }

    #[test]
    fn without_rows_all_are_measured() {
        let Ok(Command::Measure(options)) = parse("--runs 5 --instructions --out a.json") else {
            panic!("not a measurement");
        };
        let frequent = ROWS.iter().filter(|row| !row.rare).count();
        assert_eq!((options.rows.len(), options.tables.len()), (frequent, tables::ROWS.len()));
        assert_eq!((options.runs, options.instructions), (5, true));
        assert_eq!(options.out.as_deref(), Some("a.json"));
    }

    #[test]
    fn rows_and_tables_are_told_apart() {
        let Ok(Command::Measure(options)) = parse("tree-648-rc check-3456") else {
            panic!("not a measurement");
        };
        let names: Vec<_> = options.rows.iter().map(|row| row.name).collect();
        assert_eq!((names, options.tables[0].name), (vec!["tree-648-rc"], "check-3456"));
    }

    #[test]
    fn the_cache_is_counted_for_datagrams_unless_rows_are_named() {
        let Ok(Command::Cache(rows, None)) = parse("--cache") else { panic!("not --cache") };
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        let expected = [
            "torus-8x8",
            "torus-16x16x16",
            "tree-648-1-lane",
            "tree-648-8-lanes",
            "torus-64x64x32",
            "tree-648-adaptive",
            "tree-648-adaptive-limited",
            "tree-648-15-lanes",
            "tree-648-15-lanes-limited",
        ];
        assert_eq!(names, expected);
        let Ok(Command::Cache(rows, _)) = parse("tree-648-rc --cache") else { panic!("not one") };
        assert_eq!(rows[0].name, "tree-648-rc");
        assert!(parse("--cache tables-3456").unwrap_err().contains("tables-3456"));
    }

    #[test]
    fn rows_of_rare_settings_are_measured_where_they_are_asked_for() {
        let Ok(Command::Measure(options)) = parse("torus-8x8 --rare") else { panic!("not rows") };
        assert!(options.rows.len() > 1 && options.rows[1..].iter().all(|row| row.rare));
        assert_eq!((options.rows[0].name, options.tables.len()), ("torus-8x8", 0));
    }

    #[test]
    fn threads_are_several_and_rows_those_of_packets() {
        let Ok(Command::Threads(2, options)) = parse("--threads 2 torus-8x8") else {
            panic!("not --threads")
        };
        assert_eq!(options.rows[0].name, "torus-8x8");
        for wrong in [
            "--threads 1",
            "--threads x",
            "--threads 65",
            "--threads 2 tables-3456",
            "--threads 2 --cache",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_run_has_a_row_and_a_length() {
        let Ok(Command::Once(row, 20)) = parse("--once torus-8x8 20") else { panic!("not once") };
        assert_eq!(row.name, "torus-8x8");
        assert!(matches!(parse("--spans"), Ok(Command::Spans { rare: false })));
        assert!(matches!(parse("--spans --rare"), Ok(Command::Spans { rare: true })));
        for wrong in ["--once torus-8x8", "--once torus-8x8 0", "--once torus-8x8 x", "--runs 0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--once nothing 1").unwrap_err().starts_with("there is no row `nothing`"));
    }
}
