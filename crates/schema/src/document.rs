//! Indexes one document: its schemas, their names and their references.
//!
//! An id starts a resource: references beside and below it are relative to the resource. An id is
//! never an address, so it cannot make a reference leave the document or redirect one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::keywords;
use crate::pointer::{join, split_first};
use crate::reference::Reference;
use crate::{FaultKind, SchemaFault};

/// The index of a document. Places are JSON pointers.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Every schema, with the root of its resource.
    pub(crate) schemas: BTreeMap<String, String>,
    pub(crate) sites: Vec<Site>,
    /// The names of dynamic anchors, once for each resource that has one.
    pub(crate) dynamic: Vec<String>,
    /// The resources that are anchors of `$recursiveRef`.
    pub(crate) recursive: BTreeSet<String>,
    anchors: BTreeMap<(String, String), String>,
}

/// A reference.
#[derive(Debug)]
pub(crate) struct Site {
    /// The schema that refers.
    pub(crate) at: String,
    pub(crate) keyword: Keyword,
    pub(crate) target: Target,
}

/// The keyword of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keyword {
    Ref,
    /// `$dynamicRef`, with its dynamic anchor if it has one.
    Dynamic(Option<String>),
    /// `$recursiveRef`, with its resource.
    Recursive(String),
}

/// The target of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A schema of the same document.
    Here(String),
    /// The document of this name.
    Document(String),
}

impl Keyword {
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Ref => "$ref",
            Self::Dynamic(_) => "$dynamicRef",
            Self::Recursive(_) => "$recursiveRef",
        }
    }
}

/// Indexes a document, or returns its faults.
pub(crate) fn index(document: &Value, dialect: Dialect) -> Result<Index, Vec<SchemaFault>> {
    let mut reader =
        Reader { document, dialect, found: Index::default(), faults: Vec::new(), open: Vec::new() };
    reader.walk(String::new(), String::new());
    // A reference makes its target a schema even if the keyword there does not. Such a target may
    // contain an anchor, so anchors are resolved last.
    let mut to_anchors = Vec::new();
    while let Some(open) = reader.open.pop() {
        match open.reference {
            Reference::Anchor(_) => to_anchors.push(open),
            Reference::Pointer(_) | Reference::Name(_) => reader.resolve(open),
        }
    }
    for open in to_anchors {
        reader.resolve(open);
    }
    if reader.faults.is_empty() {
        Ok(reader.found)
    } else {
        // The work list yields faults in no useful order, but messages must not change between two
        // checks.
        reader.faults.sort_by(|one, other| {
            (&one.path, one.kind, &one.message).cmp(&(&other.path, other.kind, &other.message))
        });
        Err(reader.faults)
    }
}

struct Reader<'a> {
    document: &'a Value,
    dialect: Dialect,
    found: Index,
    faults: Vec<SchemaFault>,
    open: Vec<Open>,
}

/// A reference that was read but not resolved yet.
struct Open {
    at: String,
    keyword: Keyword,
    reference: Reference,
    resource: String,
}

