//! The byte offsets of values in a JSON text, for messages that point into a file.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::push_pointer_token;

/// Returns the offset at which the value of each pointer begins, or the offset of the nearest
/// value around it. The text must be JSON; one pass finds all.
pub fn places<'p>(text: &str, pointers: impl IntoIterator<Item = &'p str>) -> Vec<usize> {
    let pointers: Vec<&str> = pointers.into_iter().collect();
    // A pointer may name a key that is missing: then the value around it is shown.
    let wanted = pointers.iter().flat_map(|pointer| with_parents(pointer)).collect();
    let found = Search { text, at: 0, wanted, found: BTreeMap::new() }.run();
    let nearest = |pointer: &&str| {
        let mut around = with_parents(pointer).filter_map(|pointer| found.get(pointer));
        around.next().copied().unwrap_or_default()
    };
    pointers.iter().map(nearest).collect()
}

/// Iterates over the pointer and those of the values around it, innermost first.
fn with_parents(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |inner| inner.rsplit_once('/').map(|(outer, _)| outer))
}

struct Search<'t, 'p> {
    text: &'t str,
    at: usize,
    wanted: BTreeSet<&'p str>,
    found: BTreeMap<&'p str, usize>,
}

/// A container that is not closed yet, and the length of the pointer that leads to it.
enum Open {
    Array { pointer: usize, next: usize },
    Object { pointer: usize },
}

impl<'p> Search<'_, 'p> {
    fn run(mut self) -> BTreeMap<&'p str, usize> {
        let (mut pointer, mut open) = (String::new(), Vec::new());
        // The empty pointer names the whole document.
        self.meet(&pointer);
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            match byte {
                b'[' | b'{' => {
                    let length = pointer.len();
                    open.push(match byte {
                        b'[' => Open::Array { pointer: length, next: 0 },
                        _ => Open::Object { pointer: length },
                    });
                    self.at += 1;
                    self.enter(&mut pointer, &mut open);
                }
                b',' => {
                    self.at += 1;
                    self.enter(&mut pointer, &mut open);
                }
                b']' | b'}' => {
                    self.at += 1;
                    open.pop();
                }
                b'"' => self.string(),
                _ => self.at += 1,
            }
        }
        self.found
    }

    /// Moves to the next value of the innermost container, if it has one.
    fn enter(&mut self, pointer: &mut String, open: &mut [Open]) {
        self.space();
        let byte = self.text.as_bytes().get(self.at);
        match open.last_mut() {
            Some(Open::Array { pointer: length, next }) if byte != Some(&b']') => {
                pointer.truncate(*length);
                push_pointer_token(pointer, &next.to_string());
                *next += 1;
            }
            Some(Open::Object { pointer: length }) if byte == Some(&b'"') => {
                pointer.truncate(*length);
                let start = self.at;
                self.string();
                // Escapes in a key must be resolved, because pointers have the plain key.
                let key: String =
                    serde_json::from_str(&self.text[start..self.at]).unwrap_or_default();
                push_pointer_token(pointer, &key);
                self.space();
                // Skip the colon.
                self.at += 1;
                self.space();
            }
            Some(Open::Array { .. } | Open::Object { .. }) | None => return,
        }
        self.meet(pointer);
    }

    /// Records the offset if the value that begins here is wanted.
    fn meet(&mut self, pointer: &str) {
        self.space();
        if let Some(wanted) = self.wanted.get(pointer) {
            self.found.insert(wanted, self.at);
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            self.at += match byte {
                b'\\' => 2,
                b'"' => break,
                _ => 1,
            };
        }
        // A text that ends inside an escape would leave the offset behind its end.
        self.at = (self.at + 1).min(self.text.len());
    }

    fn space(&mut self) {
        let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_to_where_its_value_begins() {
        let text = r#" {"a/b": [1, {"~": "}],\""}, []], "": {"x": null}, "é": -1.5e3} "#;
        let check = |pointer: &str, begins: &str| {
            let at = places(text, [pointer])[0];
            assert!(text[at..].starts_with(begins), "{pointer}: {}", &text[at..]);
        };
        check("", "{\"a/b\"");
        check("/a~1b", "[1, ");
        check("/a~1b/0", "1, ");
        check("/a~1b/1", "{\"~\"");
        check("/a~1b/1/~0", "\"}],");
        check("/a~1b/2", "[]]");
        check("/", "{\"x\"");
        check("//x", "null");
        check("/é", "-1.5e3");
        // A missing value resolves to the nearest one around it.
        check("/a~1b/7", "[1, ");
        check("/a~1b/2/0", "[]]");
        check("/a~1b/1/x/y", "{\"~\"");
        check("/missing", "{\"a/b\"");
    }

    #[test]
    fn offsets_are_returned_in_order_of_pointers() {
        let text = "[10, 20, [30]]";
        assert_eq!(places(text, ["/2/0", "/0", "/2/0", ""]), [10, 1, 10, 0]);
        assert_eq!(places("[{ }, [ ], {\"a\": 1}]", ["/0/a", "/1/0", "/2/a"]), [1, 6, 17]);
        assert_eq!(places("7", ["", "/x"]), [0, 0]);
        assert_eq!(places("", ["/x"]), [0]);
    }

    #[test]
    fn invalid_json_does_not_panic() {
        for text in ["{", "[", "{\"a", "{\"a\"", "{\"a\":", "[1,", "\"\\", "]}", "{\"é\\"] {
            places(text, ["", "/a", "/0"]);
        }
    }
}
