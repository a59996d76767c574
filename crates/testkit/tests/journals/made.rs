//! Writes golden journals: from the workflows of the crash sweep without faults, from simulated
//! runs with faults, and from recipes, which define every event.
//!
//! Tests of the real binary write further ones.

mod builder;
mod recipes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use raymond_core::decide::replay::Sources as _;
use raymond_core::run::record::FORMAT;
use raymond_core::run::{Event, Header, Input, Record};
use raymond_core::value::{BlobRef, Hash, Value};
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_engine::pin::Pin;
use raymond_engine::scope::{LoadedScope, ScopeOrigin};
use raymond_store::Blobs;
use raymond_store::disk::Memory;
use raymond_testkit::journals::{Golden, NewGolden};
use raymond_testkit::sim::host::Host;
use raymond_testkit::sim::machine;
use raymond_testkit::steps::drive;
use raymond_testkit::sweep::{Case, corpus, undisturbed};
use serde_json::Map;

/// Simulated runs with events that no other golden journal contains.
const SEEDS: &[u64] = &[11, 29, 123, 186, 226];

#[test]
fn golden_journals_are_written_once() {
    let update = std::env::var_os("UPDATE").is_some();
    let makers = corpus().map(|case| (format!("swept-{}", case.name), Maker::Case(case)));
    let seeds = SEEDS.iter().map(|seed| (format!("simulated-{seed}"), Maker::Seed(*seed)));
    let recipes = recipes::RECIPES
        .iter()
        .map(|(name, recipe)| (format!("played-{name}"), Maker::Recipe(*recipe)));
    for (name, maker) in makers.chain(seeds).chain(recipes) {
        if !Golden::named(&name).exists() {
            assert!(update, "{name} does not exist: UPDATE=1 makes it");
            maker.make(&name).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

enum Maker {
    Case(&'static Case),
    Seed(u64),
    Recipe(recipes::Recipe),
}

impl Maker {
    fn make(&self, name: &str) -> Result<(), String> {
        let text = |why: raymond_testkit::violation::Violation| why.to_string();
        match self {
            Self::Case(case) => {
                let document = case.steps.map(|(text, ..)| serde_json::from_str(text));
                let document = document.transpose().map_err(|error| error.to_string())?;
                let document = document.map(|document| drive::file(&document, &Map::new()));
                seal(name, &undisturbed(case).map_err(text)?, document.as_ref())
            }
            Self::Seed(seed) => seal(name, &machine(*seed).map_err(text)?, None),
            Self::Recipe(recipe) => recipe().seal(name),
        }
    }
}

/// Writes the journal of a simulated machine, as if its definitions had been pinned.
fn seal(name: &str, host: &Host, document: Option<&SourceFile>) -> Result<(), String> {
    let pins = blobs();
    let mut manifests = BTreeMap::new();
    for (manifest, definition) in host.definitions() {
        let pinned = match document {
            Some(document) => loaded(vec![document.clone()], EntryPoint::Steps),
            None => loaded(files(definition), EntryPoint::State(definition.entry.to_string())),
        };
        let pinned = Pin::of(&pinned).store(&pins).map_err(|error| error.to_string())?;
        manifests.insert(manifest.clone(), pinned);
    }
    let mut records = host.world.borrow().records.clone();
    for record in &mut records {
        repin(record, &manifests);
    }
    let blob = |hash: &str| {
        let reference = BlobRef { hash: Hash::known(hash.to_owned()), length: 0 };
        pins.get(hash)
            .or_else(|_| host.text(&reference).map(String::into_bytes))
            .map_err(|why| why.to_string())
    };
    write(name, &records, &blob)
}

fn write(
    name: &str,
    records: &[Record],
    blob: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let Some(Input::Start(start)) = records.first().map(|record| &record.steps[0].cause) else {
        return Err("it does not begin with a start".to_owned());
    };
    let header = Header { format: FORMAT, run: start.run.clone(), nonce: start.nonce.clone() };
    let header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    let bodies: Result<Vec<Vec<u8>>, _> = records.iter().map(serde_json::to_vec).collect();
    let bodies = bodies.map_err(|error| error.to_string())?;
    NewGolden { name, header, bodies, blob }.write()
}

fn blobs() -> Blobs {
    let disk = Memory::new(1);
    let blobs = PathBuf::from("/blobs");
    raymond_store::disk::Disk::create_dir(&disk, &blobs).expect("a new disk has room");
    Blobs::new(Arc::new(disk), blobs)
}

fn files(definition: &Definition) -> Vec<SourceFile> {
    definition.states.values().map(|state| state.source.clone()).collect()
}

fn loaded(files: Vec<SourceFile>, start: EntryPoint) -> LoadedScope {
    let (scope, origin) = (PathBuf::from("/flow"), ScopeOrigin::Directory);
    LoadedScope { scope, start, files, origin, warnings: Vec::new() }
}

fn repin(record: &mut Record, manifests: &BTreeMap<Value, Value>) {
    let repin = |manifest: &mut Value| {
        if let Some(pinned) = manifests.get(manifest) {
            *manifest = pinned.clone();
        }
    };
    for step in &mut record.steps {
        match &mut step.cause {
            Input::Start(start) => repin(&mut start.manifest),
            Input::Adopt { manifest, .. } => repin(manifest),
            _ => {}
        }
        for event in &mut step.events {
            match event {
                Event::RunStarted(start) => repin(&mut start.manifest),
                Event::DefinitionAdopted { manifest } => repin(manifest),
                _ => {}
            }
        }
    }
}
