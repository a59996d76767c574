//! The paths in a source file that lead to other modules of its crate.

/// The source without comments, string literals and items that only tests compile.
pub(super) fn without_tests(source: &str) -> String {
    let mut code = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let line = line.split("//").next().unwrap_or_default();
        // rustfmt puts the attribute on a line of its own.
        if line.trim() == "#[cfg(test)]" {
            skip_item(&mut lines);
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// Skips a declaration, or an item up to the brace that closes it: one with the same indent.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let mut indent = None;
    for line in lines.filter(|line| !line.trim_start().starts_with("#[")) {
        let own = line.len() - line.trim_start().len();
        let ends = line.trim_end().ends_with([';', '}']);
        if *indent.get_or_insert(own) == own && ends {
            return;
        }
    }
}

/// The absolute paths, inside the crate, that a module names with `crate::` or `super::`.
pub(super) fn imports(source: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for index in words(source, start) {
            let (base, rest) = base(&source[index..], module);
            tree(&mut Words(rest), base, &mut found);
        }
    }
    found.into_iter().map(|item| item.path).collect()
}

/// The items that a module makes its own with `use`.
pub(super) fn own_names(source: &str, module: &[String]) -> Vec<Item> {
    let mut found = Vec::new();
    for index in words(source, "use ") {
        let (base, rest) = base(&source[index + "use ".len()..], module);
        tree(&mut Words(rest), base, &mut found);
    }
    found
}

/// An item of another module, and its name here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) path: Vec<String>,
}

/// Where `start` begins a path, and is not a part of a longer word or path, such as the second
/// `super` of `super::super::`.
fn words<'a>(source: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    source.match_indices(start).map(|(index, _)| index).filter(|index| {
        let before = source[..*index].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

/// The module that a path begins in, and the rest of the path.
fn base<'a>(path: &'a str, module: &[String]) -> (Vec<String>, &'a str) {
    if let Some(rest) = path.strip_prefix("crate::") {
        return (Vec::new(), rest);
    }
    let (mut base, mut rest) = (module.to_vec(), path);
    while let Some(behind) = rest.strip_prefix("super::") {
        base.pop();
        rest = behind;
    }
    (base, rest)
}

/// The rest of a source, read word by word.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn skip(&mut self, mark: &str) -> bool {
        let rest = self.0.trim_start();
        let found = rest.strip_prefix(mark);
        self.0 = found.unwrap_or(self.0);
        found.is_some()
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.0 = &rest[end..];
        (end > 0).then(|| &rest[..end])
    }
}

/// Reads `a::b`, `{a, b::c}` or `a::{b, c::d}`.
fn tree(words: &mut Words<'_>, mut base: Vec<String>, found: &mut Vec<Item>) {
    let mut alias = None;
    loop {
        if words.skip("{") {
            while !words.skip("}") {
                let before = words.0.len();
                tree(words, base.clone(), found);
                words.skip(",");
                // An unexpected character: without progress this loop would never end.
                if words.0.len() == before {
                    return;
                }
            }
            return;
        }
        match words.name() {
            Some("self") | None => break,
            Some(name) => base.push(name.to_owned()),
        }
        if words.skip("as ") {
            alias = words.name();
        }
        if !words.skip("::") {
            break;
        }
    }
    let name = alias.or_else(|| base.last().map(String::as_str)).unwrap_or_default().to_owned();
    found.push(Item { name, path: base });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_import_is_read() {
        let check = |source: &str, expected: &[&str]| {
            let module = ["run".to_owned(), "decide".to_owned()];
            let mut found: Vec<_> =
                imports(source, &module).into_iter().map(|path| path.join("::")).collect();
            found.sort();
            assert_eq!(found, expected, "{source}");
        };
        check("use crate::view::Live;", &["view::Live"]);
        check("use crate::{a::X, b::{self, c::Y as Z}};", &["a::X", "b", "b::c::Y"]);
        check("use super::event::{Event, Hold};", &["run::event::Event", "run::event::Hold"]);
        check("use super::super::time::Span;", &["time::Span"]);
        check("fn f() -> super::Refusal { crate::text::cut(x) }", &["run::Refusal", "text::cut"]);
        check("pub(crate) fn g() {} use raymond_core::a;", &[]);
    }

    #[test]
    fn own_names_follow_every_use() {
        let source = "use std::fmt;\npub(crate) use one::{X, two::Y as Z};\nuse super::W;";
        let own = own_names(source, &["a".to_owned(), "b".to_owned()]);
        let own: Vec<_> = own.into_iter().map(|item| (item.name, item.path.join("::"))).collect();
        let expected = [
            ("fmt", "a::b::std::fmt"),
            ("X", "a::b::one::X"),
            ("Z", "a::b::one::two::Y"),
            ("W", "a::W"),
        ];
        assert_eq!(own, expected.map(|(name, path)| (name.to_owned(), path.to_owned())));
    }

    #[test]
    fn comments_and_tests_are_left_out() {
        let source = "use a; // crate::b\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n\
                      #[cfg(test)]\nmod more;\n#[cfg(test)]\nfn x() {\n    y();\n}\nuse d;\n";
        assert_eq!(without_tests(source), "use a; \nuse d;\n");
    }
}
