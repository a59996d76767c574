//! Takes a `goto` or a `reset` with `after` or `at`: its agent is parked until then.
//!
//! Everything that can be refused is refused at once, so that a reminder does not come two hours
//! later. When the wait is over, the transition is decided again: see [`crate::machine::waking`].

use crate::agent::{Parked, Session};
use crate::protocol::{Fault, Malformed, Tag, TagName, When};
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::warning::Warning;
use crate::time::{Span, Timestamp};

use crate::machine::blocked::Blocked;
use crate::machine::transition_context::TransitionContext;

/// A client may delete a conversation that was not used for 30 days. Ten days are a margin, because
/// a wait can end late.
const LONG: Span = Span::minutes(20 * 24 * 60);

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tag: &Tag,
    when: When,
) -> Result<(), Blocked> {
    let wait = wait(decision, context, tag, when)?;
    if wait.until <= decision.at {
        return super::take(decision, context, &wait.kept.tags);
    }
    park(decision, context, wait, context.agent.forks);
    Ok(())
}

/// Checks a transition as if it were taken now, and returns its wait.
pub(super) fn wait(
    decision: &Decision<'_>,
    context: TransitionContext<'_>,
    tag: &Tag,
    when: When,
) -> Result<Parked, Blocked> {
    let mut trial = Decision::new(decision.run, decision.definition, decision.at);
    match super::take(&mut trial, context, std::slice::from_ref(tag)) {
        Err(Blocked::Fault(fault)) => return Err(Blocked::Fault(fault)),
        // Limits and room count when the transition is taken.
        Ok(()) | Err(Blocked::Failed(_) | Blocked::Held) => {}
    }
    let (until, span) = end(decision, tag, when)?;
    let (name, mut tag) = (tag.name(), tag.clone());
    if let Tag::Goto { target, .. } | Tag::Reset { target, .. } = &mut tag {
        let state = super::resolve(decision, name, target)?;
        if name == TagName::Goto {
            // The trial does not get here if a limit is reached.
            context.check_continues(decision, name, &state)?;
        }
        // The full name, for readers of a parked agent.
        *target = state.to_string();
    }
    Ok(Parked { kept: context.keep(&[tag]), until, span })
}

/// Returns when the wait ends, and the duration that the tag names.
fn end(
    decision: &Decision<'_>,
    tag: &Tag,
    when: When,
) -> Result<(Timestamp, Option<Span>), Blocked> {
    match when {
        When::After(span) => Ok((decision.at + span, Some(span))),
        When::At(at) if at <= decision.at + When::LONGEST => Ok((at, None)),
        When::At(_) => {
            let why = "`at` must be at most 366 days ahead".to_owned();
            let malformed = Malformed { tag: tag.name(), why };
            Err(Blocked::Fault(Fault::Malformed(vec![malformed])))
        }
    }
}

pub(super) fn park(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    wait: Parked,
    forks: u32,
) {
    let agent = context.agent.id.clone();
    let Parked { kept, until, span } = wait;
    let continues =
        matches!((kept.tags.as_slice(), context.session), ([Tag::Goto { .. }], Session::At(_)));
    let backend = context.holder.filter(|_| continues && until > decision.at + LONG);
    let warning = backend.map(|backend| Warning::LongWait { backend: backend.clone() });
    decision.push(Event::AgentWaits { agent: agent.clone(), kept, until, span, forks });
    if let Some(warning) = warning {
        decision.warn(&agent, warning);
    }
}
