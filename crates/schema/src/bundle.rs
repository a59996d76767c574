//! A schema and all documents that it refers to, as one document.
//!
//! The given schema stays the root. Every named document becomes one definition of it, and every
//! reference becomes a pointer. A schema that is nothing but a name is replaced by the document of
//! that name. All documents must have the same draft, because a bundle can declare only one.
//! [`rewrite`] writes the bundle.
//!
//! `jsonschema::options().bundle()` does not serve: it leaves every `$ref` as it is and adds an
//! `$id` to each document, so most other readers cannot resolve the bundle. It loses documents that
//! are booleans, have an `$id`, or share a name with a definition. Its errors name neither file nor
//! place, and a chain of 3,000 documents overflows a stack of 2 MiB.

mod rewrite;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::dialect::Dialect;
use crate::document::{self, Index, Keyword, Target};
use crate::keywords::is_schema;
use crate::message::cut;
use crate::pointer::{join, split_first};
use crate::reference::Reference;
use crate::{FaultKind, Library, NESTING_MAX, SchemaFault, validation};

/// A schema without references to other documents.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) value: Value,
    pub(crate) dialect: Dialect,
    /// The deepest nesting of any document, in JSON levels.
    pub(crate) nesting: usize,
    pub(crate) documents: Vec<BundledDocument>,
    names: BTreeMap<String, usize>,
}

#[derive(Debug)]
pub(crate) struct BundledDocument {
    pub(crate) value: Value,
    pub(crate) index: Index,
    /// The JSON pointer of its place in the bundle.
    pub(crate) place: String,
    origin: Origin,
}

/// The origin of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Given,
    Named {
        name: String,
        /// The pointer in the given schema through which it was first reached.
        at: String,
    },
}

/// Reads a schema and all documents that it refers to.
pub(crate) fn gather(source: &Value, library: &dyn Library) -> Result<Bundle, Vec<SchemaFault>> {
    let mut gatherer = Gatherer { library, faults: Vec::new() };
    let start = gatherer.start(source).ok_or_else(|| gatherer.faults.clone());
    let Start { value, origin, dialect } = start?;
    let mut bundle = Bundle {
        value: Value::Null,
        dialect,
        nesting: 0,
        documents: Vec::new(),
        names: BTreeMap::new(),
    };
    // A root that came by name is known under that name, so that references to it lead back to the
    // root.
    if let Origin::Named { name, .. } = &origin {
        bundle.names.insert(name.clone(), 0);
    }
    gatherer.admit(&mut bundle, value, origin);
    // Reading a document may add others to the end of the list.
    let mut next = 0;
    while next < bundle.documents.len() {
        gatherer.follow(&mut bundle, next);
        next += 1;
    }
    // Only the whole bundle shows whether an anchor of one name exists in several documents.
    gatherer.faults.extend(bundle.ambiguous_references());
    if !gatherer.faults.is_empty() {
        return Err(gatherer.faults);
    }
    rewrite::rewrite(&mut bundle);
    Ok(bundle)
}

struct Gatherer<'a> {
    library: &'a dyn Library,
    faults: Vec<SchemaFault>,
}

/// The document that a bundle is built around.
struct Start {
    value: Value,
    origin: Origin,
    dialect: Dialect,
}

