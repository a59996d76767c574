//! The real client passes the test suite of all backends.

use raymond_backends::conformance::{Situation, violations};

use crate::alone::{Alone, finished};

/// The prompt that leads the model to each situation.
pub(crate) fn prompts(situation: Situation) -> &'static str {
    match situation {
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
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn backend_conforms() {
    let alone = Alone::claude();
    assert_eq!(finished(violations(&alone)), []);
    alone.stage.leaves_nothing();
}
