//! The clients have the pinned versions, and reach only this machine.

use raymond_testkit::model::{Api, ConversationItem, Role};

use crate::clients;
use crate::stage::Stage;

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn installed_client_is_the_pinned_version() {
    let stage = Stage::new();
    let version = stage.spawn(&clients::claude(), &["--version"]).wait();
    version.prints(&format!("{}\n", clients::printed_version("claude"))).mentions(0, &[]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn run_sends_only_the_prompt_to_the_model() {
    let stage = Stage::new();
    // A request to another address arrives at this proxy and is recorded.
    let stage = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .into_iter()
        .fold(stage, |stage, name| {
            let entry = format!("{name}={}", stage.model.url());
            stage.with(&entry)
        })
        .with("NO_PROXY=127.0.0.1");
    let prompt = "  Say hello.\n\nmodel: think hm\nmodel: say <result>hello</result>\n";
    stage.state("1_START.md", prompt);
    stage.run("--budget 5").prints("hello\n").mentions(0, &["spent $0.0060 of $5.00"]);
    let requests = stage.model.requests();
    let [request] = requests.as_slice() else { panic!("one request: {requests:#?}") };
    assert_eq!(request.api, Api::Messages);
    assert_eq!(request.conversation, [ConversationItem::new(Role::User, prompt)]);
    assert_eq!(request.header("x-api-key"), Some("sk-not-a-key"));
    assert!(request.tools.iter().any(|tool| tool == "Bash"), "{:?}", request.tools);
    assert!(request.is_answered());
    assert_eq!((stage.spent(), stage.billed()), (6_000, 6_000));
    stage.leaves_nothing();
}