impl Gatherer<'_> {
    /// Follows names while the schema is nothing but a name.
    fn start(&mut self, source: &Value) -> Option<Start> {
        let mut start =
            Start { value: source.clone(), origin: Origin::Given, dialect: Dialect::default() };
        let mut declared = None;
        let mut passed = BTreeSet::new();
        loop {
            declared = match agreed(&start.value, declared) {
                Ok(agreed) => agreed,
                Err((kind, message)) => {
                    self.faults.push(start.origin.fault("/$schema", kind, message));
                    return None;
                }
            };
            let Some(name) = only_a_name(&start.value) else { break };
            // Only here can names form a circle without a schema in between; `graph` finds all
            // other circles.
            if !passed.insert(name.clone()) {
                let message = format!("`{name}` is nothing but a reference that leads to itself");
                self.faults.push(start.origin.fault("/$ref", FaultKind::Circular, message));
                return None;
            }
            start.value = self.find(&name, &start.origin, "/$ref")?;
            start.origin = start.origin.leads_to(&name, "/$ref");
        }
        start.dialect = declared.unwrap_or_default();
        Some(start)
    }

    /// Reads the documents that a document refers to by name.
    fn follow(&mut self, bundle: &mut Bundle, index: usize) {
        let document = &bundle.documents[index];
        let named = document.index.sites.iter().filter_map(|site| match &site.target {
            Target::Document(name) => Some((name.clone(), join(&site.at, site.keyword.text()))),
            Target::Here(_) => None,
        });
        let mut named: Vec<_> = named.collect();
        // Sorted, so that the keys of the definitions do not depend on the order of the walk.
        named.sort();
        let origin = document.origin.clone();
        for (name, at) in named {
            if bundle.names.contains_key(&name) {
                continue;
            }
            // Before the document is read: two documents that name each other would otherwise be
            // read without end.
            bundle.names.insert(name.clone(), bundle.documents.len());
            let Some(value) = self.find(&name, &origin, &at) else { continue };
            let origin = origin.leads_to(&name, &at);
            // `Name` and `Name.json` are usually the same document.
            match bundle.documents.iter().position(|document| document.value == value) {
                Some(same) => drop(bundle.names.insert(name, same)),
                None => self.admit(bundle, value, origin),
            }
        }
    }

    /// Returns the document of a name, or reports why it has none.
    fn find(&mut self, name: &str, from: &Origin, at: &str) -> Option<Value> {
        let (kind, message) = match self.library.find(name) {
            Ok(Some(value)) if is_schema(&value) => return Some(value),
            Ok(Some(_)) => {
                (FaultKind::Invalid, format!("`{name}` is neither an object nor a boolean"))
            }
            Ok(None) => {
                let places = self.library.places().map(|places| format!(" ({places})"));
                let places = places.unwrap_or_default();
                (FaultKind::Missing, format!("there is no schema named `{name}`{places}"))
            }
            Err(why) => {
                (FaultKind::Unreadable, format!("could not read the schema `{name}`: {why}"))
            }
        };
        self.faults.push(from.fault(at, kind, cut(message)));
        None
    }

    /// Adds a document to the bundle if it is valid by itself.
    fn admit(&mut self, bundle: &mut Bundle, value: Value, origin: Origin) {
        // As a definition it is two levels deeper, and the bundle must be a valid schema, too.
        let outside = if bundle.documents.is_empty() { 0 } else { 2 };
        let nesting = validation::depth(&value) + outside;
        match read(&value, nesting, bundle.dialect) {
            Ok(index) => {
                bundle.nesting = bundle.nesting.max(nesting);
                let place = String::new();
                bundle.documents.push(BundledDocument { value, index, place, origin });
            }
            Err(faults) => {
                // Their paths start at the document; a user needs paths from the given schema.
                let from_origin = |SchemaFault { path, kind, message }: SchemaFault| {
                    origin.fault(&path, kind, message)
                };
                self.faults.extend(faults.into_iter().map(from_origin));
            }
        }
    }
}

fn read(value: &Value, nesting: usize, dialect: Dialect) -> Result<Index, Vec<SchemaFault>> {
    let fault = |at: &str, kind, message: String| Err(vec![SchemaFault::new(at, kind, message)]);
    if !is_schema(value) {
        return fault("", FaultKind::Invalid, "a schema is an object or a boolean".to_owned());
    }
    // Before the meta-schema is applied, because its validator recurses.
    if nesting > NESTING_MAX {
        return fault(
            "",
            FaultKind::TooDeep,
            format!("the schema has {nesting} levels, and {NESTING_MAX} are the most"),
        );
    }
    if let Err((kind, message)) = agreed(value, Some(dialect)) {
        return fault("/$schema", kind, message);
    }
    let faults = validation::schema_faults(value, nesting, dialect);
    if faults.is_empty() { document::index(value, dialect) } else { Err(faults) }
}

