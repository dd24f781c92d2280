//! Whether the ranks of a trace fit each other: whoever is named is there, and as many messages are
//! sent as are received.

use super::{Fault, Trace, Work};
use crate::Rank;

/// Destination, source and tag of a message, in the order of which they are looked through.
type Key = (u32, u32, u32);

/// What a receive leaves open.
type Wanted = (u32, Option<u32>, Option<u32>);

/// Fails with the first rank that names another that is not there, or with the first messages that
/// are not as many as their receives.
///
/// Receives from anybody or with any tag take what others leave. Whether they take each other's is
/// a matter of time, so what is checked of them is that there is enough for each kind and all of it
/// is taken.
pub(super) fn check(trace: &Trace) -> Result<(), Fault> {
    peers(trace)?;
    let (mut sent, mut received, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..trace.ranks() {
        for node in trace.nodes(Rank(rank)) {
            match node.work {
                Work::Send { to, tag, .. } => sent.push((to.0, rank, tag)),
                Work::Receive { from: Some(from), tag: Some(tag), .. } => {
                    received.push((rank, from.0, tag));
                }
                Work::Receive { from, tag, .. } => {
                    open.push((rank, from.map(|from| from.0), tag));
                }
                Work::Calc { .. } => {}
            }
        }
    }
    sent.sort_unstable();
    received.sort_unstable();
    let left = left_over(&sent, &received)?;
    taken(&left, &mut open)
}

fn peers(trace: &Trace) -> Result<(), Fault> {
    let ranks = trace.ranks();
    for rank in 0..ranks {
        for (number, node) in (0..).zip(trace.nodes(Rank(rank))) {
            let peer = match node.work {
                Work::Send { to, .. } => Some(to),
                Work::Receive { from, .. } => from,
                Work::Calc { .. } => None,
            };
            if let Some(peer) = peer.filter(|peer| peer.0 >= ranks) {
                let problem = format!("no rank {}; ranks are 0 to {}", peer.0, ranks - 1);
                return Err(Fault::at(rank, number, problem));
            }
        }
    }
    Ok(())
}

/// Messages that no receive asks for by source and tag, with how many there are; both are sorted.
fn left_over(sent: &[Key], received: &[Key]) -> Result<Vec<(Key, usize)>, Fault> {
    let (mut left, mut receives) = (Vec::new(), received.chunk_by(|a, b| a == b).peekable());
    let mut sends = sent.chunk_by(|a, b| a == b).peekable();
    loop {
        let (send, receive) = (sends.peek().map(|all| all[0]), receives.peek().map(|all| all[0]));
        let key = match (send, receive) {
            (Some(send), Some(receive)) => send.min(receive),
            (Some(key), None) | (None, Some(key)) => key,
            (None, None) => return Ok(left),
        };
        let of = |all: &[Key]| if all[0] == key { all.len() } else { 0 };
        let (sent, wanted) =
            (sends.peek().map_or(0, |all| of(all)), receives.peek().map_or(0, |all| of(all)));
        if wanted > sent {
            return Err(unequal(key, sent, wanted));
        }
        if sent > wanted {
            left.push((key, sent - wanted));
        }
        sends.next_if(|all| all[0] == key);
        receives.next_if(|all| all[0] == key);
    }
}

fn unequal((to, from, tag): Key, sent: usize, wanted: usize) -> Fault {
    let problem = format!(
        "receives {wanted} times from rank {from} with tag {tag}, which sends {sent} such messages"
    );
    Fault::of(to, problem)
}

/// Looks whether receives that leave something open take all messages that are left, which are
/// sorted.
fn taken(left: &[(Key, usize)], open: &mut [Wanted]) -> Result<(), Fault> {
    open.sort_unstable();
    // The same by tag, so that no kind of receive is looked for in all messages.
    let mut by_tag: Vec<_> =
        left.iter().map(|((to, from, tag), count)| ((*to, *tag, *from), *count)).collect();
    by_tag.sort_unstable();
    for same in open.chunk_by(|a, b| a == b) {
        let (to, from, tag) = same[0];
        let there = match (from, tag) {
            (Some(from), _) => sum(left, to, Some(from)),
            (None, tag) => sum(&by_tag, to, tag),
        };
        if same.len() > there {
            let from = from.map_or("anybody".to_owned(), |from| format!("rank {from}"));
            let tag = tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
            let problem = format!(
                "receives {} times from {from} with {tag}, and {there} such messages are sent to \
                 it that no other receive asks for",
                same.len()
            );
            return Err(Fault::of(to, problem));
        }
    }
    for same in left.chunk_by(|((one, ..), _), ((other, ..), _)| one == other) {
        let ((to, from, tag), count) = same[0];
        let sent: usize = same.iter().map(|(_, count)| count).sum();
        let begin = open.partition_point(|(rank, ..)| *rank < to);
        let wanted = open[begin..].iter().take_while(|(rank, ..)| *rank == to).count();
        if sent > wanted {
            let problem = match wanted {
                0 => format!("rank {from} sends it {count} more with tag {tag} than it receives"),
                _ => format!(
                    "{sent} messages are left for {wanted} receives from anybody or with any tag; \
                     one is from rank {from} with tag {tag}"
                ),
            };
            return Err(Fault::of(to, problem));
        }
    }
    Ok(())
}

/// How many messages there are for a rank, with this second part of their key if one is asked for.
fn sum(sorted: &[(Key, usize)], to: u32, second: Option<u32>) -> usize {
    let of = |(rank, other, _): &Key| (*rank, second.map_or(0, |_| *other));
    let wanted = (to, second.unwrap_or(0));
    let begin = sorted.partition_point(|(key, _)| of(key) < wanted);
    let same = sorted[begin..].iter().take_while(|(key, _)| of(key) == wanted);
    same.map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{receive, send};
    use super::super::{Draft, Node, Trace, Work};
    use crate::Rank;

    fn said(ranks: &[&[Node]]) -> Result<(), String> {
        let draft = |nodes: &&[Node]| {
            let mut draft = Draft::default();
            nodes.iter().for_each(|node| _ = draft.add(*node));
            draft
        };
        let read = Trace::new(ranks.iter().map(draft).collect(), "x");
        read.map(|_| ()).map_err(|error| error.to_string())
    }

    fn open(from: Option<u32>, tag: Option<u32>) -> Node {
        Node { work: Work::Receive { from: from.map(Rank), bytes: 1, tag }, cpu: 0, nic: 0 }
    }

    #[test]
    fn messages_and_receives_are_as_many() {
        assert_eq!(said(&[&[send(1, 1, 7), send(1, 2, 7)], &[receive(0, 9, 7); 2]]), Ok(()));
        assert_eq!(
            said(&[&[send(1, 1, 7)], &[receive(0, 1, 7); 2]]),
            Err("x: rank 1: receives 2 times from rank 0 with tag 7, which sends 1 such messages"
                .into())
        );
        assert_eq!(
            said(&[&[send(1, 1, 7)], &[receive(0, 1, 8)]]).unwrap_err(),
            "x: rank 1: receives 1 times from rank 0 with tag 8, which sends 0 such messages"
        );
        assert_eq!(
            said(&[&[send(1, 1, 7), send(1, 1, 7), send(1, 1, 8)], &[receive(0, 1, 7)]]),
            Err("x: rank 1: rank 0 sends it 1 more with tag 7 than it receives".into())
        );
        assert_eq!(said(&[&[send(0, 1, 0), receive(0, 1, 0)]]), Ok(()), "to itself");
    }

    #[test]
    fn receives_from_anybody_take_what_others_leave() {
        let senders: [&[Node]; 2] = [&[send(2, 1, 7), send(2, 1, 8)], &[send(2, 1, 7)]];
        let with = |receives: &[Node]| said(&[senders[0], senders[1], receives]);
        let any_source = open(None, Some(7));
        assert_eq!(with(&[any_source, any_source, receive(0, 1, 8)]), Ok(()));
        assert_eq!(with(&[open(None, None); 3]), Ok(()));
        assert_eq!(with(&[open(Some(0), None), open(Some(0), None), open(None, None)]), Ok(()));
        assert_eq!(
            with(&[any_source; 3]).unwrap_err(),
            "x: rank 2: receives 3 times from anybody with tag 7, and 2 such messages are sent to \
             it that no other receive asks for"
        );
        assert_eq!(
            with(&[open(Some(1), None), open(Some(1), None), any_source]).unwrap_err(),
            "x: rank 2: receives 2 times from rank 1 with any tag, and 1 such messages are sent \
             to it that no other receive asks for"
        );
        assert_eq!(
            with(&[any_source, receive(0, 1, 8)]).unwrap_err(),
            "x: rank 2: 2 messages are left for 1 receives from anybody or with any tag; one is \
             from rank 0 with tag 7"
        );
    }
}
