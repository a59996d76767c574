//! The work of a turn in a step: its program, or its request to a backend.

use crate::agent::Agent;
use crate::crayfish::{StepsState, ask};
use crate::run::state::Run;
use crate::run::turn_spec::{ExecSpec, LanguageParts, PromptSpec, PromptText, Work};
use crate::scheduler::{Lane, Turn};
use crate::workflow::{Definition, Frontmatter};

pub(crate) fn work(
    run: &Run,
    state: &StepsState,
    definition: &Definition,
    agent: &Agent,
    turn: &Turn,
) -> Option<Work> {
    let (steps, key) = (definition.steps.as_deref()?, agent.visit.location.step()?);
    Some(match &turn.lane {
        Lane::Script => {
            let call = steps.call(state, &agent.id, key)?;
            let counted = agent.visit.retries.saturating_add(1);
            Work::Exec(Box::new(ExecSpec { counted, call }))
        }
        Lane::Prompt(_) => {
            let request = steps.request(state, &agent.id, key)?;
            let settings = &steps.agent(key)?.settings;
            // A step has no frontmatter, but these keys mean the same.
            let front = Frontmatter {
                model: settings.model.clone(),
                allow: settings.allow.clone(),
                ..Frontmatter::default()
            };
            let parts = LanguageParts {
                count: request.attempt,
                message: PromptText::Request {
                    text: ask::message(&request),
                    schema: request.schema,
                },
                front: &front,
            };
            Work::Prompt(Box::new(PromptSpec::of(&run.settings, agent, turn, parts)?))
        }
    })
}
