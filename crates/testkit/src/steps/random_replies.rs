//! Random results of programs and agents, which depend only on the call and the seed.
//!
//! So the order of events, the number of resumes and the interpreter make no difference.

use crate::step_trace::ProgramResult;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::time::{Span, Timestamp};
use serde_json::{Value as Json, json};

use crate::dice::Dice;
use crate::sim::reply::{Reply, ReplySource, TurnRequest, Valid};

/// The cost of every answer, in millionths of a dollar.
const COST: u64 = 20_000;

#[derive(Debug, Clone, Copy)]
pub struct RandomReplies {
    pub seed: u64,
    /// How often a program fails, in percent.
    pub failures: u64,
    /// How often an answer does not match the schema, in percent.
    pub invalid: u64,
    /// How often a value does not fit into a record, in percent.
    pub large: u64,
}

impl RandomReplies {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x0003_f0d1);
        let failures = *dice.pick(&[0, 0, 5, 20, 50]);
        let invalid = *dice.pick(&[0, 10, 30, 60]);
        let large = *dice.pick(&[0, 0, 0, 10]);
        Self { seed, failures, invalid, large }
    }

    /// Returns the result of a program in this mode of its step.
    pub fn exec(&self, mode: &str, key: &str, attempt: u32, call: &Json) -> ProgramResult {
        // With the call, so that a wrongly filled template changes the result and shows in later
        // steps.
        let mut dice = Dice::keyed(self.seed, &format!("{key} {attempt} {call}"));
        let mut result = json!({ "ok": true, "mode": mode, "stderr": "", "attempts": attempt });
        let fails = dice.percent(self.failures);
        // Drawn before it is needed, so that the values below do not depend on the outcome.
        let useless = dice.percent(10);
        match mode {
            "stream" => result["json"] = self.value(&mut dice),
            _ if dice.percent(self.large) => result["stdout"] = large_text(),
            _ => result["stdout"] = format!("said {}", dice.below(4)).into(),
        }
        if mode == "file" {
            result["outputs"] = json!({ "out": self.value(&mut dice) });
        }
        if !fails {
            return ProgramResult::Succeeded(result);
        }
        if useless {
            let why = "its input is not valid";
            return ProgramResult::NotRun(json!({ "ok": false, "mode": mode, "error": why }));
        }
        result["ok"] = false.into();
        result["error"] = "exit status 1".into();
        ProgramResult::Failed(result)
    }

    /// Returns an agent's answer, and whether it matches [`schema`].
    pub fn answer(&self, key: &str, attempt: u32) -> (Json, bool) {
        let mut dice = Dice::keyed(self.seed, &format!("answer {key} {attempt}"));
        if dice.percent(self.invalid) {
            let wrong = [json!("text"), json!({}), json!({ "n": "one" }), json!([1]), Json::Null];
            return (dice.pick(&wrong).clone(), false);
        }
        (self.value(&mut dice), true)
    }

    /// Returns a value for later steps: lists for loops, names for paths, and sometimes missing
    /// parts.
    fn value(&self, dice: &mut Dice) -> Json {
        let items: Vec<Json> = (0..dice.below(4)).map(|_| item(dice)).collect();
        let mut value = json!({ "n": dice.below(5), "list": items });
        if dice.percent(60) {
            value["word"] = (*dice.pick(&["a", "b", "{{vars.n}}", "", "ä \"q\" $x"])).into();
        }
        if dice.percent(30) {
            value["deep"] = json!({ "list": [dice.below(3)], "none": null, "half": 0.5 });
        }
        if dice.percent(self.large) {
            value["much"] = large_text();
        }
        value
    }
}

impl ReplySource for RandomReplies {
    /// Answers an agent step. The first attempt may meet a failure of the client.
    fn reply(&self, request: TurnRequest<'_>, now: Timestamp) -> Reply {
        let cost = Cost::Reported(Micros(COST));
        let mut dice =
            Dice::keyed(self.seed, &format!("trouble {} {}", request.state, request.turn));
        // Only the first attempt, so that no agent step fails for good: the reference knows no
        // client failures.
        if request.attempt == 1 && dice.percent(self.failures) {
            let why = || "as planned".to_owned();
            let failure = match dice.below(3) {
                0 => TurnFailure::Transient { why: why() },
                1 => TurnFailure::Timeout { clock: Clock::Wall, after: Span::seconds(9) },
                _ => TurnFailure::Quota { until: Some(now + Span::minutes(20)), why: why() },
            };
            return Reply::Fails(failure, cost);
        }
        // The turn is the attempt of the step, because each invalid answer gets a new turn.
        let (answer, valid) = self.answer(request.state, request.turn);
        Reply::Answers(answer, if valid { Valid::Yes } else { Valid::No }, cost)
    }

    fn exec(&self, mode: &str, key: &str, attempt: u32, call: &Json) -> ProgramResult {
        self.exec(mode, key, attempt, call)
    }
}

/// Returns the schema of every valid answer.
pub fn schema() -> Json {
    json!({
        "type": "object",
        "required": ["n", "list"],
        "properties": { "n": { "type": "integer" }, "list": { "type": "array" } },
    })
}

/// Returns a text that does not fit into a record.
fn large_text() -> Json {
    "much ".repeat(3_500).into()
}

fn item(dice: &mut Dice) -> Json {
    match dice.below(6) {
        0 => json!(dice.below(3)),
        1 => json!(["x", [], null]),
        2 => Json::Null,
        3 => json!({ "id": dice.below(3), "list": [1, 2] }),
        4 => json!({ "id": "x", "list": [] }),
        _ => json!("word"),
    }
}
