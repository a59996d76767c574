//! Character references in attribute values: the five of XML, and no others.

use std::borrow::Cow;

use memchr::memchr;

const ENTITIES: [(&str, char); 5] = [
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&quot;", '"'),
    ("&apos;", '\''),
];

/// `raw` with its references replaced, in one pass; an unknown one stays as it is.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'&', raw.as_bytes()) else {
        return Cow::Borrowed(raw);
    };
    let mut decoded = String::with_capacity(raw.len());
    decoded.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    while !rest.is_empty() {
        let known = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let taken = if let Some((name, character)) = known {
            decoded.push(*character);
            name.len()
        } else {
            decoded.push('&');
            1
        };
        rest = &rest[taken..];
        let text = memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        decoded.push_str(&rest[..text]);
        rest = &rest[text..];
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(decode(raw), expected, "{raw:?}");
    }

    #[test]
    fn five_entities_are_decoded_once() {
        check("", "");
        check("plain", "plain");
        check(
            "&lt;a&gt; &amp; &quot;b&quot; &apos;c&apos;",
            "<a> & \"b\" 'c'",
        );
        check("&amp;lt;", "&lt;");
        check("&amp;&amp;", "&&");
        check("ä&lt;ö&", "ä<ö&");
    }

    #[test]
    fn other_references_are_text() {
        check("&nbsp; &#60; &LT; &lt", "&nbsp; &#60; &LT; &lt");
        check("&&lt;&", "&<&");
    }
}
