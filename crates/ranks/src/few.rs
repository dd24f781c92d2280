//! A map of which there are many, each mostly with a handful of entries: these lie in a row in the
//! map itself, and a message that looks one up touches no other memory.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;

/// Entries in the map itself.
const HERE: usize = 2;
/// Entries that are looked through one by one.
const FEW: usize = 8;

/// Entries by key, in no order.
#[derive(Clone, Debug)]
pub(crate) enum Few<K, V> {
    /// At most `FEW`.
    Row(SmallVec<[(K, V); HERE]>),
    /// It had more at a time.
    Hashed(FxHashMap<K, V>),
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Few::Row(SmallVec::new_const())
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Few<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Few::Row(row) => row.iter().find(|(known, _)| known == key).map(|(_, value)| value),
            Few::Hashed(hashed) => hashed.get(key),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self {
            Few::Row(row) => row.iter_mut().find(|(known, _)| known == key).map(|(_, it)| it),
            Few::Hashed(hashed) => hashed.get_mut(key),
        }
    }

    /// Adds an entry, or replaces that of this key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.get_mut(&key) {
            *known = value;
            return;
        }
        if let Few::Row(row) = self {
            if row.len() < FEW {
                return row.push((key, value));
            }
            *self = Few::Hashed(row.drain(..).collect());
        }
        if let Few::Hashed(hashed) = self {
            hashed.insert(key, value);
        }
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Few::Row(row) => {
                let at = row.iter().position(|(known, _)| known == key)?;
                Some(row.swap_remove(at).1)
            }
            Few::Hashed(hashed) => hashed.remove(key),
        }
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, V)> + '_ {
        let (row, hashed) = match self {
            Few::Row(row) => (Some(row), None),
            Few::Hashed(hashed) => (None, Some(hashed)),
        };
        let hashed = hashed.into_iter().flatten().map(|(key, value)| (*key, *value));
        row.into_iter().flatten().copied().chain(hashed)
    }
}

impl<K: Copy + Eq + Hash, V: Copy> FromIterator<(K, V)> for Few<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut few = Few::default();
        entries.into_iter().for_each(|(key, value)| few.insert(key, value));
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The same as a map of the standard library, with few entries and with many.
        #[test]
        fn it_is_a_map(
            steps in proptest::collection::vec((0u8..3, 0u32..20, any::<u32>()), 0..200),
        ) {
            let (mut few, mut map) = (Few::default(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(few.remove(&key), map.remove(&key)),
                    _ => {
                        few.insert(key, value);
                        map.insert(key, value);
                    }
                }
                prop_assert_eq!(few.get(&key), map.get(&key));
                prop_assert_eq!(few.get_mut(&key), map.get_mut(&key));
            }
            let all: BTreeMap<u32, u32> = few.iter().collect();
            prop_assert_eq!(all, map);
        }
    }
}
