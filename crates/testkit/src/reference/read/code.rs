//! Finds the bytes of a message that are code: first fenced blocks, then backtick spans between
//! them.
//!
//! The rules are those of `CommonMark`, except that a fence may have any indentation. The info
//! string of a backtick fence contains no backtick. A fence is closed by a fence of its kind that
//! is at least as long, a span by a run of backticks with exactly the same length. A run without
//! such a partner before a blank line is text.

use std::ops::Range;

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

/// Returns one flag per byte of the text.
pub(super) fn code(text: &str) -> Vec<bool> {
    let mut code = vec![false; text.len()];
    let mut fence: Option<Fence> = None;
    let mut paragraph = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(open) = fence {
            code[at..next].fill(true);
            // A span does not reach across a fence, so its search starts again behind it.
            paragraph = next;
            if closes(line, open) {
                fence = None;
            }
        } else if let Some(open) = opens(line) {
            mark_spans(text, paragraph..at, &mut code);
            code[at..next].fill(true);
            paragraph = next;
            fence = Some(open);
        } else if line.trim_ascii().is_empty() {
            mark_spans(text, paragraph..at, &mut code);
            paragraph = next;
        }
        at = next;
    }
    // Empty if a fence was never closed: such a fence covers the rest of the text.
    mark_spans(text, paragraph..at, &mut code);
    code
}

fn opens(line: &str) -> Option<Fence> {
    let line = line.trim_ascii();
    let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Fence { mark, length })
}

fn closes(line: &str, fence: Fence) -> bool {
    let line = line.trim_ascii();
    line.len() >= fence.length && line.chars().all(|c| c == fence.mark)
}

fn mark_spans(text: &str, paragraph: Range<usize>, code: &mut [bool]) {
    let runs = runs(&text.as_bytes()[paragraph.clone()]);
    let mut open = 0;
    while open < runs.len() {
        // Searched again for each opening. That is quadratic, and core must be linear; here only
        // the rule counts.
        let close = (open + 1..runs.len()).find(|close| runs[*close].len() == runs[open].len());
        if let Some(close) = close {
            let (start, end) = (runs[open].start, runs[close].end);
            code[paragraph.start + start..paragraph.start + end].fill(true);
            open = close + 1;
        } else {
            open += 1;
        }
    }
}

/// Returns the ranges of consecutive backticks.
fn runs(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}
