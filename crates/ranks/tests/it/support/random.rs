//! Random scripts that end, whatever the fabric does.

use super::{BYTE, Do, EAGER, LATENCY};
use clearlane_ib::random::Stream;
use clearlane_workload::{Filter, Rank};

/// Scripts of so many ranks, at least 2, which exchange so many messages. They end because nobody
/// waits for others before all has been posted but what is probed for, and because in each context
/// receives are of one kind, so that none takes the message of another.
pub fn random(seed: u64, ranks: u32, messages: u32) -> Vec<Vec<Do>> {
    let mut draws = Stream::new(seed, "scripts", 0);
    let mut scripts: Vec<Scripted> = Vec::new();
    let mut scripted = || Scripted { leaves: draws.below(2) > 0, ..Scripted::default() };
    scripts.resize_with(ranks as usize, &mut scripted);
    for number in 0..messages {
        let (from, to) = (draws.below(ranks.into()) as u32, draws.below(ranks.into()) as u32);
        let bytes = [0, 1, 3000, EAGER, EAGER + 1, 3 * EAGER][draws.below(6) as usize];
        let context = draws.below(5) as u16;
        let tag = if context == 4 { number } else { draws.below(3) as u32 };
        let filter = Filter {
            source: [true, false, true, false, true][usize::from(context)].then_some(Rank(from)),
            tag: [true, true, false, false, true][usize::from(context)].then_some(tag),
            context,
        };
        let sender = &mut scripts[from as usize];
        let stream = any_stream(&mut draws);
        let tracked = !sender.leaves || draws.below(2) > 0;
        sender.begin.push(Do::SendOn { stream, tracked, context, to, bytes, tag });
        let receiver = &mut scripts[to as usize];
        match context {
            4 => receiver.probed.push(filter),
            _ => receiver.begin.push(Do::ReceiveOn(any_stream(&mut draws), filter)),
        }
    }
    let script = |script: Scripted| script.shuffled(&mut draws, ranks);
    scripts.into_iter().map(script).collect()
}

/// What a rank has to do.
#[derive(Default)]
struct Scripted {
    /// Whether it leaves messages untracked. It then frees no handle that it waits for later: that
    /// might be the handle of such a message, for which nobody may wait.
    leaves: bool,
    /// Messages sent and received.
    begin: Vec<Do>,
    /// Messages probed for before they are received: these receives take no others.
    probed: Vec<Filter>,
}

impl Scripted {
    fn shuffled(self, draws: &mut Stream, ranks: u32) -> Vec<Do> {
        let (mut script, mut posted, mut over) = (Vec::new(), 0, Vec::new());
        // As a completion queue has them: then nothing may be asked for before.
        let in_order = draws.below(4) == 0;
        let tested = |posted| if self.leaves || in_order { 0 } else { posted };
        for one in shuffle(self.begin, draws) {
            while draws.below(3) == 0 {
                let extra = between(draws, tested(posted), ranks);
                let posts = extra.posts();
                script.push(extra);
                if posts && draws.below(3) == 0 {
                    // At once: later the handle may be that of a receive.
                    over.push(posted);
                    script.push([Do::Wait(posted), Do::WaitAny(vec![posted])][posted % 2].clone());
                }
                posted += usize::from(posts);
            }
            if matches!(one, Do::SendOn { tracked: false, .. }) {
                over.push(posted);
            }
            script.push(one);
            posted += 1;
        }
        for filter in shuffle(self.probed, draws) {
            script.extend([Do::Probe(filter, true), Do::Receive(filter)]);
            posted += 1;
        }
        let left = (0..posted).filter(|number| !over.contains(number)).collect();
        let mut left = shuffle(left, draws);
        if in_order {
            script.extend(left.iter().map(|_| Do::WaitNext));
            return script;
        }
        while !left.is_empty() {
            let some = left.split_off(left.len() - 1 - draws.below(left.len() as u64) as usize);
            match draws.below(4) {
                0 => script.extend(some.iter().map(|number| Do::Wait(*number))),
                1 => script.push(Do::WaitAll(some)),
                2 => {
                    script.extend((0..some.len()).map(|_| Do::WaitAny(some.clone())));
                    script.push(Do::WaitAll(some));
                }
                _ => {
                    script.extend(some.iter().map(|number| Do::Test(*number)));
                    script.extend([Do::Compute(draws.below(9 * LATENCY)), Do::WaitAll(some)]);
                }
            }
        }
        script
    }
}

/// Something that nobody else has to do anything for.
fn between(draws: &mut Stream, posted: usize, ranks: u32) -> Do {
    let peer = draws.below(ranks.into()) as u32;
    match draws.below(6) {
        0 => Do::Put { to: peer, bytes: draws.below(2 * EAGER) },
        1 => Do::Get { from: peer, bytes: draws.below(2 * EAGER) },
        2 => Do::Start { span: draws.below(EAGER * BYTE), stream: any_stream(draws).max(1) },
        3 if posted > 0 => Do::Test(draws.below(posted as u64) as usize),
        4 => {
            let source = (draws.below(2) == 0).then_some(Rank(peer));
            let tag = (draws.below(2) == 0).then_some(draws.below(3) as u32);
            Do::Probe(Filter { source, tag, context: draws.below(5) as u16 }, false)
        }
        _ => Do::Compute(draws.below(5 * LATENCY)),
    }
}

fn any_stream(draws: &mut Stream) -> u8 {
    [0, 0, 0, 1, 2, 255][draws.below(6) as usize]
}

fn shuffle<T>(mut all: Vec<T>, draws: &mut Stream) -> Vec<T> {
    for end in (1..all.len()).rev() {
        all.swap(end, draws.below(end as u64 + 1) as usize);
    }
    all
}
