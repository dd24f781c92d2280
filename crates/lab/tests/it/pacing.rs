//! Programs whose packets are paced, and what they are compared with.

use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, run};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const HEAD: &str = "schema = 1\nname = \"paced\"\n\
    run = { duration = \"50 ms\", ends = \"programs\" }\nfabric = { build = \"torus:4x4x4\" }\n\
    subnet = { forwarding = \"dimension-order-up\" }\nsim = { preset = \"nsim-2014\" }\n\
    [[traffic]]\nname = \"job\"\nclass = \"background\"\ntransport = \"ud\"\n";

const XOR: &str = "program = { kind = \"pairwise-alltoall\", size = \"4 KiB\" }\n";

fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, Path::new("x.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn ran_of(experiment: &Experiment) -> Result<RunResult, String> {
    let options = RunOptions::new(1, "");
    let result = run(experiment, &options, &Quiet, &AtomicBool::new(false));
    result.map_err(|error| error.to_string())
}

fn ran(rest: &str) -> RunResult {
    ran_of(&experiment(&format!("{HEAD}{rest}"))).unwrap_or_else(|error| panic!("{error}"))
}

/// When the first program of each variant had ended, ns.
fn ends(result: &RunResult) -> Vec<u64> {
    let end = |variant: &clearlane_lab::VariantResult| {
        variant.runs[0].completions[0].expect("it ends").0 / 1000
    };
    result.variants.iter().map(end).collect()
}

fn fact(result: &RunResult, label: &str) -> String {
    let summary: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let text = summary.to_string();
    let at =
        text.find(&format!("\"label\":\"{label}\"")).unwrap_or_else(|| panic!("{label}: {text}"));
    let value = text[at..].split("\"value\":\"").nth(1).unwrap();
    value.split('"').next().unwrap().to_owned()
}

/// To the one neighbour on either side go two messages of ten packets of 2 KiB, one after the other
/// by one port: with a gap of g nineteen gaps of g times 512 ns more.
#[test]
fn a_gap_follows_every_packet_but_the_last() {
    let text = "program = { kind = \"ring-exchange\", size = \"20160 B\" }\n\
        senders = { hosts = [0, 1] }\ngap = 0\n";
    let gaps = ["0.5", "1", "3"].map(|gap| {
        format!("[[variant]]\nname = \"{gap}\"\ntraffic = [{{ name = \"job\", gap = {gap} }}]\n")
    });
    let none = "[[variant]]\nname = \"none\"\n";
    let found = ends(&ran(&format!("{text}{none}{}", gaps.concat())));
    let more: Vec<u64> = found.iter().map(|end| end - found[0]).collect();
    assert_eq!(more, [0, 19 * 256, 19 * 512, 19 * 3 * 512]);
}

#[test]
fn ideal_times_stand_among_the_facts() {
    let large = XOR.replace("4 KiB", "40 KiB");
    let result = ran(&format!("{large}gap = \"mod\"\n"));
    let said = fact(&result, "ideal time of job");
    assert_eq!(
        said,
        "1041 us step by step, 500 us by the busiest link, 164 us by the busiest host; payload of \
         2,016 B a packet"
    );
    let said = fact(&result, "traffic job");
    assert!(said.ends_with("of 64 ranks, UD, MOD gaps of up to 1 packets"), "{said}");
}

/// The bound is one: no run is faster than the busiest link allows.
#[test]
fn no_run_beats_the_busiest_link_or_host() {
    for program in ["pairwise", "ring", "spread", "bruck", "butterfly"] {
        for gap in ["\"none\"", "\"mod\"", "2.5"] {
            let text = format!(
                "program = {{ kind = \"{program}-alltoall\", size = \"2 KiB\" }}\ngap = {gap}\n\
                 [[published]]\nname = \"link\"\nmeasure = {{ kind = \"link-bound\" }}\n\
                 [[published]]\nname = \"host\"\nmeasure = {{ kind = \"host-bound\" }}\n"
            );
            let result = ran(&text);
            let bounds: Vec<f64> =
                result.published().iter().map(|row| row.obtained.as_ref().unwrap().mean).collect();
            let end = ends(&result)[0] as f64 / 1000.0;
            assert!(
                bounds.iter().all(|bound| *bound > 0.0 && *bound <= end),
                "{program} {bounds:?}"
            );
        }
    }
}

/// The same tables, the same gaps: MOD comes from what packets are forwarded by.
#[test]
fn gaps_by_tables_are_those_of_the_rule_where_both_lead_alike() {
    let text = format!("{HEAD}{XOR}gap = \"mod\"\n").replace("4x4x4", "5x5");
    let rule = ran_of(&experiment(&text)).unwrap();
    let tables = text.replace("forwarding = \"dimension-order-up\"", "engine = \"dor\", lanes = 2");
    let tables = ran_of(&experiment(&tables)).unwrap();
    for label in ["traffic job", "ideal time of job"] {
        assert_eq!(fact(&rule, label), fact(&tables, label), "on a ring of five nothing is a tie");
    }
}

#[test]
fn a_timetable_takes_an_a2at_to_its_ideal_time() {
    let text = "program = { kind = \"a2at-alltoall\", size = \"256 KiB\", grid = [5, 5] }\n\
        gap = \"timetable\"\n\
        [[published]]\nname = \"ideal\"\nmeasure = { kind = \"ideal-time\" }\n";
    let text = format!("{HEAD}{text}").replace("4x4x4", "5x5");
    let result = ran_of(&experiment(&text)).unwrap();
    let ideal = result.published()[0].obtained.as_ref().unwrap().mean;
    let end = ends(&result)[0] as f64 / 1000.0;
    assert!(end >= ideal && end < 1.02 * ideal, "{end} {ideal}");
}

