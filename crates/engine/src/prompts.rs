//! The prompts of a run as they were sent, rendered again from its pinned states and its journal.
//!
//! Prompts are not stored, because states, journal and blobs contain all their parts. Only prompts
//! of unpinned states cannot be rendered, because the states may have changed.

use std::collections::BTreeMap;
use std::path::Path;

use raymond_core::agent::HandedWorker;
use raymond_core::decide::effects;
use raymond_core::ids::TurnAttempt;
use raymond_core::protocol::notice::notice;
use raymond_core::run::settings::Pinning;
use raymond_core::run::turn_spec::{PromptSpec, PromptText, Work};
use raymond_core::run::{Effect, Event, Record, Run, RunContext, TurnSpec, apply};
use raymond_core::value::{BlobRef, Value};
use raymond_core::workflow::Definition;
use raymond_store::Blobs;
use raymond_store::blobs;

use crate::handed::Handing;
use crate::observe;
use crate::pin::{Pin, PinError};
use crate::runner::turn::bindings;
use crate::step_results::{ResultsError, read_results};

/// Why prompts cannot be rendered again.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    #[error("the states of this run are not pinned")]
    Unpinned,
    #[error(transparent)]
    Pin(#[from] PinError),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error(transparent)]
    Blob(#[from] blobs::Error),
}

/// The prompts of attempts.
pub type RenderedPrompts = BTreeMap<TurnAttempt, String>;

/// Renders the prompts of all records.
pub fn prompts<E: From<PromptsError>>(
    records: impl Iterator<Item = Result<Record, E>>,
    blobs: &Blobs,
    handed: &Path,
) -> Result<RenderedPrompts, E> {
    let (mut run, mut definition, mut prompts) = (Run::default(), None, RenderedPrompts::new());
    for record in records {
        let record = record?;
        let events: Vec<&Event> = record.steps.iter().flat_map(|step| &step.events).collect();
        let before = run.manifest.clone();
        for event in &events {
            apply(&mut run, event);
        }
        // A request of an agent step contains results of earlier steps.
        if events.iter().any(|event| matches!(event, Event::TurnStarted { .. })) {
            read_results(&mut run, blobs).map_err(PromptsError::Results)?;
        }
        if definition.is_none() || run.manifest != before {
            definition = Some(pinned(&run, blobs)?);
        }
        let Some(definition) = &definition else { continue };
        for effect in effects(&run, definition, events) {
            if let Effect::Start(TurnSpec { header, work: Work::Prompt(prompt) }) = effect {
                let attempt = TurnAttempt { turn: header.turn.clone(), number: header.attempt };
                let handing = Handing { blobs, directory: handed };
                let text =
                    render(&RunContext::of(&run), &attempt, &header.handed, *prompt, handing);
                prompts.insert(attempt, text.map_err(PromptsError::Blob)?);
            }
        }
    }
    Ok(prompts)
}

fn pinned(run: &Run, blobs: &Blobs) -> Result<Definition, PromptsError> {
    if run.settings.definition == Pinning::Unpinned {
        return Err(PromptsError::Unpinned);
    }
    Ok(Pin::definition_of(run, blobs)?)
}

fn render(
    run: &RunContext,
    attempt: &TurnAttempt,
    handed: &[HandedWorker],
    prompt: PromptSpec,
    handing: Handing<'_>,
) -> Result<String, blobs::Error> {
    let text = match prompt.message {
        PromptText::Body { body, values } => {
            let values = handing.with_list(&attempt.turn, handed, values)?;
            let bindings = bindings(run, &attempt.turn, &values);
            let blobs = handing.blobs;
            let load = &mut |blob: &BlobRef| observe::load(blobs, &Value::Blob(blob.clone()));
            bindings.render(&body, load)?.text
        }
        PromptText::Reminder(text) | PromptText::Request { text, .. } => text,
    };
    // As backends send it: the notice precedes the prompt.
    Ok(match prompt.notice {
        Some(why) => format!("{}\n\n{text}", notice(why)),
        None => text,
    })
}
