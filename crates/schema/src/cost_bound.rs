//! A bound on the work of checking a value, by its depth.
//!
//! If several paths through a schema lead into the same part of a value, and again from there, the
//! work multiplies with every level. So the deepest value that can be checked is computed from the
//! schema beforehand.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bundle::Bundle;
use crate::keywords::{About, inner};

/// How often one part of a value may be checked.
const CHECKS_MAX: u64 = 10_000;

/// Levels that are examined, slightly more than a value can have. Work that grows more slowly than
/// [`CHECKS_MAX`] in so many levels has no limit.
const LEVELS: usize = 1_300;

/// The schemas about parts of a value: under one name, or under any name.
type Parts = Vec<(Option<String>, usize)>;

/// Returns the depth of the deepest value that can be checked, or `None` without a limit. `edges`
/// leads to the schemas about the same value, and in `order` every schema follows those.
pub(crate) fn deepest(
    bundle: &Bundle,
    numbers: &BTreeMap<&str, usize>,
    edges: &[Vec<usize>],
    order: &[usize],
) -> Option<usize> {
    let parts = parts(bundle, numbers, edges.len());
    // A value without parts is checked once. Each round adds one level to the value.
    let mut checks = vec![1_u64; edges.len()];
    for depth in 0..LEVELS {
        let mut named: Vec<BTreeMap<&str, u64>> = vec![BTreeMap::new(); edges.len()];
        let mut anywhere = vec![0_u64; edges.len()];
        let mut next = vec![0_u64; edges.len()];
        for &schema in order {
            let mut own: BTreeMap<&str, u64> = BTreeMap::new();
            let mut wide = 0_u64;
            for (name, part) in &parts[schema] {
                let place = match name {
                    Some(name) => own.entry(name).or_default(),
                    None => &mut wide,
                };
                *place = place.saturating_add(checks[*part]);
            }
            for &same in &edges[schema] {
                wide = wide.saturating_add(anywhere[same]);
                for (name, count) in &named[same] {
                    let place = own.entry(name).or_default();
                    *place = place.saturating_add(*count);
                }
            }
            // Names exclude each other, because a part has one name; schemas for any name apply in
            // addition.
            let most = own.values().copied().max().unwrap_or(0);
            next[schema] = most.saturating_add(wide).max(1);
            (named[schema], anywhere[schema]) = (own, wide);
        }
        if next.iter().any(|count| *count > CHECKS_MAX) {
            return Some(depth);
        }
        // The counts no longer grow, so deeper values are no more work per part.
        if next == checks {
            return None;
        }
        checks = next;
    }
    None
}

fn parts(bundle: &Bundle, numbers: &BTreeMap<&str, usize>, count: usize) -> Vec<Parts> {
    let mut parts: Vec<Parts> = vec![Vec::new(); count];
    for document in &bundle.documents {
        for at in document.index.schemas.keys() {
            let Some(Value::Object(schema)) = document.value.pointer(at) else { continue };
            let from = format!("{}{at}", document.place);
            let Some(&number) = numbers.get(from.as_str()) else { continue };
            for inner in inner(&from, schema, bundle.dialect) {
                let way = inner.path.strip_prefix(&from).unwrap_or_default();
                let keyword = way.split('/').nth(1).unwrap_or_default();
                let is_idle =
                    // These check no part of a value: definitions only when they are referred to,
                    // and names are strings without parts.
                    matches!(keyword, "$defs" | "definitions" | "contentSchema" | "propertyNames");
                if inner.about == About::Same || is_idle {
                    continue;
                }
                let name = matches!(keyword, "properties" | "prefixItems")
                    .then(|| way.rsplit('/').next().unwrap_or_default().to_owned());
                parts[number].extend(numbers.get(inner.path.as_str()).map(|part| (name, *part)));
            }
        }
    }
    parts
}
