//! The example `eight-steps`, and its conversations on the page of patterns.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::stage::{ExampleRun, Expected, Stage, top};

#[test]
fn issue_is_planned_built_and_closed_once() {
    let stage = ExampleRun::of("eight-steps", "replies.yaml").go();
    let expected = ["start", "stats.sh counts words, too (closes #195)"];
    assert_eq!(stage.commits("main"), expected);
    let changed = stage.prints("git show --format= --name-status");
    let expected = "R100\tissues/195.md\tissues/closed/195.md
A\tplans/195.md
M\tstats.sh
A\ttests/words.sh
";
    assert_eq!(changed, expected);
    assert_eq!(stage.prints("git status --porcelain"), "");
}

#[test]
fn calls_without_rounds_left_still_return() {
    let stage = ExampleRun::of("eight-steps", "hopeless.yaml").go();
    assert_eq!(stage.commits("main"), ["start"]);
    let moves = stage.events();
    let moves = moves.iter().filter_map(|event| event.get("moved"));
    let stack: Vec<&Value> = moves.map(|moved| &moved["stack"]).collect();
    let pushed = stack.iter().filter(|change| change.get("push").is_some()).count();
    let popped = stack.iter().filter(|change| **change == "pop").count();
    assert_eq!((pushed, popped), (3, 3));
}

const TOO_MANY: Expected = Expected::GivesUp("not done: too many rounds");

/// Plays other replies for one state.
#[track_caller]
fn go_with(state: &str, reply: &str, expected: Expected) -> Stage {
    let run = ExampleRun::of("eight-steps", "replies.yaml");
    let stage = Stage::of("eight-steps");
    let replies = stage.read("replies.yaml");
    let at = replies.find(&format!("\n{state}:")).unwrap() + 1;
    let rest = replies[at..].split_inclusive('\n').skip(1);
    let rest: String = rest.skip_while(|line| line.starts_with(' ')).collect();
    stage.write("replies.yaml", &format!("{}{state}:\n{reply}\n{rest}", &replies[..at]));
    let output = stage.start(run).wait();
    expected.check(&output);
    stage
}

#[test]
fn run_without_open_issues_does_nothing() {
    let stage = Stage::of("eight-steps");
    stage.prints("git rm --quiet issues/196.md && git commit --quiet --message 'one is left'");
    let replies = stage.read("replies.yaml");
    let expect = "expect: \"issues/195.md: Count words, too\"";
    let replies = replies.replace("expect: [Count words, Rename a variable]", expect);
    stage.write("replies.yaml", &replies);
    let run = |run: &str| {
        stage.prints(&format!(
            "raymond run ../workflow --replies ../replies.yaml --run-id {run} --quiet"
        ))
    };
    assert_eq!(run("one"), "closed 195: stats.sh counts words, too (closes #195)\n");
    assert_eq!(run("none"), "nothing to do\n");
}

#[test]
fn bad_commit_message_is_requested_again_within_limits() {
    let message = "closed 195: Words (closes #195)";
    let again = "  - <goto>CLOSE</goto>
  - { text: '<goto input=\"Words (closes #7)\">CLOSE</goto>', expect: must end with }
  - { text: '<goto input=\"Words (closes #195)\">CLOSE</goto>', expect: must end with }";
    let stage = go_with("COMMIT", again, Expected::Prints(message));
    assert_eq!(stage.commits("main"), ["start", "Words (closes #195)"]);
    let stage = go_with("COMMIT", "  text: <goto>CLOSE</goto>", TOO_MANY);
    assert_eq!(stage.commits("main"), ["start"]);
}

#[test]
fn late_edits_are_tested_before_commit() {
    let breaks = "  text: '<goto input=\"Words (closes #195)\">CLOSE</goto>'
  write: { stats.sh: \"exit 1\\n\" }";
    let stage = go_with("COMMIT", breaks, TOO_MANY);
    assert_eq!(stage.commits("main"), ["start"]);
    assert!(stage.has("try/issues/195.md"));
}

#[test]
fn missing_plan_ends_the_run() {
    let no_plan = Expected::GivesUp("not done: there is no plan");
    let stage = go_with("PLAN", "  text: <result>plans/none.md</result>", no_plan);
    assert_eq!(stage.commits("main"), ["start"]);
}

/// One letter for each conversation, in the order in which they begin.
#[derive(Default)]
struct Conversations(BTreeMap<String, char>);

impl Conversations {
    fn letter(&mut self, session: &Value) -> char {
        let next = (b'A'..=b'Z').map(char::from).nth(self.0.len()).unwrap();
        *self.0.entry(session.as_str().unwrap().to_owned()).or_insert(next)
    }

    fn describe(&mut self, plan: &Value) -> String {
        if let Some(session) = plan.get("fresh") {
            return format!("{}, fresh", self.letter(session));
        }
        if let Some(branch) = plan.get("branch") {
            let from = self.letter(&branch["from"]);
            return format!("{}, a branch of {from}", self.letter(&branch["to"]));
        }
        plan.get("resume").map(|session| self.letter(session).to_string()).unwrap_or_default()
    }
}

/// The table of a run: each visit with its conversation and the return stack.
fn table(events: &[Value]) -> String {
    let (mut conversations, mut stack) = (Conversations::default(), Vec::new());
    let mut state = String::new();
    let mut table = String::new();
    for event in events {
        if let Some(entered) = event.get("visit_entered") {
            entered["location"]["state"].as_str().unwrap().clone_into(&mut state);
        } else if let Some(started) = event.get("turn_started") {
            let conversation = conversations.describe(&started["plan"]);
            let line = format!("{state:<14} {conversation:<18} {}", stack.join(" "));
            writeln!(table, "{}", line.trim_end()).unwrap();
        } else if let Some(moved) = event.get("moved") {
            if let Some(frame) = moved["stack"].get("push") {
                stack.push(frame["state"].as_str().unwrap().to_owned());
            } else if moved["stack"] == "pop" {
                stack.pop();
            }
        }
    }
    table
}

#[test]
fn patterns_page_shows_the_real_conversations() {
    let stage = ExampleRun::of("eight-steps", "replies.yaml").go();
    let table = table(&stage.events());
    let page = fs::read_to_string(top().join("docs/patterns.md")).unwrap();
    assert!(page.contains(&table), "docs/patterns.md does not hold\n{table}");
}
