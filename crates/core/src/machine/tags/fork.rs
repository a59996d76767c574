//! Takes `fork`: spawns a worker for each tag, and continues.
//!
//! All forks of a message are one transition: if one of them cannot be taken, none is. A fork
//! without room for its workers is held, and [`crate::decide::advance()`] takes it when workers
//! have ended.

use crate::agent::{Agent, Parked, Session};
use crate::failure::AgentFailure;
use crate::few::Few;
use crate::ids::{AgentId, StateName};
use crate::protocol::{Fault, ResultStatus, Tag, TagName};
use crate::run::Run;
use crate::run::decision::{Decision, VisitEntry};
use crate::run::event::{Event, StackChange};
use crate::value::Value;

use super::join::{self, Gather, Join};
use super::{later, resolve, resolve_follower};
use crate::machine::blocked::Blocked;
use crate::machine::limits::{Destination, within_limits};
use crate::machine::transition_context::TransitionContext;

/// The parts of a worker that is about to be spawned.
struct Worker<'a> {
    state: StateName,
    cwd: String,
    input: Option<Value>,
    attributes: &'a Few<String, Value>,
}

/// The next step of the parent.
enum Parent {
    Enters(Destination, Option<Value>),
    Sleeps(Parked),
    Joins(Join),
}

impl Parent {
    fn of(
        decision: &Decision<'_>,
        context: TransitionContext<'_>,
        tags: &[Tag],
        next: StateName,
        input: Option<Value>,
    ) -> Result<Self, Blocked> {
        if let Some(gather) = tags.iter().find_map(Gather::of) {
            return join::wait(decision, context, gather).map(Self::Joins);
        }
        for tag in tags {
            if let Tag::Later { tag, when } = tag {
                let wait = later::wait(decision, context, tag, *when)?;
                if wait.until > decision.at {
                    return Ok(Self::Sleeps(wait));
                }
            }
        }
        let to = within_limits(decision, context.agent, next).map_err(Blocked::Failed)?;
        context.check_destination(decision, TagName::Fork, &to)?;
        Ok(Self::Enters(to, input))
    }
}

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tags: &[Tag],
) -> Result<(), Blocked> {
    let agent = context.agent;
    // Names are resolved before the policy is applied: a reminder about an unknown state helps more
    // than one about a forbidden state.
    let targets = tags
        .iter()
        .map(|tag| resolve(decision, tag.name(), tag.target().map_or("", String::as_str)))
        .collect::<Result<Vec<_>, _>>()?;
    let (next, input) = next_of(decision, tags, &targets)?;
    let workers = tags
        .iter()
        .zip(&targets)
        .filter_map(|(tag, state)| worker(context, tag, state).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    for (tag, target) in tags.iter().zip(&targets) {
        // The policy of a tag that waits for workers is checked with its other parts.
        if Gather::of(tag).is_none() {
            let then = (tag.name() == TagName::Fork).then_some(&next);
            context.check(decision, tag.name(), Some(target), then)?;
        }
    }
    let forks = agent.forks.saturating_add(u32::try_from(workers.len()).unwrap_or(u32::MAX));
    let parent = Parent::of(decision, context, tags, next, input)?;
    // Names and room come last: a held fork has passed every other check.
    let names = names(agent, &workers)?;
    make_room(decision, workers.len())?;

    let mut join = None;
    match parent {
        Parent::Sleeps(wait) => later::park(decision, context, wait, forks),
        // Parked after its workers exist.
        Parent::Joins(wait) => join = Some(wait),
        Parent::Enters(to, input) => {
            let mut moved = context.moved(TagName::Fork, StackChange::Keep, context.session, &to);
            if let Event::Moved { forks: counter, .. } = &mut moved {
                *counter = forks;
            }
            decision.push(moved);
            context.enter(decision, &to, input, context.session);
        }
    }
    // After the parent, which gets its place in the queue before its workers (docs/language.md).
    for (id, worker) in names.iter().zip(workers) {
        decision.push(Event::AgentSpawned {
            agent: id.clone(),
            parent: Some(agent.id.clone()),
            cwd: worker.cwd,
            attributes: worker.attributes.clone(),
        });
        // `run` does not count this worker yet, and a resume may decide several forks at once.
        decision.new_workers += 1;
        decision.enter(VisitEntry {
            agent: id,
            state: &worker.state,
            visit: 1,
            count: 1,
            input: worker.input,
            result_status: ResultStatus::Ok,
            session: &Session::Fresh,
        });
    }
    if let Some(join) = join {
        join::park(decision, agent, join, forks, names);
    }
    Ok(())
}

/// Returns the state in which the parent continues, with its input. All tags must agree on it.
fn next_of(
    decision: &Decision<'_>,
    tags: &[Tag],
    targets: &[StateName],
) -> Result<(StateName, Option<Value>), Blocked> {
    let mut states: Vec<StateName> = Vec::new();
    let mut handed = None;
    for (tag, target) in tags.iter().zip(targets) {
        let now = if let Tag::Later { tag, .. } = tag { tag } else { tag };
        let named = if let Tag::Gather { .. } = now {
            Some(target.clone())
        } else if let Tag::Goto { input, .. } = now {
            // The input of a `goto` beside forks is for the parent; each fork has its own.
            handed.clone_from(input);
            Some(target.clone())
        } else if let Tag::Fork { next: Some(next), .. } = tag {
            Some(resolve_follower(decision, TagName::Fork, next)?)
        } else {
            None
        };
        if let Some(state) = named
            && !states.contains(&state)
        {
            states.push(state);
        }
    }
    match <[StateName; 1]>::try_from(states) {
        Ok([next]) => Ok((next, handed)),
        Err(states) => {
            // A fault is journalled, so it names only the first few.
            let states = states.iter().take(10).map(ToString::to_string).collect();
            Err(Blocked::Fault(Fault::NextDiffers { states }))
        }
    }
}

fn worker<'t>(
    context: TransitionContext<'_>,
    tag: &'t Tag,
    state: &StateName,
) -> Result<Option<Worker<'t>>, Blocked> {
    let Tag::Fork { cd, input, attributes, .. } = tag else {
        return Ok(None);
    };
    let directory = context.directory(TagName::Fork, cd.as_deref())?;
    let cwd = directory.unwrap_or_else(|| context.agent.cwd.clone());
    Ok(Some(Worker { state: state.clone(), cwd, input: input.clone(), attributes }))
}

