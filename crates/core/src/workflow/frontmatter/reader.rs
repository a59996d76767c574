//! Reads single values from YAML nodes, and reports every mistake with its place.
//!
//! After a mistake the reading continues, because one report should contain all mistakes of a file.
//! The meaning of the keys is in [`super::keys`] and [`super::policies`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, LocationFinder};

use super::super::name::{Unresolved, check_name};
use super::{FrontmatterKey, Mention, Role, UNKNOWN_KEY};
use crate::text::nearest;
use crate::yaml::{Content, Node};

/// Collects mistakes and names while a frontmatter is read.
pub(super) struct Reader<'t> {
    text: &'t str,
    places: LocationFinder<'t>,
    pub(super) mentions: Vec<Mention>,
    pub(super) keys: Vec<FrontmatterKey>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

pub(super) struct Entry<'n> {
    pub(super) key: &'n str,
    pub(super) span: &'n Range<usize>,
    pub(super) value: &'n Node,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            places: LocationFinder::new(text),
            mentions: Vec::new(),
            keys: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Adds a diagnostic at these bytes.
    pub(super) fn report(&mut self, diagnostic: Diagnostic, span: &Range<usize>) {
        let place = Some(self.places.of(span.clone()));
        self.diagnostics.push(Diagnostic { place, ..diagnostic });
    }

    /// Adds an error at these bytes.
    pub(super) fn error(&mut self, span: &Range<usize>, code: &'static str, message: String) {
        self.report(Diagnostic::error(code, message), span);
    }

    /// Adds an error with a hint.
    pub(super) fn error_with_hint(
        &mut self,
        span: &Range<usize>,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        let error = Diagnostic::error(code, message);
        self.report(Diagnostic { hint, ..error }, span);
    }

    /// Refuses an unknown key, and suggests the nearest known key: a mistyped limit that is ignored
    /// would be no limit.
    pub(super) fn unknown_key(&mut self, entry: &Entry<'_>, place: &str, known: &[&str]) {
        let key = entry.key;
        let hint = match nearest(key, known.iter().copied()) {
            Some(name) => Some(format!("did you mean `{name}`?")),
            None if known.is_empty() => Some(format!("remove `{key}`")),
            None => Some(format!("known keys: {}", known.join(", "))),
        };
        let message = format!("unknown key `{key}`{place}");
        self.error_with_hint(entry.span, UNKNOWN_KEY, message, hint);
    }

    /// Returns the entries of a map without repeated keys; `None` if the node is not a map.
    pub(super) fn entries<'n>(&mut self, what: &str, node: &'n Node) -> Option<Vec<Entry<'n>>> {
        let Content::Map(pairs) = &node.content else {
            self.wrong_type(what, "a map", node, None);
            return None;
        };
        let mut entries: Vec<Entry<'n>> = Vec::new();
        let mut seen = BTreeMap::new();
        for (key, value) in pairs {
            let Content::Text(name) = &key.content else {
                let found = describe(&key.content);
                let message = format!("a key of {what} must be a text, found {found}");
                self.error(&key.span, "wrong-type", message);
                continue;
            };
            // Many YAML readers silently take the last value, which hides the mistake.
            if let Some(first) = seen.get(name.as_str()) {
                self.duplicate(name, &key.span, first);
                continue;
            }
            seen.insert(name.as_str(), key.span.clone());
            entries.push(Entry { key: name, span: &key.span, value });
        }
        Some(entries)
    }

    fn duplicate(&mut self, name: &str, span: &Range<usize>, first: &Range<usize>) {
        let line = self.places.of(first.clone()).line;
        let message = format!("`{name}` is given twice");
        let hint = format!("it is already in line {line}");
        self.error_with_hint(span, "duplicate-key", message, Some(hint));
    }

    /// Returns the items of a list; `None` if the node is not a list.
    pub(super) fn items<'n>(&mut self, what: &str, node: &'n Node) -> Option<&'n [Rc<Node>]> {
        if let Content::List(items) = &node.content {
            return Some(items);
        }
        let mut hint = None;
        if let Content::Text(text) = &node.content
            // A text of several lines does not fit the suggestion.
            && !text.contains('\n')
        {
            hint = Some(format!("write [{text}]"));
        }
        self.wrong_type(what, "a list", node, hint);
        None
    }

    /// Returns a text that is not blank.
    pub(super) fn string(&mut self, what: &str, node: &Node) -> Option<String> {
        match &node.content {
            Content::Text(text) if text.trim().is_empty() => {
                self.error(&node.span, "empty-value", format!("{what} is empty"));
                None
            }
            Content::Text(text) => Some(text.clone()),
            Content::Number(_) | Content::Bool(_) => {
                // As written: a number such as `1e3` must not change when it is put in quotes.
                let written = self.text.get(node.span.clone()).unwrap_or_default();
                let hint = format!("put it in quotes: \"{written}\"");
                self.wrong_type(what, "a text", node, Some(hint));
                None
            }
            Content::Null | Content::List(_) | Content::Map(_) => {
                self.wrong_type(what, "a text", node, None);
                None
            }
        }
    }

    /// Returns a list of texts.
    pub(super) fn strings(&mut self, what: &str, node: &Node) -> Vec<String> {
        let items = self.items(what, node).unwrap_or_default();
        let item = format!("an entry of {what}");
        items.iter().filter_map(|node| self.string(&item, node)).collect()
    }

    /// Returns the name of a state, and collects it for later checks.
    pub(super) fn name(&mut self, what: &str, node: &Node, role: Role) -> Option<String> {
        let name = self.string(what, node)?;
        if let Err(Unresolved::NotAName(name, why)) = check_name(&name) {
            let message = format!("{what} is a file name, and {name:?} is not one: {why}");
            self.error(&node.span, "bad-name", message);
            return None;
        }
        self.mentions.push(Mention { name: name.clone(), span: node.span.clone(), role });
        Some(name)
    }

    /// Adds an error about a value of the wrong type.
    pub(super) fn wrong_type(
        &mut self,
        what: &str,
        expected: &str,
        node: &Node,
        hint: Option<String>,
    ) {
        let found = describe(&node.content);
        let message = format!("{what} must be {expected}, found {found}");
        self.error_with_hint(&node.span, "wrong-type", message, hint);
    }
}

fn describe(content: &Content) -> &'static str {
    match content {
        Content::Null => "nothing",
        Content::Bool(_) => "true or false",
        Content::Number(_) => "a number",
        Content::Text(_) => "a text",
        Content::List(_) => "a list",
        Content::Map(_) => "a map",
    }
}
