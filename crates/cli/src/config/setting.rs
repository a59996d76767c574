//! The description of one setting: its kind, its sources, its flag and its effect.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use raymond_backends::registry::CLIENTS;
use raymond_core::run::Settings;
use serde_json::Value;

use super::kind::Kind;
use super::layer::{Field, Origin, Sourced};
use super::row::Row;
use super::value::{ConfigValue, ValueError};

/// The sources of a setting. A flag is a source if the setting has a [`Flag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sources {
    /// Files and the environment.
    All,
    /// Like `All`, with one key for each client, but not the project's file: the keys name
    /// programs, and the project may come from a stranger's repository.
    Clients,
    /// Only files, which contain one table for each name.
    Tables {
        /// A hint for values that are not tables.
        example: &'static str,
    },
    /// Only the flag: a file of a cloned project must not change the setting.
    FlagOnly,
}

impl Sources {
    /// Returns the names that a user writes for the key `name`.
    pub(super) fn names(self, name: &'static str) -> impl Iterator<Item = &'static str> {
        let clients = matches!(self, Self::Clients).then(|| CLIENTS.iter().map(|kind| kind.name));
        let own = clients.is_none().then_some(name);
        own.into_iter().chain(clients.into_iter().flatten())
    }
}

/// The flag of a setting.
#[derive(Debug, Clone, Copy)]
struct Flag {
    /// The name of the value in the help; empty if the flag has no value.
    value_name: &'static str,
    /// The help; further paragraphs are only in the long help.
    help: &'static str,
}

/// A setting with values of type `T`.
pub(super) struct Setting<T> {
    /// The key in files. The flag has dashes instead of underscores.
    pub(super) name: &'static str,
    kind: Kind<T>,
    pub(super) sources: Sources,
    flag: Option<Flag>,
    /// A second name of the flag.
    alias: Option<&'static str>,
    default: DefaultOf<T>,
    put: Put<T>,
}

/// Returns the default for display.
type DefaultOf<T> = fn(&Settings) -> Option<T>;
/// Puts a value into the settings of a run.
type Put<T> = fn(&mut Settings, &T);

/// Describes a setting that is a field of [`Settings`], of type `T` or `Option<T>`.
macro_rules! field {
    ($kind:expr, $($field:ident).+) => {
        Setting::new($kind)
            .default(|settings| settings.$($field).+.clone().into())
            .put(|settings, value| settings.$($field).+ = value.clone().into())
    };
}
pub(super) use field;

impl<T> Setting<T> {
    /// Describes a setting that has no name, flag, default or effect yet.
    pub(super) const fn new(kind: Kind<T>) -> Self {
        let (sources, flag, alias) = (Sources::All, None, None);
        Self { name: "", kind, sources, flag, alias, default: |_| None, put: |_, _| () }
    }

    pub(super) const fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(super) const fn sources(self, sources: Sources) -> Self {
        Self { sources, ..self }
    }

    pub(super) const fn default(self, default: DefaultOf<T>) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn put(self, put: Put<T>) -> Self {
        Self { put, ..self }
    }

    pub(super) const fn flag(self, value_name: &'static str, help: &'static str) -> Self {
        Self { flag: Some(Flag { value_name, help }), ..self }
    }

    pub(super) const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Returns the flag for the parser of the command line.
    pub(super) fn argument(&self) -> Option<Arg> {
        let Flag { value_name, help } = self.flag?;
        let mut flag = Arg::new(self.name).long(self.name.replace('_', "-"));
        flag = match help.split_once("\n\n") {
            Some((short, _)) => flag.help(short).long_help(help),
            None => flag.help(help),
        };
        if !value_name.is_empty() {
            flag = flag.value_name(value_name);
        }
        Some((self.kind.flag)(flag.visible_aliases(self.alias)))
    }

    /// Reads a value of a file or a variable. Only the values of tables have a name.
    pub(super) fn read(
        &self,
        field: &mut impl Field<T>,
        given: ConfigValue<'_>,
        name: &str,
        origin: &Origin,
    ) -> Result<(), ValueError> {
        let values = field.parts(given)?.into_iter().map(self.kind.read);
        // All or nothing: a list with a wrong entry must not be applied in part.
        for value in values.collect::<Result<Vec<T>, _>>()? {
            field.put(name, Sourced { value, origin: origin.clone() });
        }
        Ok(())
    }

    /// Reads the flag, if the user gave it.
    pub(super) fn read_flag(&self, field: &mut impl Field<T>, matches: &ArgMatches)
    where
        T: Clone + Send + Sync + 'static,
    {
        // A switch that the user did not give has the value `false`, which must not win over files.
        let is_given = self.flag.is_some()
            && matches.value_source(self.name) == Some(ValueSource::CommandLine);
        let values = is_given.then(|| matches.get_many::<T>(self.name)).flatten();
        for value in values.into_iter().flatten().cloned() {
            let origin = Origin::Flag(format!("--{}", self.name.replace('_', "-")));
            field.put("", Sourced { value, origin });
        }
    }

    /// Returns the rows of `raymond config`. A list has one row for each entry, because each entry
    /// has its own origin.
    pub(super) fn rows(&self, field: &impl Field<T>) -> Vec<Row> {
        let values = field.values();
        match self.sources {
            Sources::All if values.is_empty() => vec![self.default_row()],
            Sources::All | Sources::FlagOnly => {
                values.into_iter().map(|(_, value)| self.row(self.name, value)).collect()
            }
            Sources::Tables { .. } => values
                .into_iter()
                .map(|(name, value)| self.row(&format!("{}.{name}", self.name), value))
                .collect(),
            Sources::Clients => self
                .sources
                .names(self.name)
                .map(|client| match values.iter().find(|(name, _)| *name == client) {
                    Some((name, value)) => self.row(name, value),
                    // By default a client runs the program with its name.
                    None => Row::new(client, client.into(), &Origin::Default),
                })
                .collect(),
        }
    }

    fn default_row(&self) -> Row {
        let origin = Origin::Default;
        match (self.default)(&Settings::default()) {
            Some(value) => self.row(self.name, &Sourced { value, origin }),
            None => Row::new(self.name, Value::Null, &origin),
        }
    }

    fn row(&self, key: &str, Sourced { value, origin }: &Sourced<T>) -> Row {
        let row = Row::new(key, (self.kind.json)(value), origin);
        let text = self.kind.text.map(|text| text(value));
        Row { text: text.unwrap_or(row.text), ..row }
    }

    /// Puts the values into the settings of a run.
    pub(super) fn apply(&self, field: &impl Field<T>, settings: &mut Settings) {
        for (_, given) in field.values() {
            (self.put)(settings, &given.value);
        }
    }
}
