//! Writes the documents of a bundle as one, with every reference a pointer.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Bundle, BundledDocument, Origin};
use crate::dialect::Dialect;
use crate::document::Keyword;
use crate::pointer::{fragment, join};

/// Keywords that name a schema. They are removed, because nothing refers to them in a bundle.
const NAMES: [&str; 4] = ["$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

pub(super) fn rewrite(bundle: &mut Bundle) {
    let keyword = bundle.dialect.definitions();
    assign_places(bundle);
    let mut written = bundle.documents.iter().map(|document| document.written(bundle));
    let mut whole = written.next().unwrap_or(Value::Bool(true));
    let rest: Vec<_> = written.collect();
    if let (Value::Object(schema), false) = (&mut whole, rest.is_empty()) {
        let definitions = schema.entry(keyword).or_insert_with(|| json!({}));
        if let Value::Object(definitions) = definitions {
            let places = bundle.documents.iter().skip(1).map(BundledDocument::key);
            definitions.extend(places.zip(rest));
        }
    }
    bundle.value = whole;
}

// The first document is the root; the others are definitions with unique keys.
fn assign_places(bundle: &mut Bundle) {
    let keyword = bundle.dialect.definitions();
    // The definitions of the root keep their keys, because its own pointers lead to them.
    let own = bundle.documents.first().and_then(|first| first.value.get(keyword));
    let own = own.and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut taken: BTreeSet<String> = own.cloned().collect();
    for document in bundle.documents.iter_mut().skip(1) {
        let name = match &document.origin {
            Origin::Named { name, .. } => name.as_str(),
            Origin::Given => "schema",
        };
        let plain = name.strip_suffix(".json").filter(|plain| !plain.is_empty()).unwrap_or(name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut keys = std::iter::once(plain.to_owned()).chain(numbered);
        let key = keys.find(|key| !taken.contains(key)).unwrap_or_default();
        document.place = join(&format!("/{keyword}"), &key);
        taken.insert(key);
    }
}

impl BundledDocument {
    /// Returns its key among the definitions.
    fn key(&self) -> String {
        let key = self.place.rsplit('/').next().unwrap_or_default();
        key.replace("~1", "/").replace("~0", "~")
    }

    fn written(&self, bundle: &Bundle) -> Value {
        let mut value = self.value.clone();
        for at in self.index.schemas.keys() {
            let Some(Value::Object(schema)) = value.pointer_mut(at) else { continue };
            for keyword in NAMES {
                schema.remove(keyword);
            }
            // Only draft 4 has `id`. In later drafts it is an unknown keyword and stays.
            if bundle.dialect == Dialect::Draft4 && schema.get("id").is_some_and(Value::is_string) {
                schema.remove("id");
            }
            // Only the root declares the draft, because all documents of a bundle have the same
            // one.
            let declared = schema.remove("$schema").is_some();
            let is_whole = self.place.is_empty() && at.is_empty();
            if is_whole && (declared || bundle.dialect != Dialect::default()) {
                schema.insert("$schema".to_owned(), bundle.dialect.uri().into());
            }
        }
        for site in &self.index.sites {
            let Some(Value::Object(schema)) = value.pointer_mut(&site.at) else { continue };
            let text: Value = fragment(&bundle.target(self, &site.target)).into();
            if site.keyword != Keyword::Ref {
                schema.remove(site.keyword.text());
            }
            refer(schema, &site.keyword, text);
        }
        value
    }
}

// A schema can have only one `$ref`, so a second reference is added to `allOf`.
fn refer(schema: &mut Map<String, Value>, keyword: &Keyword, text: Value) {
    if *keyword == Keyword::Ref || !schema.contains_key("$ref") {
        schema.insert("$ref".to_owned(), text);
        return;
    }
    match schema.entry("allOf").or_insert_with(|| json!([])) {
        Value::Array(all) => all.push(json!({ "$ref": text })),
        other => *other = json!([{ "$ref": text }]),
    }
}
