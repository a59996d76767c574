//! Reads a configuration file (TOML) and reports mistakes with their lines.
//!
//! All mistakes of a file are collected, so that the user can fix everything at once. `keys`
//! describes the keys, and `value` converts the values. A project's file is read only if a trusted
//! user owns it, and it cannot name programs.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, LocationFinder};
use raymond_core::text::nearest;
use raymond_store::TrustedUsers;
use raymond_store::disk::RealDisk;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;
use crate::path_text::below_here;

use super::keys::{Layer, NamedKey, SettingKey};
use super::layer::SettingOrigin;
use super::setting::SettingSources;
use super::value::{ConfigValue, RawValue};
use super::{ConfigScope, mistake};

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
        TrustedUsers::in_directory(&RealDisk, &here).check(&RealDisk, path)?;
    }
    match text_of(path) {
        Ok(text) => {
            // Relative paths in a file start from its directory, because the same file is read from
            // any directory.
            let base = path.parent().unwrap_or(path);
            let (name, places) = (below_here(path), LocationFinder::new(&text));
            let mut file = File { name, whose, text: &text, places, base, mistakes };
            Ok(file.parse())
        }
        // `NotADirectory` means that a parent of the path is a file: there is no configuration
        // either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Layer::default())
        }
        Err(error) => {
            Err(Failure::environment(format!("could not read {}: {error}", below_here(path))))
        }
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
        name: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let Some(named) = keys().find(|named| named.name == name.get_ref()) else {
            return self.unknown(name);
        };
        let key = named.key;
        match key.sources {
            SettingSources::Tables { example } => self.take_tables(layer, key, example, value),
            // An error and not a silent skip, because the user may think that the program is used.
            SettingSources::Clients if self.whose == ConfigScope::Project => {
                let place = named.variable().unwrap_or_default();
                let hint = format!("set it in {}, or as {place}", super::user_file());
                let message = "a project cannot choose the programs that Raymond runs";
                self.wrong(name.span(), format!("{}: {message}", named.name), Some(hint));
            }
            SettingSources::All | SettingSources::Clients | SettingSources::FlagOnly => {
                let given = ConfigValue { value: RawValue::Toml(value.get_ref()), base: self.base };
                let origin = self.origin(name.span());
                if let Err(wrong) = (key.read)(layer, given, named.name, &origin) {
                    self.wrong(value.span(), format!("{}: {wrong}", named.name), None);
                }
            }
        }
    }

    fn unknown(&mut self, name: &Spanned<Cow<'_, str>>) {
        let known: Vec<&str> = keys().map(|named| named.name).collect();
        let hint = match nearest(name.get_ref(), known.iter().copied()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("the keys are {}", known.join(", ")),
        };
        self.wrong(name.span(), format!("unknown key {:?}", name.get_ref()), Some(hint));
    }

    /// Reads a table that contains one table for each name.
    fn take_tables(
        &mut self,
        layer: &mut Layer,
        key: &SettingKey,
        example: &str,
        value: &Spanned<DeValue<'_>>,
    ) {
        let hint = || Some(example.to_owned());
        let DeValue::Table(named) = value.get_ref() else {
            return self.wrong(value.span(), format!("{} is not a table", key.name), hint());
        };
        for (name, value) in as_written(named) {
            let shown = format!("{}.{:?}", key.name, name.get_ref());
            // Checked here and not in `read`, because only here the hint with an example is known.
            if !matches!(value.get_ref(), DeValue::Table(_)) {
                self.wrong(value.span(), format!("{shown} is not a table"), hint());
                continue;
            }
            let given = ConfigValue { value: RawValue::Toml(value.get_ref()), base: self.base };
            if let Err(wrong) = (key.read)(layer, given, name.get_ref(), &self.origin(name.span()))
            {
                self.wrong(value.span(), format!("{shown}: {wrong}"), None);
            }
        }
    }

    fn wrong(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let place = Some(self.places.of(at));
        let found = mistake(message).in_file(&self.name);
        self.mistakes.push(Diagnostic { place, hint, ..found });
    }

    fn origin(&self, at: Range<usize>) -> SettingOrigin {
        let line = self.places.of(at).line;
        SettingOrigin::File { path: self.name.clone(), line }
    }
}

/// Returns the keys that a file may contain.
fn keys() -> impl Iterator<Item = NamedKey> {
    NamedKey::all().filter(|named| named.key.is_in_files())
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
