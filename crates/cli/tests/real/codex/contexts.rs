//! Every transition: which thread its turn gets, and what the model sees there.

use raymond_testkit::model::{Api, ConversationItem, Role};

use super::{TOOL, run, turn_contexts};
use crate::clients;
use crate::stage::Stage;

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn doctor_names_the_version_of_codex() {
    let stage = Stage::new();
    let version = stage.spawn(&clients::codex(), &["--version"]).wait();
    version.prints(&format!("{}\n", clients::printed_version("codex")));
    let doctor = stage.raymond("doctor");
    let line = format!("codex {} ({})", clients::version("codex"), clients::codex().display());
    assert!(doctor.stdout.contains(&line), "{}", doctor.stdout);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn run_sends_only_the_prompt_to_the_model() {
    let stage = Stage::new();
    let stage = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .into_iter()
        .fold(stage, |stage, name| {
            let entry = format!("{name}={}", stage.model.url());
            stage.with(&entry)
        })
        .with("NO_PROXY=127.0.0.1");
    let prompt = "  Say hello.\n\nmodel: think hm\nmodel: say <result>hello</result>\n";
    stage.state("1_START.md", prompt);
    let output = run(&stage, "--budget 5 --effort high");
    output.prints("hello\n").mentions(0, &["spent $0.0080 of $5.00", "$0.0080 of it estimated"]);
    let requests = stage.model.requests();
    let [request] = requests.as_slice() else { panic!("one request: {requests:#?}") };
    assert_eq!((request.api, request.model.as_str()), (Api::Responses, "gpt-5.5"));
    assert_eq!(request.conversation, [ConversationItem::new(Role::User, prompt)]);
    assert_eq!(request.header("authorization"), Some("Bearer sk-not-a-key"));
    assert_eq!(request.body["reasoning"]["effort"], "high");
    let offers = |name: &str| request.tools.iter().any(|tool| tool == name);
    assert!(offers("exec_command"), "{:?}", request.tools);
    assert!(!offers("create_goal"), "it would outlive its turn: {:?}", request.tools);
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn only_goto_sees_the_earlier_turns() {
    let stage = Stage::prompts(&[
        ("START", "model: say <goto>NEXT</goto>"),
        ("NEXT", "model: say hm\nmodel: then\nmodel: say <reset>FRESH</reset>"),
        ("FRESH", "model: say <function return='BACK'>PURE</function>"),
        ("PURE", "model: say <result>found</result>"),
        ("BACK", "got {{result}}\nmodel: say <result>{{result}}!</result>"),
    ]);
    run(&stage, "").prints("found!\n").mentions(0, &[]);
    let turn_contexts = turn_contexts(&stage);
    assert_eq!(
        turn_contexts[..2],
        ["new A | START", "resume A | START, <goto>NEXT</goto>, NEXT"].map(str::to_owned)
    );
    assert!(
        turn_contexts[2].starts_with("resume A | START, <goto>NEXT</goto>, NEXT, hm, "),
        "{}",
        turn_contexts[2]
    );
    assert_eq!(
        turn_contexts[3..],
        [
            "new B | FRESH",
            "new C | PURE",
            "resume B | FRESH, <function return='BACK'>PURE</function>, BACK",
        ]
        .map(str::to_owned)
    );
    assert_eq!(stage.spent(), stage.billed(), "what the model took is what was paid");
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn caller_sees_only_the_result_of_callee() {
    let stage = Stage::prompts(&[
        ("START", "model: say <call return='BACK'>SUB</call>"),
        (
            "SUB",
            "of the zebra
            model: think thought of the zebra
            model: tool exec_command {\"cmd\": \"echo tool of the zebra > made.txt\"}
            model: say <call return='MORE'>DEEP</call>",
        ),
        ("DEEP", "of the zebra\nmodel: say <result>1</result>"),
        ("MORE", "of the zebra\nmodel: say <result>{{result}}2</result>"),
        ("BACK", "got {{result}}\nmodel: say <result>{{result}}3</result>"),
    ]);
    run(&stage, "").prints("123\n").mentions(0, &[]);
    let start = "START, <call return='BACK'>SUB</call>";
    let sub = format!("{start}, SUB, exec_command, done, <call return='MORE'>DEEP</call>");
    let expected = [
        "new A | START".to_owned(),
        format!("branch A to B | {start}, SUB"),
        format!("branch B to C | {sub}, DEEP"),
        format!("resume B | {sub}, MORE"),
        format!("resume A | {start}, BACK"),
    ];
    assert_eq!(turn_contexts(&stage), expected);
    let requests = stage.requests();
    let zebra =
        |seen: &raymond_testkit::model::RecordedRequest| seen.body.to_string().contains("zebra");
    let of_it: Vec<bool> = requests.iter().map(zebra).collect();
    assert_eq!(of_it, [false, true, true, true, true, false], "of all that the client sent");
    assert_eq!(stage.project.read("made.txt"), "tool of the zebra\n");
    assert_eq!(stage.spent(), stage.billed(), "a fork does not pay for its parent");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn permissions_become_the_sandbox() {
    let write =
        "model: tool exec_command {\"cmd\": \"echo x > here.txt; echo x > /root-of-all.txt\"}";
    let stage = Stage::prompts(&[
        ("START", &format!("permission_mode: plan\n---\n{write}\nmodel: say <goto>NEXT</goto>")),
        ("NEXT", &format!("{write}\nmodel: say <result>{{{{visit}}}}</result>")),
    ]);
    let plan = run(&stage, "");
    plan.mentions(0, &[]);
    assert!(stage.project.path("here.txt").exists(), "NEXT may write where it works");
    let outcomes: Vec<String> = stage.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert_eq!(outcomes[1].matches("Read-only file system").count(), 2, "{}", outcomes[1]);
    assert_eq!(outcomes[3].matches("Read-only file system").count(), 3, "{}", outcomes[3]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn megabyte_prompt_arrives_unchanged() {
    let stage = Stage::new();
    let prompt =
        format!("START {}\n{TOOL}\nmodel: say <result>read</result>\n", "x".repeat(1_000_000));
    stage.state("START.md", &prompt);
    run(&stage, "").prints("read\n").mentions(0, &[]);
    assert_eq!(stage.requests()[1].conversation[0], ConversationItem::new(Role::User, prompt));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn unsupported_options_are_rejected_before_spending() {
    let check = |front: &str, flags: &str, part: &str| {
        let stage =
            Stage::prompts(&[("START", &format!("{front}---\nmodel: say <result>x</result>"))]);
        let output = run(&stage, flags);
        output.mentions(2, &[part]);
        assert_eq!(stage.requests().len(), 0, "{front} {flags}");
    };
    check("deny: [Bash]\n", "", "codex");
    check("", "--deny Bash", "codex");
    check("mcp_config: '{}'\n", "", "codex does not support mcp_config");
    check(
        "permission_mode: dontAsk\n",
        "",
        "codex has no equivalent of the permission mode \"dontAsk\"",
    );
    check("effort: hgih\n", "", "codex has no effort \"hgih\"");
}
