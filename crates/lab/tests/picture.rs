//! The README's picture is what the demo gives.

use clearlane_lab::{Experiment, Quiet, RunOptions, Theme, picture, run};
use std::path::Path;
use std::sync::atomic::AtomicBool;

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
