//! What a wrong experiment file is answered with: one line with file, line, key, value and remedy.

use clearlane_lab::Experiment;
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
    let golden = [
        ("load = 0.5", "laod = 0.5", "x.toml:12: traffic.all lacks `load`; write load = 0.5"),
        ("lmc = 0", "lcm = 0", "x.toml:8: subnet has no key `lcm`; the nearest is `lmc`"),
        (
            "[run]",
            "[rum]",
            "x.toml:1: the experiment lacks `run`; write run = { duration = \"2 ms\" }",
        ),
        (
            "load = 0.5",
            "load = 9",
            "x.toml:17: traffic.all.load = 9 is not a number above 0 and up to 4",
        ),
        (
            "load = 0.5",
            "load = nan",
            "x.toml:17: traffic.all.load = nan is not a number above 0 and up to 4",
        ),
        (
            "\"2 KiB\"",
            "2048",
            "x.toml:18: traffic.all.size = 2048 is neither a size such as \"2 KiB\", { min, max } nor \
          { mix }",
        ),
        (
            "\"2 KiB\"",
            "\"2 parsecs\"",
            "x.toml:18: traffic.all.size: `2 parsecs` is not a size; write a number and one of B, KiB, \
          MiB, GiB, kB, MB, GB, such as \"64 KiB\"",
        ),
        ("\"64 KiB\"", "\"1 GiB\"", "x.toml:11: sim.buffer = \"1 GiB\" is outside 320 B to 4 MiB"),
        (
            "\"100 us\"",
            "100",
            "x.toml:21: run.duration = 100 has no unit; write it in quotes with one, such as \"2 ms\"",
        ),
        (
            "\"auto\"",
            "\"1 ms\"",
            "x.toml:22: run.warm_up = \"1 ms\" leaves nothing of the run to measure; lower it",
        ),
        (
            "\"qdr\"",
            "\"qrd\"",
            "x.toml:10: sim.preset = \"qrd\" is no preset; the nearest is `qdr`",
        ),
        (
            "\"min-hop\"",
            "\"minhop\"",
            "x.toml:7: subnet.engine = \"minhop\" is no routing engine; the nearest is `min-hop`",
        ),
        (
            "\"shift\"",
            "\"shfit\"",
            "x.toml:15: traffic.all.pattern.kind = \"shfit\" is no pattern; the nearest is `shift`",
        ),
        ("by = 1", "bye = 1", "x.toml:15: traffic.all.pattern: unknown field `bye`, expected `by`"),
        (
            "\"poisson\"",
            "\"poison\"",
            "x.toml:19: traffic.all.arrivals = \"poison\" is none of poisson, periodic; the nearest is \
          `poisson`",
        ),
        (
            "\"background\"",
            "\"hott\"",
            "x.toml:14: traffic.all.class = \"hott\" is none of hot, victim, background; the nearest is \
          `hot`",
        ),
        (
            "\"all\"\nload",
            "{ every = 0 }\nload",
            "x.toml:16: traffic.all.senders.every = 0 is not a whole number from 1 to 1048576",
        ),
        (
            "\"all\"\nload",
            "{ hosts = [\"a\"], seed = 3 }\nload",
            "x.toml:16: traffic.all.senders.seed = 3 does not belong to this kind of senders; drop it",
        ),
        (
            "lmc = 0",
            "lft = \"a.lft\"",
            "x.toml:8: subnet.lft = \"a.lft\" is read by engine = \"file\" alone; drop it",
        ),
        (
            "build = \"star:4\"",
            "build = \"star:4\"\nfile = \"a.topo\"",
            "x.toml:5: fabric.build = \"star:4\" stands beside `file`; write only one of them",
        ),
        (
            "name = \"second\"",
            "name = \"first\"",
            "x.toml:26: variant[1].name = \"first\" is the name of two variants; rename one",
        ),
        (
            "\"accepted-load\"",
            "\"acepted-load\"",
            "x.toml:30: published.load.measure.kind = \"acepted-load\" is no measure; the nearest is \
          `accepted-load`",
        ),
        (
            "group = \"all\"",
            "group = \"al\"",
            "x.toml:28: published.load: no traffic group is named al; the nearest is `all`",
        ),
        ("schema = 1", "schema = 2", "x.toml:1: schema = 2 is not a whole number from 1 to 1"),
        (
            "preset = \"qdr\"",
            "preset = \"qdr\"\noutstanding = 0",
            "x.toml:11: sim.outstanding = 0 is not a whole number from 1 to 32767",
        ),
        (
            "\"auto\"",
            "\"auto\"\nslices = 19",
            "x.toml:23: run.slices = 19 is not a whole number from 20 to 2000",
        ),
        (
            "duration = \"100 us\"",
            "duration = \"100 us",
            "x.toml:21: invalid basic string, expected `\"`",
        ),
    ];
    for (from, to, expected) in golden {
        assert_eq!(after(from, to), expected, "{from} → {to}");
    }
}

#[test]
fn hosts_that_are_not_there_are_named_with_the_line_of_the_group() {
    use clearlane_lab::{Quiet, RunOptions, run};
    let text = SOUND.replacen("kind = \"shift\", by = 1", "kind = \"incast\", to = \"host-3x\"", 1);
    let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let options = RunOptions { jobs: 1, command: String::new() };
    let error = run(&experiment, &options, &Quiet, &false.into()).unwrap_err().to_string();
    assert!(
        error.starts_with("variant first: x.toml:12: traffic.all: pattern `incast`: "),
        "{error}"
    );
    assert!(error.contains("the nearest name is"), "{error}");
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
    let lft = Some("a.lft".into());
    assert!(line(experiment().override_site(None, lft)).starts_with("no variant reads forwarding"));
    let mut kept = experiment();
    kept.keep_variants(&["second"]).unwrap();
    assert_eq!((kept.variants.len(), kept.published.len()), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

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
