//! An agent step that a backend answers: what it is sent, and what its answer is worth.

use std::sync::Arc;

use raymond_backends::contract::Answer;
use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::work::key_of;
use raymond_core::crayfish::{Problem, reading};
use raymond_core::ids::AgentId;
use raymond_core::run::Run;
use raymond_core::run::input::{Finished, Interruption, Outcome, Verdict};
use raymond_core::workflow::Definition;
use raymond_store::blobs;
use serde_json::{Value as Json, json};

use super::kit::Kit;
use super::step::store;
use crate::observe;
use crate::schemas::Schemas;

/// An agent step, filled in when its effect is released.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) message: String,
    pub(crate) schema: Json,
    index: StepIndex,
    schemas: Arc<Schemas>,
}

/// Where the schema of an agent step stands in it.
const SCHEMA: &str = "/schema";

impl Asking {
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

    /// What an answer is worth.
    pub(crate) fn judge(&self, kit: &Kit, answer: Answer) -> Result<Outcome, blobs::Error> {
        let Answer::Replied(reply) = answer else {
            let cwd = std::path::Path::new("");
            return observe::answered(answer, kit.messages, Interruption::Stop, cwd, &kit.blobs);
        };
        let read = match reply.structured {
            Some(json) => Ok(json),
            None => reading::read_text(reply.text.trim()),
        };
        let (json, errors) = match read {
            Ok(json) => {
                let errors = self.schemas.errors(self.index, SCHEMA, &json);
                (json, errors)
            }
            Err(why) => {
                let wrong = Problem::of_value("", format!("it is not JSON: {why}"));
                (Json::String(reply.text), vec![wrong])
            }
        };
        let stored = if errors.is_empty() {
            store(kit, json!({ "ok": true, "json": json }), true)?
        } else {
            store(kit, json!({ "ok": false, "json": json, "errors": errors }), false)?
        };
        let verdict = if errors.is_empty() { Verdict::Valid } else { Verdict::Invalid(errors) };
        Ok(Outcome::Finished(Box::new(Finished {
            read: stored.read,
            session: reply.session,
            model: reply.model,
            denied: reply.denied,
            warnings: reply.warnings,
            verdict: Some(verdict),
            ..Finished::new(stored.value, reply.cost)
        })))
    }
}
