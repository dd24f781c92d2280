//! What a program takes at least, by what its messages put on links: the times that a run of it is
//! compared with.

use crate::programs::{Planned, Schedule};
use crate::walks::Walks;
use crate::{Rank, Routes};
use clearlane_ib::{LinkRate, Picoseconds};

/// The least times of a program on the routes it takes. Each is of all its rounds, and counts the
/// headers of packets; delays and what software costs are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// If no step begins before the one before it has ended everywhere: the time of the busiest
    /// link in each step, added up.
    pub by_steps: Picoseconds,
    /// The time of the link between switches that is busiest in all steps together.
    pub by_link: Picoseconds,
    /// The time of the host that sends or receives most, by all of its ports.
    pub by_host: Picoseconds,
}

/// What packets are made of and how fast hosts are.
pub struct Hosts<'a> {
    /// Where each rank of the program sits.
    pub of_ranks: &'a [Rank],
    /// The rate of a host's ports together.
    pub rate: &'a dyn Fn(Rank) -> LinkRate,
    /// Payload of a full packet and the bytes each packet has besides.
    pub packet: (u32, u32),
}

impl Hosts<'_> {
    /// Bytes of a message on the wire.
    fn wire(&self, bytes: u64) -> u64 {
        let (payload, header) = self.packet;
        bytes + bytes.div_ceil(u64::from(payload.max(1))).max(1) * u64::from(header)
    }
}

impl Bounds {
    /// Those of a schedule that is gone through so many times.
    pub fn of(
        schedule: &dyn Schedule,
        routes: &dyn Routes,
        hosts: &Hosts<'_>,
        rounds: u64,
    ) -> Bounds {
        let mut sums = Sums::new(routes, hosts);
        let mut messages = Vec::new();
        for step in 0..schedule.steps() {
            schedule.messages(step, &mut messages);
            sums.add(&messages);
        }
        sums.bounds(rounds)
    }
}

/// Bytes on links and at hosts.
struct Sums<'a> {
    routes: &'a dyn Routes,
    hosts: &'a Hosts<'a>,
    walks: Walks<'a>,
    /// By channel: bytes of the step, and of all steps.
    step: Vec<u64>,
    all: Vec<u64>,
    used: Vec<usize>,
    /// By rank of the program: sent and received.
    sent: Vec<[u64; 2]>,
    by_steps: u64,
}

impl<'a> Sums<'a> {
    fn new(routes: &'a dyn Routes, hosts: &'a Hosts<'a>) -> Self {
        Sums {
            routes,
            hosts,
            walks: Walks::new(routes, hosts.of_ranks),
            step: vec![0; routes.channels()],
            all: vec![0; routes.channels()],
            used: Vec::new(),
            sent: vec![[0; 2]; hosts.of_ranks.len()],
            by_steps: 0,
        }
    }

    /// Adds a step.
    fn add(&mut self, messages: &[Planned]) {
        for message in messages {
            let bytes = self.hosts.wire(message.bytes);
            self.sent[message.from.0 as usize][0] += bytes;
            self.sent[message.to.0 as usize][1] += bytes;
            for channel in self.walks.walk(message) {
                let on = &mut self.step[channel.index()];
                if *on == 0 {
                    self.used.push(channel.index());
                }
                *on += bytes;
            }
        }
        let mut longest = 0;
        for channel in self.used.drain(..) {
            let bytes = std::mem::take(&mut self.step[channel]);
            self.all[channel] += bytes;
            let rate = self.routes.rate(crate::Channel(channel as u32));
            longest = longest.max(rate.serialisation(bytes));
        }
        self.by_steps += longest;
    }

