//! `list` and `explain`: everything with a name can be found by it.

use super::binary::Scratch;

#[test]
fn every_name_that_is_listed_is_explained() {
    let scratch = Scratch::new("names");
    let kinds = scratch.call("list --json").json(0);
    let kinds: Vec<_> = kinds["kinds"].as_array().unwrap().iter().collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
    for kind in kinds {
        let kind = kind.as_str().unwrap();
        let text = scratch.call(&format!("list {kind}"));
        let listed = scratch.call(&format!("list {kind} --json")).json(0);
        let entries = listed["entries"].as_array().unwrap();
        assert!(!entries.is_empty(), "{kind} has no entries");
        for entry in entries {
            let name = entry["name"].as_str().unwrap();
            let shown = text.text().lines().any(|line| line.split("  ").next() == Some(name));
            assert!(shown, "{kind}: {name} is not in the text");
            let explained = scratch.call_words(&["explain", name]);
            let summary = entry["summary"].as_str().unwrap();
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(explained.text()).contains(&words(summary)), "{name}: {explained:?}");
        }
    }
}

#[test]
fn a_preset_of_a_mechanism_is_explained_with_it() {
    let scratch = Scratch::new("mechanism-preset");
    let text = scratch.call("explain gran-2010").text().to_owned();
    assert!(text.starts_with("iba-cc, congestion mechanism\n"), "{text}");
}

#[test]
fn a_preset_is_explained_number_by_number() {
    let scratch = Scratch::new("preset");
    let called = scratch.call("explain qdr");
    let line = |label: &str| {
        let fits = |line: &&str| line.trim_start().starts_with(label);
        called.text().lines().find(fits).unwrap_or_else(|| panic!("no {label}: {called:?}"))
    };
    assert!(line("switch_delay").contains("100 ns (sourced: "));
    assert!(line("cable_delay").contains("25 ns (assumed: "));
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    let scratch = Scratch::new("nearest");
    assert_eq!(
        scratch.call("explain tours").failure(2),
        "nothing is named `tours`; did you mean `torus`?"
    );
    assert_eq!(
        scratch.call("explain programs").failure(2),
        "`programs` are many; see `clearlane list programs`"
    );
    let line = scratch.call("list engnies");
    assert!(line.failure(2).contains("'engines'"), "{line:?}");
}

#[test]
fn a_key_of_experiments_is_explained_by_its_last_word_too() {
    let scratch = Scratch::new("keys");
    let text = scratch.call("explain buffer").text().to_owned();
    assert!(text.starts_with("sim.buffer, experiment key\n"), "{text}");
    assert!(text.contains("range    320 B to 4 MiB\n"), "{text}");
    assert_eq!(scratch.call("explain sim.buffer").text(), text);
}

#[test]
fn a_mechanism_is_explained_parameter_by_parameter_with_its_presets() {
    let scratch = Scratch::new("mechanism");
    let called = scratch.call("explain iba-cc --json").json(0);
    let entry = &called["entries"][0];
    assert_eq!(entry["kind"], "mechanisms");
    let facts = entry["facts"].as_array().unwrap();
    let fact = |label: &str| {
        let found = facts.iter().find(|fact| fact[0] == label);
        found.unwrap_or_else(|| panic!("no {label}"))[1].as_str().unwrap()
    };
    assert!(fact("decides").starts_with("when packets are injected"));
    assert!(fact("ccti_timer").ends_with("in units of 1.024 us; 1 to 65535; default 150"));
    assert!(fact("threshold").ends_with("; 0 to 15; default 15; a port may have its own"));
    assert!(fact("preset gran-2010").starts_with("threshold 15, marking_rate 1, packet_size 8"));
    assert!(fact("preset gran-2010").contains("(Gran et al., "));
    assert!(fact("reference").contains("annex A10"));
    assert!(fact("notes").contains("Not modelled: credit starvation"));
    let key = scratch.call("explain control.dcqcn.kmin").text().to_owned();
    assert!(key.contains("type     size") && key.contains("default  16 KiB"), "{key}");
    let swept = scratch.call("explain control.when").text().to_owned();
    assert!(swept.contains("none, iba-cc, dcqcn, timely"), "{swept}");
}
