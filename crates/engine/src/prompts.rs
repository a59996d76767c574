//! The prompts of a run as they were sent, rendered again from its pinned states and its journal.
//!
//! Prompts of pinned states are not stored, because states, journal and blobs contain all their
//! parts. Unpinned states may have changed, so their prompts are kept as files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use raymond_core::agent::HandedWorker;
use raymond_core::decide::effects;
use raymond_core::ids::TurnAttempt;
use raymond_core::protocol::notice::notice;
use raymond_core::run::settings::Pinning;
use raymond_core::run::turn_spec::{PromptSpec, PromptText, Work};
use raymond_core::run::{Effect, Event, Record, Run, RunContext, TurnSpec, apply};
use raymond_core::value::{BlobRef, Value};
use raymond_store::{Blobs, RunPaths, blobs};

use crate::handed::Handing;
use crate::observe;
use crate::pin::{Pin, PinError};
use crate::runner::turn::bindings;
use crate::step_results::{ResultsError, read_results};
use crate::turn_files::kept_prompt;

/// Why prompts cannot be rendered again.
#[derive(Debug, thiserror::Error)]
pub enum PromptsError {
    #[error("could not read {path}: {source}", path = path.display())]
    Kept { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Pin(#[from] PinError),
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error(transparent)]
    Blob(#[from] blobs::Error),
}

/// The prompts of attempts.
pub type RenderedPrompts = BTreeMap<TurnAttempt, String>;

/// Returns the prompts of all records.
pub fn prompts<E: From<PromptsError>>(
    records: impl Iterator<Item = Result<Record, E>>,
    blobs: &Blobs,
    paths: &RunPaths,
) -> Result<RenderedPrompts, E> {
    let (mut run, mut definition, mut prompts) = (Run::default(), None, RenderedPrompts::new());
    for record in records {
        let record = record?;
        let events: Vec<&Event> = record.steps.iter().flat_map(|step| &step.events).collect();
        let before = run.manifest.clone();
        for event in &events {
            apply(&mut run, event);
        }
        if run.settings.definition == Pinning::Unpinned {
            for event in events {
                prompts.extend(kept(&paths.prompts, event)?);
            }
            continue;
        }
        // A request of an agent step contains results of earlier steps.
        if events.iter().any(|event| matches!(event, Event::TurnStarted { .. })) {
            read_results(&mut run, blobs).map_err(PromptsError::Results)?;
        }
        if definition.is_none() || run.manifest != before {
            definition = Some(Pin::definition_of(&run, blobs).map_err(PromptsError::Pin)?);
        }
        let Some(definition) = &definition else { continue };
        for effect in effects(&run, definition, events) {
            if let Effect::Start(TurnSpec { header, work: Work::Prompt(prompt) }) = effect {
                let attempt = TurnAttempt { turn: header.turn.clone(), number: header.attempt };
                let handing = Handing { blobs, directory: &paths.handed };
                let text =
                    render(&RunContext::of(&run), &attempt, &header.handed, *prompt, handing);
                prompts.insert(attempt, text.map_err(PromptsError::Blob)?);
            }
        }
    }
    Ok(prompts)
}

/// Reads the prompt of an attempt that starts. A script has none, and neither has an attempt that
/// was interrupted before its client started.
fn kept(directory: &Path, event: &Event) -> Result<Option<(TurnAttempt, String)>, PromptsError> {
    let Event::TurnStarted { turn, attempt, .. } = event else { return Ok(None) };
    let path = kept_prompt(directory, turn, *attempt);
    match fs::read(&path) {
        Ok(text) => {
            let attempt = TurnAttempt { turn: turn.clone(), number: *attempt };
            Ok(Some((attempt, String::from_utf8_lossy(&text).into_owned())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PromptsError::Kept { path, source }),
    }
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
