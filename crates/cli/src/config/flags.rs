//! The flags of all settings, as the topmost layer of the configuration.

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use super::keys::{KEYS, Layer};
use super::setting::{FlagDefault, RunFlag};
use raymond_core::run::Settings;

impl Args for Layer {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().filter_map(|key| (key.argument)(FlagDefault::NewRun)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Layer {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut layer = Self::default();
        layer.update_from_arg_matches(matches)?;
        Ok(layer)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for key in KEYS {
            (key.read_flag)(self, matches);
        }
        Ok(())
    }
}

/// Replaces the default in the help of a setting, because `resume` keeps the setting of the run.
pub(crate) fn with_unchanged_default(flag: Arg) -> Arg {
    let key = KEYS.iter().find(|key| key.name == flag.get_id().as_str());
    let Some(unchanged) = key.and_then(|key| (key.argument)(FlagDefault::Unchanged)) else {
        return flag;
    };
    // Only the help: clap has already given the flag its place among the others.
    flag.help(Resettable::from(unchanged.get_help().cloned()))
        .long_help(Resettable::from(unchanged.get_long_help().cloned()))
}

/// Returns the flags that a command needs to start a run with the same settings.
pub(crate) fn repeated_flags(settings: &Settings) -> Vec<RunFlag> {
    KEYS.iter().flat_map(|key| (key.repeated_flags)(settings)).collect()
}
