//! The suite of every backend, passed by the real client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raymond_backends::codex;
use raymond_backends::conformance::{Bench, Situation, violations};
use raymond_backends::contract::{Answer, Backend, Request, Started, Watch};
use raymond_backends::headless::Settings;
use raymond_core::ids::{Nonce, SessionId, TurnId};
use raymond_core::machine::SessionPlan;
use raymond_core::run::Permissions;
use raymond_core::run::effect::Extras;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::alone::{finished, wrapped};
use crate::clients;
use crate::stage::Stage;

struct Real {
    stage: Stage,
    codex: Arc<dyn Backend>,
    requests: AtomicU32,
}

impl Bench for Real {
    fn backend(&self) -> &dyn Backend {
        self.codex.as_ref()
    }

    fn request(&self, situation: Situation) -> Request {
        let model = match situation {
            Situation::Replies | Situation::KnowsNoSession => "say hello",
            Situation::RepliesDifferently => "say something else",
            Situation::Complies => "say {\"a\":1}",
            Situation::NeverComplies => "say never",
            Situation::SpendsTooMuch => {
                "tool exec_command {\"cmd\": \"sleep 2\"}\nmodel: say never"
            }
            Situation::Hangs => "hang",
            Situation::Fails => "error 400",
            Situation::FailsTransiently => "error 500",
            Situation::IsOverQuota => "error 429 type=usage_limit_reached",
            Situation::IsLoggedOut => "error 401",
        };
        self.asking(&format!("model: {model}"))
    }

    fn shown(&self) -> Option<Vec<String>> {
        self.stage.last_shown()
    }
}

impl Real {
    fn new() -> Self {
        let stage = Stage::new();
        let codex = codex::client(Settings::of(wrapped(&stage, &clients::codex())));
        Self { stage, codex, requests: AtomicU32::new(0) }
    }

    /// A fresh turn with this prompt.
    fn asking(&self, prompt: &str) -> Request {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let chosen = format!("00000000-0000-8000-8000-{number:012}");
        Request {
            started: Started {
                nonce: Nonce::new("conformance"),
                turn: TurnId::try_from(format!("main.{}.1", number + 1)).unwrap(),
                attempt: 1,
                plan: SessionPlan::Fresh(SessionId::new(chosen)),
                transcript: self.stage.project.path(&format!("{number}.jsonl")),
                timeout: None,
                idle_timeout: None,
                cap: None,
                config_home: Some(self.stage.home().join("codex")),
            },
            state: "START.md".into(),
            count: 1,
            prompt: prompt.to_owned(),
            notice: None,
            cwd: self.stage.project.root(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: None,
        }
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn the_real_client_keeps_every_rule_of_a_backend() {
    let bench = Real::new();
    assert_eq!(finished(violations(&bench)), []);
    bench.stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn json_that_a_schema_asked_for_is_there_whatever_its_shape() {
    let bench = Real::new();
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "number" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    let check = |text: &str, expected: Option<Value>| {
        let request = bench.asking(&format!("model: say {text}"));
        let request = Request { schema: Some(schema.clone()), ..request };
        let watch = Watch::unseen(CancellationToken::new());
        let Answer::Replied(reply) = finished(bench.codex.answer(request, watch)) else {
            panic!("it replied")
        };
        assert_eq!((reply.text.as_str(), reply.structured), (text, expected));
    };
    check(r#"{"a":1}"#, Some(json!({ "a": 1 })));
    check(r#"{"b":"another shape"}"#, Some(json!({ "b": "another shape" })));
    check("never", None);
    let formats: Vec<Value> = bench
        .stage
        .requests()
        .into_iter()
        .map(|mut seen| seen.body["text"]["format"].take())
        .collect();
    assert_eq!(formats.len(), 3);
    assert!(formats.iter().all(|format| format["schema"] == schema), "{formats:?}");
    bench.stage.leaves_nothing();
}
