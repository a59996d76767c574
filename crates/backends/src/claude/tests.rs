//! The client as a small script: how it is started, followed, found again, and read.

use super::*;

pub(super) fn request(prompt: &str) -> Request {
    use raymond_core::run::Permissions;
    use raymond_core::run::effect::Extras;
    let started = Started {
        nonce: "c0ffee".into(),
        turn: "main.1.1".to_owned().try_into().unwrap(),
        attempt: 1,
        plan: SessionPlan::Fresh("s".into()),
        transcript: "/nowhere/main.1.1.1.jsonl".into(),
        timeout: None,
        idle_timeout: None,
    };
    Request {
        started,
        state: "START.md".into(),
        count: 1,
        prompt: prompt.to_owned(),
        notice: None,
        cwd: "/".into(),
        model: None,
        effort: None,
        cap: None,
        permissions: Permissions::default(),
        extras: Extras::default(),
        config_home: None,
        environment: None,
    }
}
