//! What every agent did, in lines that do not depend on when it did it.

use std::collections::BTreeMap;

use raymond_core::ids::AgentId;
use raymond_core::run::{Event, Record};

/// What each agent did, in its own order.
pub type History = BTreeMap<AgentId, Vec<String>>;

/// The history that records tell.
pub fn history(records: &[Record]) -> History {
    let mut history = History::new();
    for event in records.iter().flat_map(|record| &record.steps).flat_map(|step| &step.events) {
        if let Some((agent, line)) = line(event) {
            history.entry(agent.clone()).or_default().push(line);
        }
    }
    history
}

fn line(event: &Event) -> Option<(&AgentId, String)> {
    Some(match event {
        Event::VisitEntered { agent, state, visit, count, input } => {
            (agent, format!("enter {state} visit={visit} count={count} input={input:?}"))
        }
        Event::Moved { agent, tag, stack, cwd, model, forks, .. } => (
            agent,
            format!("move {tag} {} cwd={cwd:?} model={model:?} forks={forks}", change(stack)),
        ),
        Event::AgentSpawned { agent, parent, cwd, attributes } => {
            (agent, format!("spawn by={parent:?} cwd={cwd} {attributes:?}"))
        }
        Event::AgentEnded { agent, result } => (agent, format!("end {result:?}")),
        Event::AgentFailed { agent, failure, .. } => (agent, format!("fail {failure:?}")),
        _ => return None,
    })
}

fn change(change: &raymond_core::run::event::StackChange) -> &'static str {
    use raymond_core::run::event::StackChange;
    match change {
        StackChange::Keep => "keep",
        StackChange::Push(_) => "push",
        StackChange::Pop => "pop",
        StackChange::Clear => "clear",
    }
}
