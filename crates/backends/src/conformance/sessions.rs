//! Rules for conversations: what a resumed or branched turn sees, and what stays unchanged.

use raymond_core::agent::SessionPlan;
use raymond_core::ids::SessionId;

use super::{Harness, Situation, Verdict, Violation, ask, check_rule, planned};
use crate::contract::{Answer, Capability};

/// The session id of the branch, for backends that accept ids.
const BRANCH: &str = "00000000-0000-8000-8000-00000000000b";

/// A turn that was answered.
struct ShownTurn {
    session: SessionId,
    /// The prompt and the reply.
    said: [String; 2],
    /// The prompts and replies that the model saw, if the harness knows them.
    shown: Option<Vec<String>>,
}

pub(super) async fn continues_sessions(harness: &dyn Harness) -> Verdict {
    let declared = harness.backend().capabilities();
    if !declared.contains(&Capability::Resume) {
        return Ok(());
    }
    let first = run_shown_turn(harness, Situation::Replies, None).await?;
    let resume = SessionPlan::Resume(first.session.clone());
    let second =
        run_shown_turn(harness, Situation::RepliesDifferently, Some(resume.clone())).await?;
    is_shown(RESUMED, &second, &[&first])?;
    let same = second.session == first.session;
    check_rule(RESUMED, same, &(&first.session, &second.session))?;
    if !declared.contains(&Capability::Branch) {
        return Ok(());
    }
    let plan = SessionPlan::Branch { from: first.session.clone(), to: SessionId::new(BRANCH) };
    let branch = run_shown_turn(harness, Situation::Replies, Some(plan)).await?;
    is_shown(BRANCHED, &branch, &[&first, &second])?;
    let another = branch.session != first.session;
    check_rule(BRANCHED, another, &(&first.session, &branch.session))?;
    let back = run_shown_turn(harness, Situation::Replies, Some(resume)).await?;
    is_shown(LEFT_ALONE, &back, &[&first, &second])?;
    let beyond = run_shown_turn(
        harness,
        Situation::Replies,
        Some(SessionPlan::Resume(branch.session.clone())),
    );
    is_shown(LEFT_ALONE, &beyond.await?, &[&first, &second, &branch])
}

const RESUMED: &str = "a resumed turn sees everything in its session";
const BRANCHED: &str = "a branch is another session that sees everything before it";
const LEFT_ALONE: &str = "a session and its branch do not see each other";

fn is_shown(rule: &'static str, turn: &ShownTurn, before: &[&ShownTurn]) -> Verdict {
    let Some(shown) = &turn.shown else { return Ok(()) };
    let mut expected: Vec<&String> = before.iter().flat_map(|turn| &turn.said).collect();
    // The model sees its own prompt last, and the reply does not exist yet.
    expected.push(&turn.said[0]);
    check_rule(rule, shown.iter().eq(expected), shown)
}

async fn run_shown_turn(
    harness: &dyn Harness,
    situation: Situation,
    plan: Option<SessionPlan>,
) -> Result<ShownTurn, Violation> {
    let request = harness.request(situation);
    let plan = plan.unwrap_or_else(|| request.started.plan.clone());
    let request = planned(request, plan);
    let (prompt, chosen) = (request.prompt.clone(), request.started.plan.session().cloned());
    let found = ask(harness, request).await?;
    let Answer::Finished(finished) = found else {
        let rule = "an opened session can be continued";
        return Err(Violation { rule, found: format!("{found:?}") });
    };
    let session = finished.session.or(chosen).unwrap_or_else(|| SessionId::new(""));
    Ok(ShownTurn { session, said: [prompt, finished.reply.text], shown: harness.shown() })
}
