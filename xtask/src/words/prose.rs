//! The sentences of a file, with the lines they start in.

use std::path::Path;

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// From 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Whether the string literals of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strings {
    Read,
    LeftOut,
}

impl Strings {
    /// The rule for a file: tests repeat messages, and contain wrong input on purpose.
    pub(super) fn of(file: &Path) -> Self {
        let is_test =
            file.iter().any(|part| part == "tests" || part == "testkit" || part == "fuzz");
        let is_test = is_test || file.file_stem().is_some_and(|stem| stem == "tests");
        if is_test { Self::LeftOut } else { Self::Read }
    }
}

/// Lines that belong together: a paragraph, a block of comments, a string literal.
#[derive(Default)]
struct Block {
    text: String,
    /// Where each line starts in the text, and its number.
    lines: Vec<(usize, usize)>,
}

impl Block {
    fn push(&mut self, number: usize, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), number));
        self.text.push_str(line.trim());
    }

    fn line_at(&self, offset: usize) -> usize {
        let later = self.lines.partition_point(|(start, _)| *start <= offset);
        later.checked_sub(1).map_or(1, |index| self.lines[index].1)
    }

    /// Moves the sentences of this block to `sentences`.
    fn finish(&mut self, sentences: &mut Vec<Sentence>) {
        let text = without_code(&self.text);
        let mut start = 0;
        let ends = text.match_indices(['.', '!', '?']).map(|(index, _)| index + 1);
        for end in ends.chain([text.len()]) {
            // A point inside a name such as `journal.jsonl` ends no sentence.
            let is_end = text[end..].is_empty() || text[end..].starts_with(' ');
            if is_end && end > start {
                let sentence = &text[start..end];
                let lead = sentence.len() - sentence.trim_start().len();
                let line = self.line_at(start + lead);
                sentences.push(Sentence { line, text: sentence.trim().to_owned() });
                start = end;
            }
        }
        *self = Self::default();
    }
}

/// The text with code in backticks blanked out; its length stays the same.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let blanked = parts.map(|(index, part)| match index % 2 {
        0 => part.to_owned(),
        // The same length keeps the offsets, from which the lines of findings are computed.
        _ => "_".repeat(part.len()),
    });
    blanked.collect::<Vec<_>>().join("`")
}

/// The prose of a Markdown page, without fences and HTML comments.
pub(super) fn of_markdown(page: &str) -> Vec<Sentence> {
    let (mut sentences, mut block) = (Vec::new(), Block::default());
    let mut fence: Option<&str> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let trimmed = line.trim_start();
        let ticks = &trimmed[..trimmed.len() - trimmed.trim_start_matches('`').len()];
        match fence {
            Some(open) => {
                // Only as many backticks as opened the fence close it: a longer fence may contain a
                // shorter one.
                fence = fence.filter(|_| trimmed.trim_end() != open);
                continue;
            }
            None if ticks.len() >= 3 => {
                fence = Some(ticks);
                block.finish(&mut sentences);
                continue;
            }
            None => {}
        }
        if trimmed.is_empty() || trimmed.starts_with(['#', '|', '-', '*', '<']) {
            block.finish(&mut sentences);
        }
        if !trimmed.starts_with("<!--") {
            block.push(number, trimmed);
        }
    }
    block.finish(&mut sentences);
    sentences
}

/// The comments of a file, each on lines of its own that begin with one of these marks.
pub(super) fn of_comments(file: &str, marks: &[&str]) -> Vec<Sentence> {
    let (mut sentences, mut block) = (Vec::new(), Block::default());
    for (number, line) in (1..).zip(file.lines()) {
        let line = line.trim().trim_end_matches("*/");
        let text = marks.iter().find_map(|mark| line.strip_prefix(mark));
        match text.filter(|text| !text.starts_with('!')) {
            Some(text) if !text.trim().is_empty() => block.push(number, text),
            Some(_) | None => block.finish(&mut sentences),
        }
    }
    block.finish(&mut sentences);
    sentences
}

/// The comments, string literals and function names of a Rust source.
pub(super) fn of_rust(source: &str, strings: Strings) -> Vec<Sentence> {
    let (mut sentences, mut comment) = (Vec::new(), Block::default());
    let (mut open, mut strings) = (None, strings);
    for (number, line) in (1..).zip(source.lines()) {
        // The tests of a file come last, so the rest of the file is tests.
        if line == "mod tests {" {
            strings = Strings::LeftOut;
        }
        let scanned = scan(line, &mut open);
        match scanned.comment {
            Some(text) => comment.push(number, text),
            None => comment.finish(&mut sentences),
        }
        if strings == Strings::Read {
            for text in scanned.strings {
                let mut literal = Block::default();
                literal.push(number, text);
                literal.finish(&mut sentences);
            }
        }
        if let Some(name) = function_name(line) {
            // A constructor such as `Plan::of_run` is read together with its type.
            let name = name.strip_prefix("of_").unwrap_or(name);
            sentences.push(Sentence { line: number, text: name.replace('_', " ") });
        }
    }
    comment.finish(&mut sentences);
    sentences
}

