//! Parses files into a definition, and reports every mistake.
//!
//! Files are read one by one. Names of states are checked only when all files are known, because a
//! policy may name any of them. How bad a mistake is depends on [`Reachability`], so it is decided
//! last. The YAML of a single prompt is read in [`frontmatter`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, LocationFinder, Severity};
use crate::ids::StateName;
use crate::value::Hash;

use super::super::frontmatter::{self, Frontmatter, FrontmatterKey, Mention, Role};
use super::super::name::{Unresolved, check_name};
use super::{Definition, EntryPoint, Parsed, Reachability, SourceFile, State, ralph, steps};
use crate::extension::{Extension, is_state};
use crate::extension::{Platform, StateKind};

/// The findings about a state while it is parsed.
#[derive(Default)]
struct Notes {
    mentions: Vec<Mention>,
    keys: Vec<FrontmatterKey>,
    diagnostics: Vec<Diagnostic>,
}

impl Notes {
    /// Whether the frontmatter could not be read completely. An unknown key hides nothing that was
    /// read.
    fn is_broken(&self) -> bool {
        self.diagnostics.iter().any(|found| is_error(found) && !is_unknown_key(found))
    }
}

impl Definition {
    /// Parses the files of a scope. Files that are not states are ignored.
    pub fn parse(
        files: Vec<SourceFile>,
        start: &EntryPoint,
        platform: Platform,
    ) -> Result<Parsed, Vec<Diagnostic>> {
        Self::parse_with(files, start, platform, &|_| Vec::new())
    }

