//! What no shipped experiment uses: damage, VL arbitration, a traffic matrix, the rule forwarder.

use clearlane_lab::{Alone, Experiment, Quiet, RunOptions, RunResult, Status, run};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn result(text: &str, folder: &Path) -> RunResult {
    let experiment = Experiment::parse(text, &folder.join("features.toml")).unwrap();
    let options = RunOptions::new(2, "clearlane run features.toml");
    run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

/// Delivered load of everything by variant.
fn delivered(result: &RunResult) -> Vec<f64> {
    result.variants.iter().map(|v| v.runs[0].figures.all.delivered_load).collect()
}

fn text(fabric: &str, subnet: &str, traffic: &str) -> String {
    format!(
        "schema = 1\nname = \"features\"\nsummary = \"does it work?\"\n[fabric]\n{fabric}\n\
         [subnet]\n{subnet}\n[sim]\npreset = \"qdr\"\n{traffic}\n[run]\nduration = \"400 us\"\n"
    )
}

const UNIFORM: &str = "[[traffic]]\nname = \"all\"\nclass = \"background\"\n\
     pattern = { kind = \"uniform\" }\nload = 0.2\nsize = \"2 KiB\"";

/// Cutting one of two spines' cables by name and by chance: everything still arrives, the other
/// cables carry more, and the result says which cables are gone.
#[test]
fn cut_cables_are_named_and_their_load_moves() {
    let fabric = "build = \"leaf-spine:leaves=4,hosts=4,spines=2\"";
    let engine = "engine = \"fat-tree\"";
    let whole = result(&text(fabric, engine, UNIFORM), Path::new("."));
    let by_name = format!("{fabric}\ncut = [\"leaf00[5]\"]");
    let by_name = result(&text(&by_name, engine, UNIFORM), Path::new("."));
    let by_chance = format!("{fabric}\ncut_random = {{ links = 2, seed = 3, keep_uplinks = 1 }}");
    let by_chance = result(&text(&by_chance, engine, UNIFORM), Path::new("."));
    let worst = |result: &RunResult| {
        let channels = &result.variants[0].runs[0].figures.channels;
        channels.iter().map(|channel| channel.load).fold(0.0, f64::max)
    };
    for (damaged, cables) in [(&by_name, "1 cables cut: leaf00[5]"), (&by_chance, "2 cables cut")] {
        assert!(damaged.oddities().iter().any(|o| o.contains(cables)), "{:?}", damaged.oddities());
        assert!((delivered(damaged)[0] - 0.2).abs() < 0.02, "{:?}", delivered(damaged));
        assert!(worst(damaged) > 1.4 * worst(&whole), "{} {}", worst(damaged), worst(&whole));
    }
}

/// Two saturating groups on two lanes share the last link by the weights of the low table.
#[test]
fn lanes_share_a_link_by_their_weights() {
    let flow = |name: &str, host: u32, sl: u32| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nclass = \"background\"\n\
             pattern = {{ kind = \"incast\", to = 2 }}\nsenders = {{ hosts = [{host}] }}\n\
             load = 1.0\nsize = \"2 KiB\"\nsl = {sl}\n"
        )
    };
    let subnet = "engine = \"min-hop\"\nlanes = 2\n\
         vl_arbitration = { low = [[0, 192], [1, 64]], high_limit = 0 }";
    let traffic = flow("three quarters", 0, 0) + &flow("one quarter", 1, 1);
    let result = result(&text("build = \"star:3\"", subnet, &traffic), Path::new("."));
    let groups = &result.variants[0].runs[0].figures.groups;
    assert!((groups[0].delivered_load - 0.75).abs() < 0.02, "{}", groups[0].delivered_load);
    assert!((groups[1].delivered_load - 0.25).abs() < 0.02, "{}", groups[1].delivered_load);
}

