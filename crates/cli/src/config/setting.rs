//! The description of one setting: its kind, its sources, its flag and its effect.
//!
//! `keys` lists the settings. Everything that a source needs follows from the description, so a
//! setting cannot be missing in one of them.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use raymond_backends::registry::CLIENTS;
use raymond_core::run::Settings;
use serde_json::Value;

use super::kind::SettingKind;
use super::layer::{Field, SettingOrigin, Sourced};
use super::row::SettingRow;
use super::value::{ConfigValue, ValueError};

/// The sources of a setting. A flag is a source if the setting has a [`Flag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingSources {
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

impl SettingSources {
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
    /// The help without the default; further paragraphs are only in the long help.
    help: &'static str,
}

/// The default that the help of a flag shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagDefault {
    /// The default of a new run.
    NewRun,
    /// `unchanged`, because `resume` keeps the setting of the run.
    Unchanged,
}

/// A flag in a command that Raymond suggests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFlag {
    /// The name without dashes.
    pub(crate) name: String,
    /// The value; a switch has none.
    pub(crate) value: Option<String>,
}

/// A setting with values of type `T`.
pub(super) struct Setting<T> {
    /// The key in files. The flag has dashes instead of underscores.
    pub(super) name: &'static str,
    kind: SettingKind<T>,
    pub(super) sources: SettingSources,
    flag: Option<Flag>,
    /// The heading above the flag in the help.
    heading: &'static str,
    /// A second name of the flag.
    alias: Option<&'static str>,
    default: DefaultOf<T>,
    /// The default in the help of the flag if the setting has no default value.
    unset: Option<&'static str>,
    put: Put<T>,
    repeated: Repeated<T>,
}

/// Returns the default for display.
type DefaultOf<T> = fn(&Settings) -> Option<T>;
/// Puts a value into the settings of a run.
type Put<T> = fn(&mut Settings, &T);
/// Returns the values that a command must give to start a run with the same settings.
type Repeated<T> = fn(&Settings) -> Vec<T>;

/// Describes a setting that is a field of [`Settings`], of type `T` or `Option<T>`.
macro_rules! field {
    ($kind:expr, $($field:ident).+) => {
        Setting::new($kind)
            .default(|settings| settings.$($field).+.clone().into())
            .put(|settings, value| settings.$($field).+ = value.clone().into())
            .repeated(|settings| {
                let value = &settings.$($field).+;
                let is_default = *value == Settings::default().$($field).+;
                let value: Option<_> = if is_default { None } else { value.clone().into() };
                value.into_iter().collect()
            })
    };
}
pub(super) use field;

impl<T> Setting<T> {
    /// Describes a setting that has no name, flag, default or effect yet.
    pub(super) const fn new(kind: SettingKind<T>) -> Self {
        Self {
            name: "",
            kind,
            sources: SettingSources::All,
            flag: None,
            heading: "",
            alias: None,
            default: |_| None,
            unset: None,
            put: |_, _| (),
            repeated: |_| Vec::new(),
        }
    }

    pub(super) const fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(super) const fn sources(self, sources: SettingSources) -> Self {
        Self { sources, ..self }
    }

    pub(super) const fn default(self, default: DefaultOf<T>) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn unset(self, unset: &'static str) -> Self {
        Self { unset: Some(unset), ..self }
    }

    pub(super) const fn put(self, put: Put<T>) -> Self {
        Self { put, ..self }
    }

    pub(super) const fn repeated(self, repeated: Repeated<T>) -> Self {
        Self { repeated, ..self }
    }

    pub(super) const fn flag(self, value_name: &'static str, help: &'static str) -> Self {
        Self { flag: Some(Flag { value_name, help }), ..self }
    }

