//! Chakra traces made here, node by node.

use super::super::Until;
use super::messages::{Attribute, Bools};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn with(id: u64, kind: i32, attributes: &[(&str, Value)]) -> messages::Node {
    let attribute = |(name, value): &(&str, Value)| Attribute {
        name: (*name).to_owned(),
        value: Some(value.clone()),
    };
    let attributes = attributes.iter().map(attribute).collect();
    messages::Node { id, kind, attributes, ..messages::Node::default() }
}

fn send(id: u64, to: i32, bytes: i64) -> messages::Node {
    with(id, 5, &[("comm_dst", Value::Int32(to)), ("comm_size", Value::Int64(bytes))])
}

fn receive(id: u64, from: u32, bytes: u64) -> messages::Node {
    with(id, 6, &[("comm_src", Value::Uint32(from)), ("comm_size", Value::Uint64(bytes))])
}

fn collective(id: u64, kind: i64, bytes: u64) -> messages::Node {
    with(id, 7, &[("comm_type", Value::Int64(kind)), ("comm_size", Value::Uint64(bytes))])
}

fn after(node: messages::Node, ids: &[u64]) -> messages::Node {
    messages::Node { data_dependencies: ids.to_vec(), ..node }
}

fn file(nodes: &[messages::Node]) -> Vec<u8> {
    let metadata = GlobalMetadata { version: "0.0.4".into(), attributes: Vec::new() };
    let mut bytes = metadata.encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

fn convert(ranks: &[Vec<messages::Node>]) -> Result<Converted, String> {
    let files: Vec<_> = (0..)
        .zip(ranks)
        .map(|(rank, nodes): (u32, _)| (format!("x.{rank}.et"), file(nodes)))
        .collect();
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    read(&files).map_err(|error| error.to_string())
}

fn said(ranks: &[Vec<messages::Node>]) -> String {
    convert(ranks).expect_err("it is refused")
}

#[test]
fn nodes_become_work_and_messages_on_their_cpus() {
    let cpu_op = |value| [("is_cpu_op", Value::Bool(value))];
    let lasts = |node, duration_micros| messages::Node { duration_micros, ..node };
    let first = vec![
        lasts(with(10, 4, &cpu_op(true)), 3),
        lasts(with(11, 4, &cpu_op(false)), 4),
        lasts(with(12, 4, &[]), 5),
        with(13, 4, &[]),
        lasts(with(14, 2, &[]), 6),
        with(15, 1, &[]),
        // It stands before what it waits for.
        messages::Node { control_dependencies: vec![10], ..after(send(16, 1, 9), &[17]) },
        messages::Node { start_time_micros: 7, ..after(with(17, 4, &[]), &[14]) },
    ];
    let Converted { trace, lost } = convert(&[first, vec![receive(0, 0, 9)]]).unwrap();
    let calc = |ns, cpu| Node { work: Work::Calc { ns }, cpu, nic: 0 };
    let send = Work::Send { to: Rank(1), bytes: 9, tag: 0 };
    let expected = [
        calc(3000, 0),
        calc(4000, 1),
        calc(5000, 1),
        calc(0, 3),
        calc(6000, 1),
        calc(0, 3),
        Node { work: send, cpu: 2, nic: 0 },
        calc(0, 3),
    ];
    assert_eq!(trace.nodes(Rank(0)).collect::<Vec<_>>(), expected);
    assert_eq!(trace.waits_for(Rank(0)), [0, 0, 0, 0, 0, 0, 2, 1]);
    assert_eq!(trace.dependents(Rank(0), 4).collect::<Vec<_>>(), [(7, Until::Finished)]);
    assert_eq!(
        lost,
        [
            "nodes of work without a duration, which take no time: 2",
            "accesses to memory, which keep no memory busy: 1",
            "times of beginning; nodes begin as soon as what they wait for is over: 1",
        ]
    );
}

/// Who has heard of whom when each rank's last node is over, by rank; and bytes sent by each.
fn heard(trace: &Trace) -> (Vec<BTreeSet<u32>>, Vec<u64>) {
    let ranks: Vec<Rank> = (0..trace.ranks()).map(Rank).collect();
    let empty = |rank: &Rank| vec![BTreeSet::from([rank.0]); trace.count(*rank) as usize];
    let mut known: Vec<Vec<BTreeSet<u32>>> = ranks.iter().map(empty).collect();
    // Messages of a pair and tag meet in their order.
    let mut sent: BTreeMap<(u32, u32, u32), Vec<usize>> = BTreeMap::new();
    let mut bytes = vec![0; ranks.len()];
    for rank in &ranks {
        for (number, node) in trace.nodes(*rank).enumerate() {
            if let Work::Send { to, bytes: size, tag } = node.work {
                sent.entry((rank.0, to.0, tag)).or_default().push(number);
                bytes[rank.0 as usize] += size;
            }
        }
    }
    loop {
        let before = known.clone();
        for rank in &ranks {
            let mut taken: BTreeMap<(u32, u32), usize> = BTreeMap::new();
            for (number, node) in trace.nodes(*rank).enumerate() {
                if let Work::Receive { from: Some(from), tag: Some(tag), .. } = node.work {
                    let next = taken.entry((from.0, tag)).or_default();
                    let send = sent[&(from.0, rank.0, tag)][*next];
                    *next += 1;
                    let all = known[from.0 as usize][send].clone();
                    known[rank.0 as usize][number].extend(all);
                }
                for (other, _) in trace.dependents(*rank, number as u32) {
                    let all = known[rank.0 as usize][number].clone();
                    known[rank.0 as usize][other as usize].extend(all);
                }
            }
        }
        if known == before {
            let last = |all: Vec<BTreeSet<u32>>| all.last().expect("a node").clone();
            return (known.into_iter().map(last).collect(), bytes);
        }
    }
}

#[test]
fn in_a_collective_everybody_hears_of_everybody_with_the_bytes_of_its_algorithm() {
    const BYTES: u64 = 1_000_003;
    for ranks in 1..10u64 {
        let run = |kind: i64, attributes: &[(&str, Value)]| {
            let mut node = collective(1, kind, BYTES);
            node.attributes.extend(with(0, 7, attributes).attributes);
            // Something that waits for the end of it.
            let nodes = vec![node, after(with(2, 1, &[]), &[1])];
            heard(&convert(&vec![nodes; ranks as usize]).unwrap().trace)
        };
        let all: BTreeSet<u32> = (0..ranks as u32).collect();
        let sum = |bytes: &[u64]| bytes.iter().sum::<u64>();
        for (kind, expected) in [
            (0, 2 * (ranks - 1) * BYTES),
            (2, ranks * (ranks - 1) * BYTES),
            (6, (ranks - 1) * BYTES),
            (7, (ranks - 1) * BYTES),
            (8, (ranks - 1) * BYTES),
            (9, 0),
        ] {
            let (known, bytes) = run(kind, &[]);
            assert!(known.iter().all(|known| *known == all), "kind {kind}, {ranks} ranks");
            assert_eq!(sum(&bytes), expected, "kind {kind}, {ranks} ranks");
        }
        for root in [0, ranks - 1] {
            let (known, bytes) = run(5, &[("root", Value::Uint64(root))]);
            assert!(known.iter().all(|known| known.contains(&(root as u32))), "{root} of {ranks}");
            assert_eq!(sum(&bytes), (ranks - 1) * BYTES);
        }
    }
}

#[test]
fn a_rank_of_a_ring_passes_on_what_it_has_received() {
    for (kind, ranks) in [(0, 2), (0, 5), (7, 5), (2, 3)] {
        let node = collective(1, kind, 1_003);
        let trace = convert(&vec![vec![node]; ranks]).unwrap().trace;
        for rank in (0..trace.ranks()).map(Rank) {
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for node in trace.nodes(rank) {
                match node.work {
                    Work::Send { bytes, .. } => sent.push(bytes),
                    Work::Receive { bytes, .. } => received.push(bytes),
                    Work::Calc { .. } => {}
                }
            }
            assert_eq!(sent[1..], received[..received.len() - 1], "kind {kind}, {rank:?}");
        }
    }
}

#[test]
fn a_barrier_takes_rounds_and_a_broadcast_a_tree() {
    let nodes = |kind, ranks| {
        let trace = convert(&vec![vec![collective(1, kind, 8)]; ranks]).unwrap().trace;
        (0..trace.ranks()).map(|rank| trace.count(Rank(rank))).collect::<Vec<_>>()
    };
    // Two a round, besides beginning and end.
    assert_eq!(nodes(9, 5), [8; 5]);
    // Rank 0 sends to 4, 2 and 1; rank 2 receives and sends to 3.
    assert_eq!(nodes(5, 6), [5, 3, 4, 3, 4, 3]);
}

#[test]
fn collectives_of_a_process_group_are_among_the_ranks_that_have_them() {
    let of = |id, name: &str| {
        let mut node = collective(id, 2, 8);
        node.attributes.extend(with(0, 7, &[("pg_name", Value::Text(name.into()))]).attributes);
        node
    };
    let ranks = [
        vec![of(1, "even"), of(2, "a\nb")],
        vec![of(5, "a\nb")],
        vec![of(3, "even"), of(9, "a\nb")],
    ];
    let Converted { trace, lost } = convert(&ranks).unwrap();
    let partners: BTreeSet<(u32, u32)> = (0..3)
        .flat_map(|rank| {
            trace.nodes(Rank(rank)).filter_map(move |node| match node.work {
                Work::Send { to, .. } => Some((rank, to.0)),
                _ => None,
            })
        })
        .collect();
    assert_eq!(partners, BTreeSet::from([(0, 1), (0, 2), (1, 2), (2, 0)]));
    let taken = "members of process group";
    assert_eq!(
        lost,
        [
            format!("{taken} `a\\nb`: taken for the 3 ranks that have collectives of it"),
            format!("{taken} `even`: taken for the 2 ranks that have collectives of it"),
        ]
    );
    assert_eq!(
        said(&[vec![of(1, "even"), of(2, "even")], vec![of(1, "even")]]),
        "x.1.et: 1 collectives of process group `even` where another rank has 2; give traces of \
         one run"
    );
}

#[test]
fn what_a_collective_leaves_open_is_said() {
    let dimensions = Value::Bools(Bools { values: vec![true, false] });
    let mut node = collective(1, 5, 8);
    node.attributes.extend(with(0, 7, &[("involved_dim", dimensions)]).attributes);
    assert_eq!(
        convert(&[vec![node.clone()], vec![node]]).unwrap().lost,
        [
            "limits of collectives to dimensions; they are among all ranks: 2",
            "broadcasts without a root, which are the first rank's: 2",
        ]
    );
}

#[test]
fn ranks_that_do_not_fit_each_other_are_refused() {
    assert_eq!(
        said(&[vec![send(4, 7, 1)], vec![]]),
        "x.0.et: node 4 has comm_dst 7, and there are files of 2 ranks; give those of all ranks"
    );
    assert_eq!(
        said(&[vec![send(4, 1, 1)], vec![]]),
        "x.1.et: rank 1: rank 0 sends it 1 more with tag 0 than it receives"
    );
    assert_eq!(
        said(&[vec![collective(1, 0, 8)], vec![collective(6, 0, 9)]]),
        "x.1.et: node 6 is AllReduce of 9 bytes where another rank has AllReduce of 8; give \
         traces of one run"
    );
    assert_eq!(
        said(&[vec![collective(1, 0, 8)], vec![]]),
        "x.1.et: 0 collectives where another rank has 1; give traces of one run"
    );
    let files = |names: &[&str]| {
        let bytes = file(&[]);
        let files: Vec<_> = names.iter().map(|name| (*name, &bytes[..])).collect();
        read(&files).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(files(&["a.1.et", "a.0.et"]), Ok(()));
    let missing = "a.2.et: rank 1 has no file; give those of all ranks";
    assert_eq!(files(&["a.2.et", "a.0.et"]), Err(missing.into()));
    let again = "a.0.et: a second file of this rank; give one of each";
    assert_eq!(files(&["a.00.et", "a.0.et"]), Err(again.into()));
    let unnamed = "a.et: the name says no rank; files of a Chakra trace are called NAME.RANK.et";
    assert_eq!(files(&["a.et"]), Err(unnamed.into()));
    assert!(files(&[]).unwrap_err().contains("no ranks"));
}

#[test]
fn nodes_that_cannot_be_are_named() {
    let one = |node: messages::Node| said(&[vec![node]]);
    assert_eq!(one(with(8, 9, &[])), "x.0.et: node 8 is of type 9; types are 1 to 7");
    assert_eq!(
        one(send(8, 0, -1)),
        "x.0.et: node 8 has no comm_size, or none that is a number from 0 on"
    );
    assert_eq!(
        one(collective(8, 3, 1)),
        "x.0.et: node 8 is collective GATHER, which is not converted; have its messages traced"
    );
    assert_eq!(
        one(after(with(8, 1, &[]), &[9])),
        "x.0.et: node 8 waits for node 9, which the file does not have"
    );
    assert_eq!(
        one(after(with(8, 1, &[]), &[8])),
        "x.0.et: node 8: waits for itself; take the dependency out"
    );
    assert_eq!(
        said(&[vec![send(3, 0, 1 << 31), receive(4, 0, 1)]]),
        "x.0.et: node 3: a message of 2147483648 bytes; the longest is 1073741824"
    );
    let twice = vec![with(3, 1, &[]), with(3, 1, &[])];
    assert_eq!(said(&[twice]), "x.0.et: node 3 stands twice; get the file anew");
    let mut tagged = send(3, 0, 1);
    tagged
        .attributes
        .push(with(0, 5, &[("comm_tag", Value::Uint32(1 << 31))]).attributes.remove(0));
    assert_eq!(one(tagged), "x.0.et: node 3 has comm_tag 2147483648; the highest is 2147483647");
    let mut many = vec![collective(1, 0, 8); 1000];
    (0..).zip(&mut many).for_each(|(id, node)| node.id = id);
    let error = said(&vec![many; 256]);
    assert_eq!(
        error,
        "x.65.et: node 408 and the collectives before it are more than 67108864 messages; trace \
         a shorter part of the run"
    );
}

#[test]
fn files_that_are_cut_off_or_another_format_are_refused() {
    let whole = file(&[send(1, 0, 5), receive(2, 0, 5)]);
    assert!(read(&[("x.0.et", &whole)]).is_ok());
    let error = read(&[("x.0.et", &whole[..whole.len() - 1])]).unwrap_err().to_string();
    assert!(error.starts_with("x.0.et: byte 0x"), "{error}");
    let error = read(&[("x.0.et", b"num_ranks 1\n")]).unwrap_err().to_string();
    assert!(error.starts_with("x.0.et: byte 0x0: no Chakra trace"), "{error}");
    let error = Trace::read(&whole, "x.0.et").unwrap_err().to_string();
    assert_eq!(error, "x.0.et: a Chakra trace, which is a file a rank; give those of all ranks");
}

proptest! {
    #[test]
    fn any_bytes_are_a_trace_or_an_error_of_one_line(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let nodes = [collective(1, 5, 9), after(send(2, 0, 4), &[1]), receive(3, 0, 4)];
        let mut bytes = [file(&nodes), rest].concat();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let other = file(&[collective(1, 5, 9)]);
        if let Err(error) = read(&[("a\n.0.et", &bytes), ("b.1.et", &other)]) {
            let error = error.to_string();
            prop_assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
        }
    }
}
