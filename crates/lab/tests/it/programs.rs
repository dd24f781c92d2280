//! Programs in experiments: when they are complete, what ends their run, what is told of it, and
//! what is refused.

use clearlane_ib::wire;
use clearlane_lab::{
    Elapsed, Experiment, Progress, Quiet, RunOptions, RunResult, Status, Sweep, run,
};
use clearlane_sim::{Ending, preset};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const HEAD: &str = "schema = 1\nname = \"programs\"\n\
    run = { duration = \"2 ms\", ends = \"programs\" }\nfabric = { build = \"star:8\" }\n\
    subnet = { engine = \"min-hop\" }\nsim = { preset = \"qdr\" }\n\
    [[traffic]]\nname = \"job\"\nclass = \"victim\"\n";

const NOISE: &str = "[[traffic]]\nname = \"noise\"\nclass = \"background\"\n\
    pattern = { kind = \"uniform\" }\nload = 0.3\nsize = \"2 KiB\"\ntransport = \"ud\"\n";

fn parse(rest: &str) -> Experiment {
    Experiment::parse(&format!("{HEAD}{rest}"), Path::new("x.toml")).unwrap()
}

fn ran(rest: &str, threads: usize) -> RunResult {
    let options = RunOptions { threads, ..RunOptions::new(1, "") };
    run(&parse(rest), &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

fn ran_whole(text: &str) -> RunResult {
    let experiment = Experiment::parse(text, Path::new("x.toml")).unwrap();
    run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_series_has_many_slices_however_short_the_program_is() {
    for (rounds, limit) in [(20, "2 ms"), (20, "2 s"), (700, "2 s")] {
        let text = HEAD.replace("2 ms", limit)
            + &format!(
                "program = {{ kind = \"ping-pong\", size = \"1 KiB\", rounds = {rounds} }}\n\
                senders = {{ hosts = [2, 5] }}\n"
            );
        let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
        let options = RunOptions::new(1, "");
        let result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
        let run = &result.variants[0].runs[0];
        let series = &run.figures.series[0];
        assert!((50..=100).contains(&series.len()), "{} slices", series.len());
        assert_eq!(run.figures.slices.count(run.simulated), series.len());
        let bytes: u64 = series.iter().map(|slice| slice.delivered_payload_bytes).sum();
        assert_eq!(bytes, 2 * rounds * 1024);
        let full = run.figures.all.accepted_gbps * run.simulated.as_seconds() / 8e-9;
        assert!((full - bytes as f64).abs() < 1e-3 * full, "{full} of {bytes} B");
    }
}

#[test]
fn a_program_that_ends_is_complete_and_not_unconverged() {
    let program = "program = { kind = \"ring-allreduce\", size = \"100 KiB\" }\n";
    for rest in [program.to_owned(), format!("{program}{NOISE}")] {
        let result = ran(&rest, 1);
        assert_eq!(result.status(), Status::Complete);
        assert_eq!(result.oddities(), [""; 0]);
        let table = result.headline_table().to_string();
        assert!(table.contains("completion") && !table.contains('*'), "{table}");
        let us = format!("{}", completion(&result) as f64 * 1e-6);
        assert!(result.to_json().contains(&format!("\"job\": {us}")), "{us}");
    }
}

/// A cell of the headline, by variant and column.
fn cell(result: &RunResult, variant: &str, column: &str) -> Option<f64> {
    let summary: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    summary["headline"][variant][column]["mean"].as_f64()
}

#[test]
fn half_a_round_of_a_ping_pong_is_told_as_benchmarks_tell_it() {
    let program = "program = { kind = \"ping-pong\", size = \"1 KiB\", rounds = 50 }\n\
        senders = { hosts = [2, 5] }\n";
    let result = ran(program, 1);
    let [all, one] =
        ["completion_time", "operation_time"].map(|key| cell(&result, "as-is", key).unwrap());
    assert!((all / 100.0 - one).abs() < 1e-9, "{all} {one}");
    assert!(result.headline_table().to_string().contains("one operation"));
    // What is done once has no time of its own.
    let once = ran("program = { kind = \"ring-allreduce\", size = \"1 KiB\" }\n", 1);
    assert_eq!(cell(&once, "as-is", "operation_time"), None);
}

#[test]
fn shares_of_unequal_links_stand_beside_what_is_comparable() {
    let text = |fabric: &str| {
        HEAD.replace(", ends = \"programs\"", "").replace("star:8", fabric)
            + "pattern = { kind = \"uniform\" }\nload = 0.3\nsize = \"2 KiB\"\n\
            [[variant]]\nname = \"one\"\n\
            [[variant]]\nname = \"two\"\nsim = { adapter_ports = 2 }\n"
    };
    let options = RunOptions::new(1, "");
    let ran = |fabric: &str| {
        let text = text(fabric).replace("2 ms", "100 us");
        let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
        run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap()
    };
    let doubled = ran("mesh:2x2,links=2");
    let [one, two] =
        ["one", "two"].map(|variant| cell(&doubled, variant, "accepted_gbps").unwrap());
    assert!(two > 1.8 * one, "{one} {two}");
    assert!(!doubled.oddities().iter().any(|oddity| oddity.contains("adapter_ports")));
    let single = ran("mesh:2x2");
    assert_eq!(cell(&single, "two", "accepted_gbps"), None);
    let said = "adapter_ports = 2, but hosts have at most 1 cabled; for a built fabric \
                write links = 2";
    assert!(
        single.oddities().iter().any(|oddity| oddity.ends_with(said)),
        "{:?}",
        single.oddities()
    );
}

#[test]
fn a_limit_that_comes_before_a_program_ends_is_said_with_its_remedy() {
    let program = "program = { kind = \"ring-allreduce\", size = \"1 GiB\" }\n";
    let result = ran(program, 1);
    assert_eq!((result.status(), result.not_converged()), (Status::NotEnded, vec![]));
    let said = "seed 1: program job had not ended at the limit of 2 ms: no completion time; raise \
                duration";
    assert_eq!(result.oddities(), [said]);
    // Of a fixed length it is as it was asked for.
    let text = HEAD.replace("ends = \"programs\"", "ends = \"duration\"") + program;
    let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let options = RunOptions::new(1, "");
    let result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
    assert_eq!(result.status(), Status::Complete);
    let said = "seed 1: program job had not ended when the run did, at 2 ms: no completion time; \
                raise duration or set ends = \"programs\"";
    assert_eq!(result.oddities(), [said]);
}

#[test]
fn victims_that_are_programs_are_slowed_down_by_as_much_as_they_take_longer() {
    let hot = "[[traffic]]\nname = \"hot\"\nclass = \"hot\"\nload = 1.0\nsize = \"16 KiB\"\n\
        pattern = { kind = \"incast\", to = 7 }\nsenders = { hosts = [4, 5, 6] }\n";
    let program = "program = { kind = \"pairwise-alltoall\", size = \"100 KiB\" }\n";
    let beside = ran(&format!("{program}{hot}"), 1);
    let (slow, fast) = (completion(&beside), completion(&ran(program, 1)));
    assert!(slow > fast);
    assert_eq!(beside.variants[0].runs[0].slowdown, Some(slow as f64 / fast as f64));
}

#[test]
fn a_hot_program_before_the_victims_is_not_taken_for_theirs() {
    let head = HEAD.split("[[traffic]]").next().unwrap();
    let group = |name: &str, class: &str, kind: &str, hosts: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nclass = \"{class}\"\nsenders = {{ hosts = {hosts} }}\n\
             program = {{ kind = \"{kind}\", size = \"200 KiB\" }}\n"
        )
    };
    let hot = group("hot", "hot", "pairwise-alltoall", "[0, 1, 2, 3]");
    let victims = group("ring", "victim", "ring-allreduce", "[2, 3, 4, 5]");
    let end = |text: &str, at: usize| {
        let result = ran_whole(&format!("{head}{text}"));
        let run = &result.variants[0].runs[0];
        (run.completions[at].unwrap().0, run.slowdown)
    };
    let (alone, _) = end(&victims, 0);
    let (beside, slowdown) = end(&format!("{hot}{victims}"), 1);
    assert!(beside > alone);
    assert_eq!(slowdown, Some(beside as f64 / alone as f64));
}

#[test]
fn victims_whose_programs_do_not_end_have_no_slowdown() {
    let hot = "[[traffic]]\nname = \"hot\"\nclass = \"hot\"\nload = 1.0\nsize = \"16 KiB\"\n\
        pattern = { kind = \"incast\", to = 7 }\nsenders = { hosts = [4, 5, 6] }\n";
    let program = "program = { kind = \"pairwise-alltoall\", size = \"100 MiB\" }\n";
    let result = ran(&format!("{program}{hot}"), 1);
    assert_eq!(result.variants[0].runs[0].slowdown, None);
}

#[test]
fn a_program_that_ends_with_some_seeds_only_is_marked() {
    let program = "program = { kind = \"ring-allreduce\", size = \"100 KiB\" }\n";
    let text = format!("{HEAD}{program}{NOISE}").replace("2 ms\"", "2 ms\", seeds = 2");
    let ends: Vec<u64> =
        ran_whole(&text).variants[0].runs.iter().map(|run| run.completions[0].unwrap().0).collect();
    let between = ends[0].midpoint(ends[1]);
    assert!(ends[0] != ends[1]);
    for ends in ["programs", "duration"] {
        let limit = format!("{between} ps\", seeds = 2, ends = \"{ends}\"");
        let text = format!("{HEAD}{program}{NOISE}").replace("2 ms\", ends = \"programs\"", &limit);
        let result = ran_whole(&text);
        assert_eq!(result.status(), Status::NotEnded, "{text}");
        assert_eq!(result.not_converged()[0], "completion");
    }
}

#[test]
fn the_last_slice_counts_for_as_long_as_it_is() {
    let program = "program = { kind = \"ring-allreduce\", size = \"100 KiB\" }\n";
    let row = |kind: &str| {
        format!(
            "[[published]]\nname = \"{kind}\"\npublished = \"1\"\nnote = \"\"\n\
             measure = {{ kind = \"{kind}\" }}\n"
        )
    };
    let rows = ["span-load", "worst-load", "peak-load"].map(row).concat();
    let result = ran(&format!("{program}{NOISE}{rows}"), 1);
    let found: Vec<f64> =
        result.published().iter().map(|row| row.obtained.as_ref().unwrap().mean).collect();
    let [span, worst, peak] = found[..] else { panic!("{found:?}") };
    assert!((span - worst).abs() < 1e-12 && peak > span && peak <= 1.0, "{found:?}");
    let run = &result.variants[0].runs[0];
    let slices = run.figures.slices;
    let lengths = (0..run.figures.series[0].len()).map(|index| slices.length_of(index).0);
    assert_eq!(lengths.sum::<u64>(), run.simulated.0);
}

#[test]
fn messages_of_no_bytes_go_by_one_of_several_paths() {
    for (kind, size) in [("pairwise-alltoall", "0 B"), ("ring-allreduce", "3 B")] {
        let text = HEAD
            .replace("star:8", "torus:3x3")
            .replace("engine = \"min-hop\"", "engine = \"multipath\", lanes = 8, lmc = 1");
        let program = format!("program = {{ kind = \"{kind}\", size = \"{size}\", rounds = 9 }}\n");
        let result = ran_whole(&format!("{text}{program}[control]\nwhich = \"drb\"\n"));
        assert_eq!(result.status(), Status::Complete, "{:?}", result.oddities());
    }
}

#[test]
fn a_run_ends_on_the_grid_wherever_a_look_for_a_deadlock_is_due() {
    for rounds in 15..45 {
        let result = ran(
            &format!(
                "program = {{ kind = \"ping-pong\", size = \"1 KiB\", rounds = {rounds} }}\n\
                 senders = {{ hosts = [2, 5] }}\n"
            ),
            1,
        );
        let end = (completion(&result) / (1 << 20) + 1) << 20;
        assert_eq!(result.variants[0].runs[0].simulated.0, end, "{rounds} rounds");
    }
}

/// Long messages on a tree, by the variants' names.
fn beside_mechanisms(fabric: &str, program: &str, variants: &str) -> RunResult {
    let text = HEAD.replace("star:8", fabric).replace("2 ms", "50 ms");
    ran_whole(&format!("{text}program = {program}\n{variants}"))
}

#[test]
fn reads_tell_no_mechanism_of_delays_that_are_none() {
    let result = beside_mechanisms(
        "leaf-spine:leaves=2,hosts=4,spines=2",
        "{ kind = \"ring-allreduce\", size = \"1 MiB\", rounds = 2 }",
        "[[variant]]\nname = \"none\"\n\
         [[variant]]\nname = \"timely\"\ncontrol = { when = \"timely\" }\n",
    );
    let [none, timely] = ["none", "timely"].map(|v| cell(&result, v, "completion_time").unwrap());
    assert!(timely < 1.5 * none, "{timely} us with timely, {none} us without");
}

#[test]
fn senders_of_what_is_read_hear_of_congestion_by_ack_or_by_cnp() {
    let result = beside_mechanisms(
        "leaf-spine:leaves=4,hosts=6,spines=1",
        "{ kind = \"pairwise-alltoall\", size = \"64 KiB\" }",
        "[[variant]]\nname = \"cnp\"\n\
         control = { when = \"iba-cc\", iba-cc = { becn = \"cnp\" } }\n\
         [[variant]]\nname = \"ack\"\n\
         control = { when = \"iba-cc\", iba-cc = { becn = \"ack\" } }\n",
    );
    let becns = |variant: usize| result.variants[variant].runs[0].totals.becns;
    assert!(becns(0) > 100 && becns(1) * 2 > becns(0), "{} and {}", becns(0), becns(1));
}

#[test]
fn a_read_of_several_packets_is_one_read() {
    let sim = "sim = { preset = \"qdr\", header = \"256 B\", packet_max = \"257 B\" }";
    let text = HEAD.replace("sim = { preset = \"qdr\" }", sim).replace("2 ms", "50 ms");
    let program = "program = { kind = \"pairwise-alltoall\", size = \"16 KiB\", rounds = 5 }\n";
    let result = ran_whole(&format!("{text}{program}"));
    assert_eq!(result.status(), Status::Complete, "{:?}", result.oddities());
}

#[test]
fn large_fabrics_of_hosts_with_several_ports_are_run() {
    let text = HEAD
        .replace("star:8", "torus:24x24,hosts=4,links=4")
        .replace("engine = \"min-hop\"", "engine = \"dor\", lanes = 2")
        .replace("preset = \"qdr\"", "preset = \"qdr\", adapter_ports = \"all\"")
        .replace("2 ms\", ends = \"programs\"", "2 us\"");
    let result = ran_whole(&format!(
        "{text}pattern = {{ kind = \"uniform\" }}\nload = 0.2\nsize = \"2 KiB\"\n"
    ));
    assert!(result.variants[0].runs[0].totals.packet_hops > 1000);
}

/// Counts what it is told.
#[derive(Default)]
struct Counts(Mutex<Vec<Elapsed>>);

impl Progress for Counts {
    fn on_progress(&self, done: f64, _: u64) {
        panic!("a share of {done} of a run of unknown length");
    }

    fn on_elapsed(&self, elapsed: Elapsed) {
        self.0.lock().unwrap().push(elapsed);
    }
}

#[test]
fn progress_is_told_as_time_and_packet_hops() {
    let text = HEAD.replace("2 ms", "2 s").replace("ends =", "seeds = 2, ends =")
        + "program = { kind = \"ring-allreduce\", size = \"8 MiB\" }\n";
    let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let counts = Counts::default();
    let result = run(&experiment, &RunOptions::new(1, ""), &counts, &AtomicBool::new(false));
    let told = counts.0.into_inner().unwrap();
    let last = told.last().unwrap();
    assert!(told.len() > 8, "told {} times", told.len());
    assert!(told.windows(2).all(|two| two[0].packet_hops <= two[1].packet_hops));
    assert_eq!((last.ended, last.all), (2, 2));
    let runs = &result.unwrap().variants[0].runs;
    assert_eq!(last.simulated.0, runs.iter().map(|run| run.simulated.0).sum::<u64>());
}

/// When the program was complete, in picoseconds.
fn completion(result: &RunResult) -> u64 {
    let run = &result.variants[0].runs[0];
    assert_eq!(run.ending, Ending::ProgramsEnded);
    run.completions[0].unwrap().0
}

#[test]
fn a_ping_pong_is_complete_after_as_many_ways_as_it_has() {
    let p = (preset::by_name("qdr").unwrap().parameters)();
    let text = "program = { kind = \"ping-pong\", size = \"1 KiB\", rounds = 20 }\n\
        senders = { hosts = [2, 5] }\n";
    let wire = (1024 + u64::from(wire::RC_DATA)) * 250;
    let way = p.send_overhead.0 + 2 * p.cable_delay.0 + p.switch_delay.0 + wire;
    assert_eq!(completion(&ran(text, 1)), 40 * (way + p.receive_overhead.0));
}

#[test]
fn traffic_beside_it_makes_a_program_slower_and_ends_with_it() {
    for kind in ["ring-allreduce", "pairwise-alltoall"] {
        let program = format!("program = {{ kind = \"{kind}\", size = \"100 KiB\" }}\n");
        let alone = ran(&program, 1);
        let beside = ran(&format!("{program}{NOISE}"), 1);
        let (fast, slow) = (completion(&alone), completion(&beside));
        assert!(slow > fast + fast / 5, "{kind}: {fast} ps alone, {slow} ps beside noise");
        let run = &beside.variants[0].runs[0];
        assert!(run.simulated.0 >= slow && run.simulated.0 < slow + 2_000_000);
        assert_eq!(completion(&ran(&format!("{program}{NOISE}"), 2)), slow);
    }
}

#[test]
fn what_does_not_fit_a_program_is_refused_with_a_remedy() {
    let refused = |rest: &str| {
        let text = format!("{HEAD}{rest}");
        let read = Experiment::parse(&text, Path::new("x.toml"));
        let ran = |experiment| {
            run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false)).map(|_| ())
        };
        read.and_then(ran).unwrap_err().to_string()
    };
    let ping = "program = { kind = \"ping-pong\", size = \"1 B\", rounds = 1 }\n";
    for (rest, said) in [
        (
            format!("{ping}load = 0.5\n"),
            "x.toml:11: traffic.job.load = 0.5 does not belong beside program; drop it",
        ),
        (
            "program = { kind = \"ring-allreduce\", size = \"1 MiB\" }\ntransport = \"ud\"\n"
                .into(),
            "variant as-is: x.toml:7: traffic.job: program ring-allreduce sends messages of up to \
             1 MiB, which are read by RDMA READ beyond eager_max = 8 KiB, and UD has none; set \
             transport = \"rc\" or raise eager_max",
        ),
        (
            ping.to_owned(),
            "variant as-is: x.toml:7: traffic.job: program `ping-pong` takes 2 ranks, not 8; \
             change senders",
        ),
        (
            NOISE.replace("[[traffic]]\nname = \"noise\"\nclass = \"background\"\n", ""),
            "variant as-is: run.ends = \"programs\", but no traffic has a program; give it one or \
             set ends = \"duration\"",
        ),
        (
            format!(
                "program = {{ kind = \"ring-allreduce\", size = \"1 B\" }}\n{}\
                 [[published]]\nname = \"peak\"\npublished = \"1\"\nnote = \"\"\n\
                 measure = {{ kind = \"peak-load\", from = \"1 us\" }}\n",
                NOISE
            ),
            "x.toml:18: published.peak: a span needs slices of a fixed length; drop from and \
             until, or set run.ends = \"duration\"",
        ),
        (
            "program = { kind = \"ping-png\" }\n".to_owned(),
            "x.toml:10: traffic.job.program.kind = \"ping-png\" is no program; the nearest is \
             `ping-pong`",
        ),
        (
            "program = { kind = \"ping-pong\", size = \"1 B\", rounds = \"x\" }\n".to_owned(),
            "x.toml:10: traffic.job.program.rounds = \"x\" does not fit; `ping-pong` takes size: \
             0 B to 1 GiB; rounds: 1 to 1000000",
        ),
        (
            "program = { kind = \"ping-pong\", size = \"16\", rounds = 1 }\n".to_owned(),
            "x.toml:10: traffic.job.program.size = \"16\" does not fit: it is not a size; write a \
             number and one of B, KiB, MiB, GiB, kB, MB, GB, such as \"64 KiB\"; `ping-pong` takes \
             size: 0 B to 1 GiB; rounds: 1 to 1000000",
        ),
    ] {
        assert_eq!(refused(&rest), said);
    }
}

