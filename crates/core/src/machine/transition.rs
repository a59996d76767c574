//! Takes a transition: reads it, checks it against the scope, the policy and the limits, and then
//! takes it as a whole or not at all.
//!
//! Everything that can refuse a transition runs before the first event is added to the decision.
//! Tags were found in [`crate::protocol`]; a refusal is handled by the caller.

use super::blocked::Blocked;
use crate::failure::Failure;
use crate::few::Few;
use crate::ids::{AgentId, StateName};
use crate::protocol::tag::Invoke;
use crate::protocol::{Fault, Reading, Stack, Tag, TagName};
use crate::run::Run;
use crate::run::decision::{Decision, Entry};
use crate::run::event::{Event, StackChange};
use crate::run::warning::Warning;
use crate::value::Value;
use crate::workflow::Policy;

use super::limits::within_limits;
use super::transition_context::{TransitionContext, shortened};
use crate::agent::Session;
use crate::agent::{Agent, Frame};

/// Returns the one transition in a reading, or the fault that prevents it.
pub(crate) fn transition(reading: &Reading, policy: &Policy) -> Result<Vec<Tag>, Fault> {
    let count = reading.tags.len() + reading.omitted;
    match reading.tags.as_slice() {
        [] if !reading.malformed.is_empty() => Err(Fault::Malformed(reading.malformed.clone())),
        // A tag in code shows that the agent meant to write one, so the implicit tag must not
        // replace it.
        [] if reading.in_code => Err(Fault::NoTag),
        [] => policy.implicit().map(|tag| vec![tag]).ok_or(Fault::NoTag),
        [one] if count == 1 => Ok(vec![one.clone()]),
        tags if count == tags.len() && is_one_fork(tags) => Ok(tags.to_vec()),
        tags => {
            let tags = tags.iter().take(10).map(Tag::name).collect();
            Err(Fault::SeveralTags { tags, count })
        }
    }
}

/// Returns whether several tags are one transition: forks, or forks with one `goto`.
fn is_one_fork(tags: &[Tag]) -> bool {
    let count = |name| tags.iter().filter(|tag| tag.name() == name).count();
    let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
    gotos <= 1 && forks + gotos == tags.len()
}

/// Takes the transition, or returns why not. Adds no event unless the whole transition is taken.
pub(crate) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tags: &[Tag],
) -> Result<(), Blocked> {
    match tags {
        [Tag::Goto { target, input }] => goto(decision, context, target, input.clone()),
        [Tag::Reset { target, input, cd, stack }] => reset(
            decision,
            context,
            Target { name: target, input: input.clone() },
            cd.as_deref(),
            *stack,
        ),
        [Tag::Call(invoke)] => {
            let session = context.session.branched();
            call(decision, context, TagName::Call, invoke, &session)
        }
        [Tag::Function(invoke)] => {
            call(decision, context, TagName::Function, invoke, &Session::Fresh)
        }
        [Tag::Result { payload }] => result(decision, context, payload),
        tags => fork(decision, context, tags),
    }
}

fn goto(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    target: &str,
    input: Option<Value>,
) -> Result<(), Blocked> {
    let state = resolve(decision, TagName::Goto, target)?;
    context.check(decision, TagName::Goto, Some(&state), None)?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    context.check_destination(decision, TagName::Goto, &to)?;
    decision.push(context.moved(TagName::Goto, StackChange::Keep, context.session, &to));
    context.enter(decision, &to, input, context.session);
    Ok(())
}

/// The state that a tag names, and its input.
struct Target<'a> {
    name: &'a str,
    input: Option<Value>,
}

fn reset(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    to: Target<'_>,
    cd: Option<&str>,
    stack: Stack,
) -> Result<(), Blocked> {
    let Target { name, input } = to;
    let state = resolve(decision, TagName::Reset, name)?;
    let directory = context.directory(TagName::Reset, cd)?;
    context.check(decision, TagName::Reset, Some(&state), None)?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    let change = match stack {
        Stack::Keep => StackChange::Keep,
        Stack::Clear => StackChange::Clear,
    };
    let mut moved = context.moved(TagName::Reset, change, &Session::Fresh, &to);
    if let Event::Moved { cwd, model, model_of, .. } = &mut moved {
        *cwd = directory;
        if stack == Stack::Clear {
            // A model lasts until its frame returns, and `stack="clear"` drops all frames.
            (*model, *model_of) = (None, None);
        }
    }
    decision.push(moved);
    if stack == Stack::Clear && !context.agent.stack.is_empty() {
        let frames = u32::try_from(context.agent.stack.len()).unwrap_or(u32::MAX);
        decision.warn(&context.agent.id, Warning::ReturnsDropped { frames });
    }
    context.enter(decision, &to, input, &Session::Fresh);
    Ok(())
}

