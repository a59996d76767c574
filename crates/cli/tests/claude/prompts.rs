//! The client gets exactly the rendered body on stdin, for any content.

use crate::stage::Stage;

const END: &str = "fake: say <result>done</result>";

#[test]
fn first_turn_sends_exactly_the_body() {
    let check = |file: &str, sent: &str| {
        let stage = Stage::of(&[("wf/START.md", file)]);
        // A variable that no state uses is refused.
        let var = if file.contains("name }}") { " --var name=Ada" } else { "" };
        stage.run(&format!("--input in{var}")).prints("done\n").mentions(0, &[]);
        assert_eq!(stage.prompts_sent(), [sent]);
    };
    check(&format!("Work.\n{END}\n"), &format!("Work.\n{END}\n"));
    check(&format!("no newline at the end\n{END}"), &format!("no newline at the end\n{END}"));
    check(&format!("\n\n  spaces  \n{END}\n\n\n"), &format!("\n\n  spaces  \n{END}\n\n\n"));
    check(&format!("a\r\n{END}\r\n"), &format!("a\r\n{END}\r\n"));
    check(&format!("---\nmodel: opus\n---\nWork.\n{END}\n"), &format!("Work.\n{END}\n"));
    check(
        &format!("äöü € 🦀 \u{7} $HOME `x` \"y\"\n{END}"),
        &format!("äöü € 🦀 \u{7} $HOME `x` \"y\"\n{END}"),
    );
    check(
        &format!(
            "{{{{input}}}} {{{{ name }}}} {{{{run_id}}}} {{{{agent_id}}}} {{{{state}}}} {{{{visit}}}}\n{END}"
        ),
        &format!("in Ada r main START.md 1\n{END}"),
    );
}

// proves: S29
#[test]
fn long_prompt_goes_by_stdin_not_argv() {
    let secret = "s3cret ".repeat(100_000);
    let stage = Stage::of(&[("wf/START.md", &format!("{secret}\n{END}\n"))]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let [only] = stage.invocations().try_into().unwrap();
    assert_eq!(only.stdin, Some(format!("{secret}\n{END}\n")));
    assert!(!only.argv.concat().contains("s3cret"), "{:?}", only.argv);
    assert!(!only.environment.values().any(|value| value.contains("s3cret")));
}

#[test]
fn results_are_delivered_byte_for_byte() {
    let payload = "  two\\nlines <b>&amp;</b> {{name}}  ";
    let stage = Stage::prompts(&[
        ("START", "fake: say <function return='BACK'>SUB</function>"),
        ("BACK", "[{{result}}]\nfake: say <result>done</result>"),
    ]);
    stage.project.write("wf/SUB.md", format!("SUB\nfake: say <result>{payload}</result>\n"));
    stage.run("").prints("done\n").mentions(0, &[]);
    let expected =
        "BACK\n[  two\nlines <b>&amp;</b> {{name}}  ]\nfake: say <result>done</result>\n";
    assert_eq!(stage.prompts_sent()[2], expected);
}

#[test]
fn logs_show_prompts_as_they_were_sent() {
    let stage = Stage::prompts(&[
        (
            "START",
            "{{run_id}} {{visit}}\nfake: say no tag\nfake: say <function return='BACK'>SUB</function>",
        ),
        ("SUB", "fake: say <result>two  \\n lines</result>"),
        ("BACK", "[{{result}}]\nfake: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let turns = stage.project.raymond("logs r --prompts --json").json()["turns"].take();
    let prompt = |turn: &serde_json::Value| turn["said"][0]["text"].as_str().unwrap().to_owned();
    let shown: Vec<String> = turns.as_array().unwrap().iter().map(prompt).collect();
    assert_eq!(shown, stage.prompts_sent());
    assert!(shown.len() > 2, "{shown:?}");
    assert_eq!(turns[0]["said"][0]["kind"], "prompt");
}

#[test]
fn only_the_final_message_is_read() {
    let stage = Stage::prompts(&[
        (
            "START",
            "fake: say <goto>WRONG</goto>
            fake: tool-tag <goto>WRONG</goto>
            fake: say well, <goto>\\nEN
            fake: more D</goto>",
        ),
        ("WRONG", "fake: say <result>wrong</result>"),
        ("END", "fake: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.invocations().len(), 2);
}

#[test]
fn tag_in_tool_output_is_ignored() {
    let stage = Stage::prompts(&[(
        "START",
        "fake: tool-tag <result>wrong</result>
        fake: say I have looked
        fake[reminder]: say <result>right</result>",
    )]);
    stage.run("").prints("right\n").mentions(0, &["reminder 1"]);
}

#[test]
fn the_last_of_several_results_counts() {
    let stage = Stage::prompts(&[(
        "START",
        "fake: say <result>early</result>
        fake: cost 0.1
        fake: background
        fake: wait gate
        fake: notify
        fake: say <result>late</result>
        fake: cost 0.2",
    )]);
    let running = stage.start_run("");
    stage.reaches("gate");
    stage.opens("gate");
    running.wait().prints("late\n").mentions(0, &[]);
    assert_eq!(stage.charges(), [("main.1.1".into(), 300_000, "reported".into())]);
}
