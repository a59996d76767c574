//! Decodes and encodes character references in attribute values: the five of XML, and no others.

use std::borrow::Cow;

use memchr::memchr_iter;

const ENTITIES: [(&str, char); 5] =
    [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&apos;", '\'')];

/// Replaces the references of `raw` in one pass. An unknown reference stays as written.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let mut decoded = String::new();
    let mut copied = 0;
    // In one pass: `&amp;lt;` is the text `&lt;`, so a decoded `&` must not begin another
    // reference.
    for place in memchr_iter(b'&', raw.as_bytes()) {
        let rest = &raw[place..];
        let known = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        if let Some((name, character)) = known {
            decoded.push_str(&raw[copied..place]);
            decoded.push(*character);
            copied = place + name.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    decoded.push_str(&raw[copied..]);
    Cow::Owned(decoded)
}

/// Replaces every character that has a reference, so that the value can be between any quotes.
pub(in crate::protocol) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for character in text.chars() {
        match ENTITIES.iter().find(|(_, known)| *known == character) {
            Some((reference, _)) => encoded.push_str(reference),
            None => encoded.push(character),
        }
    }
    encoded
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
        check("&lt;a&gt; &amp; &quot;b&quot; &apos;c&apos;", "<a> & \"b\" 'c'");
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