fn call(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tag: TagName,
    invoke: &Invoke,
    session: &Session,
) -> Result<(), Blocked> {
    let state = resolve(decision, tag, &invoke.target)?;
    let return_to = resolve(decision, tag, &invoke.return_to)?;
    context.check(decision, tag, Some(&state), Some(&return_to))?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    if *session != Session::Fresh {
        context.check_branch(decision)?;
        context.check_destination(decision, tag, &to)?;
    }
    // Checked before the call, because a failure at the return would waste the callee's turns.
    context.check_continues(decision, tag, &return_to)?;
    // `holder` is filled in by `apply`, which knows the backend of the agent's conversation.
    let frame = Frame {
        state: return_to,
        session: context.session.clone(),
        holder: None,
        cwd: context.agent.cwd.clone(),
        model: context.agent.model.clone(),
        model_of: context.agent.model_of.clone(),
    };
    let mut moved = context.moved(tag, StackChange::Push(frame), session, &to);
    if let (Event::Moved { model, model_of, .. }, Some(named)) = (&mut moved, &invoke.model) {
        (*model, *model_of) = (Some(named.clone()), to.answers.clone());
    }
    decision.push(moved);
    context.enter(decision, &to, invoke.input.clone(), session);
    Ok(())
}

fn result(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    payload: &Value,
) -> Result<(), Blocked> {
    context.check(decision, TagName::Result, None, None)?;
    let agent = context.agent;
    let Some(frame) = agent.stack.last() else {
        decision.push(Event::AgentEnded { agent: agent.id.clone(), result: payload.clone() });
        return Ok(());
    };
    let to = within_limits(decision, agent, frame.state.clone()).map_err(Blocked::Failed)?;
    // Only an edited workflow or a `then` leads here, so no other tag of the agent would help: the
    // agent fails instead of being reminded.
    to.check_session(decision, &frame.session, frame.holder.as_ref()).map_err(Blocked::Failed)?;
    let mut moved = context.moved(TagName::Result, StackChange::Pop, &frame.session, &to);
    if let Event::Moved { cwd, model, model_of, .. } = &mut moved {
        *cwd = Some(frame.cwd.clone());
        model.clone_from(&frame.model);
        *model_of = to.model_of(frame.model.as_ref(), frame.model_of.as_ref());
    }
    decision.push(moved);
    context.enter(decision, &to, Some(payload.clone()), &frame.session);
    Ok(())
}

/// The parts of a worker that is about to be spawned.
struct Worker<'a> {
    state: StateName,
    cwd: String,
    input: Option<Value>,
    attributes: &'a Few<String, Value>,
}