    fn bounds(&self, rounds: u64) -> Bounds {
        let link = |(channel, bytes): (u32, &u64)| {
            self.routes.rate(crate::Channel(channel)).serialisation(*bytes)
        };
        let used = (0..).zip(&self.all).filter(|(_, bytes)| **bytes > 0);
        // Ranks of one host share its ports.
        let mut at: Vec<(Rank, [u64; 2])> =
            self.hosts.of_ranks.iter().copied().zip(self.sent.iter().copied()).collect();
        at.sort_unstable_by_key(|(host, _)| *host);
        let hosts = at.chunk_by(|(one, _), (other, _)| one == other).map(|ranks| {
            let sum = |way: usize| ranks.iter().map(|(_, sent)| sent[way]).sum::<u64>();
            (self.hosts.rate)(ranks[0].0).serialisation(sum(0).max(sum(1)))
        });
        let times = |time: u64| Picoseconds(time.saturating_mul(rounds));
        Bounds {
            by_steps: times(self.by_steps),
            by_link: times(used.map(link).max().unwrap_or(0)),
            by_host: times(hosts.max().unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::tests::Torus;
    use crate::{Pacing, ProgramSpec, StepGaps};
    use clearlane_ib::BitsPerSecond;

    fn spec(text: &str) -> ProgramSpec {
        toml::from_str(text).unwrap()
    }

    fn bounds(torus: &Torus, program: &str, packet: (u32, u32)) -> Bounds {
        let ranks: Vec<Rank> = (0..torus.nodes()).map(Rank).collect();
        let schedule = spec(program).schedule(torus.nodes()).unwrap().unwrap();
        let nics = LinkRate::from_bits(BitsPerSecond(4 * 32_000_000_000)).unwrap();
        let hosts = Hosts { of_ranks: &ranks, rate: &|_| nics, packet };
        Bounds::of(&*schedule, torus, &hosts, 1)
    }

    /// The figures of the pacing paper's two alltoalls (seed 003, figures 4 and 5), worked out by
    /// hand: 90 messages on a link of a torus of 9 by 9, and 100 in the steps of an exchange by XOR
    /// on 4 by 4 by 4 with ties that go up.
    #[test]
    fn ideal_times_are_those_worked_out_by_hand() {
        let a2at = "kind = \"a2at-alltoall\"\nsize = \"1 MiB\"\ngrid = [9, 9]";
        let pwx = "kind = \"pairwise-alltoall\"\nsize = \"40 KiB\"";
        let (square, cube) = (Torus { sides: &[9, 9] }, Torus { sides: &[4, 4, 4] });
        let ns = |time: Picoseconds| time.0 / 1000;
        for (packet, a2at_ns, pwx_ns) in
            [((2048, 32), 23_961_600, 1_040_000), ((2016, 32), 23_968_080, 1_040_800)]
        {
            let found = bounds(&square, a2at, packet);
            assert_eq!(ns(found.by_steps), a2at_ns);
            assert_eq!(found.by_steps, found.by_link, "phases use every link alike");
            assert_eq!(ns(bounds(&cube, pwx, packet).by_steps), pwx_ns);
        }
        // 48 messages on a link that leads up, and 63 from every host by four ports.
        let found = bounds(&cube, pwx, (2048, 32));
        assert_eq!((ns(found.by_link), ns(found.by_host)), (499_200, 163_800));
    }

    /// (N / n) · ⌊n² / 4⌋ / 2 messages on every link of an odd ring, whatever the order of steps.
    #[test]
    fn odd_tori_carry_what_the_formula_says() {
        for sides in [&[5u32, 5][..], &[3, 3, 3], &[7, 7]] {
            let torus = Torus { sides };
            let (n, nodes) = (u64::from(sides[0]), u64::from(torus.nodes()));
            let load = nodes / n * (n * n / 4) / 2;
            let program = "kind = \"ring-alltoall\"\nsize = \"2048 B\"";
            let found = bounds(&torus, program, (2048, 32));
            assert_eq!(found.by_link.0, load * 520_000, "{sides:?}");
            assert!(found.by_steps >= found.by_link);
        }
    }

    #[test]
    fn gaps_by_overlap_never_are_above_those_by_hops_of_a_phase() {
        let torus = Torus { sides: &[5, 5] };
        let ranks: Vec<Rank> = (0..25).map(Rank).collect();
        let a2at = spec("kind = \"a2at-alltoall\"\nsize = \"1 KiB\"\ngrid = [5, 5]");
        let schedule = a2at.schedule(25).unwrap().unwrap();
        let overlap = StepGaps::of(&*schedule, &torus, &ranks, false);
        let hops = StepGaps::of(&*schedule, &torus, &ranks, true);
        // The property it was made for: hops are the messages on a link.
        assert_eq!(format!("{overlap:?}"), format!("{hops:?}"));
        assert_eq!((overlap.largest(), Pacing::default().gap(Rank(0), 0, 0, 1).0), (3, 0));
    }
}
