//! The same experiment file with flows in place of packets.

use clearlane_lab::{
    Checkpoints, Experiment, Quiet, RunOptions, RunResult, Status, Unfinished, run,
};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const TEXT: &str = "schema = 1\nname = \"flows\"\n\
    run = { duration = \"2 ms\", ends = \"programs\", mode = \"flow\" }\n\
    fabric = { build = \"star:8\" }\nsubnet = { engine = \"min-hop\" }\n\
    sim = { preset = \"qdr\" }\n\
    [[traffic]]\nname = \"job\"\nclass = \"victim\"\n\
    program = { kind = \"pairwise-alltoall\", size = \"40 KiB\" }\n\
    [[traffic]]\nname = \"noise\"\nclass = \"background\"\n\
    pattern = { kind = \"uniform\" }\nload = 0.3\nsize = \"2 KiB\"\ntransport = \"ud\"\n";

fn ran_with(text: &str, options: &RunOptions) -> Result<RunResult, String> {
    let experiment = Experiment::parse(text, Path::new("x.toml")).map_err(|e| e.to_string())?;
    run(&experiment, options, &Quiet, &AtomicBool::new(false)).map_err(|e| e.to_string())
}

fn ran(text: &str) -> Result<RunResult, String> {
    ran_with(text, &RunOptions::new(1, ""))
}

fn packets() -> String {
    TEXT.replace("\"flow\"", "\"packets\"")
}

#[test]
fn flows_do_what_packets_do_and_say_so() {
    let (flows, packets) = (ran(TEXT).unwrap(), ran(&packets()).unwrap());
    let all = [&flows, &packets].map(|result| {
        assert_eq!(result.status(), Status::Complete);
        &result.variants[0].runs[0]
    });
    let payload = all.map(|run| {
        let slices = run.figures.series[0].iter();
        slices.map(|slice| slice.delivered_payload_bytes).sum::<u64>()
    });
    assert_eq!(payload, [8 * 7 * 40 * 1024; 2]);
    let ended = all.map(|run| run.completions[0].unwrap().0 as f64);
    assert!(ended[0] <= 1.01 * ended[1] && ended[0] > 0.5 * ended[1], "{ended:?}");
    let said = flows.oddities();
    assert!(said.iter().any(|remark| remark.starts_with("flow mode: rates are max-min fair")));
    let [with, without] =
        [&flows, &packets].map(|result| result.to_json().contains("\"label\":\"mode\""));
    let json: serde_json::Value = serde_json::from_str(&flows.to_json()).unwrap();
    let facts = json.to_string();
    assert!(facts.contains("flow mode: rates"), "{facts}");
    assert!(!without && (with || facts.contains("\"mode\"")), "{facts}");
}

#[test]
fn what_only_packets_have_is_refused_in_one_line() {
    let control = "control = { when = \"iba-cc\", iba-cc = { preset = \"gran-2010\" } }\n";
    let controlled = TEXT
        .replace("[[traffic]]\nname = \"job\"", &format!("{control}[[traffic]]\nname = \"job\""));
    let refused = ran(&controlled).err().unwrap();
    let said = "variant as-is: flow mode has no congestion mechanisms; leave it out or take \
                mode = \"packets\"";
    assert_eq!(refused, said);
    let adaptive = TEXT
        .replace("star:8", "fat-tree:648")
        .replace("\"min-hop\" }", "\"fat-tree\", adaptive = \"yes\" }");
    let refused = ran(&adaptive).err().unwrap();
    assert!(refused.contains("flow mode has no adaptive routing"), "{refused}");
    let every = Some(Duration::from_secs(60));
    let kept =
        Checkpoints::of(Path::new("flow-mode"), every, String::new(), &Unfinished::default());
    let options = RunOptions { checkpoints: Some(kept), ..RunOptions::new(1, "") };
    let refused = ran_with(TEXT, &options).err().unwrap();
    assert!(refused.starts_with("flow mode saves no checkpoints; leave out"), "{refused}");
    let none = TEXT.replace("\"flow\"", "\"fluid\"");
    let refused = ran(&none).err().unwrap();
    assert!(refused.contains("run.mode = \"fluid\" is none of packets, flow"), "{refused}");
}
