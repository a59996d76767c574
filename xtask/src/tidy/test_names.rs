//! The name of a test is the rule that it checks, in a few words; details are in its table.

use anyhow::Result;
use regex::Regex;

/// The most words of a name (see CONTRIBUTING.md, Style).
const MOST_WORDS: usize = 8;

/// The attribute of a test, the attributes after it, and its name.
const TEST: &str = r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)";

/// The number of a case, such as `j5` in `j5_stop_keeps_the_wait`, is not a word.
const CASE: &str = r"^[a-z]+\d+$";

/// The patterns of names.
pub(super) struct TestNames {
    test: Regex,
    case: Regex,
}

impl TestNames {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { test: Regex::new(TEST)?, case: Regex::new(CASE)? })
    }

    /// Returns a line for each test of a file whose name is too long.
    pub(super) fn broken(&self, file: &str, source: &str) -> Vec<String> {
        let line = |at: usize| source[..at].lines().count();
        let names = self.test.captures_iter(source).filter_map(|found| found.get(1));
        let long = names.filter(|name| self.words(name.as_str()) > MOST_WORDS);
        let rule = format!("name the test in at most {MOST_WORDS} words");
        long.map(|name| format!("{file}:{}: {rule}", line(name.start()))).collect()
    }

    fn words(&self, name: &str) -> usize {
        let words = name.split('_').filter(|word| !word.is_empty());
        words.enumerate().filter(|(place, word)| *place > 0 || !self.case.is_match(word)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_test_names_are_found() {
        let names = TestNames::new().unwrap();
        let check = |attribute: &str, head: &str, expected: &[&str]| {
            let source = format!("use super::*;\n\n{attribute}\n    {head}() {{\n    }}\n");
            assert_eq!(names.broken("a.rs", &source), expected, "{source}");
        };
        let broken = ["a.rs:4: name the test in at most 8 words"];
        let plain = "#[test]";
        check(plain, "fn one_two_three_four_five_six_seven_eight", &[]);
        check(plain, "fn one_two_three_four_five_six_seven_eight_nine", &broken);
        check(plain, "fn j5_one_two_three_four_five_six_seven_eight", &[]);
        check(plain, "fn j5_one_two_three_four_five_six_seven_eight_nine", &broken);
        check("#[tokio::test]", "async fn one_two_three_four_five_six_seven_eight_nine", &broken);
        let more = "#[tokio::test(start_paused = true)]";
        check(more, "async fn one_two_three_four_five_six_seven_eight_nine", &broken);
        let more = ["a.rs:5: name the test in at most 8 words"];
        let ignored = "#[test]\n#[ignore = \"slow\"]";
        check(ignored, "fn one_two_three_four_five_six_seven_eight_nine", &more);
        check("", "fn one_two_three_four_five_six_seven_eight_nine", &[]);
    }
}
