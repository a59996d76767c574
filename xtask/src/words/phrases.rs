//! The list of phrases: one pattern a line, with a suggestion.

use anyhow::{Context as _, Result};
use regex::{Regex, RegexBuilder};

/// A phrase to avoid.
pub(super) struct Phrase {
    pattern: Regex,
    /// Matches of `pattern` inside a match of this one are allowed.
    allowed: Option<Regex>,
    pub(super) suggestion: String,
}

impl Phrase {
    /// Returns the first words of a sentence that match.
    pub(super) fn find<'a>(&self, sentence: &'a str) -> Option<&'a str> {
        let allowed: Vec<_> = match &self.allowed {
            Some(allowed) => allowed.find_iter(sentence).map(|found| found.range()).collect(),
            None => Vec::new(),
        };
        let is_allowed = |found: &regex::Match<'_>| {
            allowed.iter().any(|range| range.start < found.end() && found.start() < range.end)
        };
        self.pattern
            .find_iter(sentence)
            .find(|found| !is_allowed(found))
            .map(|found| found.as_str())
    }
}

/// Parses the list. Blank lines and lines that start with `#` are comments.
pub(super) fn parse(list: &str) -> Result<Vec<Phrase>> {
    let is_phrase = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    list.lines()
        .filter(is_phrase)
        .map(|line| phrase(line).with_context(|| line.to_owned()))
        .collect()
}

fn phrase(line: &str) -> Result<Phrase> {
    let (patterns, suggestion) = line.split_once(" => ").context("has no ` => SUGGESTION`")?;
    let (pattern, allowed) = match patterns.split_once(" unless ") {
        Some((pattern, allowed)) => (pattern, Some(regex(allowed)?)),
        None => (patterns, None),
    };
    Ok(Phrase { pattern: regex(pattern)?, allowed, suggestion: suggestion.to_owned() })
}

fn regex(pattern: &str) -> Result<Regex> {
    Ok(RegexBuilder::new(pattern).case_insensitive(true).build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrase_in_an_allowed_context_is_ignored() {
        let list = "# a comment\n\n\\bis no [a-z]+\\b unless \\bthere is no\\b => is not a\n";
        let phrases = parse(list).unwrap();
        let check = |sentence: &str, expected: Option<&str>| {
            assert_eq!(phrases[0].find(sentence), expected, "{sentence}");
        };
        check("It is no directory", Some("is no directory"));
        check("There is no directory", None);
        check("There is no file, and it Is No directory", Some("Is No directory"));
        assert_eq!(phrases[0].suggestion, "is not a");
    }

    #[test]
    fn a_mistake_in_the_list_names_its_line() {
        let error = |list: &str| format!("{:#}", parse(list).err().unwrap());
        assert_eq!(error("mend"), "mend: has no ` => SUGGESTION`");
        assert!(error("mend( => fix").starts_with("mend( => fix: regex parse error"));
    }
}
