//! YAML as a tree of nodes, each with its place.
//!
//! This is the only module that uses the YAML library, for workflow files and for files of replies.
//! It reads events and not typed values, so that all mistakes can be reported at once, and applies
//! the core schema of YAML 1.2: `NO` and `on` are texts. Aliases share the node that they name, so
//! they cannot make a document explode, and nesting is bounded. The meaning of keys is not known
//! here, and a key may repeat.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, Tag};

/// Deepest nesting of block collections, and of flow collections. Frontmatter needs four levels and
/// replies need eight; the rest is room.
const DEEPEST: usize = 64;

/// Deepest nesting of collections through aliases. Nodes are dropped recursively, and a test thread
/// has 2 MiB of stack.
const DEEPEST_WITH_ALIASES: usize = 1_000;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The bytes in the file.
    pub span: Range<usize>,
    pub content: Content,
}

/// The content of a node according to the core schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Null,
    Bool(bool),
    /// As written.
    // An amount such as `2.50` must not pass through a float.
    Number(String),
    Text(String),
    List(Vec<Rc<Node>>),
    /// Entries in order. Keys may repeat.
    Map(Vec<(Rc<Node>, Rc<Node>)>),
}

/// The error of a text that is not YAML.
#[derive(Debug, PartialEq)]
pub struct YamlProblem {
    /// The bytes in the file.
    pub span: Range<usize>,
    pub message: String,
}

/// Parses the YAML document in `text[block]`; `None` if it contains only comments.
pub fn parse(text: &str, block: &Range<usize>) -> Result<Option<Rc<Node>>, YamlProblem> {
    let options = granit_parser::options! {
        emit_comments: false,
        disallow_directives: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut composer = Composer {
        text,
        start: block.start,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        root: None,
    };
    for event in Parser::new_from_str_with_options(&text[block.clone()], options) {
        let (event, span) = event.map_err(|error| composer.problem(&error))?;
        let bytes = span.byte_range().unwrap_or_default();
        composer.take(event, block.start + bytes.start..block.start + bytes.end)?;
    }
    Ok(composer.root)
}

/// Builds nodes from events. Open collections wait on a stack.
struct Composer<'t> {
    text: &'t str,
    start: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Tree>,
    root: Option<Rc<Node>>,
}

/// A node, and how many levels of collections it has.
#[derive(Clone)]
struct Tree {
    node: Rc<Node>,
    height: usize,
}

struct Open {
    start: usize,
    anchor: usize,
    items: Items,
    /// The height of the highest item.
    height: usize,
}

enum Items {
    List(Vec<Rc<Node>>),
    Map(Vec<(Rc<Node>, Rc<Node>)>, Option<Rc<Node>>),
}

