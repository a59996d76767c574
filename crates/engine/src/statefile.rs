//! The state file: a run as one JSON object, for people and their tools. Nothing reads it back.

use raymond_core::ids::AgentId;
use raymond_core::machine::{Agent, Frame, Session, Standing};
use raymond_core::run::Run;
use raymond_core::time::Timestamp;
use raymond_core::value::Value;
use raymond_core::view::{Ledger, Status};
use serde_json::{Map, json};

/// A payload larger than this is only referred to.
const LARGEST_PAYLOAD: u64 = 1024;

/// The state file of a run.
pub fn render(run: &Run, ledger: &Ledger, status: Status) -> serde_json::Value {
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    json!({
        "workflow_id": run.id,
        "scope": run.scope,
        "status": status.as_str(),
        "started_at": time(ledger.started_at),
        "updated_at": time(ledger.updated_at),
        "budget_usd": run.settings.budget.map(raymond_core::budget::Micros::dollars),
        "total_cost_usd": run.spent.dollars(),
        "iteration_count": run.visits,
        "metadata": run.settings.vars,
        "fork_counters": ledger.forks,
        "agents": agents.into_iter().map(agent).collect::<Vec<_>>(),
        "results": results(ledger),
    })
}

fn agent(agent: &Agent) -> serde_json::Value {
    let visits: Map<_, _> =
        agent.visits.iter().map(|(state, n)| (state.to_string(), json!(n))).collect();
    json!({
        "id": agent.id,
        "current_state": agent.visit.state,
        "session_id": session(&agent.session),
        "stack": agent.stack.iter().map(frame).collect::<Vec<_>>(),
        "cwd": agent.cwd,
        "fork_attributes": agent.attributes,
        "status": match &agent.standing {
            Standing::Live => "live",
            Standing::Held(_) => "held",
            Standing::Failed { .. } => "failed",
        },
        "failure": match &agent.standing {
            Standing::Failed { failure, .. } => Some(failure.to_string()),
            Standing::Live | Standing::Held(_) => None,
        },
        "visits": visits,
    })
}

fn frame(frame: &Frame) -> serde_json::Value {
    json!({ "session": session(&frame.session), "state": frame.state })
}

fn session(session: &Session) -> Option<&str> {
    match session {
        Session::Fresh => None,
        Session::At(id) | Session::BranchOf(id) => Some(id.as_str()),
    }
}

fn results(ledger: &Ledger) -> Map<String, serde_json::Value> {
    let result = |(agent, value): (&AgentId, &Value)| {
        let shown = match value {
            Value::Inline(text) if value.len() <= LARGEST_PAYLOAD => json!(text),
            Value::Inline(_) => json!({ "journal": true, "length": value.len() }),
            Value::Blob(blob) => json!(blob),
        };
        (agent.to_string(), shown)
    };
    ledger.results.iter().map(result).collect()
}

/// RFC 3339, in UTC, to the millisecond.
pub fn time(at: Timestamp) -> String {
    let (days, rest) = (at.0 / 86_400_000, at.0 % 86_400_000);
    let (year, month, day) = date(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, millis) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The proleptic Gregorian date of a day since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        let check = |millis, expected: &str| assert_eq!(time(Timestamp(millis)), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_251_199_999, "2024-02-29T23:59:59.999Z");
        check(1_794_700_800_123, "2026-11-15T00:00:00.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }
}
