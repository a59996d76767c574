//! `cargo xtask words`: finds phrases that readers stumbled over.
//!
//! The list is `xtask/words.txt`. The search covers what people read: comments, string literals and
//! function names of Rust sources, the prose of Markdown pages, and the comments of scripts and
//! configuration files. Code in backticks and in fences is left out, because identifiers follow
//! rules of their own. String literals of tests and the inputs of the fuzzer are left out too: they
//! are data, and may contain any words.

mod phrases;
mod prose;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::commands::{program, root};
use phrases::Phrase;

/// Checks the files below these paths, or every file of the repository.
pub(crate) fn words(paths: &[&str]) -> Result<()> {
    let top = root();
    let list = top.join("xtask/words.txt");
    let phrases = phrases::parse(&fs::read_to_string(&list)?).context("xtask/words.txt")?;
    let files = readable_files(paths)?;
    // A mistyped path would otherwise pass without a check.
    ensure!(!files.is_empty(), "no readable file below {paths:?}");
    let mut found = 0;
    for file in &files {
        for line in check_file(&top, file, &phrases) {
            println(&line);
            found += 1;
        }
    }
    if found > 0 {
        bail!("{found} phrases to rewrite in {} files; the list is xtask/words.txt", files.len());
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "findings are the output of this command")]
fn println(line: &str) {
    println!("{line}");
}

/// Files that git knows, so that build output and scratch files are left out.
fn readable_files(paths: &[&str]) -> Result<Vec<PathBuf>> {
    let mut git = program("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--"]).args(paths);
    let listed = String::from_utf8(git.output()?.stdout)?;
    Ok(listed.lines().filter(|path| is_readable(path)).map(PathBuf::from).collect())
}

pub(crate) fn is_readable(path: &str) -> bool {
    let is_input = path.starts_with("fuzz/corpus/");
    let extension = Path::new(path).extension().and_then(OsStr::to_str).unwrap_or_default();
    !is_input && (["rs", "md"].contains(&extension) || comment_marks(extension).is_some())
}

/// The marks of comments, for files in which only the comments are prose.
fn comment_marks(extension: &str) -> Option<&'static [&'static str]> {
    match extension {
        "sh" | "toml" | "yaml" | "yml" => Some(&["#"]),
        "js" => Some(&["//", "/**", "*"]),
        _ => None,
    }
}

fn check_file(top: &Path, file: &Path, phrases: &[Phrase]) -> Vec<String> {
    let path = top.join(file);
    // Git lists a file until its removal is committed.
    let Ok(text) = fs::read_to_string(&path) else { return Vec::new() };
    let extension = file.extension().and_then(OsStr::to_str).unwrap_or_default();
    let sentences = match (extension, comment_marks(extension)) {
        ("rs", _) => prose::of_rust(&text, prose::Strings::of(file)),
        (_, Some(marks)) => prose::of_comments(&text, marks),
        (_, None) => prose::of_markdown(&text),
    };
    let mut findings = Vec::new();
    for sentence in sentences {
        for phrase in phrases {
            if let Some(words) = phrase.find(&sentence.text) {
                let suggestion = &phrase.suggestion;
                let place = format!("{}:{}", file.display(), sentence.line);
                findings.push(format!("{place}: \"{}\": {suggestion}", words.trim()));
            }
        }
    }
    findings
}
