//! `ralph`: every iteration is a conversation of its own.

use crate::stage::Stage;

#[test]
fn iterations_use_fresh_sessions() {
    let stage = Stage::of(&[(
        "PROMPT.md",
        "PROMPT
fake[1]: say <goto>PROMPT</goto>
fake[2]: wait gate
fake[2-]: say <result>done</result>
",
    )]);
    let running = stage.start("ralph PROMPT.md --run-id r --until ((${#RAYMOND_RESULT}))");
    stage.reaches("gate");
    running.signal(rustix::process::Signal::INT);
    running.wait().mentions(130, &["to continue: raymond resume r"]);
    stage.raymond("resume r").prints("done\n").mentions(0, &["PROMPT.md → UNTIL.sh #2 (result)"]);
    let expected = ["new A | PROMPT", "new B | PROMPT", "resume B | PROMPT, again PROMPT"];
    assert_eq!(stage.turn_contexts(), expected);
    stage.leaves_nothing();
}
