//! `raymond ralph`: repeats one prompt in fresh conversations until an answer has a result.
//!
//! It starts a run like `raymond run`, with another program.

use raymond_core::run::{Program, Ralph as Loop};

use crate::args::{Ralph, Run};
use crate::failure::Failure;

use super::run;

pub(crate) fn ralph(flags: Ralph) -> Result<u8, Failure> {
    if flags.input.is_some() {
        return Err(Failure::usage("--input would reach only the first iteration")
            .hint("use --var K=V, which reaches every iteration as {{K}}"));
    }
    if flags.until.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::usage("--until needs a command").hint(
            "for example --until 'cargo test'; without --until, Raymond accepts every result",
        ));
    }
    let program = Loop { until: flags.until };
    let flags = Run {
        workflow: flags.prompt,
        creation: flags.creation,
        input: None,
        steps: crate::args::Steps::default(),
        // Unlike `run`: a user of a loop improves the prompt while it runs.
        unpinned: !flags.pinned,
        max_iterations: flags.max_iterations,
        background: flags.background,
        setting_flags: flags.setting_flags,
        output: flags.output,
    };
    run::start(flags, &Program::Ralph(program))
}
