//! The test suite that every backend passes unchanged.
//!
//! A backend provides a [`Harness`], which creates requests for the situations below. The suite
//! returns the rules that the answers break. It limits the time for every answer, so a backend that
//! hangs breaks a rule but does not block the suite.

mod declared;
mod sessions;

use std::time::Duration;

use raymond_core::agent::SessionPlan;
use raymond_core::budget::Cost;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::time::Span;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::contract::{Answer, Backend, Capability, PromptRequest, StartedTurn, TurnObserver};
use raymond_core::run::outcome::Finished;

/// The time limit for an answer. A stop with all its waiting times takes 25 s, and the machine may
/// be busy.
const PATIENCE: Duration = Duration::from_mins(5);

/// A backend under test.
pub trait Harness {
    fn backend(&self) -> &dyn Backend;

    /// Returns a request that causes the situation. Its plan is fresh unless the suite changes it.
    fn request(&self, situation: Situation) -> PromptRequest;

    /// Returns the prompts and replies that the model saw in the last turn, in order. `None` if the
    /// harness cannot know; then the suite checks only the answers.
    fn shown(&self) -> Option<Vec<String>> {
        None
    }
}

/// A situation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// The client answers.
    Replies,
    /// The client answers something else than in [`Situation::Replies`].
    RepliesDifferently,
    /// The client is asked for JSON with a schema and answers `{"a":1}`.
    Complies,
    /// The client is asked for JSON with a schema and never follows it.
    NeverComplies,
    /// The client would continue after it has spent something.
    SpendsTooMuch,
    Hangs,
    /// The client does not know the session.
    KnowsNoSession,
    /// The client reports that the turn failed.
    Fails,
    /// The client meets a transient failure.
    FailsTransiently,
    IsOverQuota,
    IsLoggedOut,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {found}")]
pub struct Violation {
    pub rule: &'static str,
    /// The observed answer.
    pub found: String,
}

/// Returns every rule that the backend breaks.
pub async fn violations(harness: &dyn Harness) -> Vec<Violation> {
    let results = [
        declares_capabilities(harness),
        replies(harness).await,
        names_its_sessions(harness).await,
        answers_the_same_again(harness).await,
        answers_in_parallel_as_in_sequence(harness).await,
        is_cancelled_before_it_starts(harness).await,
        is_cancelled_while_it_waits(harness).await,
        distinguishes_timeouts(harness).await,
        never_opens_a_lost_session(harness).await,
        continues_by_the_original_plan(harness).await,
        sessions::continues_sessions(harness).await,
        declared::answers_by_a_schema(harness).await,
        declared::stops_at_its_cap(harness).await,
        names_failures(harness).await,
    ];
    results.into_iter().filter_map(Result::err).collect()
}

type Verdict = Result<(), Violation>;

fn check_rule(rule: &'static str, holds: bool, found: &impl std::fmt::Debug) -> Verdict {
    if holds {
        return Ok(());
    }
    let found = format!("{found:?}");
    Err(Violation { rule, found })
}

async fn answer(
    harness: &dyn Harness,
    request: PromptRequest,
    cancel: CancellationToken,
) -> Result<Answer, Violation> {
    let answering = harness.backend().answer(request, TurnObserver::silent(cancel));
    timeout(PATIENCE, answering).await.map_err(|_| Violation {
        rule: "every turn ends",
        found: format!("no answer within {PATIENCE:?}"),
    })
}

async fn ask(harness: &dyn Harness, request: PromptRequest) -> Result<Answer, Violation> {
    answer(harness, request, CancellationToken::new()).await
}

fn declares_capabilities(harness: &dyn Harness) -> Verdict {
    let declared = harness.backend().capabilities();
    let mut unique = declared.to_vec();
    unique.sort_unstable();
    // A capability that is declared twice is a mistake in the table.
    unique.dedup();
    let good = unique.len() == declared.len() && declared.contains(&Capability::Fresh);
    let named = !harness.backend().name().as_str().is_empty();
    check_rule(
        "a backend has a name, opens sessions, and declares each capability once",
        good && named,
        &declared,
    )
}

async fn replies(harness: &dyn Harness) -> Verdict {
    let request = harness.request(Situation::Replies);
    let found = ask(harness, request).await?;
    let prices = harness.backend().capabilities().contains(&Capability::Cost);
    let good = match &found {
        Answer::Finished(finished) => {
            let priced = matches!(finished.cost, Cost::Reported(_) | Cost::Estimated(_));
            !finished.reply.text.is_empty() && (priced || !prices)
        }
        Answer::Capped { .. } | Answer::Failed { .. } | Answer::Interrupted { .. } => false,
    };
    check_rule("a reply has a text and, where declared, a cost", good, &found)
}

async fn names_its_sessions(harness: &dyn Harness) -> Verdict {
    let found = ask(harness, harness.request(Situation::Replies)).await?;
    let takes = harness.backend().capabilities().contains(&Capability::ChosenIds);
    let good = matches!(&found, Answer::Finished(finished) if finished.session.is_none() == takes);
    check_rule("a session has the chosen id, or one that the client reports", good, &found)
}

/// Returns the answer without its session if the client chooses ids, because it never chooses one
/// twice.
async fn comparable(harness: &dyn Harness, request: PromptRequest) -> Result<Answer, Violation> {
    let answer = ask(harness, request).await?;
    let takes = harness.backend().capabilities().contains(&Capability::ChosenIds);
    Ok(match answer {
        Answer::Finished(finished) if !takes => {
            Answer::Finished(Box::new(Finished { session: None, ..*finished }))
        }
        answer => answer,
    })
}

