//! Reads again the parts of a cause that a journal leaves out because they are in a text.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use crate::crayfish::reading::{Holds, read_as};
use crate::crayfish::stored::{ParsedJson, Stored};
use crate::failure::TurnFailure;
use crate::ids::TurnId;
use crate::protocol::{Source, TagReading};
use crate::run::input::Input;
use crate::run::outcome::{Finished, Outcome};
use crate::run::state::Run;
use crate::scheduler::Lane;
use crate::value::{Hash, Value};

use super::Sources;

/// Completes `cause` with what its texts contain, as the observer of `cause` had read it.
pub(super) fn complete<S: Sources>(
    run: &Run,
    cause: &mut Input,
    sources: &S,
) -> Result<(), S::Error> {
    match cause {
        Input::Settled { turn, outcome: Outcome::Finished(finished), .. } => {
            text(run, turn, finished, sources)
        }
        Input::Settled {
            outcome: Outcome::Failed { failure: TurnFailure::Step { result, .. }, .. },
            ..
        } => stored(result, sources),
        Input::Call(call) => {
            let outputs = call.outputs.values_mut().map(|output| &mut output.stored);
            let mut brought = call.results.values_mut().chain(outputs);
            brought.try_for_each(|brought| stored(brought, sources))
        }
        Input::Start(_)
        | Input::Resume(_)
        | Input::Settled { .. }
        | Input::Due
        | Input::Now
        | Input::Stop { .. }
        | Input::CancelAgent { .. }
        | Input::Answer { .. }
        | Input::Rewind { .. }
        | Input::Adopt { .. } => Ok(()),
    }
}

/// Reads a final text: the tags of a state, or the JSON value of a step.
fn text<S: Sources>(
    run: &Run,
    turn: &TurnId,
    finished: &mut Finished,
    sources: &S,
) -> Result<(), S::Error> {
    let text = whole(&finished.reply.text, sources)?;
    if !run.program.reads_tags() {
        finished.reply.read = json(&text);
        return Ok(());
    }
    let source = match run.scheduler.turns.get(&turn.agent).map(|turn| &turn.lane) {
        Some(Lane::Script) => Source::Script,
        // Tags in the code of a message come second; the output of a script has no code.
        Some(Lane::Prompt(_)) | None => run.program.messages(),
    };
    // Large payloads were stored when the text was first read; here only their hashes are needed.
    let known = &mut |bytes: &[u8]| Ok::<_, Infallible>(Hash::of(bytes));
    match TagReading::of(&text, source, known) {
        Ok(reading) => finished.reply.reading = reading,
        Err(never) => match never {},
    }
    Ok(())
}

fn stored<S: Sources>(stored: &mut Stored, sources: &S) -> Result<(), S::Error> {
    stored.read = json(&whole(&stored.value, sources)?);
    Ok(())
}

fn whole<'v, S: Sources>(value: &'v Value, sources: &S) -> Result<Cow<'v, str>, S::Error> {
    match value {
        Value::Inline(text) => Ok(Cow::Borrowed(text)),
        Value::Blob(blob) => sources.text(blob).map(Cow::Owned),
    }
}

/// Reads a text as JSON, or as nothing if it is not JSON, just as when it was recorded.
fn json(text: &str) -> ParsedJson {
    ParsedJson(read_as(Holds::Record, text.as_bytes()).ok().map(Arc::new))
}
