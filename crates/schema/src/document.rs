//! One document: where its schemas are, what they are called and to what they refer.
//!
//! An id starts a resource of its own: references beside and below it are read from there. It gives
//! no address to anything, so it can neither make a reference leave nor catch one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::Kind;
use crate::dialect::Dialect;
use crate::keywords;
use crate::pointer::{join, split_first};
use crate::reference::Reference;

/// What was found in a document. Everything is known by its JSON pointer.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Every schema, with the root of its resource.
    pub(crate) schemas: BTreeMap<String, String>,
    /// Every reference.
    pub(crate) sites: Vec<Site>,
    /// The names of dynamic anchors, once for each resource that has one.
    pub(crate) dynamic: Vec<String>,
    /// The resources that are anchors of `$recursiveRef`.
    pub(crate) recursive: BTreeSet<String>,
    anchors: BTreeMap<(String, String), String>,
}

/// A place that refers to another.
#[derive(Debug)]
pub(crate) struct Site {
    /// The schema that refers.
    pub(crate) at: String,
    /// By which keyword.
    pub(crate) keyword: Keyword,
    /// To what.
    pub(crate) target: Target,
}

/// How a schema refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keyword {
    Ref,
    /// `$dynamicRef`, to this dynamic anchor if it is one.
    Dynamic(Option<String>),
    /// `$recursiveRef`, in this resource.
    Recursive(String),
}

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// To a schema of the same document.
    Here(String),
    /// To the document of this name.
    Document(String),
}

/// What is wrong, and where in the document.
pub(crate) type Flaw = (String, Kind, String);

impl Keyword {
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Ref => "$ref",
            Self::Dynamic(_) => "$dynamicRef",
            Self::Recursive(_) => "$recursiveRef",
        }
    }
}

/// Reads a document.
pub(crate) fn survey(document: &Value, dialect: Dialect) -> Result<Survey, Vec<Flaw>> {
    let mut reader =
        Reader { document, dialect, found: Survey::default(), flaws: Vec::new(), open: Vec::new() };
    reader.walk(String::new(), String::new());
    // A place that is no schema by its keyword becomes one when something refers to it.
    // An anchor may stand in such a place: anchors are looked for last.
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
    if reader.flaws.is_empty() {
        Ok(reader.found)
    } else {
        reader.flaws.sort();
        Err(reader.flaws)
    }
}

struct Reader<'a> {
    document: &'a Value,
    dialect: Dialect,
    found: Survey,
    flaws: Vec<Flaw>,
    open: Vec<Open>,
}

/// A reference that was read and not yet followed.
struct Open {
    at: String,
    keyword: Keyword,
    reference: Reference,
    resource: String,
}

impl Reader<'_> {
    fn walk(&mut self, at: String, resource: String) {
        let mut ahead = vec![(at, resource)];
        while let Some((at, resource)) = ahead.pop() {
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

    /// Takes in the names of a schema; returns its resource.
    fn named(&mut self, at: &str, schema: &Map<String, Value>, outer: String) -> String {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let mut resource = outer;
        let mut anchor = None;
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
        let (kind, flaw) = match Dialect::declared(schema.get("$schema")) {
            Ok(None) => return,
            Ok(Some(dialect)) if at.is_empty() || dialect == self.dialect => return,
            Ok(Some(dialect)) => {
                let (inner, outer) = (dialect.name(), self.dialect.name());
                (Kind::Draft, format!("a schema of {inner} cannot stand inside one of {outer}"))
            }
            Err(message) => (Kind::Invalid, message),
        };
        self.flaws.push((join(at, "$schema"), kind, flaw));
    }

    fn anchor(&mut self, at: &str, resource: &str, name: Option<&str>) {
        let Some(name) = name else { return };
        let key = (resource.to_owned(), name.to_owned());
        let before = self.found.anchors.insert(key, at.to_owned());
        if before.is_some_and(|before| before != at) {
            let message = format!("the anchor `{name}` stands twice");
            self.flaws.push((at.to_owned(), Kind::Invalid, message));
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
                Ok(Reference::Name(name)) if *keyword != Keyword::Ref => {
                    let message =
                        format!("a `{}` stays in its document, unlike `{name}`", keyword.text());
                    self.flaws.push((join(at, keyword.text()), Kind::Reference, message));
                }
                Ok(reference) => self.open.push(Open {
                    at: at.to_owned(),
                    keyword: keyword.clone(),
                    reference,
                    resource: resource.to_owned(),
                }),
                Err(message) => {
                    self.flaws.push((join(at, keyword.text()), Kind::Reference, message));
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
            Err(message) => self.flaws.push((join(&at, keyword.text()), Kind::Reference, message)),
        }
    }

    /// The schema at a pointer; whatever it holds is read, too.
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
            if keywords::holds_data(keyword) {
                return Err(format!("what is at {pointer} is no schema, but data"));
            }
            let resource = self.found.schemas.get(outer).cloned().unwrap_or_default();
            self.walk(pointer.clone(), resource);
        }
        Ok(Target::Here(pointer))
    }

    /// The innermost schema around a place.
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