/// The name of the function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let code = line.split("//").next()?;
    let (before, after) = code.split_once("fn ")?;
    let is_declared = before.is_empty() || before.ends_with(' ');
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_declared.then_some(&after[..end])
}

/// The readable parts of a line of source.
struct Scanned<'a> {
    comment: Option<&'a str>,
    strings: Vec<&'a str>,
}

/// Scans a line. `open` is what ends a string literal that began in an earlier line.
fn scan<'a>(line: &'a str, open: &mut Option<String>) -> Scanned<'a> {
    let mut scanned = Scanned { comment: None, strings: Vec::new() };
    let mut at = 0;
    while at < line.len() {
        if let Some(close) = open.clone() {
            let (end, next) = end_of_string(&line[at..], &close);
            scanned.strings.push(&line[at..at + end]);
            match next {
                Some(next) => (at, *open) = (at + next, None),
                None => break,
            }
            continue;
        }
        let rest = &line[at..];
        if let Some(text) = rest.strip_prefix("//") {
            scanned.comment = Some(text.trim_start_matches(['/', '!']));
            break;
        }
        let (length, opened) = token(rest);
        (at, *open) = (at + length, opened);
    }
    scanned
}

/// Returns the length of the text before the end of a string literal, and where the code continues.
fn end_of_string(text: &str, close: &str) -> (usize, Option<usize>) {
    let is_raw = close != "\"";
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        if !is_raw && escaped {
            escaped = false;
        } else if !is_raw && c == '\\' {
            escaped = true;
        } else if text[index..].starts_with(close) {
            return (index, Some(index + close.len()));
        }
    }
    (text.len(), None)
}

/// Returns the length of the next piece of code, and what closes the string literal that it opens.
fn token(rest: &str) -> (usize, Option<String>) {
    let raw = rest.strip_prefix('r').map(|after| after.trim_start_matches('#'));
    if let Some(after) = raw.filter(|after| after.starts_with('"')) {
        let hashes = rest.len() - 1 - after.len();
        return (hashes + 2, Some(format!("\"{}", "#".repeat(hashes))));
    }
    if rest.starts_with('"') {
        return (1, Some("\"".to_owned()));
    }
    // A quote as a character opens no string.
    for character in ["'\"'", "'\\\"'"] {
        if rest.starts_with(character) {
            return (character.len(), None);
        }
    }
    (rest.chars().next().map_or(1, char::len_utf8), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sentences: Vec<Sentence>) -> Vec<(usize, String)> {
        sentences.into_iter().map(|sentence| (sentence.line, sentence.text)).collect()
    }

    fn expected(expected: &[(usize, &str)]) -> Vec<(usize, String)> {
        expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    }

    #[test]
    fn a_page_without_code() {
        let page = "# A heading\n\nFirst `code` line\ngoes over. Second.\n- item\n\n```sh\nnot this\n```\nlast\n";
        let sentences = [
            (1, "# A heading"),
            (3, "First `____` line goes over."),
            (4, "Second."),
            (5, "- item"),
            (10, "last"),
        ];
        assert_eq!(found(of_markdown(page)), expected(&sentences));
    }

    #[test]
    fn the_comments_of_a_script() {
        let script = "#!/bin/bash\n# One\n# two. Three.\ncode # not this\n#\n  # Four.";
        let sentences = [(2, "One two."), (3, "Three."), (6, "Four.")];
        assert_eq!(found(of_comments(script, &["#"])), expected(&sentences));
        let js = "/**\n * One\n * two.\n */\ncode();\n/** Three. */\n";
        let sentences = [(2, "One two."), (6, "Three.")];
        assert_eq!(found(of_comments(js, &["//", "/**", "*"])), expected(&sentences));
    }

    #[test]
    fn the_comments_strings_and_names_of_a_source() {
        let source = [
            "//! One",
            "//! two. Three.",
            "fn four_five() {",
            "    let a = '\"'; // why",
            "    say(\"six \\\"seven\\\" // eight\", r#\"nine \"ten\"\"#);",
            "    \"eleven",
            "    twelve\" // thirteen",
            "pub fn of_fourteen() {",
            "mod tests {",
            "    \"fifteen\"; // sixteen",
        ];
        let source = &source.join("\n");
        let sentences = [
            (1, "One two."),
            (2, "Three."),
            (3, "four five"),
            (4, "why"),
            (5, "six \\\"seven\\\" // eight"),
            (5, "nine \"ten\""),
            (6, "eleven"),
            (7, "twelve"),
            (7, "thirteen"),
            (8, "fourteen"),
            (10, "sixteen"),
        ];
        assert_eq!(found(of_rust(source, Strings::Read)), expected(&sentences));
        let without = of_rust(source, Strings::LeftOut);
        assert_eq!(without.len(), sentences.len() - 4);
    }
}
