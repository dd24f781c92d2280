//! Finds records by what is hashed of them, in one cache line that can be asked for before it is
//! needed: where hosts have hundreds of thousands of queue pairs, each look would wait for memory.

use crate::records::{Records, index, room_for};

index!(
    /// A place in the table.
    PlaceIndex
);

/// Places of the smallest table.
const FEWEST: usize = 16;

/// Of a place: the hash of the record, above its number.
const FREE: u64 = u64::MAX;

/// Numbers of records by hash: open addressing, the next free place after the one a hash names.
pub(crate) struct Finder {
    /// A power of two of them, at most three quarters taken.
    places: Records<PlaceIndex, u64>,
    taken: usize,
}

impl Default for Finder {
    fn default() -> Self {
        Finder { places: free_places(FEWEST), taken: 0 }
    }
}

impl Finder {
    #[inline(always)]
    fn home(&self, hash: u32) -> PlaceIndex {
        PlaceIndex(hash & (self.places.len() as u32 - 1))
    }

    #[inline(always)]
    fn after(&self, place: PlaceIndex) -> PlaceIndex {
        self.home(place.0.wrapping_add(1))
    }

    /// How many places lie from one to another, the end of the table leading to its beginning.
    fn distance(&self, from: PlaceIndex, to: PlaceIndex) -> u32 {
        self.home(to.0.wrapping_sub(from.0)).0
    }

    /// The number of a record with this hash that is the `same` as what is looked for.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.home(hash);
        loop {
            let entry = self.places[place];
            if entry == FREE {
                return None;
            }
            if (entry >> 32) as u32 == hash && same(entry as u32) {
                return Some(entry as u32);
            }
            place = self.after(place);
        }
    }

    /// Adds a record that it does not find. Its number is less than the largest.
    #[inline(always)]
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        if (self.taken + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        self.taken += 1;
        self.put(u64::from(hash) << 32 | u64::from(number));
    }

    #[inline(always)]
    fn put(&mut self, entry: u64) {
        let mut place = self.home((entry >> 32) as u32);
        while self.places[place] != FREE {
            place = self.after(place);
        }
        self.places[place] = entry;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let twice = free_places(self.places.len() * 2);
        let places = std::mem::replace(&mut self.places, twice);
        places.iter().filter(|entry| **entry != FREE).for_each(|entry| self.put(*entry));
    }

    /// Lets go of a record that it finds.
    pub(crate) fn remove(&mut self, hash: u32, number: u32) {
        let entry = u64::from(hash) << 32 | u64::from(number);
        let mut hole = self.home(hash);
        while self.places[hole] != entry {
            assert!(self.places[hole] != FREE, "record {number} is not in the table");
            hole = self.after(hole);
        }
        self.taken -= 1;
        // Those that had to go on from the hole, or from before it, move up.
        let mut place = self.after(hole);
        while self.places[place] != FREE {
            let home = self.home((self.places[place] >> 32) as u32);
            if self.distance(home, place) >= self.distance(hole, place) {
                self.places[hole] = self.places[place];
                hole = place;
            }
            place = self.after(place);
        }
        self.places[hole] = FREE;
    }

    /// The number that stands where a record with this hash is looked for first: often its own, and
    /// any if there is none.
    #[inline(always)]
    pub(crate) fn first(&self, hash: u32) -> u32 {
        self.places[self.home(hash)] as u32
    }

    /// Asks for the place where a record with this hash would be found.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        self.places.prefetch::<1>(self.home(hash));
    }
}

fn free_places(places: usize) -> Records<PlaceIndex, u64> {
    let mut all = room_for(places);
    all.resize(places, FREE);
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;
    use std::collections::BTreeMap;

    /// Records come and go; those there are found, and nothing else. Few hashes, so that many
    /// records share one, at the end of the table, so that they are found at its beginning too.
    #[test]
    fn what_is_there_is_found_and_nothing_else() {
        let mut draws = Stream::new(1, "finder", 0);
        for hashes in [1, 7, 40, 100_000] {
            let (mut finder, mut known) = (Finder::default(), BTreeMap::new());
            for number in 0..3000 {
                let hash = u32::MAX - draws.below(hashes) as u32;
                finder.insert(hash, number);
                known.insert(number, hash);
                let other = draws.below(u64::from(number) + 1) as u32;
                let gone = known.remove(&other);
                if let Some(hash) = gone {
                    finder.remove(hash, other);
                    assert_eq!(finder.find(hash, |found| found == other), None);
                }
                if number % 100 == 0 {
                    for (number, hash) in &known {
                        assert_eq!(finder.find(*hash, |found| found == *number), Some(*number));
                    }
                }
            }
            assert_eq!(finder.taken, known.len());
            assert_eq!(finder.places.iter().filter(|entry| **entry != FREE).count(), known.len());
        }
    }

    #[test]
    #[should_panic(expected = "record 3 is not in the table")]
    fn what_is_not_there_cannot_go() {
        let mut finder = Finder::default();
        finder.insert(1, 2);
        finder.remove(1, 3);
    }
}