impl Reader<'_> {
    fn walk(&mut self, at: String, resource: String) {
        // A work list instead of recursion, because documents come from users.
        let mut ahead = vec![(at, resource)];
        while let Some((at, resource)) = ahead.pop() {
            // A reference may lead to a place that the walk has reached already.
            if self.found.schemas.contains_key(&at) {
                continue;
            }
            let Some(value) = self.document.pointer(&at) else { continue };
            let resource = match value {
                Value::Object(schema) => {
                    let resource = self.named(&at, schema, resource);
                    self.refers(&at, schema, &resource);
                    let inner = keywords::inner(&at, schema, self.dialect).into_iter();
                    ahead.extend(inner.map(|inner| (inner.path, resource.clone())));
                    resource
                }
                _ => resource,
            };
            self.found.schemas.insert(at, resource);
        }
    }

    /// Records the names of a schema, and returns its resource.
    fn named(&mut self, at: &str, schema: &Map<String, Value>, outer: String) -> String {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let mut resource = outer;
        let mut anchor = None;
        // In old drafts a `$ref` hides its siblings, including an id.
        let hidden = self.dialect.is_old() && schema.contains_key("$ref");
        match text(self.dialect.id()).filter(|_| !hidden) {
            Some(id) if self.dialect.is_old() && id.starts_with('#') => anchor = Some(&id[1..]),
            Some(_) => at.clone_into(&mut resource),
            None => {}
        }
        self.same_dialect(at, schema);
        if !self.dialect.is_old() {
            anchor = text("$anchor");
        }
        self.anchor(at, &resource, anchor);
        if self.dialect == Dialect::Draft202012
            && let Some(name) = text("$dynamicAnchor")
        {
            self.anchor(at, &resource, Some(name));
            self.found.dynamic.push(name.to_owned());
        }
        let is_recursive = schema.get("$recursiveAnchor") == Some(&Value::Bool(true));
        if self.dialect == Dialect::Draft201909 && is_recursive {
            self.found.recursive.insert(resource.clone());
        }
        resource
    }

    fn same_dialect(&mut self, at: &str, schema: &Map<String, Value>) {
        let (kind, message) = match Dialect::declared(schema.get("$schema")) {
            Ok(None) => return,
            // At the root, `agreed` has compared the drafts already.
            Ok(Some(dialect)) if at.is_empty() || dialect == self.dialect => return,
            Ok(Some(dialect)) => {
                let (inner, outer) = (dialect.name(), self.dialect.name());
                (FaultKind::Draft, format!("a schema of {inner} cannot be inside one of {outer}"))
            }
            Err(message) => (FaultKind::Invalid, message),
        };
        self.faults.push(SchemaFault::new(join(at, "$schema"), kind, message));
    }

    fn anchor(&mut self, at: &str, resource: &str, name: Option<&str>) {
        let Some(name) = name else { return };
        let key = (resource.to_owned(), name.to_owned());
        let before = self.found.anchors.insert(key, at.to_owned());
        // The same place may be seen twice: `$anchor` and `$dynamicAnchor` can have the same name.
        if before.is_some_and(|before| before != at) {
            let message = format!("the anchor `{name}` appears twice");
            self.faults.push(SchemaFault::new(at.to_owned(), FaultKind::Invalid, message));
        }
    }

    fn refers(&mut self, at: &str, schema: &Map<String, Value>, resource: &str) {
        let keywords: &[Keyword] = match self.dialect {
            Dialect::Draft4 | Dialect::Draft6 | Dialect::Draft7 => &[Keyword::Ref],
            Dialect::Draft201909 => &[Keyword::Ref, Keyword::Recursive(resource.to_owned())],
            Dialect::Draft202012 => &[Keyword::Ref, Keyword::Dynamic(None)],
        };
        for keyword in keywords {
            let Some(text) = schema.get(keyword.text()).and_then(Value::as_str) else { continue };
            match Reference::read(text) {
                // The target of a dynamic reference depends on the documents through which it was
                // reached, and a bundle has only one document.
                Ok(Reference::Name(name)) if *keyword != Keyword::Ref => {
                    let message =
                        format!("a `{}` stays in its document, unlike `{name}`", keyword.text());
                    self.faults.push(SchemaFault::new(
                        join(at, keyword.text()),
                        FaultKind::Reference,
                        message,
                    ));
                }
                Ok(reference) => self.open.push(Open {
                    at: at.to_owned(),
                    keyword: keyword.clone(),
                    reference,
                    resource: resource.to_owned(),
                }),
                Err(message) => {
                    self.faults.push(SchemaFault::new(
                        join(at, keyword.text()),
                        FaultKind::Reference,
                        message,
                    ));
                }
            }
        }
    }

    fn resolve(&mut self, open: Open) {
        let Open { at, mut keyword, reference, resource } = open;
        let target = match reference {
            Reference::Name(name) => Ok(Target::Document(name)),
            Reference::Pointer(pointer) => self.place(format!("{resource}{pointer}")),
            Reference::Anchor(name) => {
                let key = (resource, name);
                let found = self.found.anchors.get(&key).cloned().map(Target::Here);
                let found = found.ok_or_else(|| format!("there is no anchor `{}`", key.1));
                if matches!(keyword, Keyword::Dynamic(_)) && self.found.dynamic.contains(&key.1) {
                    keyword = Keyword::Dynamic(Some(key.1));
                }
                found
            }
        };
        match target {
            Ok(target) => self.found.sites.push(Site { at, keyword, target }),
            Err(message) => {
                self.faults.push(SchemaFault::new(
                    join(&at, keyword.text()),
                    FaultKind::Reference,
                    message,
                ));
            }
        }
    }

    /// Resolves a pointer to a schema, and indexes the schema if that has not happened yet.
    fn place(&mut self, pointer: String) -> Result<Target, String> {
        let Some(value) = self.document.pointer(&pointer) else {
            return Err(format!("there is nothing at {pointer}"));
        };
        if !keywords::is_schema(value) {
            return Err(format!("there is no schema at {pointer}"));
        }
        if !self.found.schemas.contains_key(&pointer) {
            let outer = self.around(&pointer);
            let (keyword, _) = split_first(&pointer[outer.len()..]).unwrap_or_default();
            // A `$ref` into `const` or `examples` would turn data of the user into a schema.
            if keywords::holds_data(keyword) {
                return Err(format!("the value at {pointer} is data, not a schema"));
            }
            let resource = self.found.schemas.get(outer).cloned().unwrap_or_default();
            self.walk(pointer.clone(), resource);
        }
        Ok(Target::Here(pointer))
    }

    /// Returns the innermost schema around a place.
    fn around<'p>(&self, pointer: &'p str) -> &'p str {
        let mut outer = pointer;
        while let Some(at) = outer.rfind('/') {
            outer = &outer[..at];
            if self.found.schemas.contains_key(outer) {
                return outer;
            }
        }
        ""
    }
}
