//! Effects are complete: another process can execute them.

use serde_json::json;

use super::play::{Play, workflow};
use super::steps::{exec, steps};
use crate::crayfish::render::{CallIo, StepCommand};
use crate::run::Effect;
use crate::run::program::AnswerSource;
use crate::run::stop::StopMode;
use crate::run::turn_spec::{PromptText, Work};

/// Returns the effects of the last input, after a round trip through JSON.
fn sent(play: &Play) -> Vec<Effect> {
    let effects = play.effects();
    let text = serde_json::to_string(&effects).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Effect>>(&text).unwrap(), effects);
    effects
}

fn works(play: &Play) -> Vec<Work> {
    let work = |effect| match effect {
        Effect::Start(spec) => Some(spec.work),
        Effect::Cancel { .. } | Effect::Finish => None,
    };
    sent(play).into_iter().filter_map(work).collect()
}

fn messages(play: &Play) -> Vec<PromptText> {
    let message = |work| match work {
        Work::Prompt(prompt) => Some(prompt.message),
        Work::Script(_) | Work::Exec(_) => None,
    };
    works(play).into_iter().filter_map(message).collect()
}

#[test]
fn prompts_contain_their_text_and_values() {
    let files = [("A.md", "see {{result}} and {{color}}"), ("B.md", "x")];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", r#"<fork next="B" color="red">A</fork>"#);
    let bodies: Vec<_> = messages(&play)
        .into_iter()
        .map(|message| match message {
            PromptText::Body { body, values } => (body.to_string(), values),
            other @ (PromptText::Reminder(_) | PromptText::Request { .. }) => panic!("{other:?}"),
        })
        .collect();
    let (body, values) = bodies.iter().find(|(_, values)| values.state == "A.md".into()).unwrap();
    assert_eq!((body.as_str(), values.visit), ("see {{result}} and {{color}}", 1));
    assert_eq!(values.attributes.get("color"), Some(&"red".into()));

    play.says("main", "no tag");
    let [PromptText::Reminder(text)] = &messages(&play)[..] else { panic!("{:?}", play.effects()) };
    assert!(text.contains("no transition tag"), "{text}");
}

#[test]
fn scripts_contain_their_source_and_input() {
    let mut play = Play::new(workflow(&[("A.md", "x"), ("S.sh", "echo hi")])).started();
    play.says("main", r#"<goto input="7">S</goto>"#);
    let [Work::Script(script)] = &works(&play)[..] else { panic!("{:?}", play.effects()) };
    assert_eq!(&*script.source.bytes, b"echo hi");
    assert_eq!(script.values.input, Some("7".into()));
}

#[test]
fn steps_contain_their_calls_and_schemas() {
    let output = json!({ "type": "number" });
    let io = json!({ "mode": "stream", "outputSchema": output });
    let program = json!({ "id": "a", "kind": "exec", "shell": "echo {{vars.list[0]}}", "io": io });
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": output });
    let mut play = steps(AnswerSource::Backend, &json!([program, asks]));
    play.start();
    let [Work::Exec(exec)] = &works(&play)[..] else { panic!("{:?}", play.effects()) };
    assert_eq!(exec.call.command, StepCommand::Shell("echo 1".to_owned()));
    let CallIo::Stream { output_schema, .. } = &exec.call.io else { panic!("{:?}", exec.call.io) };
    assert_eq!(output_schema.as_deref(), Some(&output));

    super::steps::leaves(&mut play, "main", &json!({ "ok": true, "json": 1 }));
    let [PromptText::Request { text, schema }] = &messages(&play)[..] else {
        panic!("{:?}", play.effects())
    };
    assert_eq!(**schema, output);
    assert!(text.contains("outputSchema"), "{text}");
}

#[test]
fn cancels_and_the_end_are_effects() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a")]));
    play.start();
    play.stop(StopMode::Now);
    assert!(matches!(sent(&play)[..], [Effect::Cancel { .. }]), "{:?}", play.effects());
}