impl Composer<'_> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's enum may grow; events without a node do not matter"
    )]
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), YamlProblem> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let content = scalar(&value, style, tag.as_deref(), &span)?;
                self.put(anchor, Node { span, content }, 0)
            }
            Event::SequenceStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", &span)?;
                self.push(span.start, anchor, Items::List(Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "map", &span)?;
                self.push(span.start, anchor, Items::Map(Vec::new(), None));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end),
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                // Sharing the node and not copying it keeps nested aliases ("billion laughs")
                // small.
                Some(tree) => self.attach(tree),
                None => Err(YamlProblem::new(span, "the alias refers to a value that contains it")),
            },
            _ => Ok(()),
        }
    }

    fn push(&mut self, start: usize, anchor: usize, items: Items) {
        self.open.push(Open { start, anchor, items, height: 0 });
    }

    fn close(&mut self, end: usize) -> Result<(), YamlProblem> {
        let Some(Open { start, anchor, items, height }) = self.open.pop() else {
            return Ok(());
        };
        let content = match items {
            Items::List(items) => Content::List(items),
            Items::Map(entries, _) => Content::Map(entries),
        };
        // The library ends a block collection where the next token starts, so the gap is removed.
        let length = self.text.get(start..end).map_or(0, |text| text.trim_end().len());
        let node = Node { span: start..start + length, content };
        if height == DEEPEST_WITH_ALIASES {
            return Err(YamlProblem::new(node.span, "aliases are nested too deeply"));
        }
        self.put(anchor, node, height + 1)
    }

    fn put(&mut self, anchor: usize, node: Node, height: usize) -> Result<(), YamlProblem> {
        let tree = Tree { node: Rc::new(node), height };
        // Known only when it is complete, so an alias inside its own value finds nothing and no
        // cycle of `Rc` can form.
        if anchor != 0 {
            self.anchors.insert(anchor, tree.clone());
        }
        self.attach(tree)
    }

    fn attach(&mut self, Tree { node, height }: Tree) -> Result<(), YamlProblem> {
        if let Some(open) = self.open.last_mut() {
            // Counted here, because the limits of the library do not see through aliases.
            open.height = open.height.max(height);
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map(entries, key)) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => *key = Some(node),
            },
            None if self.root.is_some() => {
                return Err(YamlProblem::new(node.span.clone(), "there is a second YAML document"));
            }
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn problem(&self, error: &ScanError) -> YamlProblem {
        let start = self.start + error.marker().byte_offset().unwrap_or_default();
        let length = self.text.get(start..).and_then(|rest| rest.chars().next());
        let end = start + length.map_or(0, char::len_utf8);
        YamlProblem::new(start..end, error.info())
    }
}

impl YamlProblem {
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

fn scalar(
    value: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: &Range<usize>,
) -> Result<Content, YamlProblem> {
    match tag.map(|tag| (tag, tag.core_suffix())) {
        None if style == ScalarStyle::Plain => Ok(plain(value)),
        None | Some((_, Some("str"))) => Ok(Content::Text(value.to_owned())),
        Some((_, Some("null" | "bool" | "int" | "float"))) => Ok(plain(value)),
        Some((tag, _)) if tag.original() == "!" => Ok(Content::Text(value.to_owned())),
        Some((tag, _)) => Err(unsupported(tag, span)),
    }
}

fn collection_tag(tag: Option<&Tag>, kind: &str, span: &Range<usize>) -> Result<(), YamlProblem> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(kind) && tag.original() != "!" => {
            Err(unsupported(tag, span))
        }
        _ => Ok(()),
    }
}

fn unsupported(tag: &Tag, span: &Range<usize>) -> YamlProblem {
    // Refused and not ignored: the tag asks for a value that the text itself does not have.
    let message = format!("the YAML tag {} means nothing here", tag.original());
    YamlProblem::new(span.clone(), message)
}

/// Applies the core schema of YAML 1.2 (section 10.3.2) to a plain scalar.
fn plain(value: &str) -> Content {
    match value {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" => Content::Bool(true),
        "false" | "False" | "FALSE" => Content::Bool(false),
        _ if is_number(value) => Content::Number(value.to_owned()),
        _ => Content::Text(value.to_owned()),
    }
}