    pub(super) const fn heading(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    pub(super) const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Returns the flag for the parser of the command line.
    pub(super) fn argument(&self, default: FlagDefault) -> Option<Arg> {
        let Flag { value_name, help } = self.flag?;
        let mut flag = Arg::new(self.name).long(self.flag_name()).help_heading(self.heading);
        let note = self.default_note(default).unwrap_or_default();
        flag = match help.split_once("\n\n") {
            Some((short, more)) => {
                flag.help(format!("{short}{note}")).long_help(format!("{short}{note}\n\n{more}"))
            }
            None => flag.help(format!("{help}{note}")),
        };
        if !value_name.is_empty() {
            flag = flag.value_name(value_name);
        }
        Some((self.kind.flag)(flag.visible_aliases(self.alias)))
    }

    /// Returns ` [default: 4]`. The absence of a switch or of a list needs no note.
    fn default_note(&self, shown: FlagDefault) -> Option<String> {
        let takes_value = self.flag.is_some_and(|flag| !flag.value_name.is_empty());
        let default = (self.default)(&Settings::default()).filter(|_| takes_value);
        let text =
            default.map(|value| self.text(&value)).or_else(|| self.unset.map(str::to_owned))?;
        let text = match shown {
            FlagDefault::NewRun => text.as_str(),
            FlagDefault::Unchanged => "unchanged",
        };
        Some(format!(" [default: {text}]"))
    }

    fn flag_name(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the flags that a command needs to start a run with the same settings.
    pub(super) fn repeated_flags(&self, settings: &Settings) -> Vec<RunFlag> {
        if self.flag.is_none() {
            return Vec::new();
        }
        let values = (self.repeated)(settings);
        let values = values.iter().map(|value| match (self.kind.json)(value) {
            Value::Bool(_) => None,
            Value::String(text) => Some(text),
            // As a float, because `--budget 5` is easier to read than `--budget 5.0`.
            Value::Number(number) => number.as_f64().map(|number| number.to_string()),
            other => Some(other.to_string()),
        });
        values.map(|value| RunFlag { name: self.flag_name(), value }).collect()
    }

    /// Reads a value of a file or a variable. Only the values of tables have a name.
    pub(super) fn read(
        &self,
        field: &mut impl Field<T>,
        given: ConfigValue<'_>,
        name: &str,
        origin: &SettingOrigin,
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
            let origin = SettingOrigin::Flag(format!("--{}", self.flag_name()));
            field.put("", Sourced { value, origin });
        }
    }

    /// Returns the rows of `raymond config`. A list has one row for each entry, because each entry
    /// has its own origin.
    pub(super) fn rows(&self, field: &impl Field<T>) -> Vec<SettingRow> {
        let values = field.values();
        match self.sources {
            SettingSources::All if values.is_empty() => vec![self.default_row()],
            SettingSources::All | SettingSources::FlagOnly => {
                values.into_iter().map(|(_, value)| self.row(self.name, value)).collect()
            }
            SettingSources::Tables { .. } => values
                .into_iter()
                .map(|(name, value)| self.row(&format!("{}.{name}", self.name), value))
                .collect(),
            SettingSources::Clients => self
                .sources
                .names(self.name)
                .map(|client| match values.iter().find(|(name, _)| *name == client) {
                    Some((name, value)) => self.row(name, value),
                    // By default a client runs the program with its name.
                    None => SettingRow::new(client, client.into(), &SettingOrigin::Default),
                })
                .collect(),
        }
    }

    fn default_row(&self) -> SettingRow {
        let origin = SettingOrigin::Default;
        match (self.default)(&Settings::default()) {
            Some(value) => self.row(self.name, &Sourced { value, origin }),
            None => SettingRow::new(self.name, Value::Null, &origin),
        }
    }

    fn row(&self, key: &str, Sourced { value, origin }: &Sourced<T>) -> SettingRow {
        SettingRow {
            text: self.text(value),
            ..SettingRow::new(key, (self.kind.json)(value), origin)
        }
    }

    /// Returns a value for display.
    fn text(&self, value: &T) -> String {
        match self.kind.text {
            Some(text) => text(value),
            None => {
                SettingRow::new(self.name, (self.kind.json)(value), &SettingOrigin::Default).text
            }
        }
    }

    /// Puts the values into the settings of a run.
    pub(super) fn apply(&self, field: &impl Field<T>, settings: &mut Settings) {
        for (_, given) in field.values() {
            (self.put)(settings, &given.value);
        }
    }
}
