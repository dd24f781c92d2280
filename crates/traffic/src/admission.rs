//! Chooses which connections may wait before they have shown a certificate or a token. It has
//! neither I/O nor a clock. The number of waiting connections is limited. A connection over the
//! limit closes one: the oldest of the address with the most recent arrivals, in the network with
//! the most waiting connections. So a host with many addresses in a network has no more places than
//! a host with one. Within a network, addresses with many arrivals lose their places first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Prefix lengths of the networks that are compared, the wider network first. IPv4 addresses are
/// mapped into IPv6. A provider gives the wider network to a site. A host may have all addresses of
/// the narrower one (RFC 6177 for IPv6).
const V4_BITS: [u32; 2] = [96 + 16, 96 + 24];
const V6_BITS: [u32; 2] = [48, 64];
/// Addresses with fewer than this many recent connections weigh the same. So a client that is
/// turned away may come again a few times.
const FREE: u32 = 8;

/// The connections that wait.
#[derive(Debug)]
pub struct Admission<T> {
    most: usize,
    next: u64,
    /// The oldest first.
    waiting: Vec<Waiting<T>>,
    /// Recent arrivals from each address. The key is the bits of the address.
    came: BTreeMap<u128, Came>,
    /// Second in which addresses without recent arrivals were last removed.
    tidied_s: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    number: u64,
    /// The bits of the address that it comes from.
    address: u128,
    networks: [u128; 2],
    what: T,
}

/// Recent arrivals from an address that have not shown anything. Their number halves each second.
#[derive(Debug)]
struct Came {
    count: u32,
    /// Second of that count.
    at_s: u64,
}

impl Came {
    fn now(&self, now_s: u64) -> u32 {
        let halved = u32::try_from(now_s.saturating_sub(self.at_s)).unwrap_or(u32::MAX);
        self.count.checked_shr(halved).unwrap_or(0)
    }
}

impl<T> Admission<T> {
    /// Begins without connections. At most `most` of them may wait.
    pub fn new(most: usize) -> Self {
        let (waiting, came) = (Vec::new(), BTreeMap::new());
        Admission { most, next: 0, waiting, came, tidied_s: 0 }
    }

    /// Takes in a connection from an address, `now_s` seconds after a beginning. Returns its number
    /// and, over the limit, the connection that has to go, which may be itself.
    pub fn enter(&mut self, now_s: u64, from: IpAddr, what: T) -> (u64, Option<(u64, T)>) {
        // An IPv4 address that is mapped into IPv6 counts as IPv4.
        let (number, from) = (self.next, from.to_canonical());
        let address = bits_of(from);
        self.next += 1;
        let came = self.came.entry(address).or_insert(Came { count: 0, at_s: now_s });
        *came = Came { count: came.now(now_s).saturating_add(1), at_s: now_s };
        if self.tidied_s != now_s {
            self.tidied_s = now_s;
            self.came.retain(|_, came| came.now(now_s) > 0);
        }
        self.waiting.push(Waiting { number, address, networks: networks(from), what });
        let goes = (self.waiting.len() > self.most).then(|| self.first_to_go(now_s)).flatten();
        let gone = goes.map(|place| self.waiting.remove(place));
        (number, gone.map(|gone| (gone.number, gone.what)))
    }

    /// Ends the wait of a connection. One that has shown a certificate or a token is no longer
    /// counted as an arrival.
    pub fn leave(&mut self, number: u64, has_shown: bool) {
        let Ok(place) = self.waiting.binary_search_by_key(&number, |waiting| waiting.number) else {
            return;
        };
        let address = self.waiting.remove(place).address;
        if let Some(came) = self.came.get_mut(&address).filter(|_| has_shown) {
            came.count = came.count.saturating_sub(1);
        }
    }

    /// Takes out all connections.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.waiting.drain(..).map(|waiting| waiting.what)
    }

    /// The place of the connection that goes first.
    fn first_to_go(&self, now_s: u64) -> Option<usize> {
        let mut among: Vec<usize> = (0..self.waiting.len()).collect();
        for level in 0..V4_BITS.len() {
            let network = |place: usize| self.waiting[place].networks[level];
            among = most(&among, network, |_, waiting| waiting)?;
        }
        let weight = |address: u128, waiting: u32| {
            let came = self.came.get(&address).map_or(0, |came| came.now(now_s));
            came.max(waiting) / FREE
        };
        among = most(&among, |place| self.waiting[place].address, weight)?;
        among.first().copied()
    }
}

/// The places of `among`, the oldest first, that have the key with the largest weight. `weight`
/// takes a key and the number of places that have it. Among keys of one weight, that of the oldest
/// place counts.
fn most(
    among: &[usize],
    of: impl Fn(usize) -> u128,
    weight: impl Fn(u128, u32) -> u32,
) -> Option<Vec<usize>> {
    // Number of places and the oldest.
    let mut found: BTreeMap<u128, (u32, usize)> = BTreeMap::new();
    for place in among {
        found.entry(of(*place)).or_insert((0, *place)).0 += 1;
    }
    let weighed =
        |(key, (places, oldest)): &(u128, (u32, usize))| (weight(*key, *places), Reverse(*oldest));
    let (heaviest, _) = found.into_iter().max_by_key(weighed)?;
    Some(among.iter().copied().filter(|place| of(*place) == heaviest).collect())
}

/// The networks of an address, the wider first: its leading bits.
fn networks(address: IpAddr) -> [u128; 2] {
    let bits = if address.is_ipv4() { V4_BITS } else { V6_BITS };
    bits.map(|bits| bits_of(address) & (u128::MAX << (128 - bits)))
}