fn fork(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tags: &[Tag],
) -> Result<(), Blocked> {
    let agent = context.agent;
    // Names are resolved before the policy is applied: a reminder about an unknown state helps more
    // than one about a forbidden state.
    let targets = tags
        .iter()
        .map(|tag| resolve(decision, tag.name(), tag.target().unwrap_or_default()))
        .collect::<Result<Vec<_>, _>>()?;
    let (next, input) = next_of(decision, tags, &targets)?;
    let workers = tags
        .iter()
        .zip(&targets)
        .filter_map(|(tag, state)| worker(context, tag, state).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    for (tag, target) in tags.iter().zip(&targets) {
        let then = (tag.name() == TagName::Fork).then_some(&next);
        context.check(decision, tag.name(), Some(target), then)?;
    }
    let to = within_limits(decision, agent, next).map_err(Blocked::Failed)?;
    context.check_destination(decision, TagName::Fork, &to)?;
    // Names and room come last: a held fork has passed every other check.
    let names = names(agent, &workers)?;
    make_room(decision, workers.len())?;

    let mut moved = context.moved(TagName::Fork, StackChange::Keep, context.session, &to);
    if let Event::Moved { forks, .. } = &mut moved {
        *forks = agent.forks.saturating_add(u32::try_from(workers.len()).unwrap_or(u32::MAX));
    }
    decision.push(moved);
    context.enter(decision, &to, input, context.session);
    for (id, worker) in names.into_iter().zip(workers) {
        decision.push(Event::AgentSpawned {
            agent: id.clone(),
            parent: Some(agent.id.clone()),
            cwd: worker.cwd,
            attributes: worker.attributes.clone(),
        });
        decision.new_workers += 1;
        decision.enter(Entry {
            agent: &id,
            state: &worker.state,
            visit: 1,
            count: 1,
            input: worker.input,
            session: &Session::Fresh,
        });
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
        let named = match tag {
            Tag::Goto { input, .. } => {
                handed.clone_from(input);
                Some(target.clone())
            }
            Tag::Fork { next: Some(next), .. } => Some(resolve(decision, TagName::Fork, next)?),
            Tag::Fork { next: None, .. }
            | Tag::Reset { .. }
            | Tag::Call(_)
            | Tag::Function(_)
            | Tag::Result { .. } => None,
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
    if names.iter().any(|name| name.as_str().len() > AgentId::MAX) {
        return Err(Blocked::Failed(Failure::TooDeep { parent: agent.id.clone() }));
    }
    Ok(names)
}

/// Returns whether a held fork may fit now, without resolving its targets. Also returns true for a
/// fork that is larger than the limit, so that [`take`] fails it.
pub(crate) fn may_have_room(run: &Run, tags: &[Tag]) -> bool {
    let room = run.settings.max_agents.saturating_sub(run.live_workers()) as usize;
    let forks = |tag: &&Tag| tag.name() == TagName::Fork;
    let too_large = tags.len() > run.settings.max_agents as usize;
    // At most one tag is a `goto`, so counting forks matters only at the border.
    let just = || tags.len() == room + 1 && tags.iter().filter(forks).count() <= room;
    too_large || tags.len() <= room || just()
}

fn make_room(decision: &Decision<'_>, asked: usize) -> Result<(), Blocked> {
    let limit = decision.run.settings.max_agents;
    if asked > limit as usize {
        return Err(Blocked::Failed(Failure::TooManyAgents { asked, limit }));
    }
    let live = decision.run.live_workers().saturating_add(decision.new_workers);
    if live as usize + asked > limit as usize {
        return Err(Blocked::Held);
    }
    Ok(())
}

fn resolve(decision: &Decision<'_>, tag: TagName, target: &str) -> Result<StateName, Blocked> {
    match decision.definition.resolve(target) {
        Ok(state) => Ok(state.name.clone()),
        Err(why) => {
            let (target, why) = (shortened(target), shortened(&why.to_string()));
            Err(Blocked::Fault(Fault::Unresolved { tag, target, why }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Route;
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
    fn tag_in_code_prevents_the_implicit_tag() {
        let route = Route { target: Some("B".to_owned()), then: None };
        let only = Policy { transitions: Some(vec![(TagName::Goto, route)]), ..Policy::default() };
        let check = |in_code: bool, policy: &Policy, expected: Result<Vec<Tag>, Fault>| {
            let reading = Reading { in_code, ..Reading::default() };
            assert_eq!(transition(&reading, policy), expected, "{in_code}: {policy:?}");
        };
        check(false, &only, Ok(vec![goto("B")]));
        check(true, &only, Err(Fault::NoTag));
        check(false, &Policy::default(), Err(Fault::NoTag));
    }

    #[test]
    fn omitted_tags_still_count_as_tags() {
        let check = |tags: Vec<Tag>, omitted: usize, expected: Result<Vec<Tag>, Fault>| {
            let reading = Reading { tags, omitted, ..Reading::default() };
            assert_eq!(transition(&reading, &Policy::default()), expected, "{reading:?}");
        };
        let several = |tags: &[TagName], count| Fault::SeveralTags { tags: tags.to_vec(), count };
        check(vec![goto("A")], 0, Ok(vec![goto("A")]));
        check(vec![goto("A")], 1, Err(several(&[TagName::Goto], 2)));
        check(vec![fork(), fork()], 0, Ok(vec![fork(), fork()]));
        check(vec![fork(), fork()], 3, Err(several(&[TagName::Fork, TagName::Fork], 5)));
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
