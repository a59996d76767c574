//! The flags of all settings, as the topmost layer of the configuration.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::keys::{KEYS, Layer};

impl Args for Layer {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().filter_map(|key| (key.argument)()))
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
