//! Prints a mistake of a workflow: in one line for programs, with its source line for a person.
//!
//! The short form is `START.md:3:7: error: … [wrong-type]`, which editors and `grep` understand.
//! On a terminal, Raymond shows the line of the file as compilers do. Users look up the code in the
//! book.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use raymond_core::diagnostic::{Diagnostic, Remedy, Severity};

use crate::sanitize::styled;
use crate::streams::print_error_line;
use crate::terminal;

/// Prints a mistake and its hint to stderr.
pub(crate) fn print_diagnostic(diagnostic: &Diagnostic) {
    if terminal::is_there() {
        print_error_line(&styled(&with_source(diagnostic, terminal::width())));
        return;
    }
    crate::say!("{diagnostic} [{}]", diagnostic.code);
    if let Some(hint) = hint_of(diagnostic) {
        crate::say!("  hint: {hint}");
    }
}

/// Formats a mistake with the line of the file that contains it, and an empty line below.
fn with_source(diagnostic: &Diagnostic, columns: usize) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let mut report = match (diagnostic.file.as_deref(), &diagnostic.place) {
        (Some(file), Some(place)) => {
            let source = &place.source;
            let marked = AnnotationKind::Primary.span(source.span.clone());
            let line = Snippet::source(&source.text).line_start(place.line).annotation(marked);
            // The library counts columns in the text that it gets, which may be a part of the line.
            let is_whole = source.text[..source.span.start].chars().count() + 1 == place.column;
            if is_whole {
                title.element(line.path(file))
            } else {
                let origin = Origin::path(file).line(place.line).char_column(place.column);
                title.element(origin).element(line)
            }
        }
        (file, _) => title.elements(file.map(Origin::path)),
    };
    if let Some(hint) = hint_of(diagnostic) {
        report = report.element(Level::HELP.with_name("hint").message(hint));
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

    fn shown(diagnostic: &Diagnostic) -> String {
        strip_str(&with_source(diagnostic, 60)).to_string()
    }

    #[test]
    fn mistake_is_shown_in_its_line() {
        let text = "---\nmodle: opus\n---\n";
        let mistake = Diagnostic::warning("unknown-key", "unknown key `modle` is ignored")
            .in_file("flow/START.md")
            .at(text, 4..9)
            .hint("did you mean `model`?");
        insta::assert_snapshot!(shown(&mistake), @"
        warning[unknown-key]: unknown key `modle` is ignored
         --> flow/START.md:2:1
          |
        2 | modle: opus
          | ^^^^^
          |
          = hint: did you mean `model`?
        ");
    }

    #[test]
    fn long_and_hostile_lines_fit_the_terminal() {
        let text = format!("\t{}\u{1b}[8m{}", "x".repeat(999), "y".repeat(999));
        let at = |span| Diagnostic::error("bad", "wrong").in_file("d.json").at(&text, span);
        insta::assert_snapshot!(shown(&at(998..1007)), @"
        error[bad]: wrong
         --> d.json:1:999
          |
         ::: 
        1 | ...xxxxxxxxxxxxxxxxxxxxxx␛[8myyyyyyyyyyyyyyyyyyyyyyyy...
          |                        ^^^^^^^^^
        ");
        insta::assert_snapshot!(shown(&at(0..1)), @"
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
        insta::assert_snapshot!(shown(&mistake), @"error[no-entry]: there is no entry state");
        insta::assert_snapshot!(shown(&mistake.in_file("flow").hint("add START.md")), @"
        error[no-entry]: there is no entry state
        --> flow
         = hint: add START.md
        ");
    }
}
