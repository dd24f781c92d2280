//! What a wrong experiment file is answered with: one line with file, line, key, value and remedy.

use clearlane_lab::{Experiment, SiteFiles};
use proptest::prelude::*;
use std::path::Path;

/// An experiment without a fault; each test puts one in.
const SOUND: &str = r#"schema = 1
name = "sound"
summary = "a sound one"
[fabric]
build = "star:4"
[subnet]
engine = "min-hop"
lmc = 0
[sim]
preset = "qdr"
buffer = "64 KiB"
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "shift", by = 1 }
senders = "all"
load = 0.5
size = "2 KiB"
arrivals = "poisson"
[run]
duration = "100 us"
warm_up = "auto"
[[variant]]
name = "first"
[[variant]]
name = "second"
subnet = { lmc = 1 }
[[published]]
name = "load"
measure = { kind = "accepted-load", group = "all" }
published = "0.5"
"#;

fn error(text: &str) -> String {
    Experiment::parse(text, Path::new("x.toml")).expect_err(text).to_string()
}

/// The error after replacing a piece of the sound experiment, which must be there.
fn after(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    error(&SOUND.replacen(from, to, 1))
}

#[test]
fn the_sound_one_is_read() {
    let experiment = Experiment::parse(SOUND, Path::new("x.toml")).unwrap();
    assert_eq!(experiment.variants.len(), 2);
    assert_eq!(experiment.variants[1].subnet.lmc.value(), 1);
    assert_eq!(experiment.variants[0].subnet.lmc.value(), 0);
}

#[test]
fn faults_are_named_with_line_key_value_and_range() {
    let golden = include_str!("errors.golden.txt");
    let blocks: Vec<&str> = golden.split("\n\n").skip(1).collect();
    assert!(blocks.len() >= 27, "{}", blocks.len());
    for block in blocks {
        let lines: Vec<String> = block.trim().lines().map(|line| line.replace('¶', "\n")).collect();
        let [from, to, expected] = &lines[..] else { panic!("{block}") };
        assert_eq!(after(from, to), *expected, "{from} → {to}");
    }
}

#[test]
fn hosts_that_are_not_there_are_named_with_the_line_of_the_group() {
    use clearlane_lab::{Quiet, RunOptions, run};
    let text = SOUND.replacen("kind = \"shift\", by = 1", "kind = \"incast\", to = \"host-3x\"", 1);
    let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let options = RunOptions::new(1, "");
    let error = run(&experiment, &options, &Quiet, &false.into()).unwrap_err().to_string();
    assert!(
        error.starts_with("variant first: x.toml:12: traffic.all: pattern `incast`: "),
        "{error}"
    );
    assert!(error.contains("the nearest name is"), "{error}");
}

/// What the system says comes without its numbers, and the folder itself is called by its name.
#[test]
fn files_that_cannot_be_read_are_told_in_plain_words() {
    use clearlane_lab::{Quiet, RunOptions, run};
    let after = |from: &str, to: &str| {
        let text = SOUND.replacen(from, to, 1);
        let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
        let options = RunOptions::new(1, "");
        run(&experiment, &options, &Quiet, &false.into()).unwrap_err().to_string()
    };
    let matrix = after("kind = \"shift\", by = 1", "kind = \"matrix\", file = \".\"");
    assert_eq!(matrix, ".: is a folder; check the path");
    let fabric = after("build = \"star:4\"", "file = \"not/here.topo\"");
    assert_eq!(fabric, "not/here.topo: no such file or folder; check the path");
}

#[test]
fn more_than_a_thousand_flow_groups_are_refused() {
    let group = |index: usize| {
        format!(
            "[[traffic]]\nname = \"{index}\"\nclass = \"background\"\nload = 0.1\n\
             pattern = {{ kind = \"uniform\" }}\nsize = \"64 B\"\n"
        )
    };
    let text = |groups: usize| {
        let groups: String = (1..groups).map(group).collect();
        let text = SOUND.replacen("[[variant]]", &format!("{groups}[[variant]]"), 1);
        text.replacen("[run]", "[run]\nslices = 20", 1)
    };
    assert!(Experiment::parse(&text(1000), Path::new("x.toml")).is_ok());
    let refused = error(&text(1001));
    assert!(refused.contains("1001 tables [[traffic]] are more than 1000"), "{refused}");
    // A variant may not add the one too many either.
    let added = "subnet = { lmc = 1 }\ntraffic = [{ name = \"new\", class = \"hot\", \
         load = 0.1, pattern = { kind = \"uniform\" }, size = \"64 B\" }]";
    let refused = error(&text(1000).replacen("subnet = { lmc = 1 }", added, 1));
    assert!(refused.contains("1001 tables"), "{refused}");
}

#[test]
fn requests_of_the_command_line_are_checked() {
    let experiment = || Experiment::parse(SOUND, Path::new("x.toml")).unwrap();
    let line = |result: Result<(), clearlane_lab::LabError>| result.unwrap_err().to_string();
    assert_eq!(
        line(experiment().keep_variants(&["frist"])),
        "the experiment has no variant `frist`; the nearest is `first`"
    );
    assert_eq!(line(experiment().override_seeds(None, Some(0))), "seeds = 0 is outside 1 to 1000");
    let refused = line(
        experiment()
            .override_site(&SiteFiles { lft: vec!["a.lft".into()], ..SiteFiles::default() }),
    );
    assert!(refused.starts_with("no variant reads forwarding"), "{refused}");
    let mut kept = experiment();
    kept.keep_variants(&["second"]).unwrap();
    assert_eq!((kept.variants.len(), kept.published.len()), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_cut_file_never_panics_and_yields_one_line(cut in 0..SOUND.len()) {
        if let Err(error) = Experiment::parse(&SOUND[..cut], Path::new("x.toml")) {
            let text = error.to_string();
            prop_assert!(!text.contains('\n') && text.starts_with("x.toml:"), "{}", text);
        }
    }

    #[test]
    fn a_replaced_value_never_panics_and_yields_one_line(
        line in 0..SOUND.lines().count(),
        value in r#"[-a-z0-9."\[\]{}=, \n\\]{0,24}"#,
    ) {
        let replace = |(index, text): (usize, &str)| match text.split_once('=') {
            Some((key, _)) if index == line => format!("{key}= {value}\n"),
            _ => format!("{text}\n"),
        };
        let text: String = SOUND.lines().enumerate().map(replace).collect();
        if let Err(error) = Experiment::parse(&text, Path::new("x.toml")) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn noise_never_panics_and_yields_one_line(text in "\\PC{0,200}") {
        if let Err(error) = Experiment::parse(&text, Path::new("x.toml")) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
