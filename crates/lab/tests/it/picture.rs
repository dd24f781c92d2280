//! The README's picture is what the demo gives, and no picture prints words over others.

use clearlane_lab::{Experiment, Quiet, RunOptions, Theme, picture, run};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Three variants that have much to say, on a small tree.
const WORDY: &str = r#"schema = 1
name = "wordy"
[fabric]
build = "leaf-spine:leaves=4,spines=2,hosts=4"
[subnet]
engine = "min-hop"
[sim]
preset = "qdr"
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = 0 }
senders = { every = 2, offset = 1 }
load = 1.0
size = "8 KiB"
[[traffic]]
name = "victims"
class = "victim"
pattern = { kind = "uniform" }
senders = { every = 2 }
load = 0.4
size = "4 KiB"
[run]
duration = "200 us"
[[variant]]
name = "a name that goes on for longer than three panels have room beside each other"
summary = "what is different here takes more than one line to say, and even more than two of them \
do not suffice for all of it, so that the rest is left out"
[[variant]]
name = "two"
[[variant]]
name = "three"
summary = "short"
"#;

/// The texts of a drawing: where they begin, how wide they are at most, and what they say.
fn texts(svg: &str) -> Vec<(f64, f64, f64, String)> {
    let number = |tag: &str, key: &str| -> f64 {
        let from = tag.find(&format!(" {key}=\"")).unwrap() + key.len() + 3;
        tag[from..].split('"').next().unwrap().parse().unwrap()
    };
    let all = svg.split("<text").skip(1).map(|part| {
        let (tag, rest) = part.split_once('>').unwrap();
        let text = rest.split('<').next().unwrap().to_owned();
        // Narrower than most letters of most fonts are, as the drawing itself reckons.
        let width = text.chars().count() as f64 * number(tag, "font-size") * 0.53;
        (number(tag, "x"), number(tag, "y"), width, text)
    });
    all.collect()
}

#[test]
fn three_variants_have_room_for_what_is_said_of_them() {
    let wordy = Experiment::parse(&WORDY.replace("\\\n", ""), Path::new("wordy.toml")).unwrap();
    let result = run(&wordy, &RunOptions::new(2, ""), &Quiet, &AtomicBool::new(false)).unwrap();
    let names: Vec<&str> = wordy.variants.iter().map(|variant| variant.name.as_str()).collect();
    let drawn = picture(&result, &names, Theme::Light).unwrap();
    let texts = texts(&drawn);
    for (x, y, width, text) in &texts {
        for (other, at, _, after) in &texts {
            let over = at == y && other > x && *other < x + width;
            assert!(!over, "`{text}` runs into `{after}`");
        }
        assert!(x + width <= 1200.0, "`{text}` leaves the picture");
    }
    let said: Vec<&str> = texts.iter().map(|(.., text)| text.as_str()).collect();
    assert!(said.iter().any(|text| text.starts_with("a name that goes on") && text.ends_with('…')));
    assert_eq!(said.iter().filter(|text| text.starts_with("victims: ")).count(), 3);
    // What does not fit on a line goes on in the next.
    assert_eq!(said.iter().filter(|text| text.ends_with("together")).count(), 3);
    assert!(said.contains(&"hot receiver"));
}

#[test]
fn a_deadlock_is_said_and_what_is_not_there_has_no_legend() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ring = Experiment::read(&root.join("experiments/ring-deadlock.toml")).unwrap();
    let result = run(&ring, &RunOptions::new(2, ""), &Quiet, &AtomicBool::new(false)).unwrap();
    let both = picture(&result, &["min-hop", "dor"], Theme::Dark).unwrap();
    let said: Vec<String> = texts(&both).into_iter().map(|(.., text)| text).collect();
    let has = |start: &str| said.iter().any(|text| text.starts_with(start));
    assert!(has("deadlock found at 50 µs: 6 buffers wait in a circle"), "{said:?}");
    assert!(has("delivered: 0.187"), "{said:?}");
    assert!(has("deadlock: each waits for the next") && has("held back"), "{said:?}");
    assert!(!has("hot receiver") && !has("innocent"), "{said:?}");
    // Six switches are marked, of the first panel only.
    assert_eq!(both.matches("stroke-width=\"2.5\"").count(), 6);
    let one = picture(&result, &["dor"], Theme::Dark).unwrap();
    assert!(!one.contains("deadlock found") && !one.contains("each waits"));
}

/// Set it to write the pictures anew.
const REWRITE: &str = "CLEARLANE_REWRITE_PICTURES";

#[test]
fn the_picture_of_the_readme_is_what_the_demo_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut demo = Experiment::read(&root.join("experiments/demo-hot-spot.toml")).unwrap();
    demo.keep_variants(&["as-is", "two-lanes"]).unwrap();
    let options = RunOptions::new(2, "");
    let result = run(&demo, &options, &Quiet, &AtomicBool::new(false)).unwrap();
    for (theme, name) in [(Theme::Light, "picture-light.svg"), (Theme::Dark, "picture-dark.svg")] {
        let made = picture(&result, &["as-is", "two-lanes"], theme).unwrap();
        let file = root.join("docs").join(name);
        if std::env::var_os(REWRITE).is_some() {
            std::fs::write(&file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(made == kept, "docs/{name} is another picture; {REWRITE}=1 writes it anew");
    }
    let missing = picture(&result, &["ibcc"], Theme::Light).unwrap_err().to_string();
    assert_eq!(missing, "picture: no variant ibcc; there are as-is, two-lanes");
}
