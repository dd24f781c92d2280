//! Traces that others have made, which are not ours to ship. Expected numbers were counted with
//! grep, not with the readers.

use clearlane_workload::Rank;
use clearlane_workload::traces::{Trace, Work, chakra, goal_text};
use std::path::PathBuf;

/// A shared file, or nothing where the folder is absent.
#[allow(clippy::print_stdout)] // The person running the tests must see what was not tested.
fn shared(test: &str, file: &str) -> Option<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !folder.exists() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    let path = folder.join("data/traces").join(file);
    Some(std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn read(test: &str, file: &str) -> Option<Trace> {
    shared(test, file).map(|bytes| Trace::read(&bytes, file).unwrap_or_else(|e| panic!("{e}")))
}

/// Sends, receives and work of all ranks.
fn counts(trace: &Trace) -> [usize; 3] {
    let mut counts = [0; 3];
    for node in (0..trace.ranks()).flat_map(|rank| trace.nodes(Rank(rank))) {
        counts[match node.work {
            Work::Send { .. } => 0,
            Work::Receive { .. } => 1,
            Work::Calc { .. } => 2,
        }] += 1;
    }
    counts
}

#[test]
fn needs_shared_text_and_binary_of_a_name_are_the_same_trace() {
    let test = "needs_shared_text_and_binary_of_a_name_are_the_same_trace";
    let files = [
        ("goal/binary_tree_16", 16, [15, 15, 0]),
        ("goal/binary_tree_32", 32, [31, 31, 0]),
        ("goal/dissemination_16", 16, [64, 64, 0]),
        ("goal/dissemination_32", 32, [160, 160, 0]),
    ];
    for (name, ranks, expected) in files {
        let Some(text) = read(test, &format!("{name}.goal")) else { return };
        let Some(binary) = read(test, &format!("{name}.bin")) else { return };
        assert!(text == binary, "{name}");
        assert_eq!((text.ranks(), counts(&text)), (ranks, expected), "{name}");
        let again = goal_text::write(&text);
        assert!(Trace::read(again.as_bytes(), name).unwrap() == text, "{name}");
    }
}

#[test]
fn needs_shared_a_schedule_of_another_generator_is_read() {
    let test = "needs_shared_a_schedule_of_another_generator_is_read";
    let Some(trace) = read(test, "goal/schedgen2_schedule.goal") else { return };
    assert_eq!((trace.ranks(), counts(&trace)), (8, [7, 7, 0]));
    let first = trace.nodes(Rank(0)).next().unwrap();
    assert_eq!(first.work, Work::Send { to: Rank(1), bytes: 8, tag: 42001 });
    assert_eq!(trace.dependents(Rank(1), 0).count(), 2);
}

/// Files of ranks 0, 1 and so on, as many as there are.
fn ranks(test: &str, stem: &str, count: u32) -> Option<Vec<(String, Vec<u8>)>> {
    let file = |rank: u32| {
        let name = format!("{stem}.{rank}.et");
        shared(test, &format!("chakra/{name}")).map(|bytes| (name, bytes))
    };
    (0..count).map(file).collect()
}

fn convert(files: &[(String, Vec<u8>)]) -> Result<chakra::Converted, String> {
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    chakra::read(&files).map_err(|error| error.to_string())
}

#[test]
fn needs_shared_collectives_of_chakra_become_messages() {
    let test = "needs_shared_collectives_of_chakra_become_messages";
    for count in [4u32, 8] {
        let others = count as usize - 1;
        for (name, steps, bytes) in [
            ("all_gather", others, 1 << 20),
            ("all_reduce", 2 * others, (1 << 20) / u64::from(count)),
            ("all_to_all", others, (1 << 20) / u64::from(count)),
        ] {
            let stem = format!("{count}npus_1MB/{name}");
            let Some(files) = ranks(test, &stem, count) else { return };
            let chakra::Converted { trace, lost } = convert(&files).unwrap();
            assert_eq!((trace.ranks(), lost), (count, vec![]), "{stem}");
            let messages = steps * count as usize;
            assert_eq!(counts(&trace)[..2], [messages, messages], "{stem}");
            for node in (0..count).flat_map(|rank| trace.nodes(Rank(rank))) {
                if let Work::Send { bytes: sent, .. } = node.work {
                    assert_eq!(sent, bytes, "{stem}");
                }
            }
        }
    }
}

#[test]
fn needs_shared_a_ring_of_which_ranks_are_missing_is_refused() {
    let test = "needs_shared_a_ring_of_which_ranks_are_missing_is_refused";
    let stem = "custom_ring_allreduce_8npus_1MB/custom_allreduce";
    let Some(files) = ranks(test, stem, 2) else { return };
    let said = convert(&files).unwrap_err();
    let reason = format!(
        "{stem}.0.et: node 1 has comm_src 7, and there are files of 2 ranks; give those of all \
         ranks"
    );
    assert_eq!(said, reason);
}
