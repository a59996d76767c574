//! A key for readers of the configuration, independent of the type of its values.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use raymond_core::run::Settings;
use serde_json::Value;

use super::Layer;
use crate::config::layer::{Field, Origin, Sourced};
use crate::config::row::Row;
use crate::config::setting::{Flag, Setting, Sources};
use crate::config::value::{ConfigValue, ValueError};
use crate::failure::Failure;

/// A key of the configuration.
pub(in crate::config) trait Key {
    /// The name in files. The flag has dashes instead of underscores.
    fn name(&self) -> &'static str;

    fn sources(&self) -> Sources;

    /// Returns the flag for the parser of the command line.
    fn argument(&self) -> Option<Arg>;

    /// Reads a value of a file or a variable into a layer. Tables have a name.
    fn read(
        &self,
        layer: &mut Layer,
        name: &str,
        given: ConfigValue<'_>,
        origin: &Origin,
    ) -> Result<(), ValueError>;

    /// Reads the flag into a layer, if the user gave it.
    fn read_flag(&self, layer: &mut Layer, matches: &ArgMatches);

    /// Returns the rows of `raymond config`.
    fn rows(&self, layer: &Layer) -> Vec<Row>;

    /// Puts the values of a layer into the settings of a run.
    fn apply(&self, layer: &Layer, settings: &mut Settings) -> Result<(), Failure>;

    /// Returns the environment variable, such as `RAYMOND_BUDGET`.
    fn variable(&self) -> Option<String> {
        match self.sources() {
            Sources::All | Sources::NotProject => {
                Some(format!("RAYMOND_{}", self.name().to_ascii_uppercase()))
            }
            Sources::Tables { .. } | Sources::FlagOnly => None,
        }
    }
}

/// A setting and its field in [`Layer`].
pub(super) struct KeyOf<T, F> {
    pub(super) name: &'static str,
    pub(super) setting: Setting<T>,
    pub(super) field: fn(&Layer) -> &F,
    pub(super) field_mut: fn(&mut Layer) -> &mut F,
}

impl<T, F> Key for KeyOf<T, F>
where
    T: Clone + Send + Sync + 'static,
    F: Field<T>,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn sources(&self) -> Sources {
        self.setting.sources
    }

    fn argument(&self) -> Option<Arg> {
        let Flag { value_name, help, more, alias } = self.setting.flag?;
        let mut flag = Arg::new(self.name).long(self.name.replace('_', "-")).help(help);
        if !value_name.is_empty() {
            flag = flag.value_name(value_name);
        }
        if let Some(more) = more {
            flag = flag.long_help(format!("{help}\n\n{more}"));
        }
        if let Some(alias) = alias {
            flag = flag.visible_alias(alias);
        }
        Some((self.setting.kind.flag)(flag))
    }

    fn read(
        &self,
        layer: &mut Layer,
        name: &str,
        given: ConfigValue<'_>,
        origin: &Origin,
    ) -> Result<(), ValueError> {
        let parts = F::parts(given)?;
        let values: Vec<T> =
            parts.into_iter().map(self.setting.kind.read).collect::<Result<_, _>>()?;
        for value in values {
            (self.field_mut)(layer).put(name, Sourced { value, origin: origin.clone() });
        }
        Ok(())
    }

    fn read_flag(&self, layer: &mut Layer, matches: &ArgMatches) {
        // A switch that the user did not give has the value `false`, which must not win over files.
        if self.setting.flag.is_none()
            || matches.value_source(self.name) != Some(ValueSource::CommandLine)
        {
            return;
        }
        let origin = Origin::Flag(format!("--{}", self.name.replace('_', "-")));
        for value in matches.get_many::<T>(self.name).into_iter().flatten() {
            let (value, origin) = (value.clone(), origin.clone());
            (self.field_mut)(layer).put("", Sourced { value, origin });
        }
    }

    fn rows(&self, layer: &Layer) -> Vec<Row> {
        let values = (self.field)(layer).values();
        match self.setting.sources {
            Sources::FlagOnly => Vec::new(),
            Sources::Tables { .. } => {
                let row = |(name, Sourced { value, origin }): (&str, &Sourced<T>)| {
                    self.row(&format!("{}.{name}", self.name), value, origin)
                };
                values.into_iter().map(row).collect()
            }
            Sources::All | Sources::NotProject if values.is_empty() => vec![self.default_row()],
            // A list has one row for each entry, because each entry has its own origin.
            Sources::All | Sources::NotProject => values
                .into_iter()
                .map(|(_, Sourced { value, origin })| self.row(self.name, value, origin))
                .collect(),
        }
    }

    fn apply(&self, layer: &Layer, settings: &mut Settings) -> Result<(), Failure> {
        let values = (self.field)(layer).values();
        values.into_iter().try_for_each(|(_, given)| (self.setting.put)(settings, &given.value))
    }
}

impl<T, F> KeyOf<T, F> {
    fn row(&self, key: &str, value: &T, origin: &Origin) -> Row {
        let kind = &self.setting.kind;
        let row = Row::new(key, (kind.json)(value), origin);
        match kind.text {
            Some(text) => Row { text: text(value), ..row },
            None => row,
        }
    }

    fn default_row(&self) -> Row {
        match (self.setting.default)(&Settings::default()) {
            Some(value) => self.row(self.name, &value, &Origin::Default),
            None => Row::new(self.name, Value::Null, &Origin::Default),
        }
    }
}