    /// Parses the files of a scope, and adds the diagnostics of `further`, so that a user sees all
    /// mistakes at once.
    pub fn parse_with(
        files: Vec<SourceFile>,
        start: &EntryPoint,
        platform: Platform,
        further: &dyn Fn(&Reachability<'_>) -> Vec<Diagnostic>,
    ) -> Result<Parsed, Vec<Diagnostic>> {
        if *start == EntryPoint::Steps {
            return steps::parse(&files, platform);
        }
        Self::examine(files, start, platform, further).unless(is_error)
    }

    /// Parses the files with which a run started. Unknown keys are accepted, because earlier
    /// releases started runs with them.
    pub fn parse_pinned(
        files: Vec<SourceFile>,
        start: &EntryPoint,
        platform: Platform,
    ) -> Result<Parsed, Vec<Diagnostic>> {
        if *start == EntryPoint::Steps {
            return steps::parse(&files, platform);
        }
        Self::examine(files, start, platform, &|_| Vec::new())
            .unless(|found| is_error(found) && !is_unknown_key(found))
    }

    /// Parses files as far as possible, and collects every mistake.
    fn examine(
        files: Vec<SourceFile>,
        start: &EntryPoint,
        platform: Platform,
        further: &dyn Fn(&Reachability<'_>) -> Vec<Diagnostic>,
    ) -> Parsed {
        let mut diagnostics = Vec::new();
        let mut states = BTreeMap::new();
        let mut notes = BTreeMap::new();
        for file in files.into_iter().filter(|file| is_state(&file.name)) {
            if let Some(warning) = unusable(&file.name) {
                diagnostics.push(warning);
                continue;
            }
            let (mut state, mut note) = read(file);
            if let EntryPoint::Ralph(_) = start {
                repeat(&mut state, &mut note);
            }
            notes.insert(state.name.clone(), note);
            states.insert(state.name.clone(), state);
        }
        // The entry is filled in below: finding it needs the states, and nothing reads it before.
        let mut definition =
            Self { entry: StateName::new(""), states, platform, steps: None, asking: Vec::new() };
        match definition.entry(start) {
            Ok(entry) => definition.entry = entry,
            Err(error) => diagnostics.push(*error),
        }
        // A broken state could name any state after a fix, so everything counts as reachable from
        // it.
        let broken = notes.iter().filter(|(_, note)| note.is_broken());
        let reachability =
            Reachability::new(&definition, broken.map(|(name, _)| name.clone()).collect());
        for (name, note) in notes {
            let unresolved = definition.unresolved(&name, &note.mentions);
            let found = note.diagnostics.into_iter().chain(unresolved);
            diagnostics.extend(found.map(|diagnostic| reachability.placed(diagnostic, &name)));
        }
        diagnostics.extend(further(&reachability));
        // A reader expects one list by file and line, but the findings of `further` come last.
        diagnostics.sort_by_key(|d| {
            let place = d.place.as_ref().map(|place| place.span.start);
            (d.file.clone(), place, d.severity)
        });
        Parsed { definition, warnings: diagnostics }
    }

    /// Reports the names in a state's frontmatter that do not resolve.
    fn unresolved(&self, state: &StateName, mentions: &[Mention]) -> Vec<Diagnostic> {
        let text =
            self.states.get(state).and_then(|state| std::str::from_utf8(&state.source.bytes).ok());
        let places = LocationFinder::new(text.unwrap_or_default());
        let diagnose = |mention: &Mention| {
            let why = self.resolve(&mention.name).err()?;
            let place = Some(places.of(mention.span.clone()));
            let diagnostic = Diagnostic { place, ..Diagnostic::error(code(&why), why.to_string()) };
            Some(match (why, mention.role) {
                // A workflow for several platforms names the scripts of each platform.
                (Unresolved::WrongPlatform(_), Role::Policy(_) | Role::Following(_)) => {
                    Diagnostic { severity: Severity::Warning, ..diagnostic }
                }
                _ => diagnostic,
            })
        };
        mentions.iter().filter_map(diagnose).collect()
    }
}

impl Parsed {
    /// Returns the definition, unless it has a mistake that prevents its use.
    fn unless(self, prevents: impl Fn(&Diagnostic) -> bool) -> Result<Self, Vec<Diagnostic>> {
        if self.warnings.iter().any(prevents) { Err(self.warnings) } else { Ok(self) }
    }
}

fn is_error(found: &Diagnostic) -> bool {
    found.severity == Severity::Error
}

fn is_unknown_key(found: &Diagnostic) -> bool {
    found.code == frontmatter::UNKNOWN_KEY
}

fn code(why: &Unresolved) -> &'static str {
    match why {
        Unresolved::NotAName(..) => "bad-name",
        Unresolved::Ambiguous { .. } => "ambiguous-state",
        Unresolved::WrongPlatform(_) => "wrong-platform",
        Unresolved::Missing { .. } => "unknown-state",
    }
}

fn unusable(name: &str) -> Option<Diagnostic> {
    let why = check_name(name).err()?;
    // Only a warning: a file that no tag can name cannot affect a run.
    let warning = Diagnostic::warning("bad-name", "no target can name this file; it is ignored");
    Some(warning.in_file(name.escape_debug().to_string()).hint(why.to_string()))
}

fn read(file: SourceFile) -> (State, Notes) {
    // The caller passes only states, which have a supported extension, so the default is never
    // used.
    let kind = Extension::of(&file.name).map_or(StateKind::Script, Extension::kind);
    let (front, body, notes) = match kind {
        StateKind::Prompt => prompt(&file.bytes),
        StateKind::Script => (Frontmatter::default(), "".into(), Notes::default()),
    };
    let state = State {
        name: StateName::new(file.name.as_str()),
        kind,
        front: Arc::new(front),
        body,
        hash: Hash::of(&file.bytes),
        source: file,
    };
    (state, notes)
}

/// Removes what a repeated prompt says about transitions, because a loop has none.
fn repeat(state: &mut State, note: &mut Notes) {
    let text = String::from_utf8_lossy(&state.source.bytes);
    note.diagnostics.extend(ralph::repeat(Arc::make_mut(&mut state.front), &note.keys, &text));
    // Names in a policy without effect must not be reported as unknown states.
    note.mentions.clear();
}

fn prompt(bytes: &[u8]) -> (Frontmatter, Arc<str>, Notes) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let offset = error.valid_up_to();
            let message = format!("the prompt is not UTF-8: byte {offset} cannot be read");
            // The column counts characters, and only the bytes before the bad one are text.
            let valid = String::from_utf8_lossy(&bytes[..offset]);
            let notes = Notes {
                diagnostics: vec![
                    Diagnostic::error("not-utf8", message).at(&valid, offset..offset),
                ],
                ..Notes::default()
            };
            return (Frontmatter::default(), "".into(), notes);
        }
    };
    let read = frontmatter::parse(text);
    let mut diagnostics = read.diagnostics;
    if read.body.trim().is_empty() {
        let message = "the prompt is empty: there is nothing to send";
        diagnostics.push(Diagnostic::error("empty-prompt", message));
    }
    let notes = Notes { mentions: read.mentions, keys: read.keys, diagnostics };
    (read.front, read.body.into(), notes)
}