/// A matrix read from a file beside the experiment: its loads are what arrives.
#[test]
fn a_traffic_matrix_is_offered_as_written() {
    let folder = std::env::temp_dir().join(format!("clearlane-matrix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("site.matrix"), "# source destination load\n0 1 0.3\n2 3 0.6\n")
        .unwrap();
    let traffic = "[[traffic]]\nname = \"site\"\nclass = \"background\"\n\
         pattern = { kind = \"matrix\", file = \"site.matrix\" }\nload = 1.0\nsize = \"2 KiB\"\n\
         arrivals = \"periodic\"";
    let result = result(&text("build = \"star:4\"", "engine = \"min-hop\"", traffic), &folder);
    std::fs::remove_dir_all(&folder).unwrap();
    let flows = &result.variants[0].runs[0].figures.flows;
    let pairs: Vec<(u32, u32)> = flows.iter().map(|f| (f.source.0, f.destination.0)).collect();
    assert_eq!(pairs, [(0, 1), (2, 3)]);
    let ratio = flows[1].payload_bytes as f64 / flows[0].payload_bytes as f64;
    assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
}

/// Beyond four wrapping dimensions no SL codes the datelines: the rule forwards, and says so.
#[test]
fn the_rule_forwards_where_tables_cannot() {
    let fabric = "build = \"torus:3x3x3x3x3\"";
    let subnet = "forwarding = \"dimension-order\"";
    let result = result(&text(fabric, subnet, UNIFORM), Path::new("."));
    assert!((delivered(&result)[0] - 0.2).abs() < 0.01, "{:?}", delivered(&result));
    assert!(result.oddities().iter().any(|o| o.contains("no subnet manager can deploy it")));
    let tables = Experiment::parse(
        &text(fabric, "engine = \"dor\"\nlanes = 2", UNIFORM),
        Path::new("features.toml"),
    );
    let options = RunOptions::new(1, "");
    let refused = run(&tables.unwrap(), &options, &Quiet, &AtomicBool::new(false));
    assert!(refused.unwrap_err().to_string().contains("5 dimensions wrap"));
}

fn group(name: &str, load: f64, rest: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nclass = \"background\"\nload = {load}\n\
         pattern = {{ kind = \"shift\", by = 1 }}\narrivals = \"periodic\"\n{rest}\n"
    )
}

/// Two groups that offer unlike loads, sizes and times, all of it delivered: nobody is worse off.
#[test]
fn fairness_is_relative_to_what_is_offered() {
    let traffic = group("little", 0.1, "senders = { hosts = [0, 1] }\nsize = \"256 B\"")
        + &group("much", 0.5, "senders = { hosts = [2, 3] }\nsize = \"2 KiB\"\nstop = \"300 us\"");
    let result =
        result(&text("build = \"star:4\"", "engine = \"min-hop\"", &traffic), Path::new("."));
    let jain = result.variants[0].runs[0].figures.all.jain.unwrap();
    assert!(jain > 0.999, "{jain}");
}

/// Traffic that is over before the warm-up leaves nothing to measure, and the result says so.
#[test]
fn an_empty_window_is_not_a_complete_run() {
    let traffic = group("brief", 0.1, "size = \"2 KiB\"\nstop = \"40 us\"");
    let text = text("build = \"star:4\"", "engine = \"min-hop\"", &traffic);
    let result = result(&format!("{text}warm_up = \"100 us\"\n"), Path::new("."));
    assert_eq!(result.status(), Status::NotConverged);
    let oddities = result.oddities();
    assert!(oddities.iter().any(|o| o.contains("nothing was measured")), "{oddities:?}");
}

/// The fact of a variant that is called so.
fn fact(result: &RunResult, label: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let facts = json["variants"][0]["facts"].as_array().unwrap().clone();
    let found = facts.iter().find(|fact| fact["label"] == label).unwrap();
    found["value"].as_str().unwrap().to_owned()
}

/// A ring is free of deadlocks on the service levels its engine hands out, not on one set by hand.
#[test]
fn a_service_level_set_by_hand_is_checked_for_credit_loops() {
    let run = |rest: &str| {
        let traffic = group("ring", 0.1, &format!("size = \"2 KiB\"\n{rest}"));
        let subnet = "engine = \"dor\"\nlanes = 2";
        result(&text("build = \"torus:6\"", subnet, &traffic), Path::new("."))
    };
    let (engines, by_hand) = (run(""), run("sl = 0"));
    assert!(fact(&engines, "deadlock-free").starts_with("yes: "));
    assert!(fact(&by_hand, "deadlock-free").starts_with("no: "));
}

/// A service level without a lane of its own changes nothing, and the result says so.
#[test]
fn a_service_level_without_a_lane_is_remarked() {
    let run = |subnet: &str| {
        let traffic = group("own", 0.1, "size = \"2 KiB\"\nsl = 1")
            + &group("others", 0.1, "size = \"2 KiB\"");
        result(&text("build = \"star:4\"", subnet, &traffic), Path::new(".")).oddities()
    };
    let remark = "traffic own: sl 1 (lane 0) shares a lane with others: lanes = 1";
    assert!(run("engine = \"min-hop\"").iter().any(|oddity| oddity == remark));
    let apart = run("engine = \"min-hop\"\nlanes = 2");
    assert!(!apart.iter().any(|oddity| oddity.contains("shares a lane")), "{apart:?}");
}

/// A lane that nobody else is on is a group's own, whatever the number of its service level.
#[test]
fn lanes_are_shared_only_with_groups_that_are_on_them() {
    let run = |levels: [&str; 3], lanes: u32| {
        let group = |name, sl: &str| group(name, 0.1, &format!("size = \"2 KiB\"\n{sl}"));
        let traffic = ["a", "b", "c"].iter().zip(levels).map(|(name, sl)| group(name, sl));
        let traffic: String = traffic.collect();
        let subnet = format!("engine = \"min-hop\"\nlanes = {lanes}");
        let oddities = result(&text("build = \"star:4\"", &subnet, &traffic), Path::new("."));
        let shares = |oddity: &String| oddity.contains("shares a lane");
        oddities.oddities().into_iter().filter(shares).collect::<Vec<_>>()
    };
    // SL 3 is on lane 1 of two, the others by their paths on lane 0.
    assert_eq!(run(["sl = 3", "", ""], 2), [] as [&str; 0]);
    assert_eq!(run(["sl = 2", "sl = 2", "sl = 1"], 2), [] as [&str; 0]);
    assert_eq!(
        run(["sl = 3", "sl = 1", ""], 2),
        [
            "traffic a: sl 3 (lane 1) shares a lane with b: lanes = 2",
            "traffic b: sl 1 (lane 1) shares a lane with a: lanes = 2"
        ]
    );
    assert_eq!(
        run(["sl = 2", "", ""], 2),
        ["traffic a: sl 2 (lane 0) shares a lane with b, c: lanes = 2"]
    );
}

/// Notes of an engine are facts, not oddities. Roots are taken by name and by GUID.
#[test]
fn notes_of_an_engine_are_facts_and_roots_are_taken() {
    let run = |subnet: &str| {
        let text = text("build = \"torus:4x4\"", subnet, UNIFORM);
        result(&text, Path::new("."))
    };
    let layered = run("engine = \"layered\"");
    assert_eq!(layered.oddities(), [] as [&str; 0]);
    assert!(fact(&layered, "engine").contains("of 8 lanes used, all paths are shortest paths"));
    let busiest = |roots: &str| {
        let result = run(&format!("engine = \"up-down\"\n{roots}"));
        let channels = &result.variants[0].runs[0].figures.channels;
        channels.iter().map(|channel| (channel.node, channel.port_xmit_pkts)).collect::<Vec<_>>()
    };
    let of = |roots: &str| {
        let mut sent = [0; 16];
        for (node, packets) in busiest(roots) {
            if let Some(sum) = sent.get_mut(node as usize) {
                *sum += packets;
            }
        }
        (0..16).max_by_key(|node| sent[*node])
    };
    // The root is where paths meet, and so the switch that sends most.
    assert_eq!(of("roots = [\"sw-2-1\"]"), Some(6));
    assert_eq!(of("roots = [\"0x0ac1ea5100000900\"]"), Some(9));
}

#[test]
fn wrong_roots_are_told() {
    let read = |subnet: &str| {
        let text = text("build = \"torus:4x4\"", subnet, UNIFORM);
        Experiment::parse(&text, Path::new("x.toml"))
    };
    let told = read("engine = \"min-hop\"\nroots = [\"sw-2-1\"]").unwrap_err().to_string();
    let says = "x.toml:8: subnet.roots = a list is only used by engine up-down; remove this key";
    assert_eq!(told, says);
    let unknown = read("engine = \"up-down\"\nroots = [\"sw-2-9\"]").unwrap();
    let options = RunOptions::new(1, "");
    let told = run(&unknown, &options, &Quiet, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(told.contains("no node is named \"sw-2-9\"; did you mean \"sw-2-"), "{told}");
    let host = read("engine = \"up-down\"\nroots = [\"host0000\"]").unwrap();
    let told = run(&host, &options, &Quiet, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(told.contains("root: \"host0000\" is no switch"), "{told}");
    // A variant with another engine leaves the roots behind.
    let text = text("build = \"torus:4x4\"", "engine = \"up-down\"\nroots = [\"a\"]", UNIFORM)
        + "[[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\n\
           subnet = { engine = \"min-hop\" }\n";
    let both = Experiment::parse(&text, Path::new("x.toml")).unwrap();
    let roots = both.variants.iter().map(|variant| variant.subnet.roots.len());
    assert_eq!(roots.collect::<Vec<_>>(), [1, 0]);
    let again = Experiment::parse(&both.resolved(), Path::new("x.toml")).unwrap();
    assert_eq!(again.resolved(), both.resolved());
}

/// Hot flows with strict priority over their victims: the slowdown has no end.
#[test]
fn starved_victims_are_slowed_down_without_end() {
    let flow = |name: &str, class: &str, hosts: &str, load: f64, sl: u32| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nclass = \"{class}\"\nload = {load}\nsl = {sl}\n\
             pattern = {{ kind = \"incast\", to = 3 }}\nsenders = {{ hosts = {hosts} }}\n\
             size = \"2 KiB\"\n"
        )
    };
    let traffic = flow("writes", "hot", "[0, 1]", 1.0, 0) + &flow("reads", "victim", "[2]", 0.3, 1);
    let subnet = "engine = \"min-hop\"\nlanes = 2\n\
         vl_arbitration = { high = [[0, 255]], low = [[1, 1]], high_limit = 255 }";
    let text = text("build = \"star:4\"", subnet, &traffic);
    let result = result(&format!("{text}warm_up = \"100 us\"\nseeds = 2\n"), Path::new("."));
    assert!(result.variants[0].runs.iter().all(|run| run.slowdown == Some(f64::INFINITY)));
    let table = result.headline_table().to_string();
    assert!(table.contains(" ∞ ") && !table.contains("NaN"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    assert!(json["variants"][0]["runs"][0]["victim_slowdown"].is_null());
    assert!(json["headline"]["as-is"]["slowdown"]["mean"].is_null());
    assert!(result.oddities()[0].contains("victims starved"), "{:?}", result.oddities());
}

/// Victims that deadlock alone are no yardstick.
#[test]
fn victims_that_deadlock_alone_give_no_slowdown() {
    let flow = |name: &str, class: &str, pattern: &str, load: f64| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nclass = \"{class}\"\nload = {load}\n\
             pattern = {{ {pattern} }}\nsize = \"64 KiB\"\narrivals = \"periodic\"\n"
        )
    };
    let traffic = flow("ring", "victim", "kind = \"shift\", by = 4", 1.0)
        + &flow("writes", "hot", "kind = \"incast\", to = 0", 0.01);
    let text = text("build = \"ring:6x2\"", "engine = \"min-hop\"", &traffic);
    let text = text.replace("preset = \"qdr\"", "preset = \"qdr\"\nbuffer = \"8 KiB\"");
    let result = result(&text.replace("400 us", "2 ms"), Path::new("."));
    let run = &result.variants[0].runs[0];
    assert_eq!((run.alone, run.slowdown), (Alone::Deadlocked, None));
    let said = result.oddities().iter().any(|o| o.contains("deadlock without the hot flows"));
    assert!(said, "{:?}", result.oddities());
}

/// Four flows of one leaf that its tables send over one spine get one link's worth; where switches
/// choose, they find the other spines. Queues per output and a fast crossbar reach switches too.
#[test]
fn switches_choose_and_queue_as_the_file_says() {
    let fabric = "build = \"leaf-spine:leaves=5,hosts=4,spines=4\"";
    let flow = |host: u32| {
        format!(
            "[[traffic]]\nname = \"flow {host}\"\nclass = \"background\"\n\
             pattern = {{ kind = \"incast\", to = {} }}\nsenders = {{ hosts = [{host}] }}\n\
             load = 0.9\nsize = \"2 KiB\"\n",
            4 * (host + 1)
        )
    };
    let flows: String = (0..4).map(flow).collect();
    let all = |subnet: &str, sim: &str| -> f64 {
        let text = text(fabric, subnet, &flows);
        let preset = format!("preset = \"qdr\"\n{sim}");
        let text = text.replace("preset = \"qdr\"", &preset);
        let result = result(&text, Path::new("."));
        result.variants[0].runs[0].figures.groups.iter().map(|g| g.delivered_load).sum()
    };
    let fixed = all("engine = \"fat-tree\"", "");
    let adaptive = all("engine = \"fat-tree\"\nadaptive = \"yes\"", "");
    assert!(fixed < 1.1 && adaptive > 3.2, "{fixed} {adaptive}");
    let queues = "input_queueing = \"voq\"\ncrossbar_speedup = 2";
    let queues = all("engine = \"fat-tree\"", queues);
    assert!(queues < 1.1, "{queues}");
}

/// The pattern asks the tables of the run: the link its note names is the one that is full, and
/// what it cannot have is refused before anything runs.
#[test]
fn a_path_hot_spot_fills_the_link_it_names_and_no_host() {
    let hot = |more: &str| {
        format!(
            "[[traffic]]\nname = \"hot\"\nclass = \"hot\"\nload = 0.5\nsize = \"2 KiB\"\n\
             pattern = {{ kind = \"path-hot-spot\", pairs = 4 }}\n{more}"
        )
    };
    let (torus, dor) = ("build = \"torus:8x8\"", "engine = \"dor\"\nlanes = 2");
    let result = result(&text(torus, dor, &hot("")), Path::new("."));
    let summary: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let facts = summary["variants"][0]["facts"].as_array().unwrap();
    let fact = |label: &str| {
        let found = facts.iter().find(|fact| fact["label"] == label).unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    assert!(fact("traffic hot").contains("4 senders"), "{}", fact("traffic hot"));
    let link = fact("pairs of hot");
    let figures = &result.variants[0].runs[0].figures;
    let fabric = clearlane_fabric::topologies::build("torus:8x8").unwrap();
    let name = |channel: &clearlane_lab::measure::ChannelFigures| {
        format!("{}[{}] → ", fabric.nodes()[channel.node as usize].name, channel.port)
    };
    // Half a link each from four senders: one link is full, the hosts' are a quarter.
    let worst = figures.channels.iter().max_by(|a, b| a.load.total_cmp(&b.load)).unwrap();
    assert!(worst.load > 0.98 && link.starts_with(&name(worst)), "{} {link}", worst.load);
    let to_host = |channel: &&clearlane_lab::measure::ChannelFigures| channel.port == 5;
    let hosts = figures.channels.iter().filter(to_host).map(|channel| channel.load);
    assert!(hosts.fold(0.0, f64::max) < 0.5);
    assert_eq!(figures.all.senders, 4);

    let refused = |subnet: &str, traffic: &str| {
        let text = text(torus, subnet, traffic);
        let experiment = Experiment::parse(&text, Path::new("features.toml")).unwrap();
        let options = RunOptions::new(1, "");
        run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap_err().to_string()
    };
    let error = refused(dor, &hot("senders = { every = 2 }"));
    assert!(error.contains("traffic.hot: pattern `path-hot-spot` chooses its senders"), "{error}");
    // The rule has routes as well.
    let rule =
        self::result(&text(torus, "forwarding = \"dimension-order\"", &hot("")), Path::new("."));
    assert!(rule.to_json().contains("is on the routes of 4 pairs"));
    let error = refused(dor, &hot("").replace("pairs = 4", "pairs = 5"));
    assert!(error.contains("features.toml:") && error.contains("more than 4 pairs"), "{error}");
}

/// The crossbar's keys reach the switches, and a share of a port's buffer too small to keep a link
/// busy is remarked upon.
#[test]
fn crossbars_are_as_the_file_says_and_small_shares_are_remarked() {
    let with = |keys: &str, lanes: u8, load: &str| {
        let subnet = format!("engine = \"min-hop\"\nlanes = {lanes}");
        let text = text("build = \"star:8\"", &subnet, &UNIFORM.replace("0.2", load));
        let text = text.replace("preset = \"qdr\"", &format!("preset = \"qdr\"\n{keys}"));
        result(&text, Path::new("."))
    };
    let fast = "crossbar_speedup = 2\nqueueing = \"single-fifo\"";
    let behind = format!("{fast}\noutput_buffer = \"1 MiB\"");
    let (fifo, queued) = (with(fast, 1, "1.0"), with(&behind, 1, "1.0"));
    assert!(delivered(&queued)[0] > delivered(&fifo)[0] + 0.1, "{:?}", delivered(&queued));
    let shared =
        |buffer: &str| with(&format!("buffer = \"{buffer}\"\nbuffer_per = \"port\""), 8, "0.2");
    let said = shared("32 KiB").oddities();
    let remark =
        "each of 8 lanes has 4 KiB of the buffer of a port (32 KiB), less than two packets";
    assert!(said.iter().any(|oddity| oddity.contains(remark)), "{said:?}");
    assert_eq!(shared("64 KiB").oddities(), [] as [&str; 0]);
}
