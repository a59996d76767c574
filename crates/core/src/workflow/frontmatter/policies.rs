//! Reads the three forms of a policy.
//!
//! Which keys an entry may have follows from the specification of its tag. Names of states are
//! collected with their places and checked when all files are known. How the forms work together is
//! in [`crate::workflow::policy`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::protocol::TagName;
use crate::protocol::tags::Body;

use super::Role;
use super::reader::{Entry, Reader};
use crate::protocol::{Need, Route};
use crate::text::nearest;
use crate::yaml::{Content, Node};

/// Entries in one list. Two lists are combined pair by pair, so the bound keeps a hostile file
/// cheap.
const MOST_ENTRIES: usize = 1_000;

impl Reader<'_> {
    /// Reads `allowed_tags`.
    pub(super) fn tags(&mut self, node: &Node) -> Option<Vec<TagName>> {
        let items = self.items("`allowed_tags`", node)?;
        let mut tags: Vec<TagName> = Vec::new();
        for item in items {
            if let Some(tag) = self.tag("an entry of `allowed_tags`", item)
                && !tags.contains(&tag)
            {
                tags.push(tag);
            }
        }
        Some(tags)
    }

    /// Reads `allowed_targets`.
    pub(super) fn targets(&mut self, node: &Node) -> BTreeMap<TagName, Vec<Route>> {
        let mut targets = BTreeMap::new();
        for entry in self.entries("`allowed_targets`", node).unwrap_or_default() {
            let Some(tag) = self.tag_named("a key of `allowed_targets`", entry.key, entry.span)
            else {
                continue;
            };
            let what = format!("`allowed_targets.{tag}`");
            if tag.spec().body != Body::Target && tag.spec().follower.is_none() {
                let message = format!("a {tag} has no target that could be allowed");
                let hint = format!("name `{tag}` in `allowed_tags`");
                self.error_with_hint(entry.span, "misplaced-key", message, Some(hint));
            } else if let Some(items) = self.items(&what, entry.value)
                && self.has_room(&what, items.len(), entry.value)
            {
                let list = items.iter().filter_map(|item| self.target(tag, item));
                targets.insert(tag, once_each(list));
            }
        }
        targets
    }

    /// Reads `allowed_transitions`.
    pub(super) fn transitions(&mut self, node: &Node) -> Option<Vec<(TagName, Route)>> {
        let what = "`allowed_transitions`";
        let items = self.items(what, node)?;
        if !self.has_room(what, items.len(), node) {
            return None;
        }
        let list = items.iter().filter_map(|item| self.transition(item));
        Some(once_each(list))
    }

    /// Reads a name, or a map of `child` with `return` or `next`.
    fn target(&mut self, tag: TagName, node: &Node) -> Option<Route> {
        let place = format!(" in `allowed_targets.{tag}`");
        if !matches!(node.content, Content::Map(_)) {
            let what = format!("a target{place}");
            return Some(match tag.spec().body {
                Body::Target => {
                    let target = self.name(&what, node, Role::Policy(tag))?;
                    Route { target: Some(target), ..Route::default() }
                }
                // The tag names its only state in an attribute.
                Body::Payload(_) => {
                    let then = self.name(&what, node, Role::Following(tag))?;
                    Route { then: Some(then), ..Route::default() }
                }
            });
        }
        let entries = self.entries(&format!("an entry of `allowed_targets.{tag}`"), node)?;
        let known = known_keys(tag, "child");
        Some(self.allowed(tag, &entries, &known, &place))
    }

    /// Reads a map of `tag`, `target`, and `return` or `next`.
    fn transition(&mut self, node: &Node) -> Option<(TagName, Route)> {
        let mut entries = self.entries("an entry of `allowed_transitions`", node)?;
        let Some(position) = entries.iter().position(|entry| entry.key == "tag") else {
            let message = "an entry of `allowed_transitions` names no `tag`; write { tag: goto, \
                           target: STATE }";
            let message = message.to_owned();
            self.error(&node.span, "missing-key", message);
            return None;
        };
        let named = entries.remove(position);
        let tag = self.tag("`tag`", named.value)?;
        let mut known = known_keys(tag, "target");
        if tag == TagName::Goto {
            known.push("wait");
        }
        Some((tag, self.allowed(tag, &entries, &known, " in `allowed_transitions`")))
    }

    fn allowed(
        &mut self,
        tag: TagName,
        entries: &[Entry<'_>],
        known: &[&'static str],
        place: &str,
    ) -> Route {
        let mut allowed = Route::default();
        for entry in entries {
            let what = format!("`{}`{place}", entry.key);
            match (entry.key, known.contains(&entry.key)) {
                ("child" | "target", true) => {
                    allowed.target = self.name(&what, entry.value, Role::Policy(tag));
                }
                ("wait", true) => allowed.wait = self.need(&what, entry.value),
                (_, true) => allowed.then = self.name(&what, entry.value, Role::Following(tag)),
                ("child" | "target" | "return" | "next" | "wait", false) => {
                    self.misplaced(tag, entry, place, known);
                }
                (_, false) => self.unknown_key(entry, place, known),
            }
        }
        allowed
    }

    /// Reads the `wait` of a `goto`: a word or a number.
    fn need(&mut self, what: &str, node: &Node) -> Option<Need> {
        let word = if let Content::Number(number) = &node.content {
            number.clone()
        } else {
            self.string(what, node)?
        };
        let need = Need::parse(&word);
        if need.is_none() {
            let message = format!("{what} must be {}, not {word:?}", Need::WORDS);
            self.error(&node.span, "one-of", message);
        }
        need
    }

    fn misplaced(&mut self, tag: TagName, entry: &Entry<'_>, place: &str, known: &[&str]) {
        let message = format!("`{}` has no effect for {tag}{place}", entry.key);
        let hint = match known {
            [] => None,
            known => Some(format!("known keys: {}", known.join(", "))),
        };
        self.error_with_hint(entry.span, "misplaced-key", message, hint);
    }

    fn has_room(&mut self, what: &str, entries: usize, node: &Node) -> bool {
        let fits = entries <= MOST_ENTRIES;
        if !fits {
            let message = format!("{what} has {entries} entries; at most {MOST_ENTRIES} are read");
            self.error(&node.span, "too-many-entries", message);
        }
        fits
    }

    fn tag(&mut self, what: &str, node: &Node) -> Option<TagName> {
        let word = self.string(what, node)?;
        self.tag_named(what, &word, &node.span)
    }

    fn tag_named(&mut self, what: &str, word: &str, span: &Range<usize>) -> Option<TagName> {
        let tag = TagName::ALL.into_iter().find(|tag| tag.as_str() == word);
        if tag.is_none() {
            let names = TagName::ALL.map(TagName::as_str);
            let message = format!("{what} must be a tag, but {word:?} is not a tag");
            let hint = match nearest(word, names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("the tags are {}", names.join(", ")),
            };
            self.error_with_hint(span, "unknown-tag", message, Some(hint));
        }
        tag
    }
}

fn known_keys(tag: TagName, target: &'static str) -> Vec<&'static str> {
    let spec = tag.spec();
    let target = (spec.body == Body::Target).then_some(target);
    target.into_iter().chain(spec.follower.map(|follower| follower.attribute)).collect()
}

fn once_each<T: Ord + Clone>(items: impl Iterator<Item = T>) -> Vec<T> {
    // A set, because searching the list for each of 1,000 entries would be quadratic.
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}
