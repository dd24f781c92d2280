//! `calibrate`: the interval, the values that test it, and what cannot be calibrated.

use super::binary::{RING, Scratch};

#[test]
fn unseen_values_test_the_interval_of_the_others() {
    let scratch = Scratch::new("calibrate");
    let asked = "[[published]]\nname = \"end\"\n\
        measure = { kind = \"smallest\", of = { kind = \"completion-time\" } }\n";
    scratch.write("ring.toml", &format!("{RING}{asked}"));
    let line = "calibrate ring.toml --over fabric.build=torus:4,torus:6,torus:8 \
        --unseen fabric.build=torus:5,torus:7";
    let called = scratch.call(&format!("{line} --json"));
    assert_eq!(called.code, 0, "{}", called.stderr);
    let found = called.json(0);
    let one = &found["variants"][0];
    let ratios = |of: &str| -> Vec<f64> {
        let pairs = one[of].as_array().unwrap().iter();
        pairs.map(|pair| pair["ratio"].as_f64().unwrap()).collect()
    };
    assert_eq!((ratios("seen").len(), ratios("unseen").len()), (3, 2));
    let mut inside = 0;
    for pair in one["unseen"].as_array().unwrap() {
        let ends = ["low", "expected", "high"].map(|end| pair["interval"][end].as_f64().unwrap());
        assert!(ends[0] < ends[1] && ends[1] < ends[2], "{ends:?}");
        let ratio = pair["ratio"].as_f64().unwrap();
        inside += u64::from(ends[0] <= ratio && ratio <= ends[2]);
    }
    assert_eq!(found["unseen_inside"].as_u64().unwrap(), inside);
    assert_eq!(found["unseen_asked"].as_u64().unwrap(), 2);
    for pair in one["unseen"].as_array().unwrap() {
        assert!(pair["packets_us"].as_f64() > pair["flow_us"].as_f64(), "{pair}");
    }
    // The page of the folder and its file say it too.
    let said = format!("{inside} of 2 unseen runs of packets lie in them");
    let kept: serde_json::Value =
        serde_json::from_str(&scratch.read("runs/ring-calibrated/sweep.json")).unwrap();
    assert!(kept["finding"].as_str().unwrap().contains(&said), "{}", kept["finding"]);
    assert_eq!(kept["published"], serde_json::json!([]));
    assert_eq!(kept["facts"].as_array().unwrap().len(), 3, "{}", kept["facts"]);
    assert!(scratch.read("runs/ring-calibrated/report.html").contains(&said));
    // Called again, nothing is run again.
    let again = scratch.call(line);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("unseen runs of packets lie in them"), "{}", again.stdout);
    assert_eq!(scratch.read("runs/ring-calibrated/points.jsonl").lines().count(), 10);
}

#[test]
fn what_cannot_be_calibrated_is_refused_in_one_line() {
    let scratch = Scratch::new("calibrate-refused");
    scratch.write("ring.toml", RING);
    let open = "pattern = { kind = \"uniform\" }\nload = 0.1\nsize = \"2 KiB\"";
    let none = RING
        .replace("program = { kind = \"ring-alltoall\", size = \"16 KiB\" }", open)
        .replace("ends = \"programs\"", "");
    scratch.write("none.toml", &none);
    let over = "--over fabric.build=torus:4,torus:6";
    for (line, said) in [
        (format!("ring.toml {over} --unseen sim.mtu=1024"), "are two keys; name one"),
        (format!("ring.toml {over} --unseen fabric.build=torus:6"), "is there twice; drop one"),
        (
            "ring.toml --over fabric.build=torus:4 --unseen fabric.build=torus:6".to_owned(),
            "--over needs two values or more",
        ),
        (format!("none.toml {over} --unseen fabric.build=torus:8"), "no traffic has a program"),
    ] {
        let called = scratch.call(&format!("calibrate {line}"));
        assert_eq!(called.code, 2, "{line}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{line}: {}", called.stderr);
        assert_eq!(called.stderr.lines().count(), 1, "{line}: {}", called.stderr);
    }
    assert_eq!(scratch.names(), ["none.toml", "ring.toml"], "nothing is left behind");
}
