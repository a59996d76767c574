//! A map for few entries: a sorted vector.
//!
//! A run may contain thousands of such maps, and one node of a [`BTreeMap`] alone has room for
//! eleven entries.
//!
//! `litemap::LiteMap` has the same form in memory, but in JSON it writes an empty map as `[]` and
//! also reads lists of pairs. Journals and the state file need `{}`.
//!
//! [`BTreeMap`]: std::collections::BTreeMap

use std::borrow::Borrow;
use std::iter::Map;
use std::marker::PhantomData;
use std::{fmt, slice};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A map of pairs, sorted by key, without repeated keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Few<K, V>(Vec<(K, V)>);

impl<K: Ord, V> Few<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.0.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        Some(&self.0[place].1)
    }
}

impl<K, V> Few<K, V> {
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> Iter<'_, K, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }
}

/// An iterator over all pairs, ordered by key.
pub type Iter<'f, K, V> = Map<slice::Iter<'f, (K, V)>, fn(&'f (K, V)) -> (&'f K, &'f V)>;

impl<K, V> IntoIterator for Few<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'f, K, V> IntoIterator for &'f Few<K, V> {
    type Item = (&'f K, &'f V);
    type IntoIter = Iter<'f, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for Few<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The later of two values for one key counts, as in any map.
impl<K: Ord, V> FromIterator<(K, V)> for Few<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        // A stable sort: of equal keys, the later pair must stay behind the earlier one.
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                // `dedup_by` drops its first argument, which is the later pair: move its value
                // over.
                std::mem::swap(&mut later.1, &mut earlier.1);
            }
            same
        });
        // The map never grows again, and there may be thousands.
        pairs.shrink_to_fit();
        Self(pairs)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Few<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Few<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Few<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

struct Pairs<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Pairs<K, V> {
    type Value = Few<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Few<K, V>, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn few_behaves_like_a_map() {
        let texts = ["{}", r#"{"b":1}"#, r#"{"c":1,"a":2,"b":3,"a":4}"#, r#"{"a":1,"a":2,"a":3}"#];
        for text in texts {
            let few: Few<String, u32> = serde_json::from_str(text).unwrap();
            let map: BTreeMap<String, u32> = serde_json::from_str(text).unwrap();
            assert!(few.iter().eq(&map) && few.keys().eq(map.keys()), "{few:?}");
            assert_eq!((few.len(), few.is_empty()), (map.len(), map.is_empty()));
            assert_eq!(format!("{few:?}"), format!("{map:?}"));
            assert_eq!(serde_json::to_string(&few).unwrap(), serde_json::to_string(&map).unwrap());
            for key in ["a", "b", "c", "d"] {
                assert_eq!(few.get(key), map.get(key));
            }
        }
        let error = serde_json::from_str::<Few<String, u32>>("[]").unwrap_err();
        assert!(error.to_string().contains("expected a map"), "{error}");
    }
}
