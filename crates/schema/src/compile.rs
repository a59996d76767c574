//! Compiles a bundle into a validator.

use jsonschema::{PatternOptions, Validator};

use crate::bundle::Bundle;
use crate::message::describe;
use crate::room::{NoRoom, Room};
use crate::validation::no_room;
use crate::{Fault, Kind};

/// How often a regular expression with lookaround or backreferences may go back before it is given
/// up, which takes a few milliseconds; a text of as many characters can be looked at one by one. All
/// other expressions are matched in linear time.
const BACKTRACKS_MAX: usize = 100_000;

/// The most bytes that a regular expression may take.
const PATTERN_MAX: usize = 4 * 1024 * 1024;

/// Compiles a bundle.
pub(crate) fn compile(bundle: &Bundle) -> Result<Validator, Vec<Fault>> {
    let built = Room::compile(bundle.nesting, || {
        let patterns = PatternOptions::fancy_regex();
        let patterns = patterns.backtrack_limit(BACKTRACKS_MAX).size_limit(PATTERN_MAX);
        let options = jsonschema::options().with_draft(bundle.dialect.draft());
        let options = options.should_validate_formats(false).with_pattern_options(patterns);
        options.offline().build(&bundle.value).map_err(|error| {
            let place = error.schema_path().to_string();
            vec![bundle.fault(&place, Kind::Invalid, describe(&error, &bundle.value))]
        })
    });
    built.unwrap_or_else(|NoRoom| Err(vec![Fault::new("", Kind::TooDeep, no_room())]))
}
