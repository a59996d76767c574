//! The description of one setting: its kind, its sources, its flag and its effect.

use raymond_core::run::Settings;

use crate::failure::Failure;

use super::kind::Kind;

/// The sources of a setting. A flag is a source if the setting has a [`Flag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sources {
    /// Files and the environment.
    All,
    /// Like `All`, but not the project's file, because the key names a program. The project may
    /// come from a stranger's repository.
    NotProject,
    /// Only files, which contain one table for each name.
    Tables {
        /// A hint for values that are not tables.
        example: &'static str,
    },
    /// Only the flag: a file of a cloned project must not change the setting.
    FlagOnly,
}

/// The flag of a setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag {
    /// The name of the value in the help; empty if the flag has no value.
    pub(super) value_name: &'static str,
    pub(super) help: &'static str,
    /// The second paragraph of the long help.
    pub(super) more: Option<&'static str>,
    pub(super) alias: Option<&'static str>,
}

impl Flag {
    pub(super) const fn new(value_name: &'static str, help: &'static str) -> Self {
        Self { value_name, help, more: None, alias: None }
    }
}

/// A setting with values of type `T`.
pub(super) struct Setting<T> {
    pub(super) kind: Kind<T>,
    pub(super) sources: Sources,
    pub(super) flag: Option<Flag>,
    /// Returns the default for display.
    pub(super) default: fn(&Settings) -> Option<T>,
    /// Puts a value into the settings of a run.
    pub(super) put: fn(&mut Settings, &T) -> Result<(), Failure>,
}

impl<T> Setting<T> {
    /// Describes a setting without a field in the settings of a run.
    pub(super) const fn new(kind: Kind<T>) -> Self {
        let (sources, flag) = (Sources::All, None);
        Self { kind, sources, flag, default: |_| None, put: |_, _| Ok(()) }
    }
}

/// Describes a setting that is a field of [`Settings`], of type `T` or `Option<T>`.
macro_rules! field {
    ($kind:expr, $($field:ident).+) => {
        Setting {
            default: |settings| settings.$($field).+.clone().into(),
            put: |settings, value| {
                settings.$($field).+ = value.clone().into();
                Ok(())
            },
            ..Setting::new($kind)
        }
    };
}
pub(super) use field;
