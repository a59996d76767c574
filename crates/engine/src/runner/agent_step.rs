//! An agent step that a backend answers: what it is sent, and what its answer is worth.

use std::path::Path;
use std::sync::Arc;

use raymond_backends::contract::Answer;
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::program::key_of;
use raymond_core::crayfish::state::accepted;
use raymond_core::crayfish::{Problem, reading};
use raymond_core::ids::AgentId;
use raymond_core::protocol::Source;
use raymond_core::run::Run;
use raymond_core::run::input::{Finished, Interruption, Outcome, Verdict};
use raymond_core::workflow::Definition;
use raymond_store::{Blobs, blobs};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::exec_step::too_slow_message;
use crate::blocking::run_with_limit;
use crate::call::raw_request::unread;
use crate::observe;
use crate::schemas::Schemas;

/// An agent step, filled in when its effect is released.
#[derive(Debug, Clone)]
pub(crate) struct AgentStep {
    pub(crate) message: String,
    pub(crate) schema: Json,
    index: StepIndex,
    schemas: Arc<Schemas>,
}

/// Where the schema of an agent step stands in it.
const SCHEMA: &str = "/schema";

impl AgentStep {
    /// What is wrong with an output. It is paid for: nothing but its clock gives this up.
    async fn check_output(&self, json: Json) -> (Json, Vec<Problem>) {
        let (schemas, index, json) = (Arc::clone(&self.schemas), self.index, Arc::new(json));
        let check_output = Arc::clone(&json);
        let look = move || schemas.errors(index, SCHEMA, &check_output);
        let errors = run_with_limit(&CancellationToken::new(), look).await;
        let errors = errors.unwrap_or_else(|_| vec![Problem::of_value("", too_slow_message())]);
        (Arc::unwrap_or_clone(json), errors)
    }

    /// The step that an agent is at.
    pub(crate) fn of(
        run: &Run,
        definition: &Definition,
        agent: &AgentId,
        schemas: &Arc<Schemas>,
    ) -> Option<Self> {
        let (work, flow) = (definition.work.as_deref()?, run.flow.as_deref()?);
        let key = key_of(run.agents.get(agent)?)?;
        let index = work.step(&key)?;
        let schema = schemas.bundled(index, SCHEMA)?.clone();
        let message = work.message(flow, (agent, &key), &schema)?;
        Some(Self { message, schema, index, schemas: Arc::clone(schemas) })
    }

    /// What an answer is worth. One that was cut off was cut off by `by`.
    pub(crate) async fn outcome(
        self,
        blobs: &Blobs,
        answer: Answer,
        by: Interruption,
    ) -> Result<Outcome, blobs::Error> {
        let Answer::Replied(reply) = answer else {
            return observe::read_answer(answer, Source::Message, by, Path::new(""), blobs);
        };
        let read = match reply.structured {
            Some(json) => Ok(json),
            None => reading::read_text(reply.text.trim()),
        };
        let (json, errors) = match read {
            Ok(json) => self.check_output(json).await,
            Err(why) => {
                let wrong = unread(&why);
                (Json::String(reply.text), vec![wrong])
            }
        };
        let stored = if errors.is_empty() {
            observe::store(blobs, accepted(json), true)?
        } else {
            let told: Vec<Json> = errors.iter().map(Problem::to_json).collect();
            observe::store(blobs, json!({ "ok": false, "json": json, "errors": told }), false)?
        };
        let verdict = if errors.is_empty() { Verdict::Valid } else { Verdict::Invalid(errors) };
        Ok(Outcome::Finished(Box::new(Finished {
            read: stored.read,
            capped: reply.capped,
            session: reply.session,
            model: reply.model,
            denied: reply.denied,
            warnings: reply.warnings,
            verdict: Some(verdict),
            ..Finished::new(stored.value, reply.cost)
        })))
    }
}
