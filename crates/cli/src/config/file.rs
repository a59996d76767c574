//! Reads a configuration file (TOML) and reports mistakes with their lines.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, LocationFinder};
use raymond_core::text::nearest;
use raymond_store::TrustedUsers;
use raymond_store::disk::Files;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

use super::layer::{Layer, Origin, Sourced};
use super::value::{ConfigValue, RawValue, ValueError, agent, price};
use super::{ConfigScope, mistake, shown};

/// The keys that contain one table for each name.
const PRICES: &str = "prices";
const AGENTS: &str = "agents";

/// The keys that name programs, which only the user may set.
const PROGRAMS: [&str; 2] = ["claude", "codex"];

/// Most bytes of a configuration file: 1 MiB, far above any real one.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file; a missing file is an empty layer.
pub(super) fn read(
    path: &Path,
    whose: ConfigScope,
    mistakes: &mut Vec<Diagnostic>,
) -> Result<Layer, Failure> {
    // Another user could place a `raymond.toml` in a shared directory above, and so choose
    // settings.
    if whose == ConfigScope::Project {
        let here = std::env::current_dir().unwrap_or_default();
        TrustedUsers::in_directory(&Files, &here).check(&Files, path)?;
    }
    match text_of(path) {
        Ok(text) => {
            let base = path.parent().unwrap_or(path);
            let (name, places) = (shown(path), LocationFinder::new(&text));
            let mut file = File { name, whose, text: &text, places, base, mistakes };
            Ok(file.parse())
        }
        // `NotADirectory` means that a parent of the path is a file: there is no configuration
        // either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Layer::default())
        }
        Err(error) => Err(Failure::environment(format!("could not read {}: {error}", shown(path)))),
    }
}

/// Reads a regular file only: opening a pipe in its place would block every command.
fn text_of(path: &Path) -> io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if found.len() > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    std::fs::read_to_string(path)
}

struct File<'t> {
    name: String,
    whose: ConfigScope,
    text: &'t str,
    places: LocationFinder<'t>,
    base: &'t Path,
    mistakes: &'t mut Vec<Diagnostic>,
}

impl File<'_> {
    fn parse(&mut self) -> Layer {
        let mut layer = Layer::default();
        match DeTable::parse(self.text) {
            Ok(table) => {
                for (key, value) in as_written(table.get_ref()) {
                    self.take(&mut layer, key, value);
                }
            }
            Err(error) => self.wrong(error.span().unwrap_or_default(), error.message(), None),
        }
        layer
    }

    fn take(
        &mut self,
        layer: &mut Layer,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let name = key.get_ref().as_ref();
        match name {
            PRICES => return self.take_prices(layer, value),
            AGENTS => return self.take_agents(layer, value),
            _ if self.whose == ConfigScope::Project && PROGRAMS.contains(&name) => {
                let hint = format!(
                    "set it in ~/.config/raymond/config.toml, or as RAYMOND_{}",
                    name.to_uppercase()
                );
                let message =
                    format!("{name}: a project cannot choose the programs that Raymond runs");
                return self.wrong(key.span(), message, Some(hint));
            }
            _ => {}
        }
        let given = ConfigValue { value: RawValue::Toml(value.get_ref()), base: self.base };
        match layer.set(name, given, &self.origin(key.span())) {
            Some(Ok(())) => {}
            Some(Err(wrong)) => self.wrong(value.span(), format!("{name}: {wrong}"), None),
            None => {
                let hint = match nearest(name, Layer::KEYS.into_iter().chain([PRICES, AGENTS])) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("the keys are {}, {PRICES}, {AGENTS}", Layer::KEYS.join(", ")),
                };
                self.wrong(key.span(), format!("unknown key {name:?}"), Some(hint));
            }
        }
    }

    /// `[prices."model"]`
    fn take_prices(&mut self, layer: &mut Layer, value: &Spanned<DeValue<'_>>) {
        let example = "write [prices.\"model\"] with input and output";
        let found = self.tables(PRICES, example, value, price);
        layer.prices.extend(found);
    }

    /// `[agents."id"]`
    fn take_agents(&mut self, layer: &mut Layer, value: &Spanned<DeValue<'_>>) {
        let example = "write [agents.\"id\"] with workspace";
        let found = self.tables(AGENTS, example, value, agent);
        layer.agents.extend(found);
    }

    /// Reads a table that contains one table for each name.
    fn tables<T>(
        &mut self,
        key: &str,
        example: &str,
        value: &Spanned<DeValue<'_>>,
        read: fn(&DeTable<'_>, &Path) -> Result<T, ValueError>,
    ) -> Vec<(String, Sourced<T>)> {
        let mut found = Vec::new();
        let hint = || Some(example.to_owned());
        let DeValue::Table(named) = value.get_ref() else {
            self.wrong(value.span(), format!("{key} is not a table"), hint());
            return found;
        };
        for (name, value) in as_written(named) {
            let (shown, at) = (format!("{key}.{:?}", name.get_ref()), value.span());
            let DeValue::Table(table) = value.get_ref() else {
                self.wrong(at, format!("{shown} is not a table"), hint());
                continue;
            };
            match read(table, self.base) {
                Ok(value) => {
                    let origin = self.origin(name.span());
                    found.push((name.get_ref().to_string(), Sourced { value, origin }));
                }
                Err(wrong) => self.wrong(at, format!("{shown}: {wrong}"), None),
            }
        }
        found
    }

    fn wrong(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let place = Some(self.places.of(at));
        let found = mistake(message).in_file(&self.name);
        self.mistakes.push(Diagnostic { place, hint, ..found });
    }

    fn origin(&self, at: Range<usize>) -> Origin {
        let line = self.places.of(at).line;
        Origin::File { path: self.name.clone(), line }
    }
}

/// Returns the entries of a table in the order of the file; looking up their lines is fast only in
/// that order.
fn as_written<'t, 'v>(
    table: &'t DeTable<'v>,
) -> Vec<(&'t Spanned<Cow<'v, str>>, &'t Spanned<DeValue<'v>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
