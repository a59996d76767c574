//! Conditions: `exists`, `eq`, `ne`, `gt`, `lt` on a path.
//!
//! A path that leads nowhere makes all of them false, but for `ne`. Null does not exist. Numbers
//! are compared by value and exactly: 1 equals 1.0, and no integer is rounded on the way.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::path::{Namespaces, Path};

#[cfg(test)]
mod tests;

/// Something that is true or false of what a step can see.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What is looked at.
    pub path: Path,
    /// What must be true of it.
    pub test: Test,
}

/// What a condition asks of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `exists`: it is there, and not null.
    Exists,
    /// `eq`: it is the same JSON value.
    Equals(Value),
    /// `ne`: it is another one, or none.
    Differs(Value),
    /// `gt`: it is a number above this one.
    Above(Number),
    /// `lt`: it is a number below this one.
    Below(Number),
}

impl Test {
    /// The operators as they are written.
    pub const OPERATORS: [&'static str; 5] = ["exists", "eq", "ne", "gt", "lt"];
}

impl Condition {
    /// Whether it is true of what can be seen.
    pub fn holds(&self, names: &dyn Namespaces) -> bool {
        let found = self.path.lookup(names);
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

/// Whether two JSON values are the same, numbers by value, at every depth.
pub fn same(one: &Value, other: &Value) -> bool {
    let mut pairs = vec![(one, other)];
    while let Some(pair) = pairs.pop() {
        let equal = match pair {
            (Value::Array(a), Value::Array(b)) => {
                pairs.extend(a.iter().zip(b));
                a.len() == b.len()
            }
            (Value::Object(a), Value::Object(b)) => {
                // Both are sorted by key.
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

/// Which of two JSON numbers is larger, exactly.
pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => whole_with_float(a, float(other)),
        (None, Some(b)) => whole_with_float(b, float(one)).reverse(),
        (None, None) => float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal),
    }
}

/// The number as an integer, when it is written as one.
fn whole(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

/// JSON knows no infinity and no NaN, so this is a finite number.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn whole_with_float(whole: i128, float: f64) -> Ordering {
    /// Every 64-bit integer is below it, and every float below it fits into 128 bits.
    const BEYOND: f64 = 1e30;
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float <= -BEYOND {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole float below 1e30 fits exactly")]
    let floor = float.floor() as i128;
    let fraction = float > float.floor();
    whole.cmp(&floor).then(if fraction { Ordering::Less } else { Ordering::Equal })
}
