//! Paths and templates, implemented a second time.

use serde_json::Value as Json;

use super::{Interpreter, Scope};

impl Interpreter<'_> {
    /// Returns the value at the path of a condition or a list.
    pub(super) fn path(&self, path: &str, scope: &Scope) -> Option<Json> {
        self.named(path.strip_prefix("$.")?, scope)
    }

    /// Returns the value of an expression.
    fn value(&self, path: &str, scope: &Scope) -> Option<Json> {
        self.named(path, scope).or_else(|| self.missing_is_null.then_some(Json::Null))
    }

    /// Returns the value of `vars.x[0].y`.
    fn named(&self, path: &str, scope: &Scope) -> Option<Json> {
        let (root, rest) = path.split_once('.')?;
        let names = match root {
            "vars" => &self.vars,
            "results" => &scope.results,
            "locals" => &scope.locals,
            _ => return None,
        };
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        follow(names.get(&rest[..end])?, &rest[end..]).cloned()
    }

    /// Fills in the expressions of a text; `None` if one of them has no value.
    pub(super) fn fill(&self, text: &str, scope: &Scope) -> Option<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            // Filled text is never read again, so a value that looks like an expression stays as it
            // is.
            if let Some((path, after)) = expression(rest) {
                match self.value(path, scope)? {
                    // Null is an empty text; only an unknown name is a failure.
                    Json::Null => {}
                    Json::String(text) => filled.push_str(&text),
                    other => filled.push_str(&other.to_string()),
                }
                rest = after;
            } else {
                let next = rest.chars().next().map_or(0, char::len_utf8);
                filled.push_str(&rest[..next]);
                rest = &rest[next..];
            }
        }
        Some(filled)
    }

    /// Fills in every string of a value; an expression that is a whole string keeps its type.
    pub(super) fn shape(&self, value: &Json, scope: &Scope) -> Option<Json> {
        Some(match value {
            Json::String(text) => match expression(text) {
                Some((path, "")) => self.value(path, scope)?,
                _ => Json::String(self.fill(text, scope)?),
            },
            Json::Array(items) => {
                items.iter().map(|item| self.shape(item, scope)).collect::<Option<_>>()?
            }
            Json::Object(fields) => {
                let filled =
                    |(key, field): (&String, &Json)| Some((key.clone(), self.shape(field, scope)?));
                Json::Object(fields.iter().map(filled).collect::<Option<_>>()?)
            }
            other => other.clone(),
        })
    }
}

/// Follows `.key` and `[n]` from a value.
pub(super) fn follow<'v>(value: &'v Json, path: &str) -> Option<&'v Json> {
    if path.is_empty() {
        return Some(value);
    }
    let end = path[1..].find(['.', '[']).map_or(path.len(), |end| end + 1);
    let (segment, rest) = path.split_at(end);
    let inside = match segment.strip_prefix('.') {
        Some(key) => value.as_object()?.get(key)?,
        None => {
            let number = segment.strip_prefix('[')?.strip_suffix(']')?;
            value.as_array()?.get(number.parse::<usize>().ok()?)?
        }
    };
    follow(inside, rest)
}

/// Splits `{{ path }}` from the start of a text.
fn expression(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?;
    let (inside, after) = inside.split_once("}}")?;
    let path = inside.trim_matches(' ');
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('-')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    let is_segment = |segment: &str| {
        let mut parts = segment.split('[');
        let numbers = |part: &str| {
            let digits = part.strip_suffix(']');
            digits.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
        };
        parts.next().is_some_and(is_name) && parts.all(numbers)
    };
    let known = ["vars.", "results.", "locals."].iter().any(|root| path.starts_with(root));
    (known && path.split('.').all(is_segment)).then_some((path, after))
}