/// Variants say anew what a group does, and add groups of either kind.
#[test]
fn variants_give_a_group_a_program_or_traffic_in_its_place() {
    let base = "program = { kind = \"ring-allreduce\", size = \"1 KiB\" }\n";
    let variants = "[[variant]]\nname = \"program\"\n\
        [[variant]]\nname = \"traffic\"\ntraffic = [{ name = \"job\", load = 0.2, \
        pattern = { kind = \"uniform\" }, size = \"1 KiB\" }, { name = \"other\", \
        class = \"background\", program = { kind = \"pairwise-alltoall\", size = \"1 B\" } }]\n";
    let result = ran(&format!("{base}{variants}"), 1);
    let programs = |variant: usize| {
        let groups = &result.experiment.variants[variant].traffic;
        groups.iter().map(|group| group.load().is_none()).collect::<Vec<_>>()
    };
    assert_eq!((programs(0), programs(1)), (vec![true], vec![false, true]));
    assert!(result.variants.iter().all(|variant| variant.runs[0].completions.len() < 3));
    assert_eq!(result.status(), Status::Complete);
    let program = "[[variant]]\nname = \"both\"\ntraffic = [{ name = \"noise\", \
        program = { kind = \"pairwise-alltoall\", size = \"1 B\" }, transport = \"rc\" }]\n";
    let both = &parse(&format!("{base}{NOISE}{program}")).variants[0].traffic;
    assert!(both.iter().all(|group| group.load().is_none()));
    let swept = |key: &str| {
        let text = format!("{HEAD}{base}{variants}");
        let over = format!("traffic.{key}={{kind=\"uniform\"}},{{kind=\"tornado\",dims=[8]}}");
        Sweep::parse(&text, Path::new("x.toml"), &[over], &[]).unwrap_err().to_string()
    };
    for key in ["pattern", "job.pattern"] {
        let said = swept(key);
        assert!(said.contains("but variant traffic sets it itself"), "{said}");
    }
}