/// The bits of an address. Those of IPv4 stand as in an address that is mapped into IPv6.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const MOST: usize = 256;

    /// An address of the flood: two networks of each kind take turns.
    fn flooding(number: u32) -> IpAddr {
        let (network, host) = (number % 4, number / 4 + 10);
        match network {
            0 | 1 => Ipv4Addr::new(10, 77, network as u8, host as u8).into(),
            _ => Ipv6Addr::new(0xfd77, 0, 0, network as u16, 0, 0, 0, host as u16).into(),
        }
    }

    /// Connects from `from` after `after` connections of a flood, of which `rate` come a second.
    /// Returns how many more come until it has to go; `None` if it still waits after `most`.
    fn lasts(
        admission: &mut Admission<u32>,
        from: IpAddr,
        (after, most, rate): (u32, u32, u32),
        address: impl Fn(u32) -> IpAddr,
    ) -> Option<u32> {
        let mut number = None;
        for come in 0..after + most {
            let now_s = u64::from(come / rate);
            if come == after {
                let (entered, gone) = admission.enter(now_s, from, u32::MAX);
                assert!(gone.is_none_or(|(_, what)| what != u32::MAX), "turned away at once");
                number = Some(entered);
            }
            let (_, gone) = admission.enter(now_s, address(come), come);
            if let Some((gone, _)) = gone
                && Some(gone) == number
            {
                return Some(come - after);
            }
        }
        None
    }

    proptest! {
        // Each case has thousands of connections.
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// A flood from two hundred addresses of four networks leaves an address of one of these
        /// networks its place for a quarter of a second, whatever its speed and order. At 2,000
        /// connections a second and more, each address comes often, and the place is kept for a
        /// second. That is long for a handshake.
        #[test]
        fn a_flood_of_many_addresses_keeps_nobody_out(
            rate in 100u32..6000,
            network in 0u32..4,
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let order: Vec<u32> = (0..3 * rate)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state % 200) as u32
                })
                .collect();
            let mut admission = Admission::new(MOST);
            // The flood does not have this address.
            let own = flooding(network + 4 * 60);
            let address = |come: u32| flooding(order[come as usize]);
            let most = if rate < 2000 { rate / 4 } else { rate };
            let gone = lasts(&mut admission, own, (2 * rate, most, rate), address);
            prop_assert_eq!(gone, None);
        }

        /// A slow flood makes no address heavy. Then the oldest connection goes, and places last.
        #[test]
        fn in_a_slow_flood_the_oldest_goes(rate in 1u32..1000, network in 0u32..4) {
            let mut admission = Admission::new(MOST);
            let own = flooding(network + 4 * 60);
            let gone = lasts(&mut admission, own, (5 * rate + 300, rate, rate), |come| {
                flooding(come % 200)
            });
            // Its network has a quarter of the places.
            prop_assert!(gone.is_none_or(|gone| gone >= MOST as u32 * 3 / 4), "{gone:?}");
        }

        #[test]
        fn there_are_never_more_than_may_be(
            come in prop::collection::vec((any::<u8>(), 0u64..20, any::<bool>()), 1..300),
        ) {
            let mut admission = Admission::new(5);
            let mut there = Vec::new();
            for (address, now_s, goes) in come {
                let from = Ipv4Addr::new(10, 0, address % 3, address).into();
                let (number, gone) = admission.enter(now_s, from, ());
                there.push(number);
                there.retain(|number| gone.is_none_or(|(gone, ())| gone != *number));
                if goes && !there.is_empty() {
                    admission.leave(there.remove(0), address.is_multiple_of(2));
                }
                prop_assert_eq!(
                    admission.waiting.iter().map(|waiting| waiting.number).collect::<Vec<_>>(),
                    there.clone()
                );
                prop_assert!(there.len() <= 5);
            }
        }
    }

    /// A host may have all addresses of its network. Together they have the places of one.
    #[test]
    fn many_networks_are_not_kept_out_by_all_addresses_of_one() {
        let mut admission = Admission::new(MOST);
        let any = |come: u32| {
            let address = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, (come >> 16) as u16, come as u16);
            IpAddr::from(address)
        };
        for own in ["fd00:0:0:2::1", "10.0.0.1"] {
            let own = own.parse().unwrap();
            assert_eq!(lasts(&mut admission, own, (10_000, 10_000, 5000), any), None);
        }
    }

    #[test]
    fn who_has_shown_what_it_should_has_not_come() {
        let mut admission = Admission::new(2);
        let [often, seldom] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        for round in 0..100 {
            let (number, gone) = admission.enter(0, often, round);
            assert_eq!(gone, None);
            admission.leave(number, true);
        }
        let (first, _) = admission.enter(0, often, 0);
        admission.enter(0, seldom, 1);
        // Neither weighs more than the other, so the oldest goes.
        assert_eq!(admission.enter(0, seldom, 2).1, Some((first, 0)));
        // An arrival that shows nothing is counted, and forgotten after some time.
        for now_s in [0, 60] {
            let mut admission = Admission::new(2);
            for round in 0..100 {
                let (number, _) = admission.enter(0, often, round);
                admission.leave(number, false);
            }
            let (old, _) = admission.enter(now_s, seldom, 0);
            let (young, _) = admission.enter(now_s, often, 1);
            let gone = admission.enter(now_s, seldom, 2).1.unwrap().0;
            assert_eq!(gone, if now_s == 0 { young } else { old });
        }
    }
}
