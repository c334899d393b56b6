//! Which number stands for a name? Names are kept once, everything else holds numbers.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// A small and fast hash for short keys of a trusted file: FNV-1a over words of eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A map with the fast hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// A number for each name, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: FastMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    // Most names follow themselves: one comparison saves a hash.
    last: u32,
}

impl Names {
    /// The number of this name, a new one if it is new.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if self.names.get(self.last as usize).is_some_and(|last| **last == *name) {
            return self.last;
        }
        self.last = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                // A history with 2^32 names does not fit into memory; were it there, names would be shared,
                // which hides findings and invents none.
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(name.into());
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

/// Small numbers for large ones: recorders number attempts densely, other tools may do as they like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    dense: Vec<u32>,
    sparse: FastMap<u64, u32>,
}

impl Numbers {
    const NONE: u32 = u32::MAX;

    /// Remembers `number` for `id`; the last one counts.
    pub(crate) fn insert(&mut self, id: u64, number: u32) {
        // At most four times as long as what is in it.
        let bound = 4 * u64::from(number) + 1024;
        match usize::try_from(id) {
            Ok(place) if id < bound => {
                if self.dense.len() <= place {
                    self.dense.resize(place + 1, Self::NONE);
                }
                self.dense[place] = number;
                self.sparse.remove(&id);
            }
            _ => {
                self.sparse.insert(id, number);
            }
        }
    }

    /// The number of `id`.
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        if !self.sparse.is_empty()
            && let Some(number) = self.sparse.get(&id)
        {
            return Some(*number);
        }
        let place = usize::try_from(id).ok()?;
        self.dense.get(place).copied().filter(|number| *number != Self::NONE)
    }
}

/// A number that stands for an owner's identity. Two that share one are taken for one owner, which hides a
/// finding and invents none.
pub(crate) fn identity(owner: &str) -> u64 {
    let mut hasher = WordHasher::default();
    owner.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_dense_or_not() {
        let mut numbers = Numbers::default();
        for (id, number) in [(0, 0), (7, 1), (u64::MAX, 2), (1 << 40, 3), (7, 4)] {
            numbers.insert(id, number);
        }
        let found = [0, 7, u64::MAX, 1 << 40, 8].map(|id| numbers.get(id));
        assert_eq!(found, [Some(0), Some(4), Some(2), Some(3), None]);
    }

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        let numbers = ["a", "b", "a", "b", "a-long-name-indeed"].map(|name| names.number(name));
        assert_eq!(numbers, [0, 1, 0, 1, 2]);
        assert_eq!(names.name(2), "a-long-name-indeed");
    }
}
