//! Conditions: `exists`, `eq`, `ne`, `gt`, `lt` on a path.
//!
//! A path without a value makes every test false except `ne`. `exists` is false for null, too.
//! Numbers are compared exactly by value: 1 equals 1.0, and no integer is rounded through a float.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::path::{Namespaces, Path};

#[cfg(test)]
mod tests;

/// A test on the value of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub path: Path,
    pub test: Test,
}

/// The test of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `exists`: the value is present and not null.
    Exists,
    /// `eq`: the same JSON value.
    Equals(Value),
    /// `ne`: a different value, or no value.
    Differs(Value),
    /// `gt`: a number above this one.
    Above(Number),
    /// `lt`: a number below this one.
    Below(Number),
}

impl Test {
    /// The operators as a document spells them.
    pub const OPERATORS: [&'static str; 5] = ["exists", "eq", "ne", "gt", "lt"];
}

impl Condition {
    /// Returns whether the condition is true for these namespaces.
    pub fn holds(&self, names: &dyn Namespaces) -> bool {
        let found = self.path.lookup(names);
        let found = found.as_deref();
        let is = |wanted, bound: &Number| match found {
            Some(Value::Number(number)) => compare(number, bound) == wanted,
            _ => false,
        };
        match &self.test {
            Test::Exists => found.is_some_and(|value| !value.is_null()),
            Test::Equals(value) => found.is_some_and(|found| same(found, value)),
            Test::Differs(value) => !found.is_some_and(|found| same(found, value)),
            Test::Above(bound) => is(Ordering::Greater, bound),
            Test::Below(bound) => is(Ordering::Less, bound),
        }
    }
}

/// Returns whether two JSON values are equal, comparing numbers by value at every depth.
pub fn same(one: &Value, other: &Value) -> bool {
    // A work list instead of recursion: the values come from outside and may be 1,200 levels deep.
    let mut pairs = vec![(one, other)];
    while let Some(pair) = pairs.pop() {
        let equal = match pair {
            (Value::Array(a), Value::Array(b)) => {
                pairs.extend(a.iter().zip(b));
                a.len() == b.len()
            }
            (Value::Object(a), Value::Object(b)) => {
                // The keys of both are sorted, because `Map` is a BTreeMap: pairs line up.
                let keys_agree = a.len() == b.len() && a.keys().eq(b.keys());
                pairs.extend(a.values().zip(b.values()));
                keys_agree
            }
            (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Null, Value::Null) => true,
            _ => false,
        };
        if !equal {
            return false;
        }
    }
    true
}

/// Compares two JSON numbers without rounding.
pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => whole_with_float(a, float(other)),
        (None, Some(b)) => whole_with_float(b, float(one)).reverse(),
        (None, None) => float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal),
    }
}

// `as_u64` first: values above `i64::MAX` are integers too, and i128 contains both ranges.
fn whole(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

// JSON has no infinity and no NaN, so every number is a finite float.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn whole_with_float(whole: i128, float: f64) -> Ordering {
    /// A bound above every 64-bit integer; a float below it fits into an i128.
    const BEYOND: f64 = 1e30;
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float <= -BEYOND {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole float below 1e30 fits exactly")]
    let floor = float.floor() as i128;
    // Equal to the floor but with a fraction: the integer is the smaller one.
    let fraction = float > float.floor();
    whole.cmp(&floor).then(if fraction { Ordering::Less } else { Ordering::Equal })
}
