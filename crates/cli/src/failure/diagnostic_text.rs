//! Prints mistakes of a workflow: in one line for programs, with its source line for a person.
//!
//! The short form is `START.md:3:7: error: … [wrong-type]`, which editors and `grep` understand.
//! On a terminal, Raymond shows the line of the file as compilers do. Users look up the code in the
//! book.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use raymond_core::diagnostic::{Diagnostic, Remedy, Severity};

use super::source_line::{SourceFiles, SourceLine};
use crate::sanitize::{sanitized, styled};
use crate::streams::print_error_line;
use crate::terminal;

/// Prints a mistake and its hint to stderr.
pub(crate) fn print_diagnostic(diagnostic: &Diagnostic) {
    print_diagnostics(std::slice::from_ref(diagnostic));
}

/// Prints mistakes, each with its hint, to stderr.
pub(crate) fn print_diagnostics(diagnostics: &[Diagnostic]) {
    let mut files = SourceFiles::default();
    for diagnostic in diagnostics {
        if terminal::is_there() {
            let (file, place) = (diagnostic.file.as_deref(), diagnostic.place.as_ref());
            let line = file.zip(place).and_then(|(file, place)| files.line(file, place));
            let text = with_source(diagnostic, line.as_ref(), terminal::width());
            print_error_line(&styled(&text));
            continue;
        }
        crate::say!("{diagnostic} [{}]", diagnostic.code);
        if let Some(hint) = hint_of(diagnostic) {
            crate::say!("  hint: {hint}");
        }
    }
}

/// Formats a mistake with the line of its file, if it can be shown, and an empty line below.
///
/// Each part is sanitized before the styles are added: a style inside a secret would hide the
/// secret from the search.
fn with_source(diagnostic: &Diagnostic, line: Option<&SourceLine>, columns: usize) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(sanitized(&diagnostic.message)).id(diagnostic.code);
    let file = diagnostic.file.as_deref().map(sanitized);
    let mut report = match (file, &diagnostic.place) {
        (Some(file), Some(place)) => {
            let snippet = line.map(|source| {
                let marked = AnnotationKind::Primary.span(source.span.clone());
                Snippet::source(&source.text).line_start(place.line).annotation(marked)
            });
            // The library counts columns in the text that it gets, which may be a part of the line.
            let column = line.map(|line| line.text[..line.span.start].chars().count() + 1);
            match snippet {
                Some(snippet) if column == Some(place.column) => title.element(snippet.path(file)),
                snippet => {
                    let origin = Origin::path(file).line(place.line).char_column(place.column);
                    title.element(origin).elements(snippet)
                }
            }
        }
        (file, _) => title.elements(file.map(Origin::path)),
    };
    if let Some(hint) = hint_of(diagnostic) {
        report = report.element(Level::HELP.with_name("hint").message(sanitized(&hint)));
    }
    format!("{}\n", Renderer::styled().term_width(columns).render(&[report]))
}

/// Returns the hint of a diagnostic, in the words of the command line.
pub(super) fn hint_of(diagnostic: &Diagnostic) -> Option<String> {
    let remedy = diagnostic.remedy.map(|remedy| match remedy {
        Remedy::LimitIterations => "use --max-iterations",
        Remedy::RunAsWorkflow => "a workflow of several states is run by `raymond run`",
        Remedy::RunWithoutCap => "run it with `--budget none`, or let another backend answer",
    });
    let hints: Vec<&str> = remedy.into_iter().chain(diagnostic.hint.as_deref()).collect();
    (!hints.is_empty()).then(|| hints.join("; or "))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn shown(diagnostic: &Diagnostic, line: Option<(&str, std::ops::Range<usize>)>) -> String {
        let line = line.map(|(text, span)| SourceLine { text: text.to_owned(), span });
        strip_str(&with_source(diagnostic, line.as_ref(), 60)).to_string()
    }

    fn wrong(text: &str, span: std::ops::Range<usize>) -> Diagnostic {
        Diagnostic::error("bad", "wrong").in_file("d.json").at(text, span)
    }

    #[test]
    fn mistake_is_shown_in_its_line() {
        let mistake = Diagnostic::warning("unknown-key", "unknown key `modle` is ignored")
            .in_file("flow/START.md")
            .at("---\nmodle: opus\n---\n", 4..9)
            .hint("did you mean `model`?");
        insta::assert_snapshot!(shown(&mistake, Some(("modle: opus", 0..5))), @"
        warning[unknown-key]: unknown key `modle` is ignored
         --> flow/START.md:2:1
          |
        2 | modle: opus
          | ^^^^^
          |
          = hint: did you mean `model`?
        ");
        insta::assert_snapshot!(shown(&mistake, None), @"
        warning[unknown-key]: unknown key `modle` is ignored
        --> flow/START.md:2:1
         = hint: did you mean `model`?
        ");
    }

    #[test]
    fn long_and_hostile_lines_fit_the_terminal() {
        let line = format!("…{}\u{1b}[8m{}…", "x".repeat(200), "y".repeat(200));
        let mistake = wrong(&"x".repeat(2000), 998..1007);
        insta::assert_snapshot!(shown(&mistake, Some((&line, 203..212))), @"
        error[bad]: wrong
         --> d.json:1:999
          |
         ::: 
        1 | ...xxxxxxxxxxxxxxxxxxxx␛[8myyyyyyyyyyyyyyyyyyyyyyyyyy...
          |                        ^^^^^^^^^
        ");
        let line = format!("\t{}", "x".repeat(99));
        insta::assert_snapshot!(shown(&wrong(&line, 0..1), Some((&line, 0..1))), @"
        error[bad]: wrong
         --> d.json:1:1
          |
        1 |     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
          | ^^^^
        ");
    }

    #[test]
    fn mistake_without_a_line_names_its_file() {
        let mistake = Diagnostic::error("no-entry", "there is no entry state");
        insta::assert_snapshot!(shown(&mistake, None), @"error[no-entry]: there is no entry state");
        insta::assert_snapshot!(shown(&mistake.in_file("flow").hint("add START.md"), None), @"
        error[no-entry]: there is no entry state
        --> flow
         = hint: add START.md
        ");
    }
}