fn is_number(value: &str) -> bool {
    let all =
        |digits: &str, is: fn(&u8) -> bool| !digits.is_empty() && digits.as_bytes().iter().all(is);
    if let Some(octal) = value.strip_prefix("0o") {
        return all(octal, |b| (b'0'..=b'7').contains(b));
    }
    if let Some(hexadecimal) = value.strip_prefix("0x") {
        return all(hexadecimal, u8::is_ascii_hexdigit);
    }
    let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(value, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent))
        }
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    all(&digits, u8::is_ascii_digit) && all(exponent, u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Result<Option<Rc<Node>>, YamlProblem> {
        parse(text, &(0..text.len()))
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let check = |text: &str, expected: Content| {
            let node = root(&format!("[{text}]")).unwrap().unwrap();
            let Content::List(items) = &node.content else { panic!("{node:?}") };
            assert_eq!(items[0].content, expected, "{text}");
        };
        for text in [
            "NO",
            "no",
            "yes",
            "on",
            "Off",
            "y",
            "2024-01-01",
            "1.2.3",
            "0o8",
            "0x",
            "1_000",
            "1e",
            "+",
            ".",
            "-.nan",
            "12:30",
        ] {
            check(text, Content::Text(text.into()));
        }
        for text in [
            "0", "-1", "+1", "007", "0o17", "0xFF", "1.", ".5", "2.50", "1e3", "-1.5E-3", ".inf",
            "-.Inf", ".nan",
        ] {
            check(text, Content::Number(text.into()));
        }
        for (text, value) in [("true", true), ("True", true), ("FALSE", false)] {
            check(text, Content::Bool(value));
        }
        for text in ["~", "null", "NULL"] {
            check(text, Content::Null);
        }
        check("'1'", Content::Text("1".into()));
        check("\"null\"", Content::Text("null".into()));
        check("!!str 1", Content::Text("1".into()));
        check("! 1", Content::Text("1".into()));
        check("!!int 1", Content::Number("1".into()));
    }

    #[test]
    fn nodes_know_their_bytes_and_aliases_share_theirs() {
        let text = "# ä\nkey: &a [ä, b]\nother: *a\nmap:\n  x: 1\n\n";
        let node = root(text).unwrap().unwrap();
        let Content::Map(entries) = &node.content else { panic!("{node:?}") };
        let slices: Vec<_> = entries
            .iter()
            .map(|(key, value)| (&text[key.span.clone()], &text[value.span.clone()]))
            .collect();
        assert_eq!(slices, [("key", "[ä, b]"), ("other", "[ä, b]"), ("map", "x: 1")]);
    }

    #[test]
    fn only_one_plain_document_is_accepted() {
        let shown = |text: &str| {
            let problem = root(text).unwrap_err();
            format!("{:?} {}", problem.span, problem.message)
        };
        insta::assert_snapshot!(shown("a: [b"), @"3..4 unclosed bracket '['");
        insta::assert_snapshot!(shown("a: *b"), @"3..4 while parsing node, found unknown anchor");
        insta::assert_snapshot!(shown("a: &x [*x]"), @"7..9 the alias refers to a value that contains it");
        insta::assert_snapshot!(shown("a: 1\n...\nb: 2\n"), @"9..13 there is a second YAML document");
        insta::assert_snapshot!(shown("a: !secret 1"), @"11..12 the YAML tag !secret means nothing here");
        insta::assert_snapshot!(shown("%YAML 1.1\n---\na: 1"), @"0..1 YAML directives are disallowed");
        let deep = "[".repeat(100_000);
        assert!(root(&deep).is_err());
        let deep: Vec<_> = (0..500).map(|n| " ".repeat(n) + "a:\n").collect();
        assert!(root(&deep.concat()).is_err());
    }

    #[test]
    fn an_alias_bomb_stays_small() {
        let line = |n: u32| format!("a{n}: &a{n} [*a{before}, *a{before}]\n", before = n - 1);
        let lines: Vec<_> = (1..200).map(line).collect();
        assert!(root(&format!("a0: &a0 [x, x]\n{}", lines.concat())).is_ok());
    }

    #[test]
    fn a_chain_of_aliases_is_bounded() {
        let link = |n: u32| format!("a{n}: &a{n} [*a{before}]\n", before = n - 1);
        let chain = |links| (1..links).map(link).fold("a0: &a0 x\n".to_owned(), |a, b| a + &b);
        assert!(root(&chain(1_000)).is_ok());
        let problem = root(&chain(100_000)).unwrap_err();
        assert_eq!(problem.message, "aliases are nested too deeply");
    }

    #[test]
    fn nothing_but_comments_is_nothing() {
        assert_eq!(root(""), Ok(None));
        assert_eq!(root("# note\n\n"), Ok(None));
    }
}
