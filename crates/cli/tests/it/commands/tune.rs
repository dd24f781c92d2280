//! `tune pacing`: the best gap, its curve, and going on with a search that was stopped.

use super::binary::{RING, Scratch};

#[test]
fn the_best_gap_is_found_and_the_search_goes_on_in_its_folder() {
    let scratch = Scratch::new("tune");
    scratch.write("ring.toml", RING);
    let called = scratch.call("tune pacing ring.toml --most 4 --refinements 1 --json");
    assert_eq!(called.code, 0, "{}", called.stderr);
    let found = called.json(0);
    let curve = found["curve"].as_array().unwrap();
    let times: Vec<f64> = curve.iter().map(|point| point["time_us"].as_f64().unwrap()).collect();
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    assert_eq!(found["best"]["time_us"].as_f64().unwrap(), least);
    assert_eq!(found["unpaced_us"].as_f64().unwrap(), times[0]);
    assert!(
        times.len() > 5 && found["mod_us"].as_f64().unwrap() >= found["ideal_us"].as_f64().unwrap()
    );
    // Shifts of up to four hops on one ring: four packets share a link at most.
    assert!(*times.last().unwrap() > least, "too wide a gap takes longer");
    for file in ["sweep.json", "points.jsonl", "report.html"] {
        assert!(scratch.path("runs/ring-pacing").join(file).is_file(), "{file}");
    }
    // Called again, it goes on from what is there, and closer.
    let again = scratch.call("tune pacing ring.toml --most 4 --refinements 2");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains(" best") && again.stdout.contains("MOD gaps take"));
    let points = scratch.read("runs/ring-pacing/points.jsonl").lines().count();
    assert!(points > times.len(), "{points} of {}", times.len());
}

#[test]
fn what_cannot_be_tuned_is_refused_in_one_line() {
    let scratch = Scratch::new("tune-refused");
    scratch.write("ring.toml", RING);
    let second = "[[traffic]]\nname = \"other\"\nclass = \"background\"\n\
        program = { kind = \"ring-exchange\", size = \"8 B\" }\n";
    scratch.write("two.toml", &format!("{RING}{second}"));
    let open = "pattern = { kind = \"uniform\" }\nload = 0.1\nsize = \"2 KiB\"";
    let none = RING
        .replace("program = { kind = \"ring-alltoall\", size = \"16 KiB\" }", open)
        .replace("ends = \"programs\"", "");
    scratch.write("none.toml", &none);
    for (line, said) in [
        ("tune pacing two.toml", "name one with --group: shift, other"),
        ("tune pacing two.toml --group third", "no program has that name; name shift, other"),
        ("tune pacing ring.toml --variant x", "the experiment has none of that name; name one of"),
        ("tune pacing none.toml", "no traffic has a program, and nothing else is paced"),
        ("tune pacing ring.toml --most 0", "write a number from 0.5 to 1024"),
    ] {
        let called = scratch.call(line);
        assert_eq!(called.code, 2, "{line}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{line}: {}", called.stderr);
        assert_eq!(called.stderr.lines().count(), 1, "{line}: {}", called.stderr);
    }
    assert_eq!(scratch.names(), ["none.toml", "ring.toml", "two.toml"], "nothing is left behind");
}