#[test]
fn ranks_are_where_they_are_mapped() {
    let neighbours = "program = { kind = \"ring-exchange\", size = \"64 KiB\" }\n";
    let variants = "[[variant]]\nname = \"linear\"\n\
        [[variant]]\nname = \"random\"\ntraffic = [{ name = \"job\", mapping = \"random\" }]\n\
        [[variant]]\nname = \"seed 1\"\ntraffic = [{ name = \"job\", mapping = { seed = 1 } }]\n\
        [[variant]]\nname = \"seed 2\"\ntraffic = [{ name = \"job\", mapping = { seed = 2 } }]\n";
    let found = ends(&ran(&format!("{neighbours}{variants}")));
    assert!(found[1] > 2 * found[0], "neighbours of a ring are no neighbours any more: {found:?}");
    assert_eq!(found[1], found[2], "1 is the seed of a random mapping");
    assert_ne!(found[2], found[3]);
}

/// A file in a folder of its own.
fn mapping(name: &str, lines: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("clearlane-mapping-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, lines).unwrap();
    path
}

#[test]
fn a_mapping_from_a_file_places_every_rank() {
    let text = |path: &Path| {
        let path = path.display();
        format!(
            "{HEAD}program = {{ kind = \"ping-pong\", size = \"8 B\", rounds = 9 }}\n\
             senders = {{ hosts = [0, 1] }}\nmapping = {{ file = \"{path}\" }}\n"
        )
    };
    let said = |name: &str, lines: &str| {
        let path = mapping(name, lines);
        let error = ran_of(&experiment(&text(&path))).map(|_| ()).unwrap_err();
        error.split_once(name).unwrap().1.to_owned()
    };
    let path = mapping("whole", "# rank 0\nhost0001\n\n0   # rank 1\n");
    let there = ran_of(&experiment(&text(&path))).unwrap();
    let other = text(&mapping("other", "0\n1\n"));
    assert_eq!(ends(&there), ends(&ran_of(&experiment(&other)).unwrap()));
    assert_eq!(
        said("short", "1\n"),
        " has no line for host0000; add it, or leave it out of senders"
    );
    assert_eq!(said("twice", "1\n0\n1\n"), ":3: host0001 has a rank on line 1 already");
    assert_eq!(said("foreign", "1\n5\n"), ":2: host0005 is none of senders; name it there");
    assert!(said("typo", "hots0001\n").starts_with(":1: "));
    // What is resolved reads back as the same.
    let first = experiment(&text(&path)).resolved();
    assert_eq!(experiment(&first).resolved(), first);
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let refused =
        |rest: &str| ran_of(&experiment(&format!("{HEAD}{rest}"))).map(|_| ()).unwrap_err();
    let pingpong = "program = { kind = \"ping-pong\", size = \"8 B\", rounds = 9 }\n\
        senders = { hosts = [0, 1] }\n";
    for (rest, said) in [
        (
            format!("{XOR}gap = \"timetable\"\n"),
            "program pairwise-alltoall keeps no timetable; a2at-alltoall in two dimensions does, \
             others take gap = \"mod\"",
        ),
        (
            format!("{pingpong}gap = \"mod\"\n"),
            "program ping-pong has no steps to compute gaps from; write gap = a number",
        ),
        (
            format!("{XOR}senders = {{ hosts = [0] }}\n"),
            "takes 2 ranks or more, not 1; change senders",
        ),
    ] {
        let error = refused(&rest);
        assert!(error.ends_with(said), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    let long = format!("{HEAD}{XOR}").replace("nsim-2014", "qdr").replace("4 KiB", "40 KiB");
    let error = ran_of(&experiment(&long)).map(|_| ()).unwrap_err();
    assert!(
        error.ends_with(
            "sends messages of up to 40 KiB, which are read by RDMA READ beyond eager_max = 8 KiB, \
             and UD has none; set transport = \"rc\" or raise eager_max"
        ),
        "{error}"
    );
    let parse = |rest: &str| {
        let text = format!("{HEAD}{rest}");
        Experiment::parse(&text, Path::new("x.toml")).map(|_| ()).unwrap_err().to_string()
    };
    let gap = parse(&format!("{XOR}gap = -1\n"));
    assert!(gap.contains("is neither a number of packet times from 0 to 100000 nor mod"), "{gap}");
    let gap = parse(&format!("{XOR}gap = \"modd\"\n"));
    assert!(gap.contains("the nearest is `mod`"), "{gap}");
    let map = parse(&format!("{XOR}mapping = \"liner\"\n"));
    assert!(map.contains("is neither linear, random nor a table"), "{map}");
    let both = parse(&format!("{XOR}mapping = {{ seed = 1, file = \"x\" }}\n"));
    assert!(both.contains("is not exactly one of"), "{both}");
    let open = "pattern = { kind = \"uniform\" }\nload = 0.1\nsize = \"2 KiB\"\ngap = 1\n";
    let open = parse(open);
    assert!(open.contains("belongs to a program, and this group has a pattern; drop it"), "{open}");
}

/// A pattern takes the place of a program with all that belongs to it.
#[test]
fn a_variant_with_a_pattern_has_no_gap() {
    let variant = "[[variant]]\nname = \"program\"\n[[variant]]\nname = \"pattern\"\n\
        traffic = [{ name = \"job\", pattern = { kind = \"uniform\" }, load = 0.1, \
        size = \"2 KiB\" }]\n";
    let text = format!("{HEAD}{XOR}gap = 1\nmapping = \"random\"\n{variant}");
    let text = text.replace("ends = \"programs\"", "ends = \"duration\"").replace("50 ms", "50 us");
    assert!(ran_of(&experiment(&text)).is_ok());
}
