//! Room on the stack for work that goes as deep as its input.
//!
//! The validator underneath recurses, and how deep is known before: by the nesting of a schema when
//! it is compiled, by the depth of a value and the longest way through the schema when it is checked.
//! Shallow work is done where it is asked for, deeper work on a stack that is large enough, and what
//! would need more than that is refused.

use std::thread;

/// How a schema uses the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// The most schemas that are about one and the same value, each inside the one before.
    pub(crate) chain: usize,
    /// The deepest nesting of the document, in JSON levels.
    pub(crate) nesting: usize,
    /// The deepest value that can be checked in a time that anybody waits for.
    pub(crate) deepest: Option<usize>,
}

/// The most levels that a value may need.
const LEVELS_MAX: usize = 32 * 1024;

/// What a level of checking takes; three times what was measured without optimisation.
const CHECKED: usize = 4 * 1024;

/// What a level of compiling takes; twice what was measured. References are compiled when they are
/// first followed, so checking needs it too.
const COMPILED: usize = 16 * 1024;

/// What everybody has left.
const AT_HAND: usize = 384 * 1024;

/// There is not enough room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    /// Compiles a document.
    pub(crate) fn compile<T: Send>(
        nesting: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, NoRoom> {
        with(nesting * COMPILED, work)
    }

    /// Checks a value of this depth.
    pub(crate) fn check<T: Send>(
        &self,
        depth: usize,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, NoRoom> {
        let levels = (depth + 1).saturating_mul(self.chain);
        if levels > LEVELS_MAX || self.deepest.is_some_and(|deepest| depth > deepest) {
            return Err(NoRoom);
        }
        with(levels * CHECKED + self.nesting * COMPILED, work)
    }
}

fn with<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, NoRoom> {
    if bytes <= AT_HAND {
        return Ok(work());
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(bytes + AT_HAND);
        let worker = builder.spawn_scoped(scope, work).map_err(|_| NoRoom)?;
        worker.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}
