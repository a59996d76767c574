//! Rules for optional capabilities: JSON by a schema, and the end of a turn at its cap.

use raymond_core::budget::{Cost, Micros};
use serde_json::{Value, json};

use super::{Harness, Situation, Verdict, ask, check_rule};
use crate::contract::{Answer, Capability, PromptRequest, StartedTurn};

/// The expected answer in [`Situation::Complies`].
fn answer() -> Value {
    json!({ "a": 1 })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "a": { "type": "number" } },
        "required": ["a"],
        "additionalProperties": false,
    })
}

pub(super) async fn answers_by_a_schema(harness: &dyn Harness) -> Verdict {
    if !harness.backend().capabilities().contains(&Capability::Schema) {
        return Ok(());
    }
    let rows = [
        (Situation::Complies, Some(schema()), Some(answer())),
        (Situation::NeverComplies, Some(schema()), None),
        (Situation::Replies, None, None),
    ];
    for (situation, schema, expected) in rows {
        let request = PromptRequest { schema, ..harness.request(situation) };
        let found = ask(harness, request).await?;
        let good =
            matches!(&found, Answer::Finished(finished) if finished.reply.structured == expected);
        let rule = "a reply has JSON exactly if it was requested and the model complied";
        check_rule(rule, good, &(situation, found))?;
    }
    Ok(())
}

pub(super) async fn stops_at_its_cap(harness: &dyn Harness) -> Verdict {
    if !harness.backend().capabilities().contains(&Capability::Cap) {
        return Ok(());
    }
    let request = harness.request(Situation::SpendsTooMuch);
    // One millionth of a dollar: every request exceeds it.
    let started = StartedTurn { cap: Some(Micros(1)), ..request.started };
    let found = ask(harness, PromptRequest { started, ..request }).await?;
    let good = match &found {
        Answer::Capped { cost, .. } => match cost {
            Cost::Reported(amount) | Cost::Estimated(amount) | Cost::AtLeast(amount) => {
                amount.0 > 0
            }
            Cost::Free | Cost::Unknown => false,
        },
        Answer::Finished(_) | Answer::Failed { .. } | Answer::Interrupted { .. } => false,
    };
    check_rule("a turn that exceeds its cap is ended and has a cost", good, &found)
}
