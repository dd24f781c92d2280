//! `fabric show`, `build`, `cut` and `anonymize`.

use super::binary::Scratch;

const TWO_LEAVES: &str = "leaf-spine:leaves=2,hosts=2,spines=2";

#[test]
fn what_is_built_is_shown() {
    let scratch = Scratch::new("show");
    let built = scratch.call(&format!("fabric build {TWO_LEAVES} -o two.topo"));
    assert_eq!(built.text(), "two.topo: 4 hosts, 4 switches, 8 cables: 8 × 4x QDR\n");
    let shown = scratch.call("fabric show two.topo");
    assert_eq!(
        shown.text(),
        "\
4 hosts, 4 switches, 8 cables: 8 × 4x QDR
switches   2 × 2 ports, 2 × 4 ports
structure  tree of 2 levels: 2 leaf switches, 2 above
lids       none given
oddities   1
  line 7: the file has no LIDs
"
    );
    assert_eq!(scratch.names(), ["two.topo"]);
}

#[test]
fn a_grid_is_recognised_and_what_is_neither_says_why() {
    let scratch = Scratch::new("structure");
    let shown = |spec: &str| scratch.call(&format!("fabric show {spec}")).text().to_owned();
    assert!(shown("torus:4x3").contains("structure  torus of 4 × 3\n"));
    assert!(shown("mesh:2x2x2").contains("structure  mesh of 2 × 2 × 2\n"));
    for spec in ["dragonfly:a=4,p=2,h=2", "hyperx:4x4,hosts=2"] {
        let told = shown(spec);
        assert!(told.contains("structure  irregular topology\n"), "{told}");
        assert!(told.contains("not a tree: ") && told.contains("not a grid: "), "{told}");
    }
}

#[test]
fn shown_as_json_it_is_the_same_fabric() {
    let scratch = Scratch::new("show-json");
    let shown = scratch.call("fabric show fat-tree:648 --json").json(0);
    assert_eq!(shown["schema"], "clearlane-fabric/1");
    assert_eq!([&shown["hosts"], &shown["switches"], &shown["cables"]], [648, 54, 1296]);
    assert_eq!(shown["structure"]["switches_by_level"], serde_json::json!([36, 18]));
    assert_eq!(shown["rates"][0]["cables"], 1296);
}

#[test]
fn cables_and_nodes_are_cut_by_name() {
    let scratch = Scratch::new("cut");
    let arguments = ["fabric", "cut", TWO_LEAVES, "leaf00[3]", "spine01", "-o", "cut.topo"];
    let cut = scratch.call_words(&arguments);
    assert_eq!(
        cut.text(),
        "cut.topo: 4 hosts, 3 switches, 5 cables: 5 × 4x QDR\n\
         cut: leaf00[3]-spine00[1], spine01\n"
    );
    let wrong = scratch.call_words(&["fabric", "cut", TWO_LEAVES, "leaf0[3]", "-o", "no.topo"]);
    assert!(wrong.failure(2).contains("did you mean \"leaf00[3]\"?"), "{wrong:?}");
    assert_eq!(scratch.names(), ["cut.topo"]);
}

