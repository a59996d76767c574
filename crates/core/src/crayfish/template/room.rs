//! The size budget of one rendering, counted before anything is copied.

use serde_json::Value;

use crate::crayfish::reading::LEVELS;

/// The most bytes that one rendering of a step may produce: 16 MiB.
pub const LIMIT: usize = 16 * 1024 * 1024;

/// The error for a rendering that exceeds its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    #[error("with its expressions filled in it is larger than {mib} MiB", mib = LIMIT >> 20)]
    Bytes,
    #[error("with its expressions filled in it has more than {LEVELS} levels of JSON")]
    Levels,
}

/// The bytes that are left in the budget.
#[derive(Debug)]
pub(in crate::crayfish) struct Room(usize);

impl Room {
    pub(in crate::crayfish) fn new() -> Self {
        Self(LIMIT)
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Overflow> {
        self.0 = self.0.checked_sub(bytes).ok_or(Overflow::Bytes)?;
        Ok(())
    }

    /// Takes room for a value at depth `outer`. Escapes of its strings are not counted: they can
    /// make the text at most six times as long, so the result stays bounded.
    pub(super) fn take_value(&mut self, value: &Value, outer: usize) -> Result<(), Overflow> {
        // A work list instead of recursion, because results may be nested up to the limit.
        let mut waiting = vec![(value, outer)];
        while let Some((value, level)) = waiting.pop() {
            if level > LEVELS {
                return Err(Overflow::Levels);
            }
            match value {
                // Each value counts one byte more than its text, for the comma or bracket behind
                // it.
                Value::Null | Value::Bool(true) => self.take(5)?,
                Value::Bool(false) => self.take(6)?,
                Value::Number(number) => self.take(number.to_string().len() + 1)?,
                Value::String(text) => self.take(text.len() + 3)?,
                Value::Array(items) => {
                    self.take(3)?;
                    waiting.extend(items.iter().map(|item| (item, level + 1)));
                }
                Value::Object(fields) => {
                    self.take(3 + fields.keys().map(|key| key.len() + 3).sum::<usize>())?;
                    waiting.extend(fields.values().map(|field| (field, level + 1)));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn room_is_taken_until_none_is_left() {
        let mut room = Room(5);
        assert_eq!(room.take(3), Ok(()));
        assert_eq!(room.take(3), Err(Overflow::Bytes));
        assert_eq!(room.take(2), Ok(()));
        assert_eq!(room.take(1), Err(Overflow::Bytes));
        assert!(Overflow::Bytes.to_string().ends_with("larger than 16 MiB"));
    }

    #[test]
    fn value_takes_its_text_plus_commas() {
        for (value, text) in [
            (json!(null), "null,"),
            (json!(true), "true,"),
            (json!(false), "false,"),
            (json!(-12.5), "-12.5,"),
            (json!("abc"), "\"abc\","),
            (json!([]), "[],"),
            (json!(["a", [1]]), "[\"a\",[1,],],"),
            (json!({}), "{},"),
            (json!({ "ab": 1, "c": { "d": null } }), "{\"ab\":1,\"c\":{\"d\":null,},},"),
        ] {
            assert_eq!(Room(text.len()).take_value(&value, 0), Ok(()), "{value}");
            let less = Room(text.len() - 1).take_value(&value, 0);
            assert_eq!(less, Err(Overflow::Bytes), "{value}");
        }
    }

    #[test]
    fn value_depth_is_limited() {
        let check = |value: Value, outer: usize, expected: Result<(), Overflow>| {
            assert_eq!(Room::new().take_value(&value, outer), expected, "{value} {outer}");
        };
        check(json!(1), LEVELS, Ok(()));
        check(json!(1), LEVELS + 1, Err(Overflow::Levels));
        for one_more in [json!([1]), json!({ "a": 1 })] {
            check(one_more.clone(), LEVELS - 1, Ok(()));
            check(one_more, LEVELS, Err(Overflow::Levels));
        }
    }
}
