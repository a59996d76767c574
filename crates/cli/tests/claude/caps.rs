//! A cap that is lowered on resume binds clients that outlived their owner.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::until;
use crate::stage::Stage;

/// A turn that waits at a gate, and then spends $8.
fn stage() -> Stage {
    Stage::prompts(&[(
        "START",
        "fake[1]: usage 1000 100
        fake[1]: tool Bash make
        fake[1]: wait gate
        fake[1]: cost 8
        fake[1]: say <result>expensive</result>
        fake[2]: say <result>cheap</result>",
    )])
}

/// Kills the owner while its client waits at the gate.
fn killed(stage: &Stage, flags: &str) -> u32 {
    let running = stage.start_run(flags);
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    let client = stage.invocations()[0].pid;
    assert!(stage.is_ours(client), "the client outlives its owner");
    client
}

// proves: A1
#[test]
fn lower_cap_replaces_the_share_of_adopted_client() {
    for flags in ["--budget 10", "--budget none"] {
        let stage = stage();
        let client = killed(&stage, flags);
        stage.raymond("resume r --budget 1 --plan").prints(
            "r: reused 0 turns ($0.00), continuing 1, repeating 0
  main             START.md: ending its client, whose budget share exceeds the new cap; continuing in \
             its session\n",
        );
        assert!(stage.is_ours(client), "a plan ends nothing");
        let resumed = stage.start("resume r --budget 1");
        until("the client is ended", || !stage.is_ours(client));
        stage.opens("gate");
        resumed
            .wait()
            .prints("cheap\n")
            .mentions(0, &["budget share exceeds the new cap; ending its client"]);
        let sent = stage.invocations();
        assert_eq!(sent.len(), 2, "{flags}");
        let share: f64 = sent[1].values("--max-budget-usd")[0].parse().unwrap();
        assert!(share < 1.0, "{flags}: a share of {share}");
        assert_eq!(sent[1].values("--resume"), [sent[0].session.as_deref().unwrap()]);
        let status = stage.raymond("status r --json").json();
        assert_eq!(status["budget_usd"], json!(1.0));
        assert!(status["spent_usd"].as_f64().unwrap() < 1.0, "{status:#}");
        stage.leaves_nothing();
    }
}

#[test]
fn adopted_client_within_the_new_cap_finishes() {
    let stage = stage();
    killed(&stage, "--budget 10");
    let resumed = stage.start("resume r --budget 20");
    until("the client is adopted", || resumed.stderr_contains("adopting 1"));
    stage.opens("gate");
    resumed.wait().prints("expensive\n").mentions(0, &[]);
    assert_eq!(stage.invocations().len(), 1);
    stage.leaves_nothing();
}