async fn answers_the_same_again(harness: &dyn Harness) -> Verdict {
    let first = comparable(harness, harness.request(Situation::Replies)).await?;
    let second = comparable(harness, harness.request(Situation::Replies)).await?;
    let same = first == second;
    check_rule("the same request has the same answer", same, &(first, second))
}

async fn answers_in_parallel_as_in_sequence(harness: &dyn Harness) -> Verdict {
    let requests = || {
        let other = harness.request(Situation::RepliesDifferently);
        (harness.request(Situation::Replies), other)
    };
    let (one, other) = requests();
    let alone = (comparable(harness, one).await?, comparable(harness, other).await?);
    let (one, other) = requests();
    let (other, one) = tokio::join!(comparable(harness, other), comparable(harness, one));
    let together = (one?, other?);
    // The two situations must differ, or a backend with one fixed answer would pass.
    let good = alone == together && alone.0 != alone.1;
    check_rule("parallel turns have the same answers as sequential turns", good, &(alone, together))
}

async fn is_cancelled_before_it_starts(harness: &dyn Harness) -> Verdict {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let found = answer(harness, harness.request(Situation::Hangs), cancel).await?;
    let interrupted = matches!(found, Answer::Interrupted { .. });
    check_rule("a cancelled request is interrupted", interrupted, &found)
}

async fn is_cancelled_while_it_waits(harness: &dyn Harness) -> Verdict {
    let cancel = CancellationToken::new();
    let request = harness.request(Situation::Hangs);
    let asked = answer(harness, request, cancel.clone());
    let cancelling = async {
        // The turn has started after its first poll.
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (found, ()) = tokio::join!(asked, cancelling);
    let found = found?;
    let interrupted = matches!(found, Answer::Interrupted { .. });
    check_rule("a turn is cancelled promptly", interrupted, &found)
}

async fn distinguishes_timeouts(harness: &dyn Harness) -> Verdict {
    // 50 ms end the test soon; ten minutes never pass.
    let (short, long) = (Some(Span(50)), Some(Span::minutes(10)));
    for (clock, idle_timeout, wall) in [(Clock::Idle, short, long), (Clock::Wall, long, short)] {
        let request = {
            let request = harness.request(Situation::Hangs);
            let started = StartedTurn { idle_timeout, timeout: wall, ..request.started };
            PromptRequest { started, ..request }
        };
        let found = ask(harness, request).await?;
        let expected = TurnFailure::Timeout { clock, after: Span(50) };
        let good = matches!(&found, Answer::Failed { failure, .. } if *failure == expected);
        check_rule("a timeout names its clock", good, &found)?;
    }
    Ok(())
}

async fn never_opens_a_lost_session(harness: &dyn Harness) -> Verdict {
    let lost = SessionId::new("00000000-0000-8000-8000-000000000000");
    let to = SessionId::new("00000000-0000-8000-8000-000000000001");
    let plans = [
        (Capability::Resume, SessionPlan::Resume(lost.clone())),
        (Capability::Branch, SessionPlan::Branch { from: lost.clone(), to }),
    ];
    for (needed, plan) in plans {
        // A rule for a capability applies only to backends that declare it.
        if !harness.backend().capabilities().contains(&needed) {
            continue;
        }
        let request = planned(harness.request(Situation::KnowsNoSession), plan);
        let found = ask(harness, request).await?;
        let good = matches!(
            &found,
            Answer::Failed { failure: TurnFailure::LostSession { session }, .. } if *session == lost
        );
        check_rule("an unknown session is reported as lost", good, &found)?;
    }
    Ok(())
}

async fn continues_by_the_original_plan(harness: &dyn Harness) -> Verdict {
    let request = harness.request(Situation::Replies);
    let Some(session) = request.started.plan.session().cloned() else {
        return check_rule("a request has a session", false, &request.started.plan);
    };
    let plan = SessionPlan::Continue { session, or_else: Box::new(request.started.plan.clone()) };
    let found = ask(harness, planned(request, plan)).await?;
    let good = matches!(found, Answer::Finished(_));
    check_rule("a turn whose session was never opened starts by its original plan", good, &found)
}

async fn names_failures(harness: &dyn Harness) -> Verdict {
    let situations = [
        Situation::Fails,
        Situation::FailsTransiently,
        Situation::IsOverQuota,
        Situation::IsLoggedOut,
    ];
    for situation in situations {
        let found = ask(harness, harness.request(situation)).await?;
        let good = match &found {
            Answer::Failed { failure, .. } => is_named(situation, failure),
            Answer::Finished(_) | Answer::Capped { .. } | Answer::Interrupted { .. } => false,
        };
        check_rule("a failure has the right kind", good, &(situation, found))?;
    }
    Ok(())
}

fn is_named(situation: Situation, failure: &TurnFailure) -> bool {
    match situation {
        Situation::Fails => matches!(failure, TurnFailure::Task { .. }),
        Situation::FailsTransiently => matches!(failure, TurnFailure::Transient { .. }),
        Situation::IsOverQuota => matches!(failure, TurnFailure::Quota { .. }),
        Situation::IsLoggedOut => matches!(failure, TurnFailure::Auth { .. }),
        Situation::Replies
        | Situation::RepliesDifferently
        | Situation::Complies
        | Situation::NeverComplies
        | Situation::SpendsTooMuch
        | Situation::Hangs
        | Situation::KnowsNoSession => false,
    }
}

/// Returns the request with another plan.
pub(crate) fn planned(mut request: PromptRequest, plan: SessionPlan) -> PromptRequest {
    request.started.plan = plan;
    request
}
