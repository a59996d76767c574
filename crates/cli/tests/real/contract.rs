//! The real client passes the suite that every backend passes.

use std::time::Duration;

use raymond_backends::conformance::{Bench, Situation, violations};
use raymond_backends::contract::{Backend, Request};

use crate::alone::{Alone, finished};

impl Bench for Alone {
    fn backend(&self) -> &dyn Backend {
        self.claude.as_ref()
    }

    fn request(&self, situation: Situation) -> Request {
        self.request(match situation {
            Situation::Replies | Situation::KnowsNoSession => "model: say done",
            Situation::RepliesDifferently => "model: say something else",
            Situation::Complies => "model: tool StructuredOutput {\"a\":1}\nmodel: say done",
            Situation::NeverComplies => "model: say never\nmodel: then\nmodel: say never",
            Situation::SpendsTooMuch => "model: tool Bash {\"command\":\"pwd\"}\nmodel: say never",
            Situation::Hangs => "model: hang",
            Situation::Fails => "model: error 400",
            Situation::FailsTransiently => "model: error 529",
            Situation::IsOverQuota => "model: error 429 retry-after=3600",
            Situation::IsLoggedOut => "model: error 401",
        })
    }

    fn shown(&self) -> Option<Vec<String>> {
        self.stage.last_shown()
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(1)
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn the_backend_conforms() {
    let alone = Alone::new();
    assert_eq!(finished(violations(&alone)), []);
    alone.stage.leaves_nothing();
}
