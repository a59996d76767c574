//! An agent step that a backend answers: its message, and the check of its answer.
//!
//! The answer must be one JSON value that matches the schema of the step. Checking it may be slow, so
//! it runs on a separate thread with a time limit. Steps that the caller of the tool answers do not
//! come here: see `call`.

use std::sync::Arc;

use raymond_backends::contract::Answer;
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::state::accepted;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::{Problem, reading};
use raymond_core::ids::AgentId;
use raymond_core::run::Run;
use raymond_core::run::outcome::{Outcome, ReadReply, Reply};
use raymond_core::workflow::Definition;
use raymond_store::{Blobs, blobs};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::blocking::{run_with_limit, too_slow_message};
use crate::observe;
use crate::schemas::{Schemas, unread};

/// An agent step, rendered when its effect is released.
#[derive(Debug, Clone)]
pub(crate) struct AgentStep {
    pub(crate) message: String,
    pub(crate) schema: Json,
    index: StepIndex,
    schemas: Arc<Schemas>,
}

/// The JSON pointer to the schema inside an agent step.
const SCHEMA: &str = "/schema";

impl AgentStep {
    /// Checks an output against the schema, and returns it with its problems.
    async fn check_output(&self, json: Json) -> (Json, Vec<Problem>) {
        let (schemas, index, json) = (Arc::clone(&self.schemas), self.index, Arc::new(json));
        let check_output = Arc::clone(&json);
        let look = move || schemas.errors(index, SCHEMA, &check_output);
        // A fresh token: the answer is already paid for, so a stop of the run must not discard it.
        let errors = run_with_limit(&CancellationToken::new(), look).await;
        let errors = errors.unwrap_or_else(|_| vec![Problem::of_value("", too_slow_message())]);
        (Arc::unwrap_or_clone(json), errors)
    }

    /// Returns the step at which an agent is, if the run has steps.
    pub(crate) fn of(
        run: &Run,
        definition: &Definition,
        agent: &AgentId,
        schemas: &Arc<Schemas>,
    ) -> Option<Self> {
        let (steps, state) = (definition.steps.as_deref()?, run.program.steps()?);
        let key = run.agents.get(agent)?.visit.location.step()?.clone();
        let index = steps.step(&key)?;
        let schema = schemas.bundled(index, SCHEMA)?.clone();
        let message = steps.message(state, (agent, &key), &schema)?;
        Some(Self { message, schema, index, schemas: Arc::clone(schemas) })
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
