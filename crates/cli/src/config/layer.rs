//! Values with their origin, and how the values of two layers combine.
//!
//! The table in `keys` says which kind of field each key has.

use std::collections::BTreeMap;
use std::fmt;

use super::value::{ConfigValue, ValueError};

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: SettingOrigin,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File { path: String, line: usize },
    Environment(String),
    Flag(String),
}

impl SettingOrigin {
    /// Whether both values come from the same layer.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Default, Self::Default)
            | (Self::Environment(_), Self::Environment(_))
            | (Self::Flag(_), Self::Flag(_)) => true,
            // The user's file and the project's file are two layers.
            (Self::File { path, .. }, Self::File { path: other, .. }) => path == other,
            (Self::Default | Self::File { .. } | Self::Environment(_) | Self::Flag(_), _) => false,
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One value; the latest layer wins.
pub(crate) type Slot<T> = Option<Sourced<T>>;
/// A list; the entries of all layers add up.
pub(crate) type SourcedList<T> = Vec<Sourced<T>>;
/// One value for each name, such as `[prices."model"]`; the latest layer wins, name by name.
pub(crate) type Named<T> = BTreeMap<String, Sourced<T>>;

/// The field of a key in a layer: a slot, a list or a map by name.
pub(super) trait Field<T> {
    /// Adds a value. Only a map uses the name.
    fn put(&mut self, name: &str, value: Sourced<T>);

    /// Returns all values; only a map has names.
    fn values(&self) -> Vec<(&str, &Sourced<T>)>;

    /// Puts these values over the values of a lower layer.
    #[must_use]
    fn over(&self, mut lower: Self) -> Self
    where
        Self: Sized,
        T: Clone,
    {
        // Put one by one behind the lower values: a slot keeps the last, a list keeps all.
        for (name, value) in self.values() {
            lower.put(name, value.clone());
        }
        lower
    }

    /// Returns the parts of a given value that are read one by one.
    fn parts<'v>(&self, given: ConfigValue<'v>) -> Result<Vec<ConfigValue<'v>>, ValueError> {
        Ok(vec![given])
    }
}

impl<T> Field<T> for Slot<T> {
    fn put(&mut self, _: &str, value: Sourced<T>) {
        *self = Some(value);
    }

    fn values(&self) -> Vec<(&str, &Sourced<T>)> {
        self.iter().map(|value| ("", value)).collect()
    }
}

impl<T> Field<T> for SourcedList<T> {
    fn put(&mut self, _: &str, value: Sourced<T>) {
        self.push(value);
    }

    fn values(&self) -> Vec<(&str, &Sourced<T>)> {
        self.iter().map(|value| ("", value)).collect()
    }

    fn parts<'v>(&self, given: ConfigValue<'v>) -> Result<Vec<ConfigValue<'v>>, ValueError> {
        given.entries()
    }
}

impl<T> Field<T> for Named<T> {
    fn put(&mut self, name: &str, value: Sourced<T>) {
        self.insert(name.to_owned(), value);
    }

    fn values(&self) -> Vec<(&str, &Sourced<T>)> {
        self.iter().map(|(name, value)| (name.as_str(), value)).collect()
    }
}
