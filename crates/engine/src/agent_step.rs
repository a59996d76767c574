//! The check of the answer to an agent step that a backend answers.
//!
//! The answer must be one JSON value that matches the schema of the step. Checking it may be slow,
//! so it runs on a separate thread with a time limit. Steps that the caller of the tool answers do
//! not come here: see `call`.

use std::sync::Arc;

use raymond_backends::contract::Answer;
use raymond_core::crayfish::state::accepted;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::{Problem, reading};
use raymond_core::run::outcome::{Outcome, ReadReply, Reply};
use raymond_core::run::turn_spec::{PromptSpec, PromptText};
use raymond_store::{Blobs, blobs};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::blocking::{run_with_limit, too_slow_message};
use crate::observe;
use crate::schemas::{Schemas, unread};

/// The check of one answer.
#[derive(Debug, Clone)]
pub(crate) struct OutputCheck {
    schema: Arc<Json>,
    schemas: Arc<Schemas>,
}

impl OutputCheck {
    /// Returns the check for a prompt, if the prompt is the request of an agent step.
    pub(crate) fn of(prompt: &PromptSpec, schemas: &Arc<Schemas>) -> Option<Self> {
        match &prompt.message {
            PromptText::Request { schema, .. } => {
                Some(Self { schema: Arc::clone(schema), schemas: Arc::clone(schemas) })
            }
            PromptText::Body { .. } | PromptText::Reminder(_) => None,
        }
    }

    /// Checks an output against the schema, and returns it with its problems.
    async fn check_output(&self, json: Json) -> (Json, Vec<Problem>) {
        let (check, json) = (self.clone(), Arc::new(json));
        let output = Arc::clone(&json);
        let look = move || check.schemas.errors(Some(&check.schema), &output);
        // A fresh token: the answer is already paid for, so a stop of the run must not discard it.
        let errors = run_with_limit(&CancellationToken::new(), look).await;
        let errors = errors.unwrap_or_else(|_| vec![Problem::of_value("", too_slow_message())]);
        (Arc::unwrap_or_clone(json), errors)
    }

    /// Returns the outcome of an answer: its reply is read as JSON and checked.
    pub(crate) async fn outcome(
        self,
        blobs: &Blobs,
        answer: Answer,
    ) -> Result<Outcome, blobs::Error> {
        match answer {
            Outcome::Finished(finished) => {
                let (reply, rest) = finished.split();
                let reply = self.read(reply, blobs).await?;
                Ok(Outcome::Finished(Box::new(rest.with_reply(reply))))
            }
            unfinished => Ok(unfinished.unread()),
        }
    }

    async fn read(&self, reply: Reply, blobs: &Blobs) -> Result<ReadReply, blobs::Error> {
        // Clients that support schemas return the value separately; others only as text.
        let read = match reply.structured {
            Some(json) => Ok(json),
            None => reading::read_text(reply.text.trim()),
        };
        let (json, errors) = match read {
            Ok(json) => self.check_output(json).await,
            // The text itself becomes the value, so that the result still contains the answer.
            Err(why) => (Json::String(reply.text), vec![unread(&why)]),
        };
        let stored = if errors.is_empty() {
            observe::store(blobs, accepted(json), true)?
        } else {
            let problems: Vec<Json> = errors.iter().map(Problem::to_json).collect();
            observe::store(blobs, json!({ "ok": false, "json": json, "errors": problems }), false)?
        };
        let verdict = if errors.is_empty() { Verdict::Valid } else { Verdict::Invalid(errors) };
        let (value, read) = (stored.value, stored.read);
        Ok(ReadReply { read, verdict: Some(verdict), ..value.into() })
    }
}
