//! Adds the flags of a command to the parser only when that command is called.
//!
//! Building the flags of all commands takes longer than parsing the arguments, and every short
//! command would pay for it.

use std::ops::Deref;

use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments of a command.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) Box<T>);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(augmented::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|said| Self(Box::new(said)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the flags, but keeps the description of the command instead of the type's doc comment.
fn augmented<T: Args>(command: Command) -> Command {
    let about: Resettable<StyledStr> = command.get_about().cloned().into();
    T::augment_args(command).about(about).long_about(None)
}
