//! Every variant that can be journalled is in a golden journal, and every optional field is present
//! in one and absent in another.

use std::collections::{BTreeMap, BTreeSet};

use raymond_store::Journal;
use raymond_store::disk::RealDisk;
use raymond_testkit::journals::{all, directory};
use serde_json::Value as Json;

use crate::source::{Field, Holds, Shape, shapes};

/// The variants and fields that were found: `Event::moved`, `Event::moved.cwd`, and `no
/// Event::moved.cwd`.
struct Found {
    shapes: BTreeMap<String, Shape>,
    met: BTreeSet<String>,
}

impl Found {
    /// Follows a value of a type, as the source defines it.
    fn value(&mut self, of: &str, value: &Json) {
        if let Some(inner) = inside(of, &["Box", "Option"]) {
            if !value.is_null() {
                self.value(inner, value);
            }
        } else if let Some(inner) = inside(of, &["Vec", "BTreeSet"]) {
            for item in value.as_array().into_iter().flatten() {
                self.value(inner, item);
            }
        } else if let Some((_, inner)) =
            inside(of, &["BTreeMap"]).and_then(|it| it.split_once(", "))
        {
            for item in value.as_object().into_iter().flatten().map(|(_, item)| item) {
                self.value(inner, item);
            }
        } else if of == "Value" {
            let form = if value.is_string() { "inline" } else { "blob" };
            self.met.insert(format!("Value::{form}"));
        } else {
            // The shapes already have the defaults of type parameters: `Invoke<String, Value>`.
            let of = of.split('<').next().unwrap_or(of);
            match self.shapes.get(of).cloned() {
                Some(Shape::Struct(fields)) => self.fields(of, &fields, value),
                Some(Shape::Enum(_)) => self.variant(of, value),
                None => {}
            }
        }
    }

    fn variant(&mut self, of: &str, value: &Json) {
        let (name, held) = match value {
            Json::String(name) => (name.as_str(), &Json::Null),
            Json::Object(one) => match one.iter().next() {
                Some((name, held)) => (name.as_str(), held),
                None => return,
            },
            _ => return,
        };
        let path = format!("{of}::{name}");
        self.met.insert(path.clone());
        let Some(Shape::Enum(variants)) = self.shapes.get(of) else { return };
        let holds = variants.iter().find(|variant| variant.name == name);
        match holds.map(|variant| variant.holds.clone()) {
            Some(Holds::One(inner)) => self.value(&inner.replace("Self", of), held),
            Some(Holds::Fields(fields)) => self.fields(&path, &fields, held),
            Some(Holds::Nothing) | None => {}
        }
    }

    fn fields(&mut self, path: &str, fields: &[Field], value: &Json) {
        for Field { name, of, may_be_absent } in fields {
            match value.get(name) {
                Some(value) => {
                    if *may_be_absent {
                        self.met.insert(format!("{path}.{name}"));
                    }
                    self.value(&of.replace("Self", path.split("::").next().unwrap_or(path)), value);
                }
                None => drop(self.met.insert(format!("no {path}.{name}"))),
            }
        }
    }
}

fn inside<'t>(of: &'t str, around: &[&str]) -> Option<&'t str> {
    let (outer, inner) = of.split_once('<')?;
    around.contains(&outer).then(|| inner.strip_suffix('>')).flatten()
}

/// Returns all variants and fields, from these types on. The type of a field that is never written
/// is not followed.
fn everything(
    shapes: &BTreeMap<String, Shape>,
    roots: [&str; 2],
    unwritten: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut waiting: Vec<String> = roots.map(str::to_owned).to_vec();
    let mut known = BTreeSet::new();
    while let Some(of) = waiting.pop() {
        let names = of.split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned);
        for name in names.filter(|name| known.insert(name.clone())) {
            let mut fields = |path: &str, fields: &[Field]| {
                for Field { name, of, may_be_absent } in fields {
                    if !unwritten.contains(&format!("{path}.{name}")) {
                        waiting.push(of.clone());
                    }
                    if *may_be_absent {
                        all.extend([format!("{path}.{name}"), format!("no {path}.{name}")]);
                    }
                }
            };
            match shapes.get(&name) {
                Some(Shape::Struct(of)) => fields(&name, of),
                Some(Shape::Enum(variants)) => {
                    for variant in variants {
                        let path = format!("{name}::{}", variant.name);
                        if let Holds::Fields(of) = &variant.holds {
                            fields(&path, of);
                        }
                    }
                    for variant in variants {
                        all.insert(format!("{name}::{}", variant.name));
                        if let Holds::One(of) = &variant.holds {
                            waiting.push(of.clone());
                        }
                    }
                }
                None => {}
            }
        }
    }
    all.extend(["Value::inline", "Value::blob"].map(str::to_owned));
    all
}

/// Reads the exceptions, each with its reason: `NAME | REASON`.
fn unwritten() -> BTreeSet<String> {
    let text = std::fs::read_to_string(directory().join("unwritten.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(" | ").expect("a reason").0.trim().to_owned()).collect()
}

// proves: P7
#[test]
fn golden_journals_cover_every_variant_and_field() {
    let shapes = shapes();
    let listed = unwritten();
    let all_there_is = everything(&shapes, ["Event", "Input"], &listed);
    for known in ["Event::moved.cwd", "StepEvent::parked", "Tag::fork.next", "Invoke.model"] {
        assert!(all_there_is.contains(known), "the source of {known} was not understood");
    }
    let mut found = Found { shapes, met: BTreeSet::new() };
    for golden in all().unwrap() {
        let read = Journal::read(&RealDisk, &golden.journal()).unwrap();
        for line in read.lines.iter() {
            let record: Json = serde_json::from_slice(line.body).unwrap();
            for step in record["steps"].as_array().into_iter().flatten() {
                found.value("Input", &step["cause"]);
                found.value("Vec<Event>", &step["events"]);
            }
        }
    }
    let missing: BTreeSet<String> = all_there_is.difference(&found.met).cloned().collect();
    let new: Vec<&String> = missing.difference(&listed).collect();
    assert!(new.is_empty(), "in no golden journal: {new:#?}");
    let written: Vec<&String> = listed.difference(&missing).collect();
    assert!(written.is_empty(), "listed as unwritten, and written: {written:#?}");
}
