//! Foreign text in our sentences: cut, so that a message stays short.

use std::borrow::Cow;

/// At most `most` characters of `text`; an ellipsis says that there was more.
pub(crate) fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// The first of `names`, and how many more there are.
pub(crate) fn listed(names: &[String], most: usize, separator: &str) -> String {
    let shown = &names[..names.len().min(most)];
    let text = shown.join(separator);
    match names.len() - shown.len() {
        0 => text,
        more => format!("{text}{separator}… and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names, 3, ", "), "a, b, c");
        assert_eq!(listed(&names, 2, ", "), "a, b, … and 1 more");
        assert_eq!(listed(&[], 2, ", "), "");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(excerpt("", 3), "");
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(excerpt("äöüß", 3), "äöü…");
    }
}
