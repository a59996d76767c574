//! The stack for recursive work, sized before it begins.
//!
//! The validator recurses, but its depth is known beforehand: from the nesting of a schema when it
//! is compiled, and from the depth of a value and the longest path through the schema when it is
//! checked. Shallow work runs on the current stack, deeper work on a thread with a stack that is
//! large enough, and work beyond [`LEVELS_MAX`] is refused.

use std::thread;

/// The stack that a schema needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackBound {
    /// The most schemas about one value that are nested.
    pub(crate) chain: usize,
    /// The deepest nesting of the document, in JSON levels.
    pub(crate) nesting: usize,
    /// The deepest value that can be checked in acceptable time; see `cost_bound`.
    pub(crate) deepest: Option<usize>,
}

/// The most levels that checking a value may need: 128 MiB of stack at [`CHECKED`] bytes each.
const LEVELS_MAX: usize = 32 * 1024;

/// Bytes of stack for a level of checking; three times the measured size without optimisation.
const CHECKED: usize = 4 * 1024;

/// Bytes of stack for a level of compiling; twice the measured size. References are compiled when
/// they are first followed, so checking needs it, too.
const COMPILED: usize = 16 * 1024;

/// Bytes of stack that every caller is assumed to have left: 384 KiB.
const AT_HAND: usize = 384 * 1024;

/// The error for work that needs too much stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackExceeded;

impl StackBound {
    pub(crate) fn compile<T: Send>(
        nesting: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, StackExceeded> {
        with(nesting * COMPILED, work)
    }

    /// Checks a value of this depth.
    pub(crate) fn check<T: Send>(
        &self,
        depth: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, StackExceeded> {
        let levels = (depth + 1).saturating_mul(self.chain);
        if levels > LEVELS_MAX || self.deepest.is_some_and(|deepest| depth > deepest) {
            return Err(StackExceeded);
        }
        with(levels * CHECKED + self.nesting * COMPILED, work)
    }
}

fn with<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, StackExceeded> {
    if bytes <= AT_HAND {
        return Ok(work());
    }
    // A scoped thread, because the work borrows the value and the validator.
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(bytes + AT_HAND);
        let worker = builder.spawn_scoped(scope, work).map_err(|_| StackExceeded)?;
        worker.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}
