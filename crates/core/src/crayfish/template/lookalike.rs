//! Braces that are text but look like an expression.

use super::braces;
use crate::crayfish::path::{self, Namespace, Path, Segment};
use crate::crayfish::problem::quoted;

/// The longest lookalike in bytes. The bound keeps a text of nothing but braces linear to scan.
const LONGEST: usize = 200;

/// Returns a message for each lookalike in a text, such as `{{$.vars.dir}}` or `{{vars.x|json}}`.
pub(in crate::crayfish) fn lookalikes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        rest = &rest[start..];
        if let Some((_, _, after)) = braces(rest) {
            rest = after;
            continue;
        }
        let near = &rest[2..rest.floor_char_boundary(LONGEST)];
        if let Some((inside, _)) = near.split_once("}}")
            && let Some(path) = named(inside.trim_ascii())
        {
            let whole = quoted(&rest[..inside.len() + 4]);
            let meant = meant(path).map(|path| format!("; did you mean `{{{{{path}}}}}`?"));
            found.push(format!("{whole} is text here{}", meant.unwrap_or_default()));
        }
        // One byte, because `{` is one; the next brace may open an expression.
        rest = &rest[1..];
    }
    found
}

/// Returns the path inside the braces if it begins with a namespace, with or without `$.`.
fn named(inside: &str) -> Option<&str> {
    let path = inside.strip_prefix("$.").unwrap_or(inside);
    let (root, tail) = path::key(path)?;
    (Namespace::of(root).is_some() && tail.starts_with(['.', '['])).then_some(path)
}

/// Returns the valid path at the beginning of a text, with `["key"]` read as `.key`.
fn meant(path: &str) -> Option<String> {
    let path = path.replace(['"', '\''], "'").replace("['", ".").replace("']", "");
    let (root, tail) = path::key(&path)?;
    let (mut segments, _) = path::segments(tail);
    segments.insert(0, Segment::Key(root.to_owned()));
    Path::from_segments(&path, segments).ok().map(|path| path.expression())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_resembles_an_expression_is_reported() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(lookalikes(text), expected, "{text}");
        let dir = "is text here; did you mean `{{vars.dir}}`?";
        for text in [
            "{{$.vars.dir}}",
            "{{ vars.dir|json }}",
            "{{vars.dir[*]}}",
            "{{vars[\"dir\"]}}",
            "{{vars['dir']}}",
            "{{vars.dir.}}",
            "{{vars.dir or 1}}",
        ] {
            check(&format!("a {{{text}}} b"), &[&format!("`{text}` {dir}")]);
        }
        check("{{vars.}} {{results[0]}}", &["`{{vars.}}` is text here"]);
        check(
            "{{vars.a}} {{$.vars.a}} {{.Name}} {{$.results.b.json}}",
            &[
                "`{{$.vars.a}}` is text here; did you mean `{{vars.a}}`?",
                "`{{$.results.b.json}}` is text here; did you mean `{{results.b.json}}`?",
            ],
        );
        for text in ["{{.vars.x}}", "{{ vars x }}", "{{$x.vars}}", "{{vars.x", "{{varsity|x}}", ""]
        {
            check(text, &[]);
        }
        check(&format!("{}}}}}", "{".repeat(1_000_000)), &[]);
    }
}
