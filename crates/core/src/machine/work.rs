//! The work of a turn in a state: its script, or its prompt.

use std::sync::Arc;

use crate::agent::Agent;
use crate::protocol::reminder::reminder;
use crate::run::settings::Settings;
use crate::run::state::Run;
use crate::run::turn_spec::{
    LanguageParts, PromptSpec, PromptText, ScriptSpec, TimeLimits, VisitValues, Work,
};
use crate::scheduler::{Lane, Prompt, Turn};
use crate::workflow::{Definition, State};

pub(crate) fn work(run: &Run, definition: &Definition, agent: &Agent, turn: &Turn) -> Option<Work> {
    let state = definition.states.get(agent.visit.location.state()?)?;
    Some(match &turn.lane {
        Lane::Script => Work::Script(Box::new(script(&run.settings, agent, state))),
        Lane::Prompt(_) => {
            let parts = LanguageParts {
                message: message(definition, agent, turn, state),
                front: &state.front,
                count: agent.visit_count(),
            };
            Work::Prompt(Box::new(PromptSpec::of(&run.settings, agent, turn, parts)?))
        }
    })
}

fn script(settings: &Settings, agent: &Agent, state: &State) -> ScriptSpec {
    ScriptSpec {
        // The executor keeps the pinned copy in a folder that is named after the hash.
        source: state.source.clone(),
        hash: state.hash.clone(),
        values: VisitValues::of(agent, &state.name),
        limits: TimeLimits::of(&state.front, settings),
    }
}

fn message(definition: &Definition, agent: &Agent, turn: &Turn, state: &State) -> PromptText {
    match &turn.prompt {
        Prompt::Body => PromptText::Body {
            body: Arc::clone(&state.body),
            values: VisitValues::of(agent, &state.name),
        },
        Prompt::Reminder(fault) => {
            // A reminder must not offer a state that would fail at once.
            let runnable = definition.states.values().filter(|state| definition.can_run(state));
            let names = runnable.map(|state| state.name.to_string()).collect();
            PromptText::Reminder(reminder(fault, &state.front.policy.allowance(names)))
        }
    }
}
