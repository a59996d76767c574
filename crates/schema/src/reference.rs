//! The text of a `$ref`: what is allowed, and why the rest is refused.

use crate::message::cut;
use crate::pointer;

/// The target of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A place of the same resource.
    Pointer(String),
    /// An anchor of the same resource.
    Anchor(String),
    /// A document of the library, by its name as written.
    Name(String),
}

impl Reference {
    /// Reads a reference, or returns the reason why it is refused.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let shown = cut(text);
        if let Some(fragment) = text.strip_prefix('#') {
            let decoded = pointer::decode(fragment);
            let decoded = decoded.ok_or_else(|| format!("`{shown}` is not a reference"))?;
            let is_pointer = decoded.is_empty() || decoded.starts_with('/');
            return Ok(if is_pointer { Self::Pointer(decoded) } else { Self::Anchor(decoded) });
        }
        if text.contains("://") || text.starts_with("urn:") {
            return Err(format!("`{shown}` is a URL: nothing is fetched, and schemas are named"));
        }
        // The name becomes a file name in a directory of the user, so it must never be a path.
        let document = text.split('#').next().unwrap_or_default();
        if document.contains(['/', '\\']) {
            return Err(format!("`{shown}` is a path: a schema is named by its file name alone"));
        }
        if text.contains('#') {
            return Err(format!(
                "`{shown}` leads into another document: only a whole one is named"
            ));
        }
        // These characters have a meaning in a URI, so others would read such a name differently.
        let is_odd = |c: char| c.is_control() || matches!(c, ':' | '?' | '%');
        if text.is_empty() || text == "." || text == ".." || text.contains(is_odd) {
            return Err(format!("`{shown}` is not the name of a schema"));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_internal_or_a_name() {
        let check = |text: &str, expected: Reference| {
            assert_eq!(Reference::read(text), Ok(expected), "{text}");
        };
        check("#", Reference::Pointer(String::new()));
        check("#/$defs/a%20b", Reference::Pointer("/$defs/a b".into()));
        check("#item", Reference::Anchor("item".into()));
        check("Name", Reference::Name("Name".into()));
        check("Name.json", Reference::Name("Name.json".into()));
        check("my name", Reference::Name("my name".into()));
    }

    #[test]
    fn everything_else_is_refused_and_says_why() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Reference::read(text), Err(format!("`{text}` {expected}")));
        };
        let url = "is a URL: nothing is fetched, and schemas are named";
        check("https://example.com/a", url);
        check("file:///etc/passwd", url);
        check("urn:a:b", url);
        let path = "is a path: a schema is named by its file name alone";
        check("a/b", path);
        check("../b", path);
        check("/etc/passwd", path);
        check("a\\b", path);
        let inner = "leads into another document: only a whole one is named";
        check("Name#", inner);
        check("Name#/a", inner);
        check("Name#a", inner);
        let odd = "is not the name of a schema";
        for text in ["", ".", "..", "a:b", "a?b", "a%2fb", "a\nb"] {
            check(text, odd);
        }
        check("#%", "is not a reference");
    }
}
