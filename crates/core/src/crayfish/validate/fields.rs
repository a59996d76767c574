//! Reads the fields of a JSON object and reports problems with them.
//!
//! An absent field and a wrong one both read as `None`: one reported problem already rejects the
//! whole document, so the readers need not distinguish them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;

/// An object that is being read.
pub(in crate::crayfish) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    /// Its name in messages, with an article.
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(in crate::crayfish) fn open(
        report: &mut Report,
        value: &'a Value,
        what: &'static str,
    ) -> Option<Self> {
        let Value::Object(fields) = value else {
            report.add(ProblemCode::WrongType, format!("{what} is an object, not {}", kind(value)));
            return None;
        };
        Some(Self::from(fields, what))
    }

    pub(in crate::crayfish) fn from(fields: &'a Map<String, Value>, what: &'static str) -> Self {
        Self { fields, what }
    }

    /// Returns the object under a more precise name, and reports every unknown key.
    pub(in crate::crayfish) fn known(
        &self,
        report: &mut Report,
        what: &'static str,
        keys: &[&str],
    ) -> Self {
        for key in self.fields.keys().filter(|key| !keys.contains(&key.as_str())) {
            // Only keys that are not used yet are suggested: the author cannot mean one that is
            // present.
            let absent = keys.iter().copied().filter(|key| !self.fields.contains_key(*key));
            let meant = report.meant(key, absent);
            let message = format!("{what} has no key {}{meant}", quoted(key));
            report.add_at(key, ProblemCode::UnknownKey, message);
        }
        Self { fields: self.fields, what }
    }

    pub(in crate::crayfish) fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key)
    }

    pub(in crate::crayfish) fn required(
        &self,
        report: &mut Report,
        key: &str,
    ) -> Option<&'a Value> {
        let value = self.get(key);
        if value.is_none() {
            report.add(ProblemCode::MissingKey, format!("{} needs the key `{key}`", self.what));
        }
        value
    }

    pub(in crate::crayfish) fn required_string(
        &self,
        report: &mut Report,
        key: &str,
    ) -> Option<&'a str> {
        self.required(report, key)?;
        self.string(report, key)
    }

    pub(in crate::crayfish) fn string(&self, report: &mut Report, key: &str) -> Option<&'a str> {
        self.typed(report, key, "a string", Value::as_str)
    }

    pub(in crate::crayfish) fn boolean(&self, report: &mut Report, key: &str) -> Option<bool> {
        self.typed(report, key, "a boolean", Value::as_bool)
    }

    pub(in crate::crayfish) fn array(&self, report: &mut Report, key: &str) -> Option<&'a [Value]> {
        self.typed(report, key, "an array", |value| value.as_array().map(Vec::as_slice))
    }

    pub(in crate::crayfish) fn object(
        &self,
        report: &mut Report,
        key: &str,
    ) -> Option<&'a Map<String, Value>> {
        self.typed(report, key, "an object", Value::as_object)
    }

    pub(in crate::crayfish) fn whole(
        &self,
        report: &mut Report,
        key: &str,
        range: &RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.get(key)?;
        match whole(value) {
            Some(n) if range.contains(&n) => Some(n),
            _ => {
                // A number out of range is another mistake than a text, and has another code.
                let number = value.as_number().map(ToString::to_string);
                let number_like = number.is_some();
                let found = number.unwrap_or_else(|| kind(value).to_owned());
                let (low, high) = (range.start(), range.end());
                let message =
                    format!("a whole number from {low} to {high} is expected, not {found}");
                let code =
                    if number_like { ProblemCode::OutOfRange } else { ProblemCode::WrongType };
                report.add_at(key, code, message);
                None
            }
        }
    }

    /// Returns a string that must be one of `names`.
    pub(in crate::crayfish) fn choice(
        &self,
        report: &mut Report,
        key: &str,
        names: &[&'static str],
    ) -> Option<&'static str> {
        let word = self.string(report, key)?;
        let known = names.iter().find(|name| **name == word).copied();
        if known.is_none() {
            let meant = report.meant(word, names.iter().copied());
            let word = quoted(word);
            let message = match names {
                [only] => format!("must be `{only}`, not {word}"),
                several => {
                    let there_are: Vec<String> =
                        several.iter().map(|name| format!("`{name}`")).collect();
                    format!("{word} is not one of {}{meant}", there_are.join(", "))
                }
            };
            report.add_at(key, ProblemCode::UnknownWord, message);
        }
        known
    }

    /// Returns a value that can be a JSON Schema by its type; its content is not checked.
    pub(in crate::crayfish) fn schema(&self, report: &mut Report, key: &str) -> Option<&'a Value> {
        self.typed(report, key, "a JSON Schema (an object or a boolean)", |value| {
            (value.is_object() || value.is_boolean()).then_some(value)
        })
    }

    fn typed<T>(
        &self,
        report: &mut Report,
        key: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let typed = read(value);
        if typed.is_none() {
            report.add_at(key, ProblemCode::WrongType, expected(what, value));
        }
        typed
    }
}

/// Returns the message for a value of the wrong type.
pub(in crate::crayfish) fn expected(what: &str, found: &Value) -> String {
    format!("{what} is expected, not {}", kind(found))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the problem of a path that is not inside the workspace.
// Only the text is checked. Links are checked when the file is opened, because they can change.
pub(in crate::crayfish) fn leaving(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("a path cannot be empty")
    } else if path.starts_with('/') {
        Some("a path must be relative to the workspace, without a leading `/`")
    } else if path.split('/').any(|part| part == "..") {
        Some("a path must stay inside the workspace, without `..`")
    } else {
        None
    }
}

/// Returns a number without a fraction, also if it is spelled `3.0`.
fn whole(value: &Value) -> Option<u64> {
    /// 2^53: below it, every whole float is exactly one integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_number()?;
    number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|f| f.fract() == 0.0 && (0.0..EXACT).contains(f))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole float in this range is an integer"
        )]
        let whole = float as u64;
        Some(whole)
    })
}
