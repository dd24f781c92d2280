//! What `make bench` prints and writes has the form its readers expect.

use serde_json::Value;
use std::process::Command;

fn bench(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_clearlane-bench")).args(arguments).output();
    let output = output.expect("cargo has built the program");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_row_is_printed_and_written() {
    let path = std::env::temp_dir().join(format!("clearlane-bench-{}.json", std::process::id()));
    let file = path.to_str().unwrap();
    let (code, table, _) = bench(&["torus-8x8", "--runs", "1", "--out", file]);
    assert_eq!(code, 0);
    assert!(table.lines().any(|line| line.starts_with("torus-8x8 ")), "{table}");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows: Value = serde_json::from_str(&text).unwrap();
    let row = &rows["torus-8x8"];
    assert!(row["value"].as_f64().unwrap() > 0.0);
    assert_eq!(row["unit"], "M packet-hops per CPU second");
    assert_eq!((row["goal"].as_f64(), &row["lower_is_better"]), (Some(6.0), &Value::Bool(false)));
}

#[test]
fn a_run_of_one_row_counts_the_same_hops_every_time() {
    let (first, second) =
        (bench(&["--once", "tree-648-rc", "20"]), bench(&["--once", "tree-648-rc", "20"]));
    assert_eq!(first, second);
    assert!(first.1.trim().parse::<u64>().unwrap() > 10_000, "{first:?}");
}

#[test]
fn an_unknown_row_names_the_known() {
    let (code, _, error) = bench(&["torus-9x9"]);
    assert_eq!(code, 2);
    assert!(error.starts_with("clearlane-bench: there is no row `torus-9x9`"), "{error}");
    assert!(error.contains("torus-8x8") && error.lines().count() == 1, "{error}");
}