#[test]
fn cables_are_cut_and_degraded_at_random() {
    let scratch = Scratch::new("random");
    let cut = |seed: u32, name: &str| {
        let line = format!("fabric cut fat-tree:648 --random 13 --seed {seed} -o {name}");
        assert!(scratch.call(&line).text().contains("648 hosts, 54 switches, 1283 cables"));
        scratch.read(name)
    };
    assert_eq!(cut(1, "a"), cut(1, "b"));
    assert_ne!(scratch.read("a"), cut(2, "c"));
    let slow = scratch.call("fabric cut fat-tree:648 --random 2 --degrade 1xSDR -o slow");
    assert!(slow.text().contains("1296 cables: 2 × 1x SDR, 1294 × 4x QDR"), "{slow:?}");
    let greedy = "fabric cut fat-tree:648 --random 600 --keep-uplinks 9 -o never";
    assert!(scratch.call(greedy).failure(2).contains("choose fewer"));
    assert!(!scratch.path("never").exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let scratch = Scratch::new("dry");
    let built = scratch.call("fabric build star:4 -o star.topo --dry-run");
    assert_eq!(built.text(), "would write star.topo: 4 hosts, 1 switches, 4 cables: 4 × 4x QDR\n");
    let json = scratch.call("fabric cut star:4 leaf00 -o star.topo --dry-run --json").json(0);
    assert_eq!((&json["written"], &json["hosts"]), (&false.into(), &4.into()));
    assert_eq!(scratch.names(), [] as [&str; 0]);
}

#[test]
fn a_site_gives_its_files_away_without_its_names() {
    let scratch = Scratch::new("anonymize");
    let site = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/site");
    let (topology, tables) =
        (format!("{site}/site.ibnetdiscover"), format!("{site}/site.dump_fts"));
    let words = ["--lft", &tables, "-o", "away.topo", "--lft-out", "away.lft"];
    let called = scratch.call_words(&[&["fabric", "anonymize", &topology], &words[..]].concat());
    assert!(called.text().starts_with("away.topo: 279 hosts, 30 switches, 420 cables"));
    for name in ["away.topo", "away.lft"] {
        let text = scratch.read(name);
        assert!(text.len() > 10_000, "{name} is too short");
        for secret in ["storage01", "login01", "mds01", "02c1ea517e"] {
            assert!(!text.contains(secret), "{name} still has {secret}");
        }
    }
    let alone =
        scratch.call_words(&["fabric", "anonymize", &topology, "--lft", &tables, "-o", "x"]);
    assert!(alone.failure(2).contains("--lft-out"), "{alone:?}");
}

#[test]
fn a_fabric_is_written_in_the_format_asked_for_or_that_its_name_ends_with() {
    let scratch = Scratch::new("convert");
    let line = "fabric build star:3 -o star.dot";
    assert_eq!(scratch.call(line).text(), "star.dot: 3 hosts, 1 switches, 3 cables: 3 × 4x QDR\n");
    assert!(scratch.read("star.dot").starts_with("// Written by Clearlane.\ngraph fabric {\n"));
    scratch.call("fabric convert star:3 -o star.graphml").text();
    assert!(scratch.read("star.graphml").contains("<graphml "));
    let named = scratch.call("fabric convert star:3 --format ibnetdiscover -o net.dot --json");
    assert_eq!(named.json(0)["format"], "ibnetdiscover");
    let same = scratch.call("fabric convert net.dot -o again");
    assert!(same.text().contains("3 cables"), "{same:?}");
    assert_eq!(scratch.read("again"), scratch.read("net.dot"));
    scratch.call("fabric cut star:3 host0001 --format graphml -o cut").text();
    assert!(scratch.read("cut").contains("<graphml "));
    let over = scratch.call("fabric convert again -o again --force");
    assert!(over.failure(2).contains("is what this command reads"), "{over:?}");
    for name in ["star.svg", "star.d.TOPO"] {
        let wrong = scratch.call(&format!("fabric build star:3 -o {name}"));
        let words = "known are .topo .ibnetdiscover .txt (ibnetdiscover), .dot .gv (dot), .graphml";
        assert!(wrong.failure(2).contains(words) && !scratch.path(name).exists(), "{wrong:?}");
    }
    let named = "fabric build star:3 --format dot -o star.svg";
    scratch.call(named).text();
    for name in ["svg", "ibnetdiscover -p"] {
        let words = ["fabric", "convert", "star:3", "-o", "no", "--format", name];
        let wrong = scratch.call_words(&words);
        assert!(wrong.failure(2).contains("write one of ibnetdiscover, dot, graphml"), "{wrong:?}");
    }
    let told = scratch.call("fabric show star.dot");
    assert!(told.failure(2).contains("no line is of a known fabric format"), "{told:?}");
}

#[test]
fn a_fabric_goes_to_stdout_alone() {
    let scratch = Scratch::new("stdout");
    scratch.call("fabric build star:3 -o star.topo").text();
    let netlist = scratch.read("star.topo");
    assert_eq!(scratch.call("fabric convert star:3 -o -").text(), netlist);
    let drawn = scratch.call("fabric build star:3 --format dot -o -");
    assert!(drawn.text().starts_with("// Written by Clearlane.\n"), "{drawn:?}");
    let cut = scratch.call("fabric cut star:3 host0001 -o -");
    assert!(cut.text().contains("switchguid=") && !cut.stdout.contains("cut: "), "{cut:?}");
    let both = scratch.call("fabric build star:3 -o - --json");
    assert!(both.failure(2).contains("both write to stdout"), "{both:?}");
    assert_eq!(scratch.names(), ["star.topo"]);
}

#[test]
fn every_topology_says_what_it_takes_and_where_it_is_from() {
    let scratch = Scratch::new("explain-topology");
    let told = scratch.call("explain dragonfly").text().to_owned();
    for part in ["parameters  a=4 switches in a group", "reference ", "ISCA", "fabric build drag"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(scratch.call("fabric show hypercube:3").text().contains("mesh of 2 × 2 × 2\n"));
    let rails = "fabric show rail-optimised:units=2,hosts=4,rails=4,spines=2";
    assert!(scratch.call(rails).text().contains("tree of 2 levels: 8 leaf switches, 2 above\n"));
}
