//! Serializes a map as a list of pairs, because a key that is not a string cannot be a key in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
    map: &BTreeMap<K, V>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(map)
}

pub(crate) fn deserialize<'d, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    K: Deserialize<'d> + Ord,
    V: Deserialize<'d>,
    D: Deserializer<'d>,
{
    Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
}