fn shipped() -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut shipped = Experiment::read(&folder.join("allreduce-beside-hot-spot.toml")).unwrap();
    shipped.override_seeds(None, Some(1)).unwrap();
    shipped
}

#[test]
fn the_shipped_allreduce_gets_its_time_back() {
    let options = RunOptions::new(2, "");
    let result = run(&shipped(), &options, &Quiet, &AtomicBool::new(false)).unwrap();
    assert_eq!(result.status(), Status::Complete, "{:?}", result.oddities());
    let times: Vec<u64> =
        result.variants.iter().map(|variant| variant.runs[0].completions[0].unwrap().0).collect();
    let [none, iba_cc, two_lanes] = times[..] else { panic!("{times:?}") };
    assert!(none > 2 * iba_cc && iba_cc > 2 * two_lanes, "{times:?}");
}

#[test]
fn series_and_what_mechanisms_did_do_not_tell_how_a_run_was_divided() {
    let mut experiment = shipped();
    experiment.keep_variants(&["iba-cc"]).unwrap();
    let told = |partitions: usize| {
        let options = RunOptions { partitions: Some(partitions), ..RunOptions::new(1, "") };
        let result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
        let run = &result.variants[0].runs[0];
        let history = run.history.as_ref().unwrap();
        assert!(!history.control.flows.is_empty() && run.figures.slices.length.0 > 1_000_000);
        (result.to_json(), format!("{:?} {:?}", run.figures.series, history))
    };
    let whole = told(1);
    for partitions in [2, 5] {
        assert_eq!(told(partitions), whole, "{partitions} partitions");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever a table says, it runs to an end or is refused in one line.
    #[test]
    fn any_program_runs_or_is_refused_in_one_line(
        kind in "ping-pong|ring-allreduce|pairwise-alltoall|ring",
        size in "0 B|1 B|9000 B|1 GiB|2 GiB|-1 B|much",
        rounds in "0|1|3|1000000|-1|\"two\"",
        hosts in proptest::collection::vec(0u32..7, 0..5),
        ends in "programs|duration",
        warm_up in "auto|3 us|29 us",
        noise in any::<bool>(),
        paths in any::<bool>(),
    ) {
        let run_table = format!("duration = \"30 us\", warm_up = \"{warm_up}\", ends = \"{ends}\"");
        let head = HEAD.replace("duration = \"2 ms\", ends = \"programs\"", &run_table);
        let text = format!(
            "{head}program = {{ kind = \"{kind}\", size = \"{size}\", rounds = {rounds} }}\n\
             senders = {{ hosts = {hosts:?} }}\n{}",
            if noise { NOISE } else { "" }
        );
        let text = match paths {
            false => text,
            true => {
                text.replace("star:8", "torus:3x3").replace(
                    "engine = \"min-hop\"",
                    "engine = \"multipath\", lanes = 8, lmc = 1",
                ) + "[control]\nwhich = \"drb\"\n"
            }
        };
        let ran = Experiment::parse(&text, Path::new("x.toml")).and_then(|experiment| {
            run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false))
        });
        match ran {
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.is_empty() && !error.contains('\n'), "{}", error);
            }
            Ok(result) => {
                let known = [Status::Complete, Status::NotEnded, Status::NotConverged];
                prop_assert!(known.contains(&result.status()));
                prop_assert!(result.to_json().contains("completion_us"));
            }
        }
    }
}
