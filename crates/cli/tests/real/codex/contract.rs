//! The suite of every backend, passed by the real client.

use std::sync::atomic::{AtomicU32, Ordering};

use raymond_backends::codex::{Codex, Settings};
use raymond_backends::conformance::{Bench, Situation, violations};
use raymond_backends::contract::{Backend, Request, Started};
use raymond_core::ids::{Nonce, SessionId, TurnId};
use raymond_core::machine::SessionPlan;
use raymond_core::run::Permissions;
use raymond_core::run::effect::Extras;

use crate::clients;
use crate::stage::Stage;

struct Real {
    stage: Stage,
    codex: Codex,
    requests: AtomicU32,
}

impl Bench for Real {
    fn backend(&self) -> &dyn Backend {
        &self.codex
    }

    fn request(&self, situation: Situation) -> Request {
        let model = match situation {
            Situation::Replies | Situation::KnowsNoSession => "say hello",
            Situation::RepliesDifferently => "say something else",
            Situation::Hangs => "hang",
            Situation::Fails => "error 400",
            Situation::FailsTransiently => "error 500",
            Situation::IsOverQuota => "error 429 type=usage_limit_reached",
            Situation::IsLoggedOut => "error 401",
        };
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
            prompt: format!("model: {model}"),
            notice: None,
            cwd: self.stage.project.root(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: Some(vec!["PATH".to_owned()]),
        }
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn the_real_client_keeps_every_rule_of_a_backend() {
    let command = clients::codex().into();
    let codex = Codex::new(Settings { command, ..Settings::default() });
    let bench = Real { stage: Stage::new(), codex, requests: AtomicU32::new(0) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(violations(&bench)), []);
}