fn names(agent: &Agent, workers: &[Worker<'_>]) -> Result<Vec<AgentId>, Blocked> {
    let numbers = (1..).map(|n| agent.forks.saturating_add(n));
    let names: Vec<AgentId> =
        workers.iter().zip(numbers).map(|(worker, n)| agent.id.worker(&worker.state, n)).collect();
    // Each level of forks makes names of workers longer, and files of turns are named after them.
    if names.iter().any(|name| name.as_str().len() > AgentId::MAX) {
        return Err(Blocked::Failed(AgentFailure::TooDeep { parent: agent.id.clone() }));
    }
    Ok(names)
}

/// Returns whether a held fork may fit now, without resolving its targets.
pub(crate) fn may_have_room(run: &Run, tags: &[Tag]) -> bool {
    let room = run.settings.max_agents.saturating_sub(run.live_workers()) as usize;
    let forks = |tag: &&Tag| tag.name() == TagName::Fork;
    // A fork that can never fit counts as fitting, so that `take` fails it instead of waiting for
    // ever.
    let too_large = tags.len() > run.settings.max_agents as usize;
    // At most one tag is a `goto`, so counting forks matters only at the border.
    let just = || tags.len() == room + 1 && tags.iter().filter(forks).count() <= room;
    too_large || tags.len() <= room || just()
}

fn make_room(decision: &Decision<'_>, asked: usize) -> Result<(), Blocked> {
    let limit = decision.run.settings.max_agents;
    if asked > limit as usize {
        return Err(Blocked::Failed(AgentFailure::TooManyAgents { asked, limit }));
    }
    let live = decision.run.live_workers().saturating_add(decision.new_workers);
    if live as usize + asked > limit as usize {
        return Err(Blocked::Held);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Settings;

    fn goto(target: &str) -> Tag {
        Tag::Goto { target: target.to_owned(), input: None }
    }

    fn fork() -> Tag {
        Tag::Fork {
            target: "W".to_owned(),
            next: None,
            cd: None,
            input: None,
            attributes: Few::default(),
        }
    }

    #[test]
    fn fork_retries_when_room_is_possible_or_hopeless() {
        let check = |(max_agents, live): (u32, u32), tags: &[Tag], expected: bool| {
            let settings = Settings { max_agents, ..Settings::default() };
            let run = Run { settings, live, ..Run::default() };
            assert_eq!(may_have_room(&run, tags), expected, "{live} of {max_agents}: {tags:?}");
        };
        let two = [fork(), fork()];
        let one_and_goto = [fork(), goto("A")];
        check((3, 0), &two, true);
        check((3, 1), &two, true);
        check((3, 2), &two, false);
        check((2, 1), &two, false);
        check((2, 2), &two, false);
        check((3, 2), &one_and_goto, true);
        check((3, 3), &one_and_goto, false);
        check((1, 1), &two, true);
    }
}