/// Returns the draft of a document, which must agree with the documents that refer to it.
fn agreed(
    document: &Value,
    outer: Option<Dialect>,
) -> Result<Option<Dialect>, (FaultKind, String)> {
    let own =
        Dialect::declared(document.get("$schema")).map_err(|why| (FaultKind::Invalid, why))?;
    match (own, outer) {
        (Some(own), Some(outer)) if own != outer => {
            let (own, outer) = (own.name(), outer.name());
            let message = format!(
                "this is written in {own} and what refers to it in {outer}: give both one `$schema`"
            );
            Err((FaultKind::Draft, message))
        }
        _ => Ok(own.or(outer)),
    }
}

/// Returns the name of a schema that is nothing but a name.
fn only_a_name(schema: &Value) -> Option<String> {
    let schema = schema.as_object()?;
    // Another keyword beside the name would be lost if the document replaced the schema.
    if schema.keys().any(|key| key != "$ref" && key != "$schema") {
        return None;
    }
    match Reference::read(schema.get("$ref")?.as_str()?) {
        Ok(Reference::Name(name)) => Some(name),
        Ok(Reference::Pointer(_) | Reference::Anchor(_)) | Err(_) => None,
    }
}

impl Origin {
    /// Returns the origin of a document that this one names at a place.
    fn leads_to(&self, name: &str, at: &str) -> Self {
        // Faults are reported at the place in the given schema, which is the only one that users
        // know.
        let at = match self {
            Self::Given => at,
            Self::Named { at, .. } => at,
        };
        Self::Named { name: name.to_owned(), at: at.to_owned() }
    }

    fn fault(&self, at: &str, kind: FaultKind, message: String) -> SchemaFault {
        match self {
            Self::Given => SchemaFault::new(at, kind, message),
            Self::Named { name, at: named } if at.is_empty() => {
                SchemaFault::new(named, kind, format!("in `{name}`: {message}"))
            }
            Self::Named { name, at: named } => {
                SchemaFault::new(named, kind, format!("in `{name}` at {at}: {message}"))
            }
        }
    }
}

impl Bundle {
    /// Returns the pointer in the bundle that a reference leads to.
    pub(crate) fn target(&self, from: &BundledDocument, target: &Target) -> String {
        match target {
            Target::Here(pointer) => format!("{}{pointer}", from.place),
            Target::Document(name) => {
                // Every name has a document here: `gather` fails if one is missing.
                let index = self.names.get(name).copied().unwrap_or_default();
                self.documents.get(index).map_or_else(String::new, |there| there.place.clone())
            }
        }
    }

    /// Returns a fault at a place of the bundle, reported where its cause was written.
    pub(crate) fn fault(&self, place: &str, kind: FaultKind, message: String) -> SchemaFault {
        let inside = |document: &&BundledDocument| {
            let rest = place.strip_prefix(document.place.as_str());
            // The root has an empty place, which is a prefix of everything, so it is only the
            // fallback.
            !document.place.is_empty()
                && rest.is_some_and(|rest| rest.is_empty() || split_first(rest).is_some())
        };
        let document = self.documents.iter().find(inside).or_else(|| self.documents.first());
        match document {
            Some(found) => found.origin.fault(&place[found.place.len()..], kind, message),
            None => SchemaFault::new(place, kind, message),
        }
    }

    /// Returns faults for dynamic references whose target depends on the referring document. A
    /// bundle has no resources that could distinguish them.
    fn ambiguous_references(&self) -> Vec<SchemaFault> {
        let dynamic: Vec<_> = self.documents.iter().flat_map(|d| &d.index.dynamic).collect();
        let recursive: usize = self.documents.iter().map(|d| d.index.recursive.len()).sum();
        let mut faults = Vec::new();
        for document in &self.documents {
            for site in &document.index.sites {
                let shifts = match &site.keyword {
                    Keyword::Ref | Keyword::Dynamic(None) => false,
                    Keyword::Dynamic(Some(name)) => {
                        dynamic.iter().filter(|other| **other == name).count() > 1
                    }
                    Keyword::Recursive(resource) => {
                        recursive > 1 && document.index.recursive.contains(resource)
                    }
                };
                if shifts {
                    let keyword = site.keyword.text();
                    let message =
                        format!("this `{keyword}` has several targets: name one by `$ref`");
                    let at = join(&site.at, keyword);
                    faults.push(document.origin.fault(&at, FaultKind::Reference, message));
                }
            }
        }
        faults
    }
}
