//! Compiles a bundle into a validator with limits on regular expressions.

use jsonschema::{PatternOptions, Validator};

use crate::bundle::Bundle;
use crate::message::describe;
use crate::stack_bound::{StackBound, StackExceeded};
use crate::validation::too_deep;
use crate::{FaultKind, SchemaFault};

/// The most backtracking steps of a regular expression with lookaround or backreferences, which
/// take a few milliseconds. It is enough to look at a text of as many characters one by one. All
/// other expressions are matched in linear time.
const BACKTRACKS_MAX: usize = 100_000;

/// The most bytes of a compiled regular expression: 4 MiB.
const PATTERN_MAX: usize = 4 * 1024 * 1024;

pub(crate) fn compile(bundle: &Bundle) -> Result<Validator, Vec<SchemaFault>> {
    let built = StackBound::compile(bundle.nesting, || {
        let patterns = PatternOptions::fancy_regex();
        let patterns = patterns.backtrack_limit(BACKTRACKS_MAX).size_limit(PATTERN_MAX);
        let options = jsonschema::options().with_draft(bundle.dialect.draft());
        let options = options.should_validate_formats(false).with_pattern_options(patterns);
        // A second protection: the bundle has no reference that could be fetched.
        options.offline().build(&bundle.value).map_err(|error| {
            let place = error.schema_path().to_string();
            vec![bundle.fault(&place, FaultKind::Invalid, describe(&error, &bundle.value))]
        })
    });
    built.unwrap_or_else(|StackExceeded| {
        Err(vec![SchemaFault::new("", FaultKind::TooDeep, too_deep())])
    })
}
